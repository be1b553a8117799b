"""The OpenAPI document: what flask-smorest writes from the views, with the credentials and refusals that they share.

The one rule kept here: who may call an operation is told from its blueprint's guard, never by hand, so that the
document cannot promise what the guard does not keep.
"""

import inspect
from threading import Lock
from typing import Any

from flask import Flask, Response
from flask_smorest import Api as SmorestApi
from flask_smorest import Blueprint
from flask_smorest.spec.plugins import FlaskPlugin
from marshmallow import Schema, fields

from player.api.credentials import STAFF_HEADER, Guard, ask_player, ask_staff

SCHEMES: dict[str, dict[str, str]] = {
    "accessToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "An access token from register, login or refresh; good for 900 seconds",
    },
    "staffKey": {
        "type": "apiKey",
        "in": "header",
        "name": STAFF_HEADER,
        "description": "A staff key, made at a shell of the node: flask --app player.api.factory staff-key create",
    },
}
_SCHEME_OF: dict[Guard, str] = {ask_player: "accessToken", ask_staff: "staffKey"}

WHY = {
    "400": "The body cannot be read: not strict JSON (`bad_request`)",
    "401": "Nobody, or nobody we know, is asking (`unauthenticated`, `invalid_token`, `session_ended`)",
    "403": "Known, but not allowed to do this (`suspended`, `self_excluded`)",
    "404": "No such thing, or it is another player's (`not_found`)",
    "409": "Fine in itself, but not now or not again; `code` says why",
    "413": "The body is too large (`too_large`)",
    "415": "The body is not JSON (`unsupported_media_type`)",
    "422": "Fields or parameters that cannot be accepted, by name in `details` (`invalid`)",
    "429": "Too many requests; Retry-After says how many seconds to wait (`rate_limited`)",
    "500": "Something went wrong on our side (`internal`)",
    "503": "The database cannot be reached; try again shortly (`unavailable`)",
}
PARAMETERS = {
    "limit": "How many at most",
    "offset": "How many to leave out first",
    "status": "Of this status only",
    "type": "Of this type only",
    "kind": "Of this kind only",
    "stage": "In this stage only",
    "roundId": "Of this round only",
    "token": "From the address the player was sent to",
    "kycLevel": "Of this KYC level only",
    "number": "The `id` of what is meant",
    "player_id": "A player's `id`",
    "round_id": "The coordinator's id of a round",
    "ticket_id": "A ticket's `id`",
    "prize_id": "A prize's `id`",
    "transaction_id": "A transaction's `id`",
    "payment_id": "A payment's `id`",
    "session_id": "A session's `id`",
    "request_id": "A KYC request's `id`",
}

"""What parameters mean whose own schema does not say it."""

NOTHING_YET = ("/api/rounds/current", "/api/jackpot", "/api/player/tickets/purchase")
"""Paths without an id at which there may be nothing, or which name a round in the body."""


BY_SECRET = {
    "/api/auth/login": {"401", "403"},
    "/api/auth/refresh": {"401", "403"},
    "/api/auth/password/reset": {"401", "403"},
    "/api/payments/callback": {"400", "401", "403", "404", "413", "415"},
    "/webhooks/coordinator": {"400", "401", "413", "415"},
}
"""Paths that anybody may call with the right password, token or signature, and how they refuse others."""


class ErrorSchema(Schema):
    """Every refusal and failure."""

    error = fields.String(required=True, metadata={"description": "What went wrong, for a person"})
    code = fields.String(required=True, metadata={"description": "The same for a program; stable"})
    details = fields.Raw(metadata={"description": "What is wrong with which field, if that can be said"})


class Api(SmorestApi):
    """flask-smorest with our errors. ``guards`` is by blueprint's name.

    Routes are taken at once and described when the document is first asked for, which takes longer than all the rest of
    making an application.
    """

    ERROR_SCHEMA = ErrorSchema

    def __init__(self, app: Flask, guards: dict[str, Guard]) -> None:
        super().__init__(app)
        self._guards = guards
        self._undescribed: list[Blueprint] = []
        self._describing = Lock()

    def register_blueprint(self, blp: Blueprint, *, parameters: Any = None, **options: Any) -> None:
        """Take a blueprint's routes."""
        self._app.extensions["flask-smorest"]["blp_name_to_api"][blp.name] = self
        self._app.register_blueprint(blp, **options)
        self._undescribed.append(blp)

    def _openapi_json(self) -> Response:
        with self._describing:
            if self._undescribed:
                for blueprint in self._undescribed:
                    blueprint.register_views_in_doc(self, self._app, self.spec, name=blueprint.name, parameters=None)
                _complete_all(self._app, self, self._guards)
                self._undescribed.clear()
        answer: Response = super()._openapi_json()
        return answer


def _complete_all(app: Flask, api: Api, guards: dict[str, Guard]) -> None:
    """Tell of every operation who may call it and how it may be refused."""
    for name, scheme in SCHEMES.items():
        api.spec.components.security_scheme(name, scheme)
    for rule in app.url_map.iter_rules():
        item = api.spec._paths.get(FlaskPlugin.flaskpath2openapi(rule.rule))
        guard = guards.get(rule.endpoint.rpartition(".")[0])
        if item:
            _describe(item.get("parameters", []))
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"} if item else ():
            view = getattr(app.view_functions[rule.endpoint], "view_class", None)
            _head(item[method.lower()], inspect.getdoc(getattr(view, method.lower(), None)) or "")
            _complete(item[method.lower()], method, rule.rule, guard)


def _head(operation: dict[str, Any], docstring: str) -> None:
    """The first sentence of a view's docstring is the operation's heading, the rest its description, in Markdown."""
    first, *others = [" ".join(part.split()) for part in docstring.replace("``", "`").split("\n\n")]
    summary, _, rest = first.partition(". ")
    operation["summary"] = summary.removesuffix(".")
    operation["description"] = "\n\n".join(part for part in (rest, *others) if part)


def _complete(operation: dict[str, Any], method: str, path: str, guard: Guard | None) -> None:
    operation["security"] = [{_SCHEME_OF[guard]: []}] if guard else []
    responses = operation["responses"]
    responses.pop("default", None)
    for status in sorted(_refusals(method, path, guard, "requestBody" in operation)):
        responses[status] = _refusal(status)
    _describe(operation.get("parameters", []))


def _refusals(method: str, path: str, guard: Guard | None, has_body: bool) -> set[str]:
    found = {"422", "500"} | BY_SECRET.get(path, set())
    if not path.startswith("/health"):
        found.add("429")
    if path != "/health":
        found.add("503")
    if guard is not None:
        found.add("401")
    if guard is ask_player:
        found.add("403")
    if "<" in path or path in NOTHING_YET:
        found.add("404")
    if has_body:
        found |= {"400", "413", "415"}
    if method != "GET":
        found.add("409")
    return found


def _describe(parameters: list[dict[str, Any]]) -> None:
    for one in parameters:
        if one["name"] in PARAMETERS:
            one.setdefault("description", PARAMETERS[one["name"]])


def _refusal(status: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": WHY[status], "content": {"application/json": {"schema": schema}}}
