"""Examples of bodies, composed by walking a schema with the values of ``app.documentation.world``.

The one rule kept here: nobody writes an example by hand twice. A new schema made of known names has its example for
nothing; a name that the world does not know is found by a test.
"""

from collections.abc import Mapping
from typing import Any

from app.documentation.world import WORLD, digest_of

Described = Mapping[str, Any]


class Composer:
    """Composes examples of schemas that refer to ``schemas``; ``lacking`` names the fields it knew no value for."""

    def __init__(self, schemas: Described) -> None:
        self._schemas = schemas
        self.lacking: list[str] = []

    def example(self, schema: Described, owner: str = "", name: str = "") -> Any:
        """An example of what ``schema`` describes, the field ``name`` of the schema ``owner``."""
        if (exact := f"{owner}.{name}") in WORLD:
            return WORLD[exact]
        if "examples" in schema:
            return schema["examples"][0]
        if name in WORLD:
            return WORLD[name]
        if reference := schema.get("$ref"):
            owner = reference.rpartition("/")[2]
            return self.example(self._schemas[owner], owner)
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return self.example(schema[choice][0], owner, name)
        return self._by_kind(schema, owner, name)

    def _by_kind(self, schema: Described, owner: str, name: str) -> Any:
        kinds = schema.get("type")
        kind = kinds[0] if isinstance(kinds, list) else kinds
        if kind == "object":
            return {field: self.example(about, owner, field) for field, about in schema.get("properties", {}).items()}
        if kind == "array":
            item = schema["items"]
            # Of plain values one of the singular name: operatorIds are shown by an operatorId.
            return [self.example(item, owner, "" if "$ref" in item else name.removesuffix("s"))]
        if "enum" in schema:
            return schema["enum"][0]
        if "[0-9a-f]{64}" in schema.get("pattern", ""):
            return digest_of(name)
        self.lacking.append(f"{owner}.{name}")
        return None
