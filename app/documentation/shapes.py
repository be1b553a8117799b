"""Schemas as a person reads them: one row a field, nested ones below their parent.

The one rule kept here: what is shown is what the document says, in fewer words; nothing is known here of any field.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.fields import LARGEST_SAFE

_DEEPEST = 6
_NO_NUL = "\\u0000"


@dataclass(frozen=True)
class Row:
    """A field: its name, how deep it is nested, its kind in words, the rules its value keeps, and what it is for."""

    name: str
    depth: int
    kind: str
    required: bool
    rules: tuple[str, ...]
    meaning: str


def rows_of(schema: Mapping[str, Any], schemas: Mapping[str, Any], depth: int = 0) -> list[Row]:
    """The fields of an object, or of the objects in a list; none for a plain value."""
    shown = _followed(schema, schemas)
    if "oneOf" in shown:
        return [row for choice in shown["oneOf"] for row in _choice(choice, schemas, depth)]
    if shown.get("items"):
        return rows_of(shown["items"], schemas, depth)
    required = shown.get("required", ())
    rows = []
    for name, about in shown.get("properties", {}).items():
        field = _followed(about, schemas)
        kind, nullable = _kind(field, schemas)
        words = f"{kind} or null" if nullable or "anyOf" in about else kind
        rows.append(Row(name, depth, words, name in required, tuple(_rules(field)), field.get("description", "")))
        if depth < _DEEPEST:
            rows += rows_of(field, schemas, depth + 1)
    return rows


def kind_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """What a value is, in words."""
    kind, nullable = _kind(_followed(schema, schemas), schemas)
    return f"{kind} or null" if nullable else kind


def rules_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The rules a plain value keeps, in words."""
    return tuple(_rules(schema))


def _choice(choice: Mapping[str, Any], schemas: Mapping[str, Any], depth: int) -> list[Row]:
    described = _followed(choice, schemas)
    [label] = described["properties"]["type"]["enum"]
    said = described.get("description", "")
    data = described["properties"]["data"]
    return [Row(label, depth, "", False, (), said), *rows_of(data, schemas, depth + 1)]


def _followed(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in schema:
        found: Mapping[str, Any] = schemas[schema["$ref"].rpartition("/")[2]]
        return found
    if "anyOf" in schema:
        return _followed(schema["anyOf"][0], schemas)
    return schema


def _kind(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> tuple[str, bool]:
    kinds = schema.get("type", "any value")
    nullable = isinstance(kinds, list) and "null" in kinds
    kind = next(one for one in kinds if one != "null") if isinstance(kinds, list) else kinds
    if kind == "array":
        item, _ = _kind(_followed(schema["items"], schemas), schemas)
        return f"list of {item}s", nullable
    if "oneOf" in schema:
        return "object", nullable
    return str(schema.get("format", kind)), nullable


def _rules(schema: Mapping[str, Any]) -> list[str]:
    said = []
    if values := [value for value in schema.get("enum", ()) if value is not None]:
        said.append(" · ".join(str(value) for value in values))
    low, high = schema.get("minimum"), schema.get("maximum", LARGEST_SAFE)
    if low is not None:
        said.append(f"from {low:,}" if high >= LARGEST_SAFE else f"{low:,} to {high:,}")
    if least := schema.get("minItems"):
        most = schema.get("maxItems")
        said.append(f"{least} items" if least == most else f"{least:,} to {most:,} items")
    # A pattern that only keeps NUL away says nothing to a reader, and one that says the length says it all.
    pattern = schema.get("pattern", _NO_NUL)
    longest = schema.get("maxLength")
    if longest and _NO_NUL in pattern:
        said.append(f"up to {longest:,} characters")
    if _NO_NUL not in pattern and "format" not in schema:
        said.append(pattern)
    if schema.get("default") is not None:
        said.append(f"default {json.dumps(schema['default'])}")
    return said
