"""``GET /api/public/rounds/:id/proof`` and ``/tickets/:operatorId``: everything a stranger needs to check a round."""

import zlib
from collections.abc import Iterator
from typing import Any

from flask import Response, request
from flask.views import MethodView

from app.documentation.declared import refuses
from app.parsing import Blueprint, path_number
from app.read_cache import cached
from app.resources.proof_shapes import ProofSchema
from app.resources.proofs import proof, sealed_manifest
from models.draws import Draw
from models.expiries import reserve_credits
from models.participation import participations
from models.rounds import round_by_id
from models.sealed_tickets import sealed_batches
from models.session import transaction
from protocol.errors import Conflict, NotFound
from protocol.lifecycle import DRAWN_STATES
from protocol.tickets import ticket_line

blueprint = Blueprint("public_proofs", __name__, url_prefix="/api/public/rounds", description="Proofs")

_LINES_AT_ONCE = 2_000
_LEVEL = 1
"""Of compression. A third larger than at the usual 6, and made in a fraction of the time."""
_FOREVER = "public, max-age=31536000, immutable"
_TWO_LINES = "".join(
    ticket_line(7, "op_5c1f8a90d2b34e76", *ticket).decode() + "\n"
    for ticket in (
        ("t-000001", 4_815_162, 342_108, 15_906, 7_421, 318, 42, True),
        ("t-000002", 901_337, 18, 64_220, 1_203, 77, 9, False),
    )
)


@blueprint.route("/<round_id>/proof")
@cached()
class Proof(MethodView):
    """The proof bundle."""

    @blueprint.response(200, ProofSchema)
    def get(self, round_id: str) -> dict[str, Any]:
        """Every input and hash of a round, as far as it is public by now."""
        with transaction() as session:
            row = round_by_id(session, path_number(round_id))
            draw, everybody = session.get(Draw, row.id), participations(session, row.id)
            return proof(row, draw, everybody, reserve_credits(session, row.id))


@blueprint.route("/<round_id>/tickets/<operator_id>")
class SealedTickets(MethodView):
    """Sealed tickets."""

    @refuses(
        NotFound("this operator sealed no tickets in this round"),
        Conflict("the tickets are public once the round is drawn; it is SEALED", code="not_drawn"),
    )
    @blueprint.response(
        200,
        {"type": "string", "description": "One ticket a line: canonical JSON, sorted by ticket id."},
        content_type="application/x-ndjson",
        example=_TWO_LINES,
        headers={
            "Content-Encoding": {"description": "Always gzip.", "schema": {"type": "string", "const": "gzip"}},
            "Cache-Control": {
                "description": "Sealed tickets never change.",
                "schema": {"type": "string", "const": _FOREVER},
            },
            "ETag": {
                "description": "The root of the tickets. Sent back in `If-None-Match`, it is answered 304.",
                "schema": {"type": "string"},
            },
        },
    )
    def get(self, round_id: str, operator_id: str) -> Response:
        """The sealed tickets of one operator, from DRAWN on: gzip-compressed NDJSON, one ticket a line, sorted by id.

        Each line is exactly what was hashed, so its SHA-256 after a zero byte is the ticket's leaf.
        """
        with transaction() as session:
            row = round_by_id(session, path_number(round_id))
            manifest = sealed_manifest(session, row, operator_id)
            if row.state not in DRAWN_STATES:
                raise Conflict(
                    f"the tickets are public once the round is drawn; it is {row.state.value}",
                    code="not_drawn",
                )
        answer = Response(content_type="application/x-ndjson", headers={"Cache-Control": _FOREVER})
        # The lines are what their root says. Weak: how they are compressed may change.
        answer.set_etag(str(manifest.counted_root), weak=True)
        if request.if_none_match.contains_weak(str(manifest.counted_root)):
            answer.status_code = 304
            return answer
        answer.headers["Content-Encoding"] = "gzip"
        if request.method == "GET":
            answer.response = _compressed(_lines(row.id, operator_id))
        return answer


def _lines(round_id: int, operator_id: str) -> Iterator[bytes]:
    for batch in sealed_batches(round_id, operator_id):
        for start in range(0, len(batch), _LINES_AT_ONCE):
            lines = [ticket_line(round_id, operator_id, *ticket) for ticket in batch[start : start + _LINES_AT_ONCE]]
            yield b"\n".join(lines) + b"\n"


def _compressed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    deflater = zlib.compressobj(level=_LEVEL, wbits=16 + zlib.MAX_WBITS)
    for chunk in chunks:
        if packed := deflater.compress(chunk):
            yield packed
    yield deflater.flush()
