"""``/api/admin/audit``, ``/chores`` and ``/views``: what staff did, whether the node does its duty, what it heard."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.admin.shapes import listed, listing
from player.api.fields import Moment, Page, Text
from player.api.parsing import Blueprint
from player.models.desk import records
from player.models.session import transaction

blueprint = Blueprint("admin_audit", __name__, url_prefix="/api/admin", description="Who did what, and the node's duty")


class AuditQuerySchema(Page):
    """Which entries: by whom, of which action, on what."""

    who = Text(shortest=1, load_default=None, metadata={"description": "Name of a staff key"})
    action = Text(shortest=1, load_default=None, metadata={"description": "As in player.suspend"})
    subject = Text(shortest=1, load_default=None, metadata={"description": "As in player:7"})


class StaffAuditEntrySchema(Schema):
    """One thing that staff did."""

    id = fields.Integer(required=True)
    at = Moment(required=True)
    who = fields.String(required=True, metadata={"description": "Name of a staff key, or shell:USER"})
    action = fields.String(required=True)
    subject = fields.String(required=True)
    reason = fields.String(required=True)
    details = fields.Raw(required=True, allow_none=True, metadata={"description": "What changed, an object or null"})


class StaffChoreSchema(Schema):
    """Something the node does again and again."""

    kind = fields.String(required=True, metadata={"description": "heartbeat, webhook or poll"})
    doneAt = Moment(required=True, allow_none=True, attribute="done_at")
    nextAt = Moment(required=True, allow_none=True, attribute="due_at")
    lastError = fields.String(required=True, allow_none=True, attribute="last_error")


class StaffViewSchema(Schema):
    """Something the coordinator shows us, as it was when we last asked."""

    name = fields.String(required=True, metadata={"description": "jackpot, odds, operator or balance"})
    body = fields.Raw(required=True, metadata={"description": "An object with the coordinator's published names"})
    fetchedAt = Moment(required=True, attribute="fetched_at")


@blueprint.route("/audit")
class Audit(MethodView):
    """The audit log."""

    @blueprint.arguments(AuditQuerySchema, location="query")
    @blueprint.response(200, listing("StaffAuditLog", "entries", StaffAuditEntrySchema))
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List what staff did

        Newest first, with who and why. Entries are never changed or removed.
        """
        with transaction() as session:
            return listed("entries", records.audit(session, **query))


@blueprint.route("/chores")
class Chores(MethodView):
    """The node's duties."""

    @blueprint.response(200, listing("StaffChores", "chores", StaffChoreSchema))
    def get(self) -> dict[str, Any]:
        """Show how the node's regular work goes

        Heartbeats to the coordinator, telling it our webhook's address, asking it for rounds: when each was last
        done, when it is next, and what went wrong last.
        """
        with transaction() as session:
            return listed("chores", records.chores(session))


@blueprint.route("/views")
class Views(MethodView):
    """What the coordinator says of us."""

    @blueprint.response(200, listing("StaffViews", "views", StaffViewSchema))
    def get(self) -> dict[str, Any]:
        """Show what the coordinator last told us

        Our own profile with its reputation, our deposit for escrow, the jackpot and the odds.
        """
        with transaction() as session:
            return listed("views", records.views(session))
