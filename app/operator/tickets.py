"""``POST /api/operator/tickets``: a batch of tickets, whole or not at all."""

from typing import Any

from flask import request
from flask.views import MethodView
from sqlalchemy.orm import Session

from app.credentials import current_operator_id, require_operator
from app.documentation.declared import refuses
from app.parsing import Blueprint
from app.resources.ticket_shapes import AcceptedTicketsSchema, TicketBatchSchema
from app.resources.tickets import read_batch, refuse_beyond_odds
from models.participation import Manifest, Participation, participation
from models.rounds import Round, hold_round
from models.session import database_now, transaction
from models.tickets import add_tickets, sales_ended
from protocol.errors import Conflict, Forbidden, Invalid, NotFound
from protocol.lifecycle import State

blueprint = Blueprint("operator_tickets", __name__, url_prefix="/api/operator", description="Tickets and manifests")
blueprint.before_request(require_operator)


def selling(session: Session, round_id: int, operator_id: str) -> tuple[Round, Participation]:
    """The round and the operator's part in it, both held, while the round takes tickets and manifests.

    :raises NotFound: no such round.
    :raises Forbidden: the operator was not invited.
    :raises Conflict: sales are over.
    """
    row = hold_round(session, round_id)
    part = participation(session, round_id, operator_id)
    if row.state is not State.OPEN or row.seal_at <= database_now(session):
        raise sales_ended(round_id)
    return row, part


@blueprint.route("/tickets")
class Tickets(MethodView):
    """Ticket batches."""

    @refuses(
        NotFound("no such round"),
        Forbidden("your operator was not invited to this round", code="not_invited"),
        sales_ended(7),
        Conflict("your manifest is in: no tickets can be added to it", code="manifest_submitted"),
        Conflict(
            "some tickets are on record with other content; nothing was stored",
            code="ticket_conflict",
            details={"ticketIds": ["t-000118"], "count": 1},
        ),
        Invalid(
            "the batch has 1 fault; nothing was stored",
            code="invalid_tickets",
            details={
                "faults": [
                    {"index": 0, "ticketId": "t-000118", "field": "bonus5", "error": "Must be from 1 to 100."},
                ]
            },
        ),
    )
    # Documented by the schema, read by the bulk path, which accepts exactly the same.
    @blueprint.doc(requestBody={"required": True, "content": {"application/json": {"schema": TicketBatchSchema}}})
    @blueprint.response(200, AcceptedTicketsSchema)
    def post(self) -> dict[str, Any]:
        """Submit up to 50,000 tickets. Sending the same tickets again changes nothing and succeeds.

        A batch is stored whole or not at all, and may have 16 MiB. It may be sent gzip-compressed
        (`Content-Encoding: gzip`); the limit is on what it inflates to.
        """
        round_id, batch = read_batch(request)
        operator_id = current_operator_id()
        with transaction() as session:
            row, part = selling(session, round_id, operator_id)
            if session.get(Manifest, (round_id, operator_id)) is not None:
                raise Conflict("your manifest is in: no tickets can be added to it", code="manifest_submitted")
            refuse_beyond_odds(batch, row.parsed_rules.odds_range)
            part.ticket_count += add_tickets(session, round_id, operator_id, batch)
        return {
            "success": True,
            "roundId": round_id,
            "operatorId": operator_id,
            "ticketsAccepted": len(batch),
            "state": row.state.value,
        }
