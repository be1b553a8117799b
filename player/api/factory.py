"""Making the Flask application of a node.

The one rule kept here: everything that is registered is listed on this page.
"""

from flask import Flask

from player import logs
from player.api import (
    admin,
    auth,
    commands,
    credentials,
    docs,
    errors,
    health,
    limits,
    money,
    openapi,
    own_account,
    payment_callbacks,
    payments,
    prizes,
    profile,
    responsible,
    rounds,
    sandbox_payments,
    tickets,
    webhooks,
)
from player.api.credentials import Guard, ask_player, ask_staff
from player.api.parsing import Blueprint, Id
from player.models import tables
from player.settings import SettingsError, settings

__all__ = ["create_app", "tables"]

VERSION = "2.0.0"
LARGEST_BODY = 256 * 1024
"""Bytes. Nothing a player sends is longer; a webhook that tells of 1,000 exclusions is not either."""

BLUEPRINTS: tuple[tuple[Blueprint, Guard | None], ...] = (
    (health.blueprint, None),
    (webhooks.blueprint, None),
    (auth.blueprint, None),
    (own_account.blueprint, ask_player),
    (profile.blueprint, ask_player),
    (responsible.blueprint, ask_player),
    (money.blueprint, ask_player),
    (tickets.blueprint, ask_player),
    (prizes.blueprint, ask_player),
    (payments.blueprint, ask_player),
    (payment_callbacks.blueprint, None),
    (sandbox_payments.blueprint, None),
    (rounds.blueprint, None),
    *((blueprint, ask_staff) for blueprint in admin.BLUEPRINTS),
)
"""Each with who may pass: ``ask_player``, ``ask_staff``, or None for everybody."""


def create_app() -> Flask:
    """A new application, configured from the environment.

    :raises SystemExit: a setting is missing or cannot be used.
    """
    try:
        logs.configure(settings().log_level)
    except SettingsError as error:
        # Making it is the start of a process (gunicorn, flask): one line, not a traceback.
        raise SystemExit(f"node: {error}") from None
    app = Flask("player", static_folder=None)
    # A doubled slash is an unknown path, not a redirect: werkzeug's redirects are pages of HTML.
    app.url_map.merge_slashes = False
    app.url_map.converters["int"] = Id
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.config.update(
        API_TITLE="Lottery operator: player API",
        API_VERSION=VERSION,
        OPENAPI_VERSION="3.1.0",
        OPENAPI_URL_PREFIX="/",
        OPENAPI_JSON_PATH="openapi.json",
        MAX_CONTENT_LENGTH=LARGEST_BODY,
    )
    guards = {blueprint.name: guard for blueprint, guard in BLUEPRINTS if guard is not None}
    api = openapi.Api(app, guards)
    for blueprint, _ in BLUEPRINTS:
        api.register_blueprint(blueprint)
    app.register_blueprint(docs.docs)
    errors.register(app)
    app.cli.add_command(commands.staff_key)
    # In this order: who asks, then counting, then refusing whom nobody knows.
    credentials.register(app, guards)
    limits.register(app)
    app.before_request(credentials.refuse_unknown)
    return app
