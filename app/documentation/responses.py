"""Every answer an operation may give that is not its success, made from examples of the errors.

The one rule kept here: nothing is listed by hand per operation. What follows from being reached over HTTP, from having
a body, from an id in the path or from a guard is derived; the rest is what the view declares (``declared.refuses``).
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from marshmallow import Schema

from app.documentation.declared import Refusal
from app.errors import (
    STATUS,
    BadRequest,
    TooLarge,
    UnsupportedMediaType,
    body_of,
    code_of_status,
    message_of_status,
    status_of,
)
from app.resources.errors import ErrorSchema
from models.settings import settings
from protocol.errors import Invalid, Unavailable

SchemaReference = Callable[[type[Schema]], dict[str, Any]]
"""Gives the ``$ref`` of a schema."""

_REFUSED = "the request has fields that cannot be accepted"
_WITH_A_BODY: tuple[Refusal, ...] = (
    (BadRequest("the body is not usable JSON: not valid UTF-8"), None),
    (TooLarge("the request body is too large"), None),
    (UnsupportedMediaType("send JSON with Content-Type: application/json"), None),
)
_ALWAYS: tuple[Refusal, ...] = ((Unavailable("the service cannot reach its database; try again shortly"), None),)
_MEANINGS = {
    429: "More requests than the rate limit allows; wait as long as `Retry-After` says.",
    500: "Something went wrong on our side. It is logged; nothing of it is shown.",
}

_RATE_LIMIT = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
_HEADERS: dict[str, dict[str, Any]] = {
    "X-RateLimit-Limit": {
        "description": "Requests allowed in the current window.",
        "schema": {"type": "integer", "minimum": 0},
        "example": 120,
    },
    "X-RateLimit-Remaining": {
        "description": "Requests left in the current window.",
        "schema": {"type": "integer", "minimum": 0},
        "example": 117,
    },
    "Retry-After": {
        "description": "How long to wait, seconds.",
        "schema": {"type": "integer", "minimum": 0},
        "example": 12,
    },
    "WWW-Authenticate": {
        "description": "How to authenticate.",
        "schema": {"type": "string"},
        "example": 'Bearer realm="coordinator", ApiKey header="X-Service-Key"',
    },
}
_HEADERS_OF = {401: ("WWW-Authenticate",), 429: ("Retry-After",)}


@dataclass(frozen=True)
class _Shown:
    """One error as an answer shows it."""

    status: int
    body: dict[str, Any]
    schema: type[Schema]
    meaning: str


CACHE_HEADERS: dict[str, dict[str, Any]] = {
    "ETag": {
        "description": "Names what was answered; send it back as `If-None-Match`.",
        "schema": {"type": "string", "pattern": '^"[0-9a-f]{32}"$'},
    },
    "Cache-Control": {
        "description": "Whether, and for how long, the answer may be kept: `no-store` where it is for you alone.",
        "schema": {"type": "string"},
    },
}


_RESETS: dict[str, dict[str, Any]] = {
    "unix": {"description": "When the window resets: Unix time, seconds.", "example": 1_769_889_600},
    "seconds": {"description": "In how many seconds the window resets.", "example": 42},
}


def described_headers() -> dict[str, Any]:
    """Every header that answers refer to."""
    reset = {"schema": {"type": "integer", "minimum": 0}, **_RESETS[settings().rate_limit_reset]}
    described = {**_HEADERS, "X-RateLimit-Reset": reset, **CACHE_HEADERS}
    return {name: {**header, "required": name in _RATE_LIMIT} for name, header in described.items()}


def unchanged() -> dict[str, Any]:
    """The answer to a reader that has what there is."""
    return {
        "description": "Nothing has changed since the answer with this `ETag`.",
        "headers": standing_headers() | cache_headers(),
    }


def cache_headers() -> dict[str, Any]:
    """References to the headers of an answer that may be kept."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in CACHE_HEADERS}


def standing_headers() -> dict[str, Any]:
    """References to the headers that every answer has."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in _RATE_LIMIT}


def error_responses(
    declared: Iterable[Refusal],
    *,
    needed: str | None,
    with_engines: bool,
    with_limits: bool,
    reference: SchemaReference,
) -> dict[str, dict[str, Any]]:
    """The error responses of an operation, by status; ``needed`` names a field its body must have, if it has a body."""
    wrong = {needed: ["Missing data for required field."]} if needed else {"page": ["Unknown field."]}
    refusals: list[Refusal] = [*(_WITH_A_BODY if needed is not None else ()), *_ALWAYS]
    refusals += [(Invalid(_REFUSED, details=wrong), None), *declared]
    shown = [_shown(*refusal) for refusal in refusals]
    shown += [_plain(429, message_of_status(429))] if with_limits else []
    shown += [_plain(500, "something went wrong on our side", "internal")]
    by_status: dict[int, list[_Shown]] = {}
    for one in shown:
        by_status.setdefault(one.status, []).append(one)
    if not with_engines:
        del by_status[503]
    return {str(status): _response(status, by_status[status], reference) for status in sorted(by_status)}


def _shown(error: Any, schema: type[Schema] | None) -> _Shown:
    body = body_of(error.message, error.code, error.details, **error.facts)
    kind = next(kind for kind in type(error).__mro__ if kind in STATUS)
    meaning = (kind.__doc__ or "").partition("\n\n")[0]
    return _Shown(status_of(error), body, schema or ErrorSchema, meaning)


def _plain(status: int, message: str, code: str | None = None) -> _Shown:
    return _Shown(status, body_of(message, code or code_of_status(status)), ErrorSchema, _MEANINGS[status])


def _response(status: int, shown: list[_Shown], reference: SchemaReference) -> dict[str, Any]:
    codes = list(dict.fromkeys(one.body["code"] for one in shown))
    bodies = list(dict.fromkeys(one.schema for one in shown))
    narrowed = {"properties": {"code": {"enum": codes}}}
    schemas = [{"allOf": [reference(schema), narrowed]} for schema in bodies]
    examples: dict[str, Any] = {}
    for one in shown:
        name, number = one.body["code"], 2
        while name in examples and examples[name]["value"] != one.body:
            name, number = f"{one.body['code']}_{number}", number + 1
        examples[name] = {"summary": one.body["error"], "value": one.body}
    names = _HEADERS_OF.get(status, ())
    return {
        "description": shown[0].meaning,
        "headers": standing_headers() | {name: {"$ref": f"#/components/headers/{name}"} for name in names},
        "content": {
            "application/json": {
                "schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas},
                "examples": examples,
            }
        },
    }


def share(paths: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Replace error responses that several operations have in common by references; returns the shared ones by name."""
    places: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for item in paths.values():
        for operation in item.values():
            for status, response in operation["responses"].items():
                if status >= "4":
                    written = json.dumps(response)
                    places.setdefault(written, []).append((operation["responses"], status))
    shared: dict[str, Any] = {}
    for written, users in sorted(places.items(), key=lambda place: -len(place[1])):
        if len(users) < 2:
            continue
        name = phrase = HTTPStatus(int(users[0][1])).phrase.title().replace(" ", "")
        number = 2
        while name in shared:
            name, number = f"{phrase}{number}", number + 1
        shared[name] = json.loads(written)
        for responses, status in users:
            responses[status] = {"$ref": f"#/components/responses/{name}"}
    return dict(sorted(shared.items()))
