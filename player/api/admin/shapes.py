"""What several pages of the admin API have in common: a list, a reason.

One rule: a list carries ``count``, the number of items returned, as everywhere in the interface.
"""

from typing import Any

from marshmallow import Schema, fields

from player.api.fields import Text


def why() -> Text:
    """The reason for a change, for the audit log."""
    return Text(required=True, shortest=1, longest=500, metadata={"description": "Why; kept in the audit log"})


def listing(name: str, items: str, schema: type[Schema]) -> type[Schema]:
    """The schema ``name`` of a list: its items under ``items``, and how many of them there are."""
    made: dict[str, Any] = {
        items: fields.List(fields.Nested(schema), required=True),
        "count": fields.Integer(required=True, metadata={"description": "How many are in this answer"}),
    }
    return Schema.from_dict(made, name=name)


def listed(items: str, rows: list[Any]) -> dict[str, Any]:
    """A list as ``listing`` describes it."""
    return {items: rows, "count": len(rows)}
