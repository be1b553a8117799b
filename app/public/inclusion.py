"""``GET /api/public/rounds/:id/tickets/:operatorId/:ticketId/proof``: that one ticket is part of what was sealed."""

from bisect import bisect_right
from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from app.documentation.declared import refuses
from app.fields import Whole, hex_hash, identifier
from app.parsing import Blueprint, path_number
from app.read_cache import cached
from app.resources.proofs import sealed_manifest
from models.chunks import chunk_from, chunk_roots
from models.rounds import round_by_id
from models.session import transaction
from protocol.errors import Conflict, NotFound
from protocol.lifecycle import DRAWN_STATES
from protocol.merkle import CHUNK, chunked_inclusion_proof, leaf_hash
from protocol.tickets import ticket_line

blueprint = Blueprint("public_inclusion", __name__, url_prefix="/api/public/rounds", description="Proofs")


class InclusionProofSchema(Schema):
    """The way from a ticket's leaf to its operator's root (docs/protocol.md, "Tickets and Merkle trees").

    ``line`` is what the leaf is the hash of; null until the round is drawn, when tickets become public.
    """

    roundId = Whole(lowest=1, required=True)
    operatorId = identifier(required=True)
    ticketId = identifier(required=True)
    line = fields.String(required=True, allow_none=True)
    leafHash = hex_hash(required=True)
    leafIndex = Whole(required=True)
    treeSize = Whole(lowest=1, required=True)
    proof = fields.List(hex_hash(), required=True)
    ticketsRoot = hex_hash(required=True)
    fullManifestHash = hex_hash(required=True)


@blueprint.route("/<round_id>/tickets/<operator_id>/<ticket_id>/proof")
@cached()
class InclusionProof(MethodView):
    """A ticket's proof."""

    @refuses(
        NotFound("no such ticket among those the operator sealed"),
        Conflict("round 7 is SEALING, nothing is sealed yet", code="not_sealed"),
    )
    @blueprint.response(200, InclusionProofSchema)
    def get(self, round_id: str, operator_id: str, ticket_id: str) -> dict[str, Any]:
        """Prove that a ticket is among those an operator sealed, from SEALED on.

        ``proof`` is the list of sibling hashes from the leaf up to ``ticketsRoot``, which the round's proof bundle
        binds to everything that was published before the draw.
        """
        with transaction() as session:
            row = round_by_id(session, path_number(round_id))
            manifest = sealed_manifest(session, row, operator_id)
            if row.sealed_at is None:
                raise Conflict(f"round {row.id} is {row.state.value}, nothing is sealed yet", code="not_sealed")
            chunks = list(chunk_roots(session, row.id, operator_id))
            place = bisect_right(chunks, ticket_id, key=lambda chunk: chunk[0]) - 1
            tickets = chunk_from(session, row.id, operator_id, chunks[place][0]) if place >= 0 else []
        found = next((at for at, ticket in enumerate(tickets) if ticket[0] == ticket_id), None)
        if found is None:
            raise NotFound("no such ticket among those the operator sealed")
        lines = [ticket_line(row.id, operator_id, *ticket) for ticket in tickets]
        leaves = [leaf_hash(line) for line in lines]
        index = place * CHUNK + found
        return {
            "roundId": row.id,
            "operatorId": operator_id,
            "ticketId": ticket_id,
            "line": lines[found].decode() if row.state in DRAWN_STATES else None,
            "leafHash": leaves[found].hex(),
            "leafIndex": index,
            "treeSize": manifest.counted,
            "proof": [node.hex() for node in chunked_inclusion_proof(leaves, index, [top for _, top in chunks])],
            "ticketsRoot": manifest.counted_root,
            "fullManifestHash": row.full_manifest_hash,
        }
