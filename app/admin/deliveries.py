"""``/api/admin/deliveries…``: webhook deliveries, for whoever is on call."""

from datetime import datetime
from typing import Any
from uuid import UUID

from flask import Response, make_response
from flask.views import MethodView
from marshmallow import Schema, post_load

from app.credentials import admin_actor, require_admin, role_required
from app.desk import deliveries, requeues
from app.documentation.declared import refuses
from app.fields import LARGEST_SAFE, Filled, Moment, QueryWhole, Truth, Whole, identifier, one_of
from app.parsing import Blueprint
from app.resources.cursors import Cursor, page_limit
from app.resources.deliveries import DeliveryDetailSchema, DeliveryListSchema, DeliverySchema
from app.resources.requeues import RequeuePreviewSchema, RequeueStartedSchema
from models.credentials import AdminRole
from models.deliveries import DeliveryStatus
from models.delivery_search import Wanted
from models.session import transaction
from protocol.errors import Conflict, Invalid
from protocol.retry import ERROR_CLASSES
from protocol.webhook import EVENTS

blueprint = Blueprint("admin_deliveries", __name__, url_prefix="/api/admin/deliveries", description="Deliveries")
blueprint.before_request(require_admin)


class FiltersSchema(Schema):
    """Which deliveries: those that fit all that is given; written from ``since`` on (included) until ``until``."""

    status = one_of(DeliveryStatus, load_default=None)
    operatorId = identifier(load_default=None)
    roundId = Whole(lowest=1, load_default=None)
    event = one_of(EVENTS, load_default=None)
    errorClass = one_of(ERROR_CLASSES, load_default=None)
    since = Moment(load_default=None)
    until = Moment(load_default=None)

    @post_load
    def gather(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Put the filters together under one name, beside whatever else was sent."""
        status = data.pop("status")
        wanted = Wanted(
            status=DeliveryStatus(status) if status else None,
            operator_id=data.pop("operatorId"),
            round_id=data.pop("roundId"),
            event=data.pop("event"),
            error_class=data.pop("errorClass"),
            since=data.pop("since"),
            until=data.pop("until"),
        )
        return {"wanted": wanted, **data}


class DeliveriesQuerySchema(FiltersSchema):
    """Which deliveries, and which page of them."""

    roundId = QueryWhole(lowest=1, highest=LARGEST_SAFE, load_default=None)  # type: ignore[assignment]
    limit = page_limit()
    cursor = Cursor(datetime, UUID, load_default=None)


class ReasonSchema(Schema):
    """Why it is done."""

    reason = Filled(required=True, longest=500)


class RequeueMatchingSchema(FiltersSchema):
    """Which failed deliveries are queued again, and why. With ``dryRun`` they are only counted.

    Without any filter it would be every failed delivery there is: that takes ``all``, and nothing else does.
    """

    reason = Filled(required=True, longest=500)
    dryRun = Truth(load_default=False)
    all = Truth(load_default=False)


@blueprint.route("")
class Deliveries(MethodView):
    """Finding."""

    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(DeliveriesQuerySchema, location="query")
    @blueprint.response(200, DeliveryListSchema)
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """Deliveries, newest first, page by page."""
        with transaction() as session:
            return deliveries.listed(session, query["wanted"], query["limit"], query["cursor"])


@blueprint.route("/<delivery_id>")
class OneDelivery(MethodView):
    """One delivery."""

    @role_required(AdminRole.ONCALL)
    @blueprint.response(200, DeliveryDetailSchema)
    def get(self, delivery_id: str) -> dict[str, Any]:
        """A delivery with what is sent and every attempt."""
        with transaction() as session:
            return deliveries.shown(session, delivery_id)


@blueprint.route("/<delivery_id>/requeue")
class Requeue(MethodView):
    """One again."""

    @refuses(Conflict("the delivery is delivered: only a failed one is queued again", code="wrong_state"))
    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(ReasonSchema)
    @blueprint.response(200, DeliverySchema)
    def post(self, body: dict[str, str], delivery_id: str) -> dict[str, Any]:
        """Queue a failed delivery again, with as many attempts as a new one has; 409 unless it is failed."""
        with transaction() as session:
            return deliveries.requeue_one(session, admin_actor(), delivery_id, body["reason"])


@blueprint.route("/requeue")
class RequeueMatching(MethodView):
    """Many again."""

    @refuses(
        Invalid("this would be every failed delivery", details={"all": ["Name a filter, or say all: true."]}),
        Invalid("nothing can fit these filters", details={"operatorId": ["No such operator."]}),
    )
    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(RequeueMatchingSchema)
    @blueprint.response(200, RequeuePreviewSchema)
    @blueprint.alt_response(202, schema=RequeueStartedSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any] | Response:
        """Queue all failed deliveries that fit again, or with ``dryRun`` only count them (200).

        It is done in the background, at a pace that keeps nobody else waiting: 202, and ``jobId`` to watch or cancel it
        by. Of deliveries that have failed by now each is queued again at most once, whatever else asks for it.
        """
        wanted, everything = body["wanted"], body["all"]
        with transaction() as session:
            if body["dryRun"]:
                return requeues.previewed(session, wanted)
            started = requeues.start(session, admin_actor(), wanted, body["reason"], everything=everything)
        return make_response(started, 202)
