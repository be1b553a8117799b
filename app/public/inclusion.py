"""``GET /api/public/rounds/:id/tickets/:operatorId/:ticketId/proof`` and ``/absence``: that one ticket is part of what
was sealed, or that it is not.

The one rule kept here: before the draw nothing is told about a ticket but to who knows it. Inclusion is shown from
SEALED on, without the ticket's line; absence shows two other tickets in full, and so only from DRAWN on.
"""

from itertools import takewhile
from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from app.documentation.declared import refuses
from app.fields import Whole, hashes, hex_hash, identifier
from app.parsing import Blueprint, path_number
from app.read_cache import cached
from app.resources.proofs import sealed_manifest
from models.rounds import round_by_id
from models.sealed_tickets import Leaf, SealedTree
from models.session import transaction
from protocol.errors import Conflict, NotFound
from protocol.identifiers import is_identifier
from protocol.lifecycle import DRAWN_STATES
from protocol.merkle import write_path

blueprint = Blueprint("public_inclusion", __name__, url_prefix="/api/public/rounds", description="Proofs")

_UNKNOWN = NotFound("no such ticket among those the operator sealed")


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
    auditPath = hashes(required=True)
    ticketsRoot = hex_hash(required=True)
    fullManifestHash = hex_hash(required=True)


class NeighbourSchema(Schema):
    """A sealed ticket beside the place where another one would stand. Its path up to the root is ``auditPath`` and then
    the ``sharedPath`` of both.
    """

    line = fields.String(required=True)
    leafIndex = Whole(required=True)
    auditPath = hashes(required=True)


class AbsenceProofSchema(Schema):
    """The two sealed tickets between which a ticket would stand, side by side (docs/protocol.md, "Tickets and Merkle
    trees").

    ``before`` is null when it would be the first, ``after`` when it would be the last, both when the operator sealed
    none.
    """

    roundId = Whole(lowest=1, required=True)
    operatorId = identifier(required=True)
    ticketId = identifier(required=True)
    before = fields.Nested(NeighbourSchema, required=True, allow_none=True)
    after = fields.Nested(NeighbourSchema, required=True, allow_none=True)
    sharedPath = hashes(required=True)
    treeSize = Whole(required=True)
    ticketsRoot = hex_hash(required=True)
    fullManifestHash = hex_hash(required=True)


@blueprint.route("/<round_id>/tickets/<operator_id>/<ticket_id>/proof")
@cached()
class InclusionProof(MethodView):
    """A ticket's proof."""

    @refuses(_UNKNOWN, Conflict("round 7 is SEALING, nothing is sealed yet", code="not_sealed"))
    @blueprint.response(200, InclusionProofSchema)
    def get(self, round_id: str, operator_id: str, ticket_id: str) -> dict[str, Any]:
        """Prove that a ticket is among those an operator sealed, from SEALED on.

        ``auditPath`` is the sibling hashes from the leaf up to ``ticketsRoot``, 32 bytes each, one after the other in
        base64. The round's proof bundle binds the root to everything that was published before the draw. It may be had
        gzip-compressed (`Accept-Encoding`).
        """
        with transaction() as session:
            row = round_by_id(session, path_number(round_id))
            manifest = sealed_manifest(session, row, operator_id)
            if row.sealed_at is None:
                raise Conflict(f"round {row.id} is {row.state.value}, nothing is sealed yet", code="not_sealed")
            tree = SealedTree(session, row.id, operator_id)
            place = tree.find(ticket_id)
            if not place.present:
                raise _UNKNOWN
            leaf = tree.leaf(place.row)
        return {
            "roundId": row.id,
            "operatorId": operator_id,
            "ticketId": ticket_id,
            "line": leaf.line.decode() if row.state in DRAWN_STATES else None,
            "leafHash": leaf.hash.hex(),
            "leafIndex": leaf.row,
            "treeSize": manifest.counted,
            "auditPath": write_path(leaf.proof),
            "ticketsRoot": manifest.counted_root,
            "fullManifestHash": row.full_manifest_hash,
        }


@blueprint.route("/<round_id>/tickets/<operator_id>/<ticket_id>/absence")
@cached()
class AbsenceProof(MethodView):
    """The proof that there is no such ticket."""

    @refuses(
        NotFound("this operator sealed no tickets in this round"),
        Conflict("the tickets are public once the round is drawn; it is SEALED", code="not_drawn"),
        Conflict("the operator sealed this ticket", code="ticket_sealed"),
    )
    @blueprint.response(200, AbsenceProofSchema)
    def get(self, round_id: str, operator_id: str, ticket_id: str) -> dict[str, Any]:
        """Prove that a ticket is not among those an operator sealed, from DRAWN on.

        Sealed tickets stand in the order of their ids. ``before`` and ``after`` stand side by side, so there is none
        between them: the way of each up to ``ticketsRoot`` is its own ``auditPath`` and then ``sharedPath``, which is
        said once. It may be had gzip-compressed (`Accept-Encoding`).
        """
        with transaction() as session:
            row = round_by_id(session, path_number(round_id))
            manifest = sealed_manifest(session, row, operator_id)
            if row.state not in DRAWN_STATES:
                raise Conflict(
                    f"the tickets are public once the round is drawn; it is {row.state.value}", code="not_drawn"
                )
            if not is_identifier(ticket_id):
                raise NotFound("a ticket id is 1 to 64 of A-Z a-z 0-9 . _ : -")
            tree = SealedTree(session, row.id, operator_id)
            place = tree.find(ticket_id)
            if place.present:
                raise Conflict("the operator sealed this ticket", code="ticket_sealed")
            before = tree.leaf(place.row - 1) if place.row else None
            after = tree.leaf(place.row) if place.row < (manifest.counted or 0) else None
        shared = _shared(before, after)
        return {
            "roundId": row.id,
            "operatorId": operator_id,
            "ticketId": ticket_id,
            "before": _neighbour(before, shared),
            "after": _neighbour(after, shared),
            "sharedPath": write_path(shared),
            "treeSize": manifest.counted,
            "ticketsRoot": manifest.counted_root,
            "fullManifestHash": row.full_manifest_hash,
        }


def _shared(before: Leaf | None, after: Leaf | None) -> list[bytes]:
    """The siblings with which both paths end."""
    pairs = zip(reversed(before.proof), reversed(after.proof), strict=False) if before and after else ()
    return [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)][::-1]


def _neighbour(leaf: Leaf | None, shared: list[bytes]) -> dict[str, Any] | None:
    if leaf is None:
        return None
    own = leaf.proof[: len(leaf.proof) - len(shared)]
    return {"line": leaf.line.decode(), "leafIndex": leaf.row, "auditPath": write_path(own)}
