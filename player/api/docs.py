"""``GET /docs``: docs/player.md as a page, for people. ``/openapi.json`` says the same to programs.

The one rule kept here: the page comes from this machine alone; it runs no script, and its policy forbids any.
"""

from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from flask import Blueprint, Response
from markdown_it import MarkdownIt

from protocol.errors import NotFound

TEXT = Path(__file__).parents[2] / "docs" / "player.md"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8886; font-size: .85rem; line-height: 1.4; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8884; }
th:empty { padding: 0; border: 0; }
"""

docs = Blueprint("docs", __name__)


@docs.get("/docs")
def page() -> Response:
    """What this node is and how to use it."""
    response = Response(_rendered(), content_type="text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.cache_control.public = True
    response.cache_control.max_age = 300
    return response


@lru_cache(maxsize=1)
def _rendered() -> str:
    try:
        text = TEXT.read_text(encoding="utf-8")
    except OSError:
        raise NotFound("this installation came without that page") from None
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    for token, inside in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet(
                "id", "".join(c for c in inside.content.lower() if c.isalnum() or c in " -").replace(" ", "-")
            )
    body = markdown.renderer.render(tokens, markdown.options, {})
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>The player node</title><style>{_STYLE}</style><body>{body}</body></html>"
    )
