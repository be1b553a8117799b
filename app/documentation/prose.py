"""What the document says in words: the introduction, who may call, and docstrings as a reader of the API sees them."""

import re
from inspect import cleandoc
from typing import Any

_INTRODUCTION = """
Coordinates a draw-based lottery among licensed operators. In each round operators submit tickets and a manifest and
deposit escrow; the round is sealed, drawn, settled and closed, or it fails and every deposit goes back. Anybody can
recompute a round from public data.

- **Bodies** are strict JSON in UTF-8. Unknown fields and query parameters are refused, not ignored.
- **Times** are ISO 8601 in UTC, such as `2026-01-31T20:00:00.000Z`.
- **Money** is micro-USDC (1 USD = 1,000,000): large amounts are decimal strings, small ones numbers.
- **Errors** are `{error, code, details?}`: a sentence for a person, a code for a program, and where there is more to
  say, details (for 422 the reasons per field). An unknown path is 404, a method that a path does not take 405 with
  `Allow`.
- **Rate limits** are told in `X-RateLimit-*` on every answer; beyond them, 429 with `Retry-After`.
- **Repeating** a request of an operator is safe: the same tickets, the same manifest or the same nonce again change
  nothing and succeed.
"""

INFO: dict[str, Any] = {
    "title": "Lottery Coordinator",
    "summary": "Coordinates lottery rounds among licensed operators: sealing, provable draws, settlement, webhooks",
    "description": cleandoc(_INTRODUCTION),
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}

SERVERS = [{"url": "/", "description": "This coordinator"}]

CREDENTIALS: dict[str, dict[str, Any]] = {
    "operatorKey": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Service-Key",
        "description": "An operator's API key, `sk_…`; shown once, when the application is approved.",
    },
    "accessToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "An access token of 15 minutes, got for an API key at `POST /api/auth/operator/login`.",
    },
    "adminKey": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Service-Admin-Key",
        "description": "A key of somebody who runs the coordinator, `ak_…`; its role says what it may do.",
    },
    "applicationToken": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Application-Token",
        "description": "The token that `POST /api/public/apply` answered with; shown only there.",
    },
}


def plain(docstring: str) -> str:
    """A docstring as Markdown: no indentation, no notes on raised errors, one backtick in place of two."""
    text = cleandoc(docstring).partition("\n:raises")[0].strip()
    return re.sub(r"``([^`]*)``", r"`\1`", re.sub(r"(?<!\n)\n(?!\n)", " ", text))


def who_may(roles: list[str]) -> str:
    """The sentence about an admin's role; empty where no role is asked for."""
    return f"Needs an admin key with the role {' or '.join(f'`{role}`' for role in roles)}." if roles else ""


def summary_and_rest(operation: dict[str, Any]) -> tuple[str, str]:
    """A view's docstring: its first sentence, without the full stop, and all the others."""
    first, stop, more = plain(operation.get("summary", "")).partition(". ")
    rest = [more if stop else "", plain(operation.get("description", ""))]
    return first.removesuffix("."), "\n\n".join(filter(None, rest))
