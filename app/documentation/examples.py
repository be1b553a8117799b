"""Examples of bodies, composed by walking a schema with the values of ``app.documentation.world``.

The one rule kept here: nobody writes an example by hand twice. A new schema made of known names has its example for
nothing; a name that the world does not know is found by a test.
"""

from collections.abc import Mapping
from typing import Any

from app.documentation.world import WORLD, digest_of


class NoExample(LookupError):
    """The world has no value for a field, and its schema alone does not suggest one."""


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any], owner: str = "", name: str = "") -> Any:
    """An example of what ``schema`` describes, the field ``name`` of the schema ``owner``; ``schemas`` are all of them.

    :raises NoExample: naming the field that the world lacks.
    """
    if (exact := f"{owner}.{name}") in WORLD:
        return WORLD[exact]
    if "examples" in schema:
        return schema["examples"][0]
    if name in WORLD:
        return WORLD[name]
    if reference := schema.get("$ref"):
        owner = reference.rpartition("/")[2]
        return example_of(schemas[owner], schemas, owner)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return example_of(schema[choice][0], schemas, owner, name)
    return _by_kind(schema, schemas, owner, name)


def _by_kind(schema: Mapping[str, Any], schemas: Mapping[str, Any], owner: str, name: str) -> Any:
    kinds = schema.get("type")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if kind == "object":
        shown = schema.get("properties", {})
        return {field: example_of(about, schemas, owner, field) for field, about in shown.items()}
    if kind == "array":
        item = schema["items"]
        # Of plain values one of the singular name: operatorIds are shown by an operatorId.
        return [example_of(item, schemas, owner, "" if "$ref" in item else name.removesuffix("s"))]
    if "enum" in schema:
        return schema["enum"][0]
    if "[0-9a-f]{64}" in schema.get("pattern", ""):
        return digest_of(name)
    raise NoExample(f"{owner}.{name}")
