"""Fields and what is published of them: they must accept exactly the same."""

from __future__ import annotations

import sys

import jsonschema_rs
from marshmallow import ValidationError

from app.fields import Filled


def accepts(text: str) -> bool:
    try:
        Filled().deserialize(text)
    except ValidationError:
        return False
    return True


def test_a_text_that_must_not_be_blank_is_the_same_to_us_as_to_whoever_reads_the_document() -> None:
    published = jsonschema_rs.Draft202012Validator({"type": "string", "pattern": Filled.SHAPE})
    surrogates = range(0xD800, 0xE000)
    characters = [chr(code) for code in range(sys.maxunicode + 1) if code not in surrogates]
    for start in range(0, len(characters), 97):  # most are visible: those are looked at in bundles
        bundle = characters[start : start + 97]
        if any(map(str.isspace, bundle)) or not accepts("".join(bundle)) or start < 0x3000:
            assert [c for c in bundle if accepts(c) != published.is_valid(c)] == []
    assert not any(map(accepts, ["", " ", "\t\n", "\x1d", "\x85", "\ufeff", "\u3000", "a\0"]))
    assert all(map(accepts, ["a", " a ", "é", "😀", "\x1da"]))
