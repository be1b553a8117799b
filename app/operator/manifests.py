"""``POST /api/operator/manifest`` and ``/nonce``: what an operator binds itself to, and what it reveals."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.credentials import current_operator_id, require_operator
from app.documentation.declared import refuses
from app.fields import Text, Whole, hex_hash, identifier, round_state
from app.operator.tickets import selling
from app.parsing import Blueprint
from models.participation import Manifest, Participation, participation
from models.rounds import Round, hold_round, note_event
from models.session import database_now, transaction
from protocol.canonical import is_hash
from protocol.errors import Conflict, Forbidden, Invalid, NotFound
from protocol.lifecycle import State, Trigger, transition
from protocol.manifest import contradictions, manifest_hash, read_manifest
from protocol.seed import nonce_commit

blueprint = Blueprint("operator_manifests", __name__, url_prefix="/api/operator", description="Tickets and manifests")
blueprint.before_request(require_operator)


class ManifestSchema(Schema):
    """A manifest: the text that is hashed exactly as sent, its SHA-256, and the tickets it stands for."""

    roundId = Whole(lowest=1, required=True)
    manifestJson = Text(required=True, longest=1_000_000)
    manifestHash = hex_hash(required=True)
    ticketCount = Whole(required=True)


class ManifestAcceptedSchema(Schema):
    """The manifest is on record; ``sealedCount`` of ``totalInvited`` operators have submitted theirs."""

    success = fields.Boolean(required=True)
    roundId = Whole(lowest=1, required=True)
    state = round_state("OPEN")
    sealedCount = Whole(required=True)
    totalInvited = Whole(required=True)


class NonceSchema(Schema):
    """A nonce, 32 bytes in hex, that the manifest committed to."""

    roundId = Whole(lowest=1, required=True)
    nonce = hex_hash(required=True)


class NonceAcceptedSchema(Schema):
    """The nonce is on record and will be part of the draw's seed."""

    success = fields.Boolean(required=True)
    roundId = Whole(lowest=1, required=True)
    operatorId = identifier(required=True)


@blueprint.route("/manifest")
class Manifests(MethodView):
    """Manifests."""

    @refuses(
        NotFound("no such round"),
        Forbidden("your operator was not invited to this round", code="not_invited"),
        Conflict("round 7 takes no more tickets or manifests", code="sales_ended"),
        Conflict("another manifest of yours is on record for this round", code="manifest_conflict"),
        Invalid(
            "the manifest does not fit what is on record",
            code="manifest_mismatch",
            details={"ticketCount": ["61434 tickets are on record."]},
        ),
    )
    @blueprint.arguments(ManifestSchema)
    @blueprint.response(200, ManifestAcceptedSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Submit the manifest of your tickets. The same one again changes nothing and succeeds."""
        round_id, operator_id = body["roundId"], current_operator_id()
        if manifest_hash(body["manifestJson"]) != body["manifestHash"]:
            raise Invalid(
                "the manifest cannot be accepted",
                details={"manifestHash": ["Not the SHA-256 of manifestJson's bytes."]},
            )
        claims = _claims(body["manifestJson"])
        with transaction() as session:
            row = hold_round(session, round_id)
            part = participation(session, round_id, operator_id)
            recorded = session.get(Manifest, (round_id, operator_id))
            if recorded is None:
                row, part = selling(session, round_id, operator_id)
                _record(session, part, body, claims)
            elif recorded.manifest_hash != body["manifestHash"]:
                raise Conflict("another manifest of yours is on record for this round", code="manifest_conflict")
            return _accepted(session, row)


def _claims(manifest_json: str) -> dict[str, Any]:
    try:
        claims = read_manifest(manifest_json)
    except Invalid as error:
        raise Invalid("the manifest cannot be accepted", details={"manifestJson": [error.message]}) from None
    # A root that is no hash, null included, would be on record with a round that nobody could verify.
    if "ticketsRoot" in claims and not is_hash(claims["ticketsRoot"]):
        raise Invalid(
            "the manifest cannot be accepted", details={"manifestJson": ["ticketsRoot is 64 lowercase hex digits"]}
        )
    return claims


def _record(session: Session, part: Participation, body: dict[str, Any], claims: dict[str, Any]) -> None:
    facts = {"roundId": part.round_id, "operatorId": part.operator_id, "ticketCount": part.ticket_count}
    wrong = {key: [f"The manifest says otherwise: it is {facts[key]}."] for key in contradictions(claims, facts)}
    if body["ticketCount"] != part.ticket_count:
        wrong["ticketCount"] = [f"{part.ticket_count} tickets are on record."]
    if wrong:
        raise Invalid("the manifest does not fit what is on record", code="manifest_mismatch", details=wrong)
    session.add(
        Manifest(
            round_id=part.round_id,
            operator_id=part.operator_id,
            manifest_json=body["manifestJson"],
            manifest_hash=body["manifestHash"],
            ticket_count=part.ticket_count,
            tickets_root=claims.get("ticketsRoot"),
            nonce_commit=claims.get("nonceCommit"),
        )
    )
    step = transition(State.OPEN, Trigger.MANIFEST_ACCEPTED)
    assert step.log is not None
    submitted = {"operatorId": part.operator_id, "ticketCount": part.ticket_count}
    note_event(session, part.round_id, step.log, submitted)
    session.flush()


def _accepted(session: Session, row: Round) -> dict[str, Any]:
    submitted = session.scalars(select(func.count()).where(Manifest.round_id == row.id)).one()
    return {
        "success": True,
        "roundId": row.id,
        "state": row.state.value,
        "sealedCount": submitted,
        "totalInvited": row.operator_count,
    }


@blueprint.route("/nonce")
class Nonces(MethodView):
    """Nonces."""

    @refuses(
        NotFound("no such round"),
        Forbidden("your operator was not invited to this round", code="not_invited"),
        Forbidden("your operator was excluded from this round", code="excluded"),
        Conflict("nonces are revealed between SEALED and the draw", code="wrong_state"),
        Conflict("your manifest committed to no nonce", code="no_commitment"),
    )
    @blueprint.arguments(NonceSchema)
    @blueprint.response(200, NonceAcceptedSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Reveal the nonce your manifest committed to, between SEALED and the draw."""
        round_id, operator_id, nonce = body["roundId"], current_operator_id(), bytes.fromhex(body["nonce"])
        with transaction() as session:
            row = hold_round(session, round_id)
            part = participation(session, round_id, operator_id)
            manifest = session.get(Manifest, (round_id, operator_id))
            if part.nonce == nonce:
                return {"success": True, "roundId": round_id, "operatorId": operator_id}
            if part.excluded_at is not None:
                raise Forbidden("your operator was excluded from this round", code="excluded")
            now = database_now(session)
            late = row.state is State.ESCROWED and row.scheduled_draw_time <= now
            if row.state not in (State.SEALED, State.ESCROWED) or late:
                raise Conflict("nonces are revealed between SEALED and the draw", code="wrong_state")
            if manifest is None or manifest.nonce_commit is None:
                raise Conflict("your manifest committed to no nonce", code="no_commitment")
            if nonce_commit(round_id, operator_id, nonce) != manifest.nonce_commit:
                raise Invalid(
                    "the nonce is not the one committed to",
                    details={"nonce": ["Does not fit the manifest's nonceCommit."]},
                )
            part.nonce, part.nonce_revealed_at = nonce, now
        return {"success": True, "roundId": round_id, "operatorId": operator_id}
