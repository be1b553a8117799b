"""Delivering webhooks: one attempt at a time, signed, logged, and decided upon.

The one rule kept here: no database session is open while we talk to a receiver. A delivery is claimed for longer than
the deadline, sent, and concluded under the claim's fencing number.
"""

import random
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from uuid import UUID

import requests

from models.credentials import signing_key
from models.deliveries import Delivery, DeliveryAttempt, DeliveryStatus, claim, conclude
from models.operators import Operator
from models.session import database_now, transaction
from models.settings import settings
from protocol.retry import Delivered, GiveUp, Outcome, Policy, RetryIn, decide, error_class_of
from protocol.webhook import headers
from tasks.addresses import RefusedAddress, ResolverDown, UnknownHost
from tasks.bell import Bell, answers
from tasks.resolver import check_destination

LEASE_MARGIN_SECONDS = 5.0
READ_BYTES = 64 * 1024
KEPT_BYTES = 16 * 1024


@dataclass(frozen=True)
class Answer:
    """What came of calling a receiver: the outcome to decide upon, and what is kept of the body."""

    outcome: Outcome
    body: str | None = None


@answers(Bell.DELIVERY)
def deliver(delivery_id: str) -> bool:
    """Make one attempt at a delivery; False when there was nothing to do or the lease ran out meanwhile."""
    timeout = settings().webhook_timeout_seconds
    with transaction() as session:
        delivery = claim(session, UUID(delivery_id), timeout + LEASE_MARGIN_SECONDS)
        if delivery is None:
            return False
        url = session.get_one(Operator, delivery.operator_id).webhook_url
        key = signing_key(session, delivery.operator_id)
        started = database_now(session)

    clock = time.monotonic()
    answer = _call(url, key, delivery, started, timeout) if url and key else Answer(Outcome(error_class="no_endpoint"))
    duration = time.monotonic() - clock

    attempt = DeliveryAttempt(
        delivery_id=delivery.id,
        number=delivery.attempts + 1,
        started_at=started,
        duration_ms=round(duration * 1000),
        url=url or "",
        status_code=answer.outcome.status,
        error_class=error_class_of(answer.outcome),
        response_body=answer.body,
    )
    jitter = random.uniform(-1, 1)  # noqa: S311 - spreads load, guards nothing
    with transaction() as session:
        match decide(policy(), attempt.number - delivery.attempts_before, answer.outcome, jitter):
            case Delivered():
                return conclude(session, delivery, attempt, status=DeliveryStatus.DELIVERED, retry_in_seconds=None)
            case RetryIn(seconds):
                return conclude(session, delivery, attempt, status=DeliveryStatus.PENDING, retry_in_seconds=seconds)
            case GiveUp():
                return conclude(session, delivery, attempt, status=DeliveryStatus.FAILED, retry_in_seconds=None)


def policy() -> Policy:
    """How often and how far apart this installation tries."""
    return Policy(base_seconds=settings().webhook_base_seconds, attempts=settings().webhook_attempts)


def _call(url: str, key: str, delivery: Delivery, started: datetime, timeout: float) -> Answer:
    try:
        check_destination(url)
    except (UnknownHost, ResolverDown):
        return Answer(Outcome(error_class="dns"))
    except RefusedAddress:
        return Answer(Outcome(error_class="refused_address"))
    signed = headers(delivery.event, str(delivery.id), int(started.timestamp()), delivery.body, key)
    deadline = time.monotonic() + timeout
    with requests.Session() as http:
        http.trust_env = False  # no proxy and no .netrc from our environment
        try:
            response = http.post(
                url, data=delivery.body, headers=signed, timeout=timeout, allow_redirects=False, stream=True
            )
            with closing(response):
                body = _read(response, deadline)
        except requests.exceptions.SSLError:
            return Answer(Outcome(error_class="tls"))
        except (requests.exceptions.Timeout, TimeoutError):
            return Answer(Outcome(error_class="timeout"))
        except requests.exceptions.ConnectionError:
            return Answer(Outcome(error_class="connect"))
        except requests.exceptions.RequestException:
            return Answer(Outcome(error_class="bad_response"))
    retry_after = _retry_after(response.headers.get("Retry-After"), started)
    return Answer(Outcome(status=response.status_code, retry_after=retry_after), body)


def _read(response: requests.Response, deadline: float) -> str:
    """The beginning of the body.

    :raises TimeoutError: the receiver takes longer than it may.
    """
    read = bytearray()
    for chunk in response.iter_content(chunk_size=4_096):
        read += chunk
        if time.monotonic() > deadline:
            raise TimeoutError
        if len(read) >= READ_BYTES:
            break
    # PostgreSQL's text cannot hold NUL.
    return bytes(read[:KEPT_BYTES]).decode("utf-8", "replace").replace("\0", "�")


def _retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds from a Retry-After header in either of its forms; None for none and for nonsense."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())
