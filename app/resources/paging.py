"""Paging by ``limit`` and ``offset``."""

from marshmallow import Schema

from app.fields import LARGEST_SAFE, QueryWhole

LARGEST_PAGE = 200


def paging(default: int, largest: int = LARGEST_PAGE) -> type[Schema]:
    """A query schema: ``limit`` from 1 to ``largest`` (``default`` unless given) and ``offset`` from 0."""
    return Schema.from_dict(
        {
            "limit": QueryWhole(lowest=1, highest=largest, load_default=default),
            "offset": QueryWhole(lowest=0, highest=LARGEST_SAFE, load_default=0),
        },
        name=f"Paging{default}",
    )
