"""Is it the coordinator that calls? The check of a webhook's two signatures and of its age.

The one rule kept here: nothing of a request's body is read before both signatures over its raw bytes are found right.

``X-Service-Signature`` (interface section 6.2) is over the body alone, so whoever once saw a delivery could send it
again for ever. ``webhook-signature`` is over the delivery's id, the time of this attempt and the body: it is what makes
a window possible. An honest retry, also of a delivery that is queued again days later, carries the time of its own
attempt and is let in; a recorded request is not, once the window is over, and is the same delivery while it lasts.
"""

import hmac
import time

from werkzeug.datastructures import Headers

from player.settings import settings
from protocol.errors import Unauthenticated
from protocol.webhook import standard_signature, verify

_WRONG = "the signature is not the coordinator's"


def require_signature(body: bytes, headers: Headers) -> str:
    """Make sure that the coordinator sent this, just now; the delivery's id.

    :raises Unauthenticated: it did not, or longer ago than WEBHOOK_TOLERANCE_SECONDS.
    """
    delivery_id, attempted_at = headers.get("X-Service-Delivery", ""), headers.get("webhook-timestamp", "")
    keys = (settings().operator_api_key, settings().operator_api_key_previous)
    signed = [_signed(body, headers, delivery_id, attempted_at, key) for key in keys if key]
    if not delivery_id or not any(signed):
        raise Unauthenticated(_WRONG, code="wrong_signature")
    if abs(time.time() - int(attempted_at)) > settings().webhook_tolerance_seconds:
        raise Unauthenticated("the attempt is too old, or of the future; are the clocks right?", code="stale")
    return delivery_id


def _signed(body: bytes, headers: Headers, delivery_id: str, attempted_at: str, key: str) -> bool:
    plain = verify(body, key, headers.get("X-Service-Signature", ""))
    if not (attempted_at.isascii() and attempted_at.isdigit() and len(attempted_at) < 12):
        return False
    ours = standard_signature(delivery_id, int(attempted_at), body, key).encode()
    # Several may stand there, while a key is being replaced.
    given = [one.encode() for one in headers.get("webhook-signature", "").split(" ")[:5]]
    bound = any(hmac.compare_digest(ours, one) for one in given)
    return plain and bound and headers.get("webhook-id", "") == delivery_id
