"""Is it alive, and is it ready: ``GET /health`` and ``GET /health/ready``."""

from datetime import UTC, datetime
from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields
from redis import Redis
from redis.exceptions import RedisError

from app.documentation.declared import refuses, without_engines
from app.fields import Shown, one_of
from app.parsing import Blueprint
from app.version import VERSION
from models.schema import schema_fault
from models.session import engine
from models.settings import settings
from protocol.errors import Unavailable
from protocol.timestamps import format_timestamp

blueprint = Blueprint("health", __name__, description="Is the service up")


class HealthSchema(Schema):
    """Alive: the process answers."""

    status = one_of(["ok"], required=True)
    version = fields.String(required=True)
    timestamp = Shown(required=True)


class ChecksSchema(Schema):
    """What was asked, and ``ok`` or what is wrong with it."""

    database = fields.String(required=True)
    redis = fields.String(required=True)


class ReadySchema(Schema):
    """Ready: the engines answer and the schema is the one this version needs."""

    status = one_of(["ready"], required=True)
    checks = fields.Nested(ChecksSchema, required=True)


@blueprint.route("/health")
class Health(MethodView):
    """Liveness."""

    @without_engines
    @blueprint.response(200, HealthSchema)
    def get(self) -> dict[str, str]:
        """The process answers."""
        return {"status": "ok", "version": VERSION, "timestamp": format_timestamp(datetime.now(UTC))}


@blueprint.route("/health/ready")
class Ready(MethodView):
    """Readiness."""

    @refuses(Unavailable("the service is not ready", details={"database": "ok", "redis": "unreachable"}))
    @blueprint.response(200, ReadySchema)
    def get(self) -> dict[str, Any]:
        """The engines answer and no migration is missing; else 503."""
        checks = {"database": _database(), "redis": _redis()}
        if set(checks.values()) != {"ok"}:
            raise Unavailable("the service is not ready", details=checks)
        return {"status": "ready", "checks": checks}


def _database() -> str:
    return schema_fault(engine()) or "ok"


def _redis() -> str:
    try:
        with Redis.from_url(settings().redis_url, socket_connect_timeout=2, socket_timeout=2) as client:
            client.ping()
    except RedisError:
        return "unreachable"
    return "ok"
