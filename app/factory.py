"""Making the Flask application.

The one rule kept here: everything that is registered is listed on this page.
"""

from flask import Flask

from app import auth, compression, cross_origin, errors, health, limits, metrics, private, read_cache, unread
from app.admin import applications as admin_applications
from app.admin import deliveries as admin_deliveries
from app.admin import endpoints as admin_endpoints
from app.admin import operators as admin_operators
from app.admin import queues as admin_queues
from app.admin import records as admin_records
from app.admin import requeues as admin_requeues
from app.admin import rounds as admin_rounds
from app.documentation.pages import documentation
from app.openapi import Collector
from app.operator import manifests, payouts, profile, sandbox, tickets
from app.operator import rounds as operator_rounds
from app.ops import ops
from app.public import applications, draws, inclusion, jackpot, proofs, rounds, statistics
from app.public import operators as public_operators
from app.version import VERSION
from models import tables
from models.settings import settings
from tasks import logs

__all__ = ["create_app", "tables"]

SMALL_BODY_BYTES = 1024 * 1024
"""The most a request body may hold, except where a blueprint says otherwise."""

BLUEPRINTS = (
    rounds.blueprint,
    draws.blueprint,
    proofs.blueprint,
    inclusion.blueprint,
    jackpot.blueprint,
    statistics.blueprint,
    public_operators.blueprint,
    applications.blueprint,
    auth.blueprint,
    tickets.blueprint,
    manifests.blueprint,
    profile.blueprint,
    operator_rounds.blueprint,
    payouts.blueprint,
    sandbox.blueprint,
    admin_applications.blueprint,
    admin_operators.blueprint,
    admin_rounds.blueprint,
    admin_deliveries.blueprint,
    admin_requeues.blueprint,
    admin_endpoints.blueprint,
    admin_queues.blueprint,
    admin_records.blueprint,
    health.blueprint,
    metrics.blueprint,
)


def create_app() -> Flask:
    """A new application, configured from the environment.

    :raises SettingsError: a setting is missing or cannot be used.
    """
    logs.configure(settings().log_level)
    app = Flask("app", static_folder=None)
    # A doubled slash is an unknown path, not a redirect: werkzeug's redirects are pages of HTML.
    app.url_map.merge_slashes = False
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.config.update(
        API_TITLE="Lottery Coordinator",
        API_VERSION=VERSION,
        OPENAPI_VERSION="3.1.0",
        MAX_CONTENT_LENGTH=SMALL_BODY_BYTES,
        MAX_FORM_MEMORY_SIZE=SMALL_BODY_BYTES,
    )
    api = Collector(app)
    for blueprint in BLUEPRINTS:
        api.register_blueprint(blueprint)
    app.register_blueprint(documentation)
    errors.register(app)
    cross_origin.register(app)
    private.register(app)
    count_public = limits.register(app)
    unread.register(app)
    read_cache.register(app, count_public)
    compression.register(app)
    limits.trust_proxies(app)
    app.cli.add_command(ops)
    return app
