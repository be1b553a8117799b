"""``POST /webhooks/coordinator``: what the coordinator tells us (interface section 6.2).

The one rule kept here: a delivery is written down and answered at once; what follows from it is a worker's.
"""

from typing import Any

from flask import request
from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.errors import UnsupportedMediaType
from player.api.parsing import Blueprint, json_body
from player.api.signatures import require_signature
from player.models.received import receive
from player.models.session import transaction
from protocol.errors import Invalid

blueprint = Blueprint("webhooks", __name__, url_prefix="/webhooks", description="What the coordinator tells us")


class ReceivedSchema(Schema):
    """The delivery is on record; ``new`` is false for one that came before."""

    success = fields.Boolean(required=True)
    new = fields.Boolean(required=True)


@blueprint.route("/coordinator")
class FromCoordinator(MethodView):
    """The receiver."""

    @blueprint.response(200, ReceivedSchema)
    def post(self) -> dict[str, Any]:
        """Take a delivery of the coordinator, signed with our API key; 401 for any other.

        A delivery that came before (X-Service-Delivery) is taken again and changes nothing. Events that this version
        does not know are kept and make us look at their round.
        """
        raw = request.get_data()
        delivery_id = require_signature(raw, request.headers)
        if request.mimetype != "application/json":
            raise UnsupportedMediaType("send JSON with Content-Type: application/json")
        event, round_id, body = _read(json_body(raw))
        with transaction() as session:
            new = receive(session, delivery_id, event, round_id, body)
        return {"success": True, "new": new}


def _read(body: Any) -> tuple[str, int | None, dict[str, Any]]:
    event, round_id = (body.get("event"), body.get("roundId")) if isinstance(body, dict) else (None, None)
    if not isinstance(event, str) or not (round_id is None or (type(round_id) is int and 0 < round_id < 2**53)):
        raise Invalid("a delivery has an event, and a round's number or null for roundId")
    return event, round_id, body
