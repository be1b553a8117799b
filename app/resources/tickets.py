"""Ticket batches as read: 2.10 of the interface, fast for the usual batch and exact about a wrong one.

The one rule kept here: ``TicketSchema`` says what a ticket is; the fast path (msgspec) accepts exactly the same, and
whenever it refuses a batch the schema says why.
"""

import zlib
from typing import Annotated, Any

import msgspec
from flask import Request
from marshmallow import RAISE, Schema, ValidationError, fields
from msgspec import Meta, Struct

from app.errors import BadRequest, TooLarge, UnsupportedMediaType
from app.fields import LARGEST_ODDS_RANGE, LARGEST_SAFE, Truth, Whole, described, identifier, round_state
from app.parsing import json_body, require_json, whole_body
from models.tickets import Ticket
from protocol.errors import Invalid
from protocol.identifiers import IDENTIFIER_PATTERN, is_identifier

LARGEST_BATCH = 50_000
LARGEST_BODY = 16 * 1024 * 1024
"""Bytes of a batch, as sent and as inflated."""
FAULTS_NAMED = 100


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
    # Counted by ``_refuse_wrong_size``, before any of them is looked at.
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
    ticketId: Annotated[str, Meta(pattern=f"^{IDENTIFIER_PATTERN}\\Z")]
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

# msgspec takes the last of two equal keys; we take neither. No name or value that it accepts here has a quotation
# mark inside, so their number tells whether there was any key more than there should be.
_QUOTES = 2 * len(_Batch.__struct_fields__)
_QUOTES_OF_A_TICKET = 2 * (len(_Ticket.__struct_fields__) + 1)


def read_batch(request: Request) -> tuple[int, list[Ticket]]:
    """The round and the tickets of a request; gzip is inflated.

    :raises BadRequest: not JSON, or not gzip where the header says so.
    :raises TooLarge: more bytes than a batch may have.
    :raises Invalid: naming index, ticketId and field of the first 100 faults.
    """
    require_json(request)
    request.max_content_length = LARGEST_BODY
    body = _inflated(whole_body(request), request.headers.get("Content-Encoding", "identity").lower())
    try:
        batch = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _explained(body) from None
    if body.count(b'"') != _QUOTES + len(batch.tickets) * _QUOTES_OF_A_TICKET:
        raise _explained(body)
    _refuse_wrong_size(batch.tickets)
    tickets: list[Ticket] = [
        (t.ticketId, t.jackpotNumber, t.bonus1, t.bonus2, t.bonus3, t.bonus4, t.bonus5, t.isQuickPick)
        for t in batch.tickets
    ]
    _refuse_repeated(tickets)
    return batch.roundId, tickets


def _refuse_wrong_size(batch: list[Any]) -> None:
    if not 1 <= len(batch) <= LARGEST_BATCH:
        message = f"A batch has 1 to {LARGEST_BATCH} tickets."
        raise Invalid("the batch cannot be accepted", details={"tickets": [message]})


def refuse_beyond_odds(tickets: list[Ticket], odds_range: int) -> None:
    """Check the jackpot numbers against the round's own range.

    :raises Invalid: naming the first 100 that lie beyond.
    """
    faults = [
        {
            "index": index,
            "ticketId": ticket[0],
            "field": "jackpotNumber",
            "error": f"Must be from 1 to {odds_range}.",
        }
        for index, ticket in enumerate(tickets)
        if ticket[1] > odds_range
    ]
    if faults:
        raise _refused(faults)


def _inflated(body: bytes, encoding: str) -> bytes:
    if encoding == "identity":
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise UnsupportedMediaType("the body may be plain or gzip")
    inflater = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        inflated = inflater.decompress(body, LARGEST_BODY + 1)
    except zlib.error:
        raise BadRequest("the body is not gzip") from None
    if len(inflated) > LARGEST_BODY:
        raise TooLarge(f"the body inflates to more than {LARGEST_BODY} bytes")
    if not inflater.eof or inflater.unused_data:
        raise BadRequest("the gzip body is cut off or has something behind it")
    return inflated


def _refuse_repeated(tickets: list[Ticket]) -> None:
    if len({ticket[0] for ticket in tickets}) == len(tickets):
        return
    seen: set[str] = set()
    faults = []
    for index, ticket in enumerate(tickets):
        if ticket[0] in seen:
            faults.append(
                {
                    "index": index,
                    "ticketId": ticket[0],
                    "field": "ticketId",
                    "error": "Stands twice in the batch.",
                }
            )
        seen.add(ticket[0])
    raise _refused(faults)


def _refused(faults: list[dict[str, Any]]) -> Invalid:
    return Invalid(
        f"the batch has {len(faults)} {'fault' if len(faults) == 1 else 'faults'}; nothing was stored",
        code="invalid_tickets",
        details={"faults": faults[:FAULTS_NAMED]},
    )


def _explained(body: bytes) -> Exception:
    """Why the fast path refused a batch, in the words of the schema."""
    parsed = json_body(body)
    if isinstance(parsed, dict) and isinstance(parsed.get("tickets"), list):
        # The schema takes its time over each ticket: never over more of them than a batch may have.
        _refuse_wrong_size(parsed["tickets"])
    try:
        TicketBatchSchema().load(parsed)
    except ValidationError as error:
        messages = error.normalized_messages()
    else:
        # The two paths are tested to agree; should they ever not, refusing is the safe side.
        return Invalid("the batch cannot be accepted")
    by_ticket = messages.get("tickets")
    if set(messages) != {"tickets"} or not isinstance(by_ticket, dict):
        return Invalid("the request has fields that cannot be accepted", details=messages)
    sent = parsed["tickets"]
    faults = [
        {
            "index": index,
            "ticketId": _named(sent[index]),
            "field": None if field == "_schema" else field,
            "error": " ".join(said) if isinstance(said, list) else str(said),
        }
        for index, about in sorted(by_ticket.items())
        for field, said in (about.items() if isinstance(about, dict) else [(None, about)])
    ]
    return _refused(faults)


def _named(ticket: Any) -> str | None:
    """A ticket's id, where it has one: what is none is not sent back, once for every fault, at any length."""
    ticket_id = ticket.get("ticketId") if isinstance(ticket, dict) else None
    return ticket_id if is_identifier(ticket_id) else None
