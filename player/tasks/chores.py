"""Chores: the heartbeat, the address for webhooks, asking the coordinator what is new, forgetting what is old.

The one rule kept here: a chore that fails says why in its row and is tried again soon; it never waits for another one.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

import dramatiq
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from player.coordinator import Coordinator, CoordinatorError
from player.models.chores import Chore, Kind, View
from player.models.forgetting import BATCH, FORGOTTEN
from player.models.session import database_now, transaction
from player.models.views import keep_view
from player.settings import settings
from player.tasks.asking import coordinator
from player.tasks.broker import QUEUE, broker
from player.tasks.discovery import look_for_rounds
from player.tasks.due import put_back, take
from player.tasks.publishing import published

log = logging.getLogger(__name__)

RECEIVER = "/webhooks/coordinator"
"""Where this node receives webhooks, below PUBLIC_URL."""
_VIEW_SECONDS = 10.0
_AGAIN_SECONDS = 5.0
_FORGET_SECONDS = 60.0
_FORGET_AT_A_TIME = 20
"""Batches of one table in one turn: less than a minute's work, so that the chore's lease outlasts it."""


@dramatiq.actor(broker=broker, queue_name=QUEUE)
def do_chore(kind: str) -> None:
    """Do one chore if it is due."""
    row = take(Chore, kind)
    if row is None:
        return
    work, every = _CHORES[Kind(kind)]
    error: str | None = None
    try:
        work(coordinator())
    except CoordinatorError as problem:
        error = str(problem)
        if error != row.last_error:
            log.warning("chore failed", extra={"chore": kind, "error": error})
    with transaction() as session:
        done = {"last_error": error} if error else {"last_error": None, "done_at": func.clock_timestamp()}
        session.execute(update(Chore).where(Chore.kind == kind).values(done))
        now = database_now(session)
    put_back(row, now + timedelta(seconds=min(every(), _AGAIN_SECONDS) if error else every()))


def call_for(session: Session, kind: Kind) -> None:
    """Let a chore be done at once."""
    later = update(Chore).where(Chore.kind == kind, Chore.due_at > func.clock_timestamp())
    session.execute(later.values(due_at=func.clock_timestamp()))


def webhook_address() -> str | None:
    """The address that the coordinator is to send events to; None when it is none of our business."""
    wanted = settings().webhook_url
    return settings().public_url + RECEIVER if wanted == "on" else wanted


def _beat(coordinator: Coordinator) -> None:
    coordinator.heartbeat()


def _register(coordinator: Coordinator) -> None:
    wanted = webhook_address()
    if wanted is not None and coordinator.me().webhook_url != wanted:
        coordinator.set_webhook(wanted)


def _poll(coordinator: Coordinator) -> None:
    look_for_rounds(coordinator)
    with transaction() as session:
        fresh = select(func.min(View.fetched_at) > func.clock_timestamp() - timedelta(seconds=_VIEW_SECONDS)).where(
            View.name.in_(_VIEWS)
        )
        if session.scalars(fresh).one():
            return
    for name, read in _VIEWS.items():
        body = published(asdict(read(coordinator)))
        with transaction() as session:
            keep_view(session, name, body)


def _forget(_: Coordinator) -> None:
    for kind in FORGOTTEN:
        for _batch in range(_FORGET_AT_A_TIME):
            with transaction() as session:
                if kind.some(session) < BATCH:
                    break


_VIEWS: Final[Mapping[str, Callable[[Coordinator], Any]]] = MappingProxyType(
    {
        "jackpot": Coordinator.jackpot,
        "odds": Coordinator.odds,
        "operator": Coordinator.me,
        "balance": Coordinator.balance,
    }
)
_CHORES: Final[Mapping[Kind, tuple[Callable[[Coordinator], None], Callable[[], float]]]] = MappingProxyType(
    {
        Kind.HEARTBEAT: (_beat, lambda: settings().heartbeat_seconds),
        Kind.WEBHOOK: (_register, lambda: settings().heartbeat_seconds),
        Kind.POLL: (_poll, lambda: settings().poll_seconds),
        Kind.FORGET: (_forget, lambda: _FORGET_SECONDS),
    }
)
