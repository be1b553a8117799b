"""What a ticket and a batch of them are (interface section 2.10), in two forms: as documented and as read.

The one rule kept here: ``TicketSchema`` says what a ticket is; the fast path (msgspec) accepts exactly the same.
"""

import re
from typing import Annotated

import msgspec
from marshmallow import RAISE, Schema, fields
from msgspec import Meta, Struct
from msgspec.structs import astuple

from app.fields import LARGEST_ODDS_RANGE, LARGEST_SAFE, Truth, Whole, described, identifier, round_state
from models.tickets import Ticket
from protocol.identifiers import IDENTIFIER_PATTERN

LARGEST_BATCH = 50_000


class TicketSchema(Schema):
    """A ticket as an operator submits it."""

    class Meta:
        unknown = RAISE

    ticketId = identifier(required=True)
    jackpotNumber = Whole(lowest=1, highest=LARGEST_ODDS_RANGE, required=True)
    bonus1 = Whole(lowest=1, highest=1_000_000, required=True)
    bonus2 = Whole(lowest=1, highest=100_000, required=True)
    bonus3 = Whole(lowest=1, highest=10_000, required=True)
    bonus4 = Whole(lowest=1, highest=1_000, required=True)
    bonus5 = Whole(lowest=1, highest=100, required=True)
    isQuickPick = Truth(required=True)


class TicketBatchSchema(Schema):
    """A batch: 1 to 50,000 tickets of one round."""

    class Meta:
        unknown = RAISE

    roundId = Whole(lowest=1, required=True)
    # Counted by ``refuse_wrong_size``, before any of them is looked at.
    tickets = fields.List(
        fields.Nested(TicketSchema), **described({"required": True}, minItems=1, maxItems=LARGEST_BATCH)
    )


class AcceptedTicketsSchema(Schema):
    """The batch is on record, whole."""

    success = fields.Boolean(required=True)
    roundId = Whole(lowest=1, required=True)
    operatorId = identifier(required=True)
    ticketsAccepted = Whole(lowest=1, required=True)
    state = round_state("OPEN")


class _Ticket(Struct, forbid_unknown_fields=True, gc=False):
    # In the order of ``models.tickets.Ticket``.
    ticketId: Annotated[str, Meta(min_length=1, max_length=64)]
    jackpotNumber: Annotated[int, Meta(ge=1, le=LARGEST_ODDS_RANGE)]
    bonus1: Annotated[int, Meta(ge=1, le=1_000_000)]
    bonus2: Annotated[int, Meta(ge=1, le=100_000)]
    bonus3: Annotated[int, Meta(ge=1, le=10_000)]
    bonus4: Annotated[int, Meta(ge=1, le=1_000)]
    bonus5: Annotated[int, Meta(ge=1, le=100)]
    isQuickPick: bool


class _Batch(Struct, forbid_unknown_fields=True):
    roundId: Annotated[int, Meta(ge=1, le=LARGEST_SAFE)]
    tickets: list[_Ticket]


_decoder = msgspec.json.Decoder(_Batch)
# One look at all ids, end to end, costs a tenth of one at each; how long each may be the decoder has seen to.
_identifiers = re.compile(f"(?:{IDENTIFIER_PATTERN})*")

# msgspec takes the last of two equal keys; we take neither. No name or value that we accept here has a quotation
# mark inside, so their number tells whether there was any key more than there should be.
_QUOTES = 2 * len(_Batch.__struct_fields__)
_QUOTES_OF_A_TICKET = 2 * (len(_Ticket.__struct_fields__) + 1)


def decoded(body: bytes) -> tuple[int, list[Ticket]] | None:
    """The round and the tickets of a batch of any size; None unless each is as ``TicketSchema`` says."""
    try:
        batch = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    tickets: list[Ticket] = [astuple(ticket) for ticket in batch.tickets]
    usable = (
        body.count(b'"') == _QUOTES + len(tickets) * _QUOTES_OF_A_TICKET
        and _identifiers.fullmatch("".join([ticket[0] for ticket in tickets])) is not None
    )
    return (batch.roundId, tickets) if usable else None
