"""The least that can be said to send webhooks: a Dramatiq actor that posts, as its documentation would have it.

Nothing is stored, signed, checked or tried by us here; the broker, its middleware and its retries are Dramatiq's own
defaults.
"""

import os

import dramatiq
import requests
from dramatiq.brokers.redis import RedisBroker

broker = RedisBroker(url=os.environ["BARE_REDIS_URL"])


@dramatiq.actor(broker=broker)
def post(url: str, body: str) -> None:
    """Send one webhook."""
    requests.post(url, data=body.encode(), headers={"Content-Type": "application/json"}, timeout=30)
