"""One attempt at a webhook delivery: signed, sent, decided upon.

The one rule kept here: an attempt is made from what was leased and comes back as a value. It knows no database, so
none is held open while we talk to a receiver; ``tasks.sender`` leases before it, ``tasks.conclusions`` writes it down.
"""

import random
from dataclasses import asdict, dataclass
from functools import lru_cache

from models.deliveries import DeliveryStatus
from models.encryption import decrypt
from models.leases import Concluded, Leased
from models.settings import settings
from protocol.retry import Delivered, GiveUp, Policy, RetryIn, decide, error_class_of
from protocol.webhook import headers
from tasks.addresses import RefusedAddress, destination
from tasks.outbound import Call, Caller
from tasks.redaction import kept, without_query, without_secrets

OWN_FAULT_SECONDS = 5.0
"""After a fault of our own, the same attempt is made again in so many seconds."""


@dataclass(frozen=True)
class PutOff:
    """An attempt that was not one: the fault was ours, so it burns nothing and is made again later."""

    leased: Leased
    seconds: float
    detail: str | None


Result = Concluded | PutOff


def policy() -> Policy:
    """How often and how far apart this installation tries."""
    return Policy(base_seconds=settings().webhook_base_seconds, attempts=settings().webhook_attempts)


async def attempt(caller: Caller, leased: Leased) -> Concluded | PutOff:
    """Make one attempt at a delivery."""
    if leased.url is None or leased.encrypted_key is None:
        return _concluded(leased, Call.not_made("no_endpoint"))
    key = _key(leased.encrypted_key)
    try:
        where = destination(leased.url)
    except RefusedAddress as refused:
        return _concluded(leased, Call.not_made("refused_address", str(refused)), key)
    signed = headers(leased.event, str(leased.id), int(leased.taken_at.timestamp()), leased.body, key)
    call = await caller.post(where, signed, leased.body, settings().webhook_timeout_seconds)
    if call.ours:
        return PutOff(leased, OWN_FAULT_SECONDS, call.detail)
    # Only this message can be sent again with its signatures, but to whoever believes them.
    return _concluded(leased, call, key, signed["X-Service-Signature"], signed["webhook-signature"].removeprefix("v1,"))


def _concluded(leased: Leased, call: Call, *secrets: str) -> Concluded:
    jitter = random.uniform(-1, 1)  # noqa: S311 - spreads load, guards nothing
    retry_in = None
    match decide(policy(), leased.number - leased.attempts_before, call.outcome, jitter):
        case Delivered():
            status = DeliveryStatus.DELIVERED
        case RetryIn(seconds):
            status, retry_in = DeliveryStatus.PENDING, seconds
        case GiveUp():
            status = DeliveryStatus.FAILED
    phases = {name: round(1_000 * seconds, 3) for name, seconds in asdict(call.phases).items() if seconds is not None}
    return Concluded(
        leased=leased,
        status=status,
        retry_in_seconds=retry_in,
        duration_ms=round(1_000 * call.seconds),
        url=without_query(leased.url or "", *secrets),
        status_code=call.outcome.status,
        error_class=error_class_of(call.outcome),
        response_body=None if call.body is None else kept(call.body, *secrets),
        phases_ms=phases or None,
        peer=call.peer,
        reused=call.reused,
        detail=None if call.detail is None else without_secrets(call.detail, *secrets),
    )


@lru_cache(maxsize=4_096)
def _key(encrypted: bytes) -> str:
    """The key that signs. Decrypted once a process; a rotated key is another row and another ciphertext."""
    return decrypt(encrypted).decode()
