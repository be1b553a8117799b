"""``/api/admin/rounds``, ``/tickets`` and ``/submissions``: how far our work on a round has come.

One rule: a round goes on by itself; what keeps it from doing so is in ``lastError``, and staff can have it tried now.
"""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.admin.shapes import StaffCountSchema, listed, listing, of_player, of_round, why, yes_or_no
from player.api.credentials import current_staff
from player.api.fields import Amount, Moment, Page, one_of
from player.api.parsing import Blueprint
from player.models.desk.rounds import RoundFile, find_rounds, find_submissions, find_tickets, round_file
from player.models.looks import wake
from player.models.rounds import Stage
from player.models.session import transaction
from player.models.staff import note
from player.models.tickets import STATUSES
from protocol.errors import NotFound

blueprint = Blueprint("admin_rounds", __name__, url_prefix="/api/admin", description="Rounds, tickets and batches")


class StaffRoundsQuerySchema(Page):
    """Which rounds."""

    stage = one_of(list(Stage), load_default=None)


class StaffTicketsQuerySchema(Page):
    """Which tickets."""

    round_id = of_round()
    player_id = of_player()
    status = one_of(STATUSES, load_default=None)


class StaffSubmissionsQuerySchema(Page):
    """Which batches."""

    round_id = of_round()
    accepted = yes_or_no("Batches that the coordinator has taken, or those it has not")


class StaffLookSchema(Schema):
    """Why a round is to be looked at."""

    reason = why()


class StaffRoundSchema(Schema):
    """A round, and how far we are with it."""

    id = fields.Integer(required=True)
    stage = fields.String(required=True, metadata={"description": f"Our own work: {', '.join(Stage)}"})
    state = fields.String(required=True, metadata={"description": "What the coordinator said last"})
    ticketPrice = Amount(required=True, attribute="ticket_price", metadata={"description": "micro-USDC"})
    oddsRange = fields.Integer(required=True, attribute="odds_range")
    salesCloseAt = Moment(required=True, attribute="sales_close_at", metadata={"description": "Our own last sale"})
    sealAt = Moment(required=True, attribute="seal_at")
    scheduledDrawTime = Moment(required=True, attribute="scheduled_draw_time")
    claimDeadline = Moment(required=True, allow_none=True, attribute="claim_deadline")
    ticketCount = fields.Integer(
        required=True, allow_none=True, attribute="ticket_count", metadata={"description": "As in our manifest"}
    )
    ticketsRoot = fields.String(required=True, allow_none=True, attribute="tickets_root")
    failureReason = fields.String(required=True, allow_none=True, attribute="failure_reason")
    lastError = fields.String(required=True, allow_none=True, attribute="last_error")
    attempts = fields.Integer(required=True, metadata={"description": "At the present step"})
    nextAttemptAt = Moment(required=True, allow_none=True, attribute="due_at")
    createdAt = Moment(required=True, attribute="created_at")
    endedAt = Moment(required=True, allow_none=True, attribute="ended_at")


class StaffRoundFileSchema(StaffRoundSchema):
    """A round with its counts."""

    tickets = fields.List(fields.Nested(StaffCountSchema), required=True)
    unsentTickets = fields.Integer(required=True, metadata={"description": "In no batch yet"})
    submissions = fields.Integer(required=True)
    openSubmissions = fields.Integer(required=True, metadata={"description": "Not accepted by the coordinator yet"})
    prizes = fields.List(fields.Nested(StaffCountSchema), required=True)
    draw = fields.Raw(required=True, allow_none=True, metadata={"description": "The coordinator's draw, an object"})


