"""Two streams that should be the same, side by side.

The one rule kept here: both are in the same order and neither is kept, so that what differs is found whatever their
length.
"""

from collections.abc import Iterator
from typing import Any, Literal, TypeVar

Item = TypeVar("Item", bound=tuple[Any, ...])


def differences(
    first: Iterator[Item], second: Iterator[Item]
) -> Iterator[tuple[Literal["first_only", "second_only"], Item]]:
    """What stands in one of two ascending streams and not in the other, in order; reads both to their ends."""
    one, other = next(first, None), next(second, None)
    while one is not None or other is not None:
        if one == other:
            one, other = next(first, None), next(second, None)
        elif other is None or (one is not None and one < other):
            assert one is not None  # else the two were equal
            yield "first_only", one
            one = next(first, None)
        else:
            yield "second_only", other
            other = next(second, None)
