"""``GET /openapi.json``: the document, for programs.

The one rule kept here: what is served here is about the API and no part of it, so nobody needs a credential for it and
it is not in the document itself.
"""

from flask import Blueprint, Response, current_app, request

from app.openapi import document_of

documentation = Blueprint("documentation", __name__)

FRESH_SECONDS = 300


@documentation.get("/openapi.json")
def openapi_json() -> Response:
    """The OpenAPI 3.1 document of this version."""
    return _cacheable(Response(document_of(current_app).text, content_type="application/json"))


def _cacheable(response: Response) -> Response:
    """Good for five minutes, then asked for again, at the price of a header unless a new version is out."""
    response.cache_control.public = True
    response.cache_control.max_age = FRESH_SECONDS
    response.add_etag()
    response.make_conditional(request)
    return response
