"""Carrying out one row of the transition table: the state, the log, the webhooks, in one transaction.

The one rule kept here: what a transition announces is read from ``protocol.lifecycle.TRANSITIONS``; the steps
(``tasks.opening`` to ``tasks.failing``) only say what goes into the messages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from models.deliveries import announce
from models.participation import Participation
from models.rounds import Round, change_state
from protocol.lifecycle import Trigger, transition
from tasks.bell import Bell, ring_after_commit

PerOperator = Mapping[str, dict[str, Any]]
"""Data of an ``operator.*`` event for each operator it concerns."""


@dataclass(frozen=True)
class Announcement:
    """What a step tells: data of its log entry, of each ``round.*`` webhook, and of each operator's own."""

    log: dict[str, Any] = field(default_factory=dict)
    rounds: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    operators: Mapping[str, PerOperator] = field(default_factory=dict)


def carry_out(
    session: Session,
    row: Round,
    trigger: Trigger,
    news: Announcement,
    now: datetime,
    reason: str | None = None,
) -> None:
    """Take a locked round along one row of the table and write every message the row names.

    The round is due at once afterwards, so that whatever follows is looked at next.
    """
    step = transition(row.state, trigger)
    if step.reason or reason:
        row.failure_reason = step.reason or reason
    change_state(session, row, trigger, step, news.log)
    invited = list(
        session.scalars(
            select(Participation.operator_id)
            .where(Participation.round_id == row.id)
            .order_by(Participation.operator_id)
        )
    )
    for event in step.webhooks:
        if event.startswith("operator."):
            for operator_id, data in sorted(news.operators.get(event, {}).items()):
                deliveries = announce(session, event, [operator_id], row.id, data)
                ring_after_commit(session, Bell.DELIVERIES, deliveries)
        else:
            deliveries = announce(session, event, invited, row.id, {"roundId": row.id, **news.rounds[event]})
            ring_after_commit(session, Bell.DELIVERIES, deliveries)
    row.due_at = row.ring_at = now


def exclusions_data(row: Round, reasons: Mapping[str, str]) -> PerOperator:
    """Data of ``operator.excluded`` for each operator in ``reasons``."""
    return {
        operator_id: {"roundId": row.id, "operatorId": operator_id, "reason": reason}
        for operator_id, reason in reasons.items()
    }
