"""Reading requests strictly: what is not asked for is refused, not ignored.

The one rule kept here: a body is strict JSON (UTF-8, no duplicate keys, no NaN) with known fields only, a query has
known parameters only, each once; anything else is a clear error before any work is done.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from flask import Request, g, request
from flask_smorest import Blueprint as SmorestBlueprint
from marshmallow import RAISE, Schema, ValidationError
from webargs.flaskparser import FlaskParser
from werkzeug.routing import IntegerConverter, Map

from player.api.errors import BadRequest, UnsupportedMediaType
from protocol.canonical import parse_strict_json
from protocol.errors import Invalid

_REFUSED = "the request has fields that cannot be accepted"


def json_body(raw: bytes) -> Any:
    """Parse a request body.

    :raises BadRequest: not strict JSON.
    """
    try:
        return parse_strict_json(raw)
    except Invalid as error:
        raise BadRequest(f"the body is not usable JSON: {error.message}") from None


class Id(IntegerConverter):
    """An id in a path, 1 to 15 digits as we write them: no other spelling, and none that the database cannot hold."""

    regex = "[1-9][0-9]{0,14}"

    def __init__(self, map: Map, **_: Any) -> None:  # noqa: A002 - werkzeug's name
        super().__init__(map, min=1, max=10**15 - 1)


class StrictParser(FlaskParser):
    """webargs, made to refuse what it would overlook."""

    DEFAULT_UNKNOWN_BY_LOCATION: dict[str, str | None] = {"json": RAISE, "query": RAISE}

    def load_querystring(self, req: Request, schema: Schema) -> Any:
        g.query_was_read = True
        if repeated := [name for name, values in req.args.lists() if len(values) > 1]:
            raise Invalid(_REFUSED, details={name: ["Given more than once."] for name in repeated})
        return super().load_querystring(req, schema)

    def load_json(self, req: Request, schema: Schema) -> Any:
        if req.mimetype != "application/json" or "Content-Encoding" in req.headers:
            raise UnsupportedMediaType("send plain JSON in UTF-8 with Content-Type: application/json")
        body = req.get_data()
        if req.content_length not in (None, len(body)):
            raise BadRequest("the body is shorter than its Content-Length says")
        return json_body(body)

    def handle_error(
        self,
        error: ValidationError,
        req: Request,
        schema: Schema,
        *,
        error_status_code: int | None,
        error_headers: Any,
    ) -> NoReturn:
        # webargs wraps the messages in the location's name; a client knows what it sent.
        raise Invalid(_REFUSED, details=next(iter(error.normalized_messages().values())))


class Blueprint(SmorestBlueprint):
    """A blueprint that reads its arguments strictly."""

    ARGUMENTS_PARSER = StrictParser()

    def response(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Document the answer. Every view has one, so this is where a query that none of them reads is refused."""
        document = super().response(*args, **kwargs)

        def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(view)
            def strict(*args: Any, **kwargs: Any) -> Any:
                if request.args and "query_was_read" not in g:
                    raise Invalid(_REFUSED, details={name: ["Unknown field."] for name in request.args})
                return view(*args, **kwargs)

            return document(strict)

        return decorate
