"""Why a batch of tickets is refused, in the words of the documented schema.

The one rule kept here: a wrong batch costs no more than a right one. Its tickets are looked at one by one, as the bytes
they came in, and no further than the hundredth fault.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, NoReturn

import msgspec
from marshmallow import ValidationError
from msgspec import Raw

from app.errors import BadRequest
from app.parsing import json_body
from app.resources.ticket_shapes import LARGEST_BATCH, TicketBatchSchema, TicketSchema, decoded
from protocol.errors import Invalid
from protocol.identifiers import is_identifier

FAULTS_NAMED = 100
_LARGEST_PIECE = 64 * 1024
"""Bytes of a ticket, or of a batch without its tickets: what is longer is refused without a look at what it holds."""
_MOST_COMMAS = 16 * LARGEST_BATCH
"""In a batch: what holds so many values is not even taken apart. One of the right shape has 8 of them a ticket."""

_ticket = TicketSchema()


@dataclass(frozen=True)
class Fault:
    """What is wrong in which ticket; ``ticketId`` and ``field`` are None where there is none to name."""

    index: int
    ticketId: str | None
    field: str | None
    error: str


def refuse(faults: Iterable[Fault]) -> None:
    """Refuse a batch that has faults; no more of them are looked for than are named.

    :raises Invalid: naming the first 100.
    """
    found = [asdict(fault) for fault in islice(faults, FAULTS_NAMED + 1)]
    if found:
        count = f"more than {FAULTS_NAMED} faults" if len(found) > FAULTS_NAMED else f"{len(found)} faults"
        raise Invalid(
            f"the batch has {'1 fault' if len(found) == 1 else count}; nothing was stored",
            code="invalid_tickets",
            details={"faults": found[:FAULTS_NAMED]},
        )


def refuse_wrong_size(count: int) -> None:
    """Refuse a batch of none or too many.

    :raises Invalid: it is.
    """
    if not 1 <= count <= LARGEST_BATCH:
        message = f"A batch has 1 to {LARGEST_BATCH} tickets."
        raise Invalid("the batch cannot be accepted", details={"tickets": [message]})


def explain(body: bytes) -> NoReturn:
    """Say why the fast path refused a batch.

    :raises BadRequest: it is not strict JSON.
    :raises Invalid: naming what about the batch, or which of its tickets, is wrong.
    """
    if body.count(b",") > _MOST_COMMAS:
        raise Invalid("the batch cannot be accepted", details={"tickets": ["There is too much in them."]})
    frame, tickets = _taken_apart(body)
    if len(frame) > _LARGEST_PIECE:
        message = f"Apart from its tickets a batch has at most {_LARGEST_PIECE} bytes."
        raise Invalid("the batch cannot be accepted", details={"_schema": [message]})
    try:
        TicketBatchSchema().load(json_body(frame))
    except ValidationError as error:
        details = error.normalized_messages()
        raise Invalid("the request has fields that cannot be accepted", details=details) from None
    refuse_wrong_size(len(tickets))
    refuse(fault for index, ticket in enumerate(tickets) for fault in _faults(index, bytes(ticket)))
    # The two paths are tested to agree; should they ever not, refusing is the safe side.
    raise Invalid("the batch cannot be accepted")


def _taken_apart(body: bytes) -> tuple[bytes, list[Raw]]:
    """What a batch is without its tickets, and these, not yet parsed."""
    try:
        # All of it is read, to its last byte, and nothing made of it.
        msgspec.json.decode(body, type=Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else error
        raise BadRequest(f"the body is not usable JSON: {problem}") from None
    try:
        tickets = msgspec.json.decode(body, type=_Batch).tickets
        return body.replace(bytes(tickets), b"[]"), msgspec.json.decode(tickets, type=list[Raw])
    except msgspec.ValidationError:
        return body, []


class _Batch(msgspec.Struct):
    tickets: Raw


def _faults(index: int, ticket: bytes) -> Iterator[Fault]:
    if decoded(b'{"roundId":1,"tickets":[%s]}' % ticket) is not None:
        return
    if len(ticket) > _LARGEST_PIECE:
        yield Fault(index, None, None, f"Longer than {_LARGEST_PIECE} bytes.")
        return
    parsed = json_body(ticket)
    # What is no identifier is not sent back, once for every fault.
    named = parsed.get("ticketId") if isinstance(parsed, dict) else None
    named = named if is_identifier(named) else None
    messages: dict[str, Any] = _ticket.validate(parsed)
    for field, said in messages.items():
        text = " ".join(said) if isinstance(said, list) else str(said)
        yield Fault(index, named, None if field == "_schema" else field, text)
