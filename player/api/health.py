"""``GET /health`` and ``/health/ready``: is the process alive, and can it work."""

from datetime import UTC, datetime
from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.fields import Moment, Text
from player.api.parsing import Blueprint
from player.models.schema import schema_fault
from player.models.session import engine
from protocol.errors import Unavailable

blueprint = Blueprint("health", __name__, url_prefix="/health", description="Is it alive")


class HealthSchema(Schema):
    """Alive."""

    status = Text(required=True)
    version = Text(required=True)
    timestamp = Moment(required=True)


class ReadySchema(Schema):
    """Able to work."""

    status = fields.String(required=True)


@blueprint.route("")
class Health(MethodView):
    """Liveness."""

    @blueprint.response(200, HealthSchema)
    def get(self) -> dict[str, Any]:
        """The process answers."""
        from player.api.factory import VERSION

        return {"status": "ok", "version": VERSION, "timestamp": datetime.now(UTC)}


@blueprint.route("/ready")
class Ready(MethodView):
    """Readiness."""

    @blueprint.response(200, ReadySchema)
    def get(self) -> dict[str, str]:
        """The database answers and has the schema of this version; otherwise 503 and why."""
        fault = schema_fault(engine())
        if fault is not None:
            raise Unavailable(fault)
        return {"status": "ready"}
