"""``GET /api/admin/ledger``, ``/ledger/accounts`` and ``/audit``: what happened to the money, and who did what."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, post_load

from app.credentials import require_admin, role_required
from app.desk import records
from app.fields import LARGEST_SAFE, Filled, Moment, QueryWhole
from app.parsing import Blueprint
from app.resources.cursors import Cursor, page_limit
from app.resources.records import AccountListSchema, AuditLogSchema, PostingListSchema
from models.audit import AuditWanted
from models.credentials import AdminRole
from models.ledger_search import PostingsWanted
from models.session import transaction

blueprint = Blueprint("admin_records", __name__, url_prefix="/api/admin", description="Ledger and audit log")
blueprint.before_request(require_admin)


class PageSchema(Schema):
    """Which page, and of what time: from ``since`` on (included) until ``until``."""

    since = Moment(load_default=None)
    until = Moment(load_default=None)
    limit = page_limit()
    cursor = Cursor(int, load_default=None)


class LedgerQuerySchema(PageSchema):
    """Which postings: those that touch the account, of this kind, of this round."""

    account = Filled(longest=200, load_default=None)
    kind = Filled(longest=100, load_default=None)
    roundId = QueryWhole(lowest=1, highest=LARGEST_SAFE, load_default=None)

    @post_load
    def gather(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Put the filters together under one name, beside the page."""
        wanted = PostingsWanted(
            data.pop("account"), data.pop("kind"), data.pop("roundId"), data.pop("since"), data.pop("until")
        )
        return {"wanted": wanted, **data}


class AuditQuerySchema(PageSchema):
    """Which entries: of this action, on this subject, by an actor whose name begins so."""

    action = Filled(longest=100, load_default=None)
    subject = Filled(longest=200, load_default=None)
    actor = Filled(longest=200, load_default=None)

    @post_load
    def gather(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Put the filters together under one name, beside the page."""
        wanted = AuditWanted(
            data.pop("action"), data.pop("subject"), data.pop("actor"), data.pop("since"), data.pop("until")
        )
        return {"wanted": wanted, **data}


@blueprint.route("/ledger")
class Ledger(MethodView):
    """The books."""

    @role_required(AdminRole.TREASURER)
    @blueprint.arguments(LedgerQuerySchema, location="query")
    @blueprint.response(200, PostingListSchema)
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """Every movement of money, newest first, page by page."""
        with transaction() as session:
            return records.ledger(session, query["wanted"], query["limit"], query["cursor"])


@blueprint.route("/ledger/accounts")
class Accounts(MethodView):
    """The balances."""

    @role_required(AdminRole.TREASURER)
    @blueprint.response(200, AccountListSchema)
    def get(self) -> dict[str, Any]:
        """Every account and what is on it."""
        with transaction() as session:
            return records.balances(session)


@blueprint.route("/audit")
class Audit(MethodView):
    """The audit log."""

    @role_required()
    @blueprint.arguments(AuditQuerySchema, location="query")
    @blueprint.response(200, AuditLogSchema)
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """Who changed what, when and why, newest first, page by page."""
        with transaction() as session:
            return records.audit(session, query["wanted"], query["limit"], query["cursor"])
