"""Ticket batches as they come over HTTP: read whole, inflated, refused with the place of every fault.

The one rule kept here: at most eight times the largest body is in memory for one request, whatever is sent.
"""

import zlib
from collections.abc import Iterator

from flask import Request

from app.errors import BadRequest, TooLarge, UnsupportedMediaType
from app.parsing import require_json, whole_body
from app.resources.ticket_faults import Fault, explain, refuse, refuse_wrong_size
from app.resources.ticket_shapes import decoded
from models.tickets import Ticket

LARGEST_BODY = 16 * 1024 * 1024
"""Bytes of a batch, as sent and as inflated."""


def read_batch(request: Request) -> tuple[int, list[Ticket]]:
    """The round and the tickets of a request; gzip is inflated.

    :raises BadRequest: not JSON, or not gzip where the header says so.
    :raises TooLarge: more bytes than a batch may have.
    :raises Invalid: naming index, ticketId and field of the first 100 faults.
    """
    require_json(request)
    request.max_content_length = LARGEST_BODY
    body = _inflated(whole_body(request), request.headers.get("Content-Encoding", "identity").lower())
    batch = decoded(body)
    if batch is None:
        explain(body)
    refuse_wrong_size(len(batch[1]))
    _refuse_repeated(batch[1])
    return batch


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


def refuse_beyond_odds(tickets: list[Ticket], odds_range: int) -> None:
    """Check the jackpot numbers against the round's own range.

    :raises Invalid: naming the first 100 that lie beyond.
    """
    message = f"Must be from 1 to {odds_range}."
    refuse(
        Fault(index, ticket[0], "jackpotNumber", message)
        for index, ticket in enumerate(tickets)
        if ticket[1] > odds_range
    )


def _refuse_repeated(tickets: list[Ticket]) -> None:
    if len({ticket[0] for ticket in tickets}) < len(tickets):
        refuse(_repeated(tickets))


def _repeated(tickets: list[Ticket]) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, ticket in enumerate(tickets):
        if ticket[0] in seen:
            yield Fault(index, ticket[0], "ticketId", "Stands twice in the batch.")
        seen.add(ticket[0])
