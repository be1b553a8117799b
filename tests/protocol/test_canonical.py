"""Canonical JSON against RFC 8785's own vectors, and a reader that refuses every ambiguity."""

from __future__ import annotations

import contextlib
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.canonical import (
    MAX_DEPTH,
    canonical_json,
    hash_object,
    is_hash,
    parse_strict_json,
    sha256_hex,
)
from protocol.errors import Invalid

# The test data published with RFC 8785, by name: input and canonical output.
PUBLISHED = {
    "arrays": ('[56, {"d": true, "10": null, "1": [ ]}]', '[56,{"1":[],"10":null,"d":true}]'),
    "french": (
        '{"peach": "This sorting order", "péché": "is wrong according to French", '
        '"pêche": "but canonicalization MUST", "sin": "ignore locale"}',
        '{"peach":"This sorting order","péché":"is wrong according to French",'
        '"pêche":"but canonicalization MUST","sin":"ignore locale"}',
    ),
    "structures": (
        '{"1": {"f": {"f": "hi","F": 5} ,"\\n": 56.0}, "10": { }, "": "empty", "a": { }, '
        '"111": [ {"e": "yes","E": "no" } ], "A": { }}',
        '{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}',
    ),
    "unicode": ('{"Unnormalized Unicode":"A\\u030a"}', '{"Unnormalized Unicode":"A\u030a"}'),
    "values": (
        '{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001], '
        '"string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/", '
        '"literals": [null, true, false]}',
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    ),
    "weird": (
        '{"\\u20ac": "Euro Sign", "\\r": "Carriage Return", "\\u000a": "Newline", "1": "One", '
        '"\\u0080": "Control\\u007f", "\\ud83d\\ude02": "Smiley", '
        '"\\u00f6": "Latin Small Letter O With Diaeresis", '
        '"\\ufb33": "Hebrew Letter Dalet With Dagesh", "</script>": "Browser Challenge"}',
        '{"\\n":"Newline","\\r":"Carriage Return","1":"One","</script>":"Browser Challenge",'
        '"\x80":"Control\x7f","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😂":"Smiley",'
        '"\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    ),
}

# RFC 8785, appendix B: the bits of a double, and how it is written.
DOUBLES = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_vectors_published_with_rfc_8785_come_out_byte_for_byte(name: str) -> None:
    given_text, expected = PUBLISHED[name]
    assert canonical_json(parse_strict_json(given_text)) == expected.encode()


@pytest.mark.parametrize(("bits", "expected"), DOUBLES.items())
def test_doubles_are_written_as_appendix_b_of_rfc_8785_says(bits: str, expected: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_json(number) == expected.encode()


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_nan_and_infinity_have_no_canonical_form(bits: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    with pytest.raises(Invalid):
        canonical_json(number)


@pytest.mark.parametrize("number", [0, 1, -1, 2**53 - 1, 1 - 2**53])
def test_integers_are_written_plainly_within_the_safe_range(number: int) -> None:
    assert canonical_json(number) == str(number).encode()


@pytest.mark.parametrize("value", [2**53, -(2**53), "\ud800", {1: 2}, {"\udfff": 1}, object(), {"a": {1, 2}}])
def test_what_json_cannot_carry_exactly_is_refused(value: object) -> None:
    with pytest.raises(Invalid):
        canonical_json(value)


def test_a_value_nested_without_end_is_refused_and_does_not_overflow_the_stack() -> None:
    bottomless: list[object] = []
    bottomless.append(bottomless)
    with pytest.raises(Invalid):
        canonical_json(bottomless)


def test_hashing_an_object_hashes_its_canonical_json() -> None:
    assert sha256_hex(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    # printf '{"a":1,"b":"x"}' | openssl dgst -sha256
    assert hash_object({"b": "x", "a": 1}) == sha256_hex(b'{"a":1,"b":"x"}')


def test_a_hash_is_64_lowercase_hex_digits() -> None:
    assert is_hash("0f" * 32)
    for other in ("0F" * 32, "0f" * 31, "0f" * 32 + "\n", "0g" * 32, None, 7):
        assert not is_hash(other)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}',
        '[{"x":{"a":1,"b":2,"a":3}}]',
        '{"a":1,"\\u0061":1}',
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e999",
        "[-1e999]",
        "",
        "{",
        "[1,]",
        "{'a':1}",
        "01",
        '"\\ud800"',
        '{"\\udc00":1}',
        "1 2",
        "9" * 5000,
        b"\xff",
        b'"\xc3"',
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        "\ud800",
    ],
)
def test_ambiguous_or_broken_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(Invalid):
        parse_strict_json(text)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1_000, 200_000])
def test_absurd_nesting_is_refused_and_does_not_overflow_the_stack(opening: str, depth: int) -> None:
    closing = "]" if opening == "[" else "}"
    with pytest.raises(Invalid):
        parse_strict_json(opening * depth + "1" + closing * depth)
    with pytest.raises(Invalid):
        parse_strict_json(opening * depth)


def test_nesting_up_to_the_limit_is_read() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert canonical_json(parse_strict_json(text)) == text.encode()


def test_a_repeated_key_is_named() -> None:
    with pytest.raises(Invalid, match='"ticketCount"'):
        parse_strict_json('{"ticketCount":1,"ticketCount":2}')


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
# A larger double may be written as a plain integer, which is then beyond what is read back exactly.
DOUBLE = st.floats(min_value=-(2.0**52), max_value=2.0**52)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | DOUBLE | TEXT,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXT, children, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_canonical_json_read_back_and_written_again_is_the_same(value: object) -> None:
    once = canonical_json(value)
    assert canonical_json(parse_strict_json(once)) == once
    assert json.loads(once) == value


@given(st.text(max_size=40) | st.binary(max_size=40))
def test_the_reader_never_raises_anything_but_invalid(text: str | bytes) -> None:
    with contextlib.suppress(Invalid):
        parse_strict_json(text)
