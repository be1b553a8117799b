"""What a webhook says and how it is signed.

The rule: the bytes signed are the bytes sent and stored. The envelope is built once; nobody serialises it
again.

Implements docs/protocol.md, section 8 (webhooks).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from protocol.errors import Invalid

EVENTS: tuple[str, ...] = (
    "round.opened",
    "round.sealing",
    "round.sealing_deadline",
    "round.sealed",
    "round.anchored",
    "round.escrowed",
    "round.escrow_deadline",
    "round.drawn",
    "round.settled",
    "round.closed",
    "round.failed",
    "operator.won",
    "operator.excluded",
    "operator.heartbeat_missed",
)
"""Every event there is, in the order of a round's life."""

USER_AGENT = "lottery-coordinator-webhook/2"


def envelope(event: str, round_id: int | None, timestamp: str, data: Mapping[str, Any]) -> bytes:
    """The body of a delivery: compact UTF-8 JSON `{event, roundId, timestamp, data}` (docs/protocol.md,
    section 8).

    `round_id` is None where an event belongs to no round; `timestamp` is written by `format_timestamp`.
    Raises Invalid for an unknown event and for data that JSON cannot carry.
    """
    if event not in EVENTS:
        raise Invalid(f"no such event: {event!r}")
    body = {"event": event, "roundId": round_id, "timestamp": timestamp, "data": dict(data)}
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except (TypeError, ValueError) as problem:
        raise Invalid(f"the data of {event} cannot be written as JSON: {problem}") from None


def sign(body: bytes, api_key: str) -> str:
    """`X-Service-Signature`: hex HMAC-SHA-256 of the body, keyed with the API key's UTF-8 bytes
    (docs/protocol.md, section 8).
    """
    return hmac.new(api_key.encode(), body, hashlib.sha256).hexdigest()


def verify(body: bytes, api_key: str, signature: str) -> bool:
    """Whether `signature` is `sign(body, api_key)`, compared in constant time. Never raises for a wrong
    signature.
    """
    return hmac.compare_digest(sign(body, api_key).encode(), signature.encode("utf-8", "surrogatepass"))


def standard_secret(api_key: str) -> str:
    """The API key as the secret a Standard Webhooks library takes: `whsec_` and base64 of the key's bytes."""
    return "whsec_" + base64.b64encode(api_key.encode()).decode("ascii")


def standard_signature(message_id: str, timestamp: int, body: bytes, api_key: str) -> str:
    """`webhook-signature` of the Standard Webhooks specification: `v1,` and base64 (docs/protocol.md, section
    8).

    `timestamp` is the Unix time of the attempt in whole seconds; `message_id` stays the same on every
    attempt.
    """
    signed = b".".join((message_id.encode(), str(timestamp).encode("ascii"), body))
    digest = hmac.new(api_key.encode(), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode("ascii")


def headers(event: str, delivery_id: str, timestamp: int, body: bytes, api_key: str) -> dict[str, str]:
    """Every header of one delivery attempt (docs/protocol.md, section 8).

    `delivery_id` is the same on every attempt, so a receiver can tell a repetition; `timestamp` is the
    attempt's Unix time in whole seconds, so it can refuse an old one.
    """
    return {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "X-Service-Event": event,
        "X-Service-Delivery": delivery_id,
        "X-Service-Signature": sign(body, api_key),
        "webhook-id": delivery_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": standard_signature(delivery_id, timestamp, body, api_key),
    }
