"""``/api/admin/reports``: whether all money agrees, what a round brought, and what moved on each day.

One rule: amounts are micro-USDC and days are UTC.
"""

from datetime import date
from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.admin.shapes import StaffCountSchema, listed, listing
from player.api.fields import Amount
from player.api.parsing import Blueprint
from player.models.books import books
from player.models.desk.reports import daily, round_report
from player.models.session import snapshot, transaction

blueprint = Blueprint("admin_reports", __name__, url_prefix="/api/admin/reports", description="Reports")


def _micro(told: str, **kwargs: Any) -> Amount:
    return Amount(required=True, metadata={"description": f"micro-USDC: {told}"}, **kwargs)


class StaffDaysQuerySchema(Schema):
    """Which days, both included, at most 366."""

    first = fields.Date(required=True, data_key="from", metadata={"description": "The first day, UTC"})
    last = fields.Date(required=True, data_key="to", metadata={"description": "The last day, UTC"})


class StaffDaySchema(Schema):
    """What moved on a day."""

    day = fields.Date(required=True)
    deposits = _micro("deposits that arrived")
    withdrawalsAsked = _micro("withdrawals asked for", attribute="withdrawals_asked")
    withdrawalsPaid = _micro("withdrawals that left for the bank", attribute="withdrawals_paid")
    withdrawalsFailed = _micro("withdrawals that went back to players", attribute="withdrawals_failed")
    sales = _micro("tickets sold")
    refunds = _micro("prices of tickets given back")
    prizes = _micro("prizes claimed")
    credits = _micro("given by staff")


class StaffRoundReportSchema(Schema):
    """What a round brought the house."""

    roundId = fields.Integer(required=True, attribute="round_id")
    stage = fields.String(required=True)
    tickets = fields.Integer(required=True)
    sales = _micro("tickets sold, refunded ones too")
    refunds = _micro("prices given back")
    prizes = fields.List(fields.Nested(StaffCountSchema), required=True)
    payoutsReported = fields.Integer(
        required=True, attribute="reported", metadata={"description": "Prizes the coordinator knows to be paid"}
    )
    house = _micro("sales less refunds, less prizes claimed or still to be claimed; before the coordinator's shares")


class StaffBooksSchema(Schema):
    """What is on which accounts, and what does not agree."""

    balanced = fields.Boolean(required=True, metadata={"description": "Whether everything agrees"})
    world = _micro("below zero by what players paid in and were not paid out")
    players = _micro("on all players' balances")
    withdrawals = _micro("asked for by players and on its way to their banks")
    sales = _micro("tickets of rounds that are not settled")
    house = _micro("the operator's own")
    faults = fields.List(
        fields.String(), required=True, metadata={"description": "A sentence each: what should be, and what is"}
    )


@blueprint.route("/books")
class Books(MethodView):
    """Reconciliation."""

    @blueprint.response(200, StaffBooksSchema)
    def get(self) -> Any:
        """Check that all money agrees

        Accounts with transfers, balances with the players' statements, sales with tickets, withdrawals with payments,
        claims with prizes. It reads everything there is, in one moment: for a report a day, not for a monitor.
        """
        with snapshot() as session:
            return books(session)


@blueprint.route("/rounds/<int:round_id>")
class RoundReport(MethodView):
    """One round's result."""

    @blueprint.response(200, StaffRoundReportSchema)
    def get(self, round_id: int) -> Any:
        """Show what a round brought

        Sales, refunds, prizes by status, payouts reported, and what is left to the house.
        """
        with transaction() as session:
            return round_report(session, round_id)


@blueprint.route("/daily")
class Daily(MethodView):
    """Day by day."""

    @blueprint.arguments(StaffDaysQuerySchema, location="query")
    @blueprint.response(200, listing("StaffDays", "days", StaffDaySchema))
    def get(self, query: dict[str, date]) -> dict[str, Any]:
        """Show what moved on each day

        Days on which nothing moved are there too.
        """
        with transaction() as session:
            return listed("days", daily(session, query["first"], query["last"]))
