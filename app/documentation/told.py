"""The webhooks section of the document: what we send to operators (interface section 6.2).

The one rule kept here: the headers are read off a real signed delivery, so none can be missing or made up.
"""

from collections.abc import Callable
from typing import Any

from marshmallow import Schema

from app.documentation.world import DELIVERY, WORLD
from app.resources.webhooks import WEBHOOKS, envelope_schema
from protocol.webhook import headers

_MEANINGS = {
    "X-Service-Event": "The event.",
    "X-Service-Delivery": "The delivery's id, the same on every attempt: use it to ignore repetitions.",
    "X-Service-Signature": "Hex HMAC-SHA-256 of the raw body, keyed with the UTF-8 bytes of your newest API key.",
    "webhook-id": "The delivery's id again (Standard Webhooks).",
    "webhook-timestamp": "Unix time of the attempt, seconds: use it to refuse old ones.",
    "webhook-signature": (
        "`v1,` and base64 of HMAC-SHA-256 over `webhook-id.webhook-timestamp.body`, same key (Standard Webhooks; its "
        "secret is `whsec_` and base64 of the API key)."
    ),
}
_LEFT_OUT = ("Content-Type", "User-Agent")
_RETRIES = (
    "Answer 200 within 30 seconds. Anything else, redirects included, is a failed attempt; there are three, with "
    "growing waits between them. Events may arrive twice and out of order."
)


def webhooks(
    reference: Callable[[type[Schema]], dict[str, Any]], example: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Every event as OpenAPI describes one."""
    described = {}
    for event, told in WEBHOOKS.items():
        schema = reference(envelope_schema(event))
        words = [word for part in event.split(".") for word in part.split("_")]
        described[event] = {
            "post": {
                "operationId": "on" + "".join(word.title() for word in words),
                "summary": told.meaning,
                "description": _RETRIES,
                "tags": ["Webhooks"],
                "security": [],
                "parameters": _parameters(event),
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": schema} | example(schema)},
                },
                "responses": {"200": {"description": "Received. The body is not read."}},
            }
        }
    return described


def _parameters(event: str) -> list[dict[str, Any]]:
    shown = headers(event, DELIVERY, 1_769_889_603, b"{}", str(WORLD["apiKey"]))
    return [
        {
            "name": name,
            "in": "header",
            "required": True,
            "description": _MEANINGS[name],
            "schema": {"type": "string"},
            "example": value,
        }
        for name, value in shown.items()
        if name not in _LEFT_OUT
    ]
