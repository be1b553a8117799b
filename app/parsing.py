"""Reading requests strictly: what is not asked for is refused, not ignored.

The one rule kept here: a body is strict JSON (UTF-8, no duplicate keys, no NaN) with known fields only, a query has
known parameters only; anything else is a clear error before any work is done.
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from flask import Request, g, request
from flask_smorest import Blueprint as SmorestBlueprint
from marshmallow import RAISE, Schema, ValidationError
from webargs.flaskparser import FlaskParser

from app.errors import BadRequest, UnsupportedMediaType
from protocol.canonical import parse_strict_json
from protocol.errors import Invalid

__all__ = ["Blueprint", "json_body", "path_number", "require_json", "whole_body"]

_REFUSED = "the request has fields that cannot be accepted"


def require_json(req: Request) -> None:
    """Look at the label before the content: JSON in UTF-8 is the one thing we read.

    :raises UnsupportedMediaType: the body says it is something else, or nothing.
    """
    charset = req.mimetype_params.get("charset", "utf-8").lower()
    if req.mimetype != "application/json" or charset not in ("utf-8", "utf8"):
        raise UnsupportedMediaType("send JSON in UTF-8 with Content-Type: application/json")


def whole_body(req: Request) -> bytes:
    """Read the body to its end.

    :raises BadRequest: the connection ended before the body did.
    """
    body = req.get_data(cache=False)
    # Behind a web server that ends the stream itself, werkzeug leaves this to us.
    if req.content_length not in (None, len(body)):
        raise BadRequest("the body is shorter than its Content-Length says")
    return body


def json_body(raw: bytes) -> Any:
    """Parse a request body.

    :raises BadRequest: not strict JSON.
    """
    try:
        return parse_strict_json(raw)
    except Invalid as error:
        raise BadRequest(f"the body is not usable JSON: {error.message}") from None


def path_number(text: str) -> int | None:
    """A positive number as it stands in a path; None for anything else, which is then an unknown id.

    It is written in one way, so that nothing has two addresses.
    """
    return int(text) if re.fullmatch("[1-9][0-9]{0,17}", text) else None


class StrictParser(FlaskParser):
    """webargs, made to refuse what it would overlook."""

    DEFAULT_UNKNOWN_BY_LOCATION: dict[str, str | None] = {"json": RAISE, "query": RAISE}

    def load_querystring(self, req: Request, schema: Schema) -> Any:
        g.query_was_read = True
        # No parameter is a list: of two values one would be overlooked.
        if repeated := [name for name, values in req.args.lists() if len(values) > 1]:
            raise Invalid(_REFUSED, details={name: ["Given more than once."] for name in repeated})
        return super().load_querystring(req, schema)

    def load_json(self, req: Request, schema: Schema) -> Any:
        require_json(req)
        # Only the bulk path inflates. A label that we overlooked would be taken for the truth by whoever logs it.
        if req.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise UnsupportedMediaType("this path takes plain bodies only")
        return json_body(whole_body(req))

    def handle_error(
        self,
        error: ValidationError,
        req: Request,
        schema: Schema,
        *,
        error_status_code: int | None,
        error_headers: Any,
    ) -> NoReturn:
        details = error.normalized_messages()
        # webargs wraps the messages in the location's name; a client knows what it sent.
        if isinstance(details, dict) and len(details) == 1 and next(iter(details)) in ("json", "query"):
            details = next(iter(details.values()))
        raise Invalid(_REFUSED, details=details)


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