class StaffTicketSchema(Schema):
    """A ticket, as staff sees it."""

    id = fields.Integer(required=True)
    ticketId = fields.String(required=True, attribute="ticket_id")
    playerId = fields.Integer(required=True, attribute="player_id")
    roundId = fields.Integer(required=True, attribute="round_id")
    jackpotNumber = fields.Integer(required=True, attribute="jackpot_number")
    bonus1 = fields.Integer(required=True)
    bonus2 = fields.Integer(required=True)
    bonus3 = fields.Integer(required=True)
    bonus4 = fields.Integer(required=True)
    bonus5 = fields.Integer(required=True)
    isQuickPick = fields.Boolean(required=True, attribute="is_quick_pick")
    price = Amount(required=True, metadata={"description": "micro-USDC"})
    status = fields.String(required=True)
    winnings = Amount(required=True, allow_none=True, metadata={"description": "micro-USDC"})
    submissionId = fields.Integer(required=True, allow_none=True, attribute="submission_id")
    purchasedAt = Moment(required=True, attribute="purchased_at")


class StaffSubmissionSchema(Schema):
    """A batch of tickets on its way to the coordinator."""

    id = fields.Integer(required=True)
    roundId = fields.Integer(required=True, attribute="round_id")
    tickets = fields.Integer(required=True)
    attempts = fields.Integer(required=True)
    createdAt = Moment(required=True, attribute="created_at")
    acceptedAt = Moment(required=True, allow_none=True, attribute="accepted_at")
    lastError = fields.String(required=True, allow_none=True, attribute="last_error")


@blueprint.route("/rounds")
class Rounds(MethodView):
    """All rounds."""

    @blueprint.arguments(StaffRoundsQuerySchema, location="query")
    @blueprint.response(200, listing("StaffRounds", "rounds", StaffRoundSchema))
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List the rounds we were invited to

        Newest first, with our stage, the coordinator's state and what went wrong last.
        """
        with transaction() as session:
            return listed("rounds", find_rounds(session, **query))


@blueprint.route("/rounds/<int:round_id>")
class OneRound(MethodView):
    """One round."""

    @blueprint.response(200, StaffRoundFileSchema)
    def get(self, round_id: int) -> dict[str, Any]:
        """Look at a round

        With its tickets and prizes by status, what is still to be sent, and the draw.
        """
        with transaction() as session:
            return _shown(round_file(session, round_id))


@blueprint.route("/rounds/<int:round_id>/look")
class Look(MethodView):
    """Not waiting for the next look."""

    @blueprint.arguments(StaffLookSchema)
    @blueprint.response(200, StaffRoundFileSchema)
    def post(self, body: dict[str, str], round_id: int) -> dict[str, Any]:
        """Look at a round at once

        After whatever was in its way is gone: it is tried again now instead of at ``nextAttemptAt``. A round that has
        ended stays as it is.
        """
        with transaction() as session:
            if not wake(session, round_id):
                raise NotFound("no such round")
            note(session, current_staff(), "round.look", f"round:{round_id}", body["reason"])
            return _shown(round_file(session, round_id))


@blueprint.route("/tickets")
class Tickets(MethodView):
    """All tickets."""

    @blueprint.arguments(StaffTicketsQuerySchema, location="query")
    @blueprint.response(200, listing("StaffTickets", "tickets", StaffTicketSchema))
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List tickets

        Newest first, of a round, of a player, of a status.
        """
        with transaction() as session:
            return listed("tickets", find_tickets(session, **query))


@blueprint.route("/submissions")
class Submissions(MethodView):
    """All batches."""

    @blueprint.arguments(StaffSubmissionsQuerySchema, location="query")
    @blueprint.response(200, listing("StaffSubmissions", "submissions", StaffSubmissionSchema))
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List the batches in which tickets went to the coordinator

        Newest first. One that is not accepted is sent again by itself, with the same tickets.
        """
        with transaction() as session:
            return listed("submissions", find_submissions(session, **query))


def _shown(found: RoundFile) -> dict[str, Any]:
    columns = [field.attribute or name for name, field in StaffRoundSchema._declared_fields.items()]
    return {
        **{name: getattr(found.round, name) for name in [*columns, "draw"]},
        "tickets": found.tickets,
        "unsentTickets": found.unsent,
        "submissions": found.submissions,
        "openSubmissions": found.open_submissions,
        "prizes": found.prizes,
    }
