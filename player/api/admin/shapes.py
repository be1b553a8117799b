"""What several pages of the admin API have in common: a reason, an id, lists and the words that filter them.

One rule: a list carries ``count``, the number of items returned, as everywhere in the interface.
"""

from typing import Any

from marshmallow import Schema, fields
from marshmallow.validate import OneOf

from player.api.fields import Amount, QueryWhole, Text

LARGEST_ID = 2**53 - 1


def why() -> Text:
    """The reason for a change, for the audit log."""
    return Text(required=True, shortest=1, longest=500, metadata={"description": "Why; kept in the audit log"})


def of_round() -> QueryWhole:
    """A filter: of this round only."""
    return _number("Of this round only", data_key="roundId")


def of_player() -> QueryWhole:
    """A filter: of this player only."""
    return _number("Of this player only", data_key="playerId")


def _number(told: str, data_key: str) -> QueryWhole:
    return QueryWhole(
        lowest=1, highest=LARGEST_ID, load_default=None, data_key=data_key, metadata={"description": told}
    )


def yes_or_no(told: str) -> fields.Field[Any]:
    """A filter by a fact: ``true`` or ``false``."""
    return YesOrNo(load_default=None, metadata={"description": told})


class YesOrNo(fields.String):
    """true or false in a query, as a bool."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(validate=OneOf(["true", "false"]), **kwargs)

    def deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        read = super().deserialize(value, *args, **kwargs)
        return read if read is None else read == "true"


class StaffCountSchema(Schema):
    """How many there are of a status, and what they come to."""

    status = fields.String(required=True)
    count = fields.Integer(required=True)
    amount = Amount(required=True, metadata={"description": "micro-USDC"})


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
