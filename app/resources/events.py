"""Entries of a round's public log: what each type of them carries (interface section 2.2)."""

from typing import Any

from marshmallow import Schema
from marshmallow.fields import Field

from app.fields import LARGEST_ODDS_RANGE, AsIs, Shown, Whole, hex_hash, identifier, one_of


class NumbersSchema(Schema):
    """The six winning numbers of a draw."""

    jackpotNumber = Whole(lowest=1, highest=LARGEST_ODDS_RANGE, required=True)
    bonus1 = Whole(lowest=1, highest=1_000_000, required=True)
    bonus2 = Whole(lowest=1, highest=100_000, required=True)
    bonus3 = Whole(lowest=1, highest=10_000, required=True)
    bonus4 = Whole(lowest=1, highest=1_000, required=True)
    bonus5 = Whole(lowest=1, highest=100, required=True)


class NothingSchema(Schema):
    """Nothing but that it happened."""


class ManifestSubmittedDataSchema(Schema):
    """Whose manifest, and how many tickets it stands for."""

    operatorId = identifier(required=True)
    ticketCount = Whole(required=True)


class RoundSealedDataSchema(Schema):
    """How many operators' tickets are sealed."""

    sealedCount = Whole(required=True)


class RoundSettledDataSchema(Schema):
    """The SHA-256 of the settlement proof."""

    settlementHash = hex_hash(required=True)


def _entry(kind: str, data: type[Schema], sentence: str) -> type[Schema]:
    shape: dict[str, Field[Any]] = {
        "type": one_of([kind], required=True),
        "roundId": Whole(lowest=1, required=True),
        "timestamp": Shown(required=True),
        "data": AsIs(data, required=True),
    }
    made: type[Schema] = Schema.from_dict(shape, name=f"{kind.title().replace('_', '')}EntrySchema")
    made.__doc__ = sentence
    return made


ROUND_EVENTS = (
    _entry("ROUND_OPENED", NothingSchema, "The round was opened."),
    _entry("MANIFEST_SUBMITTED", ManifestSubmittedDataSchema, "An operator submitted its manifest."),
    _entry("ROUND_SEALED", RoundSealedDataSchema, "The set of tickets was fixed."),
    _entry("ROUND_DRAWN", NumbersSchema, "The numbers were drawn."),
    _entry("ROUND_SETTLED", RoundSettledDataSchema, "The money was released."),
)
"""A schema for each type of entry there is."""
