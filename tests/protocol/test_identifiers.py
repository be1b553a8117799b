"""Which names tickets and operators may have."""

from __future__ import annotations

import pytest

from protocol.identifiers import is_identifier


@pytest.mark.parametrize("text", ["a", "opA", "t-1", "A.b_c:d-9", "x" * 64])
def test_letters_digits_and_four_signs_make_an_identifier(text: str) -> None:
    assert is_identifier(text)


@pytest.mark.parametrize("text", ["", "x" * 65, "a b", "a/b", "é", "a\n", "٣", 'a"', None, 7, b"a"])
def test_anything_else_is_no_identifier(text: object) -> None:
    assert not is_identifier(text)
