"""Writing what the coordinator told us in its own words again, for the web processes that show it.

The one rule kept here: names are the published ones and amounts are strings, so nobody else has to know our types.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from protocol.timestamps import format_timestamp

AMOUNTS = frozenset(
    {"jackpot", "jackpot_amount", "balance_usdc", "in_escrow_usdc", "sub_prize_total_usdc", "total_deposited"}
)
"""What is micro-USDC and a string on the wire."""


def published(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a value of ``player.coordinator`` as JSON with the published names."""
    return {_camel(name): _plain(name, value) for name, value in fields.items()}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return format_timestamp(value)
    return str(value) if name in AMOUNTS and value is not None else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
