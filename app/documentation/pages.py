"""``GET /openapi.json`` for programs; ``/docs`` and the texts below it for people.

The one rule kept here: what is served here is about the API and no part of it: nobody needs a credential for it, and
all of it comes from this machine. The pages run no script, and their policy forbids any.
"""

import gzip
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from flask import Blueprint, Flask, Response, current_app, render_template, request
from markupsafe import Markup, escape

from app.documentation.markdown import page, prose
from app.documentation.reference import reference_of
from app.openapi import document_of
from protocol.errors import NotFound

FRESH_SECONDS = 300
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TEXTS = Path(__file__).parents[2] / "docs"
GUIDE, SDK, PLAYER, PROTOCOL = "operator-guide.md", "sdk.md", "player.md", "protocol.md"
PLACES = ((GUIDE, "/docs/guide"), (SDK, "/docs/sdk"), (PLAYER, "/docs/player"), (PROTOCOL, "/docs/protocol"))
_NAMES = {
    "operatorKey": "an API key",
    "accessToken": "an access token",
    "adminKey": "an admin key",
    "applicationToken": "the application's token",
}

documentation = Blueprint("documentation", __name__, template_folder="templates")


@documentation.get("/openapi.json")
def openapi_json() -> Response:
    """The OpenAPI 3.1 document of this version."""
    return _cacheable(Response(document_of(current_app).text, content_type="application/json"))


@documentation.get("/docs")
def reference() -> Response:
    """The reference of every operation and webhook."""
    return _page(_rendered_reference(current_app))


@documentation.get("/docs/guide")
def guide() -> Response:
    """The operator guide."""
    return _page(_rendered_text(GUIDE))


@documentation.get("/docs/sdk")
def sdk() -> Response:
    """The client for operators."""
    return _page(_rendered_text(SDK))


@documentation.get("/docs/player")
def player() -> Response:
    """The player node: a reference operator."""
    return _page(_rendered_text(PLAYER))


@documentation.get("/docs/protocol")
def protocol() -> Response:
    """The protocol: every hash, number and sum."""
    return _page(_rendered_text(PROTOCOL))


@documentation.get("/docs/style.css")
def style() -> Response:
    """What the pages look like."""
    return _cacheable(Response(_asset("docs.css"), content_type="text/css; charset=utf-8"))


@documentation.get("/docs/icon.svg")
def icon() -> Response:
    """The pages' sign."""
    return _cacheable(Response(_asset("icon.svg"), content_type="image/svg+xml"))


def _rendered_reference(app: Flask) -> str:
    # Rendered once: it says the same until another version is started.
    if "reference page" not in app.extensions:
        shown = reference_of(document_of(app).document)
        app.extensions["reference page"] = render_template("reference.html", reference=shown, names=_NAMES)
    return str(app.extensions["reference page"])


def _rendered_text(name: str) -> str:
    try:
        text = (TEXTS / name).read_text(encoding="utf-8")
    except OSError:
        raise NotFound("this installation came without that page") from None
    return render_template("text.html", page=page(text, PLACES))


def _page(html: str) -> Response:
    response = Response(html, content_type="text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    return _cacheable(response)


def _cacheable(response: Response) -> Response:
    """Good for five minutes, then asked for again, at the price of a header unless a new version is out."""
    if request.accept_encodings["gzip"] > 0:
        response.set_data(_packed(response.get_data()))
        response.content_encoding = "gzip"
    response.vary.add("Accept-Encoding")
    response.cache_control.public = True
    response.cache_control.max_age = FRESH_SECONDS
    response.add_etag()
    response.make_conditional(request)
    return response


@lru_cache(maxsize=8)
def _packed(body: bytes) -> bytes:
    # Pages of one version are few, and a twelfth of their size.
    return gzip.compress(body, mtime=0)


@lru_cache(maxsize=2)
def _asset(name: str) -> bytes:
    return (Path(__file__).parent / "static" / name).read_bytes()


@documentation.context_processor
def _clothes() -> dict[str, str]:
    # Changes with the style sheet, so that no browser shows new pages in old clothes.
    return {"style": sha256(_asset("docs.css")).hexdigest()[:12]}


@documentation.app_template_filter("markdown")
def _inline(text: str) -> Markup:
    """A sentence or two, without a paragraph around them."""
    return Markup(prose(text).strip().removeprefix("<p>").removesuffix("</p>"))  # noqa: S704  (made by prose)


@documentation.app_template_filter("breakable")
def _breakable(text: str) -> Markup:
    """A path or a list that may be broken after each of its parts."""
    return escape(text).replace("/", Markup("/<wbr>")).replace(" · ", Markup("&nbsp;· "))
