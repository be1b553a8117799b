"""Bytes that two strangers agree on: canonical JSON, SHA-256 as hex, and a JSON reader that accepts no
ambiguity.

The rule: whatever is hashed goes through `canonical_json`, and whatever comes from outside and ends in a hash
goes through `parse_strict_json`, so that one text never means two things to two readers.

Implements docs/protocol.md, section 1 (notation).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any

import rfc8785

from protocol.errors import Invalid

DOMAIN = "svc-lottery/v2"
"""Opens every hashed object and message, so that a hash made for one purpose never serves another."""

MAX_DEPTH = 64
"""Deepest nesting of arrays and objects that `parse_strict_json` accepts."""

_HEX_HASH = re.compile(r"[0-9a-f]{64}")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def sha256_hex(data: bytes) -> str:
    """SHA-256 of `data` as 64 lowercase hex digits: `H` of docs/protocol.md, section 1."""
    return hashlib.sha256(data).hexdigest()


def is_hash(value: object) -> bool:
    """Whether `value` is a SHA-256 as this protocol writes it: a string of 64 lowercase hex digits."""
    return isinstance(value, str) and _HEX_HASH.fullmatch(value) is not None


def canonical_json(value: Any) -> bytes:
    """RFC 8785 canonical JSON as UTF-8 bytes: `J` of docs/protocol.md, section 1.

    Raises Invalid for what has no canonical form: NaN, infinities, integers beyond ±(2^53 − 1), lone
    surrogates, keys that are not strings, types JSON does not know, and nesting too deep to write.
    """
    try:
        return rfc8785.dumps(value)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"no canonical JSON form: {str(problem) or 'nested too deeply'}") from None


def hash_object(value: Any) -> str:
    """`H(J(value))`: the hash of a value's canonical JSON (docs/protocol.md, section 1). Raises Invalid like
    `canonical_json`.
    """
    return sha256_hex(canonical_json(value))


def parse_strict_json(text: str | bytes) -> Any:
    """Reads JSON that can mean only one thing (docs/protocol.md, section 1).

    Raises Invalid, and nothing else, for text that is not JSON, for bytes that are not UTF-8 (a byte order
    mark included), for lone surrogates, for a key given twice in one object, for NaN, Infinity and numbers
    too large for a double, and for nesting deeper than MAX_DEPTH.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant, parse_float=_finite_float
        )
        if _SURROGATE_ESCAPE.search(text) or not text.isascii():
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise Invalid("not valid UTF-8") from None
    except RecursionError:
        raise Invalid(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as problem:
        raise Invalid(f"not valid JSON: {problem}") from None
    _check_depth(value)
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Invalid(f"the key {json.dumps(key)} is given twice in one object")
            seen.add(key)
    return mapping


def _refuse_constant(name: str) -> Any:
    raise Invalid(f"not valid JSON: {name} is not a JSON number")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise Invalid("not valid JSON: a number is too large")
    return number


def _check_depth(value: Any) -> None:
    # Level by level instead of by recursion, so that a hostile text cannot use up the stack.
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for node in level
            if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise Invalid(f"nested deeper than {MAX_DEPTH} levels")
