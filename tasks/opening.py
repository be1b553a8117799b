"""Opening rounds: on an admin's request, or by itself on the schedule.

The one rule kept here: what a round promises (price, shares, odds, its commitment to a secret) is fixed in the
transaction that opens it, under the lock that hands out round ids one by one.
"""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from apscheduler.triggers.cron import CronTrigger
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from models.deliveries import announce
from models.encryption import encrypt
from models.jackpot import jackpot
from models.operators import active_operator_ids
from models.participation import Participation
from models.rounds import Round, RoundSchedule, note_event, note_transition
from models.session import database_now, transaction
from models.settings import SettingsError, settings
from models.tickets import create_partition
from protocol.lifecycle import Deadlines, Trigger, transition
from protocol.odds import odds_range
from protocol.prizes import TIERS
from protocol.rules import Rules
from protocol.seed import COMMIT_REVEAL, seed_commit
from protocol.timestamps import format_timestamp
from tasks.bell import Bell, answers, ring_after_commit


def current_rules(cumulative_tickets: int) -> Rules:
    """The rules a round opened now would have: our shares and price, the protocol's prizes and ladder."""
    chosen = settings()
    first, second, third, fourth, fifth = TIERS
    return Rules(
        ticket_price=chosen.ticket_price_usdc,
        odds_range=odds_range(cumulative_tickets),
        fee_bps=chosen.fee_bps,
        commission_bps=chosen.commission_bps,
        reserve_bps=chosen.reserve_bps,
        winner_bonus_bps=chosen.winner_bonus_bps,
        prizes=(first.prize, second.prize, third.prize, fourth.prize, fifth.prize),
        ranges=(first.range, second.range, third.range, fourth.range, fifth.range),
    )


def open_round(session: Session, operator_ids: Sequence[str], deadlines: Deadlines) -> Round:
    """Open the next round, inviting these operators (ids of active operators, each once)."""
    lottery = jackpot(session, for_update=True)
    round_id = session.scalars(select(func.coalesce(func.max(Round.id), 0) + 1)).one()
    now = database_now(session)
    rules = current_rules(lottery.cumulative_tickets)
    secret = secrets.token_bytes(32)
    step = transition(None, Trigger.OPENED)
    row = Round(
        id=round_id,
        state=step.to,
        created_at=now,
        seal_at=deadlines.seal_at,
        sealing_deadline=deadlines.sealing_deadline,
        escrow_deadline=deadlines.escrow_deadline,
        scheduled_draw_time=deadlines.scheduled_draw_time,
        settle_at=deadlines.settle_at,
        close_at=deadlines.close_at,
        rules=rules.as_hashed(),
        rules_hash=rules.hash,
        mode=COMMIT_REVEAL,
        seed_commit=seed_commit(round_id, secret),
        secret_encrypted=encrypt(secret),
        operator_count=len(operator_ids),
        escrowed_operator_count=0,
        excluded_operator_count=0,
        total_deposited=0,
        due_at=deadlines.seal_at,
        ring_at=deadlines.seal_at,
    )
    session.add(row)
    session.flush()
    session.add_all(Participation(round_id=round_id, operator_id=operator_id) for operator_id in operator_ids)
    session.flush()
    create_partition(session, round_id, rules)
    note_transition(session, round_id, Trigger.OPENED, None, step.to)
    assert step.log is not None
    note_event(session, round_id, step.log, {})
    data = {
        "roundId": round_id,
        "ticketPriceUsdc": rules.ticket_price,
        "operatorCount": len(operator_ids),
        "scheduledDrawTime": format_timestamp(deadlines.scheduled_draw_time),
    }
    for event in step.webhooks:
        ring_after_commit(session, Bell.DELIVERIES, announce(session, event, operator_ids, round_id, data))
    return row


def cron_trigger(cron: str) -> CronTrigger:
    """Five fields, UTC.

    :raises SettingsError: not a cron expression.
    """
    try:
        return CronTrigger.from_crontab(cron, timezone="UTC")
    except ValueError as error:
        raise SettingsError(f"ROUND_SCHEDULE is not a cron expression ({error})") from None


def plan_schedule(session: Session) -> None:
    """Make the schedule's row say what ROUND_SCHEDULE says; an unchanged one keeps its due time, however late."""
    cron = settings().round_schedule
    now = database_now(session)
    if cron is None:
        session.execute(RoundSchedule.__table__.delete())  # type: ignore[attr-defined]
        return
    due = cron_trigger(cron).get_next_fire_time(None, now)
    row = insert(RoundSchedule).values(id=1, cron=cron, due_at=due, ring_at=now)
    session.execute(
        row.on_conflict_do_update(
            index_elements=[RoundSchedule.id],
            set_={"cron": row.excluded.cron, "due_at": row.excluded.due_at, "ring_at": row.excluded.ring_at},
            where=RoundSchedule.cron != row.excluded.cron,
        )
    )


@answers(Bell.SCHEDULE)
def open_scheduled_round(schedule_id: int = 1) -> int | None:
    """Open the scheduled round if it is due; returns its id.

    Openings that were missed while nothing ran are made up for once, not one by one.
    """
    with transaction() as session:
        row = session.scalars(select(RoundSchedule).with_for_update(skip_locked=True)).first()
        now = database_now(session)
        if row is None or row.due_at is None or row.due_at > now:
            return None
        operators = active_operator_ids(session)
        opened = open_round(session, operators, _deadlines_from(now)).id if operators else None
        row.due_at = row.ring_at = cron_trigger(row.cron).get_next_fire_time(None, now)
        return opened


def _deadlines_from(now: datetime) -> Deadlines:
    timing = settings().round_timing
    moments = [now]
    for seconds in (timing.sales, timing.sealing, timing.escrow, timing.draw, timing.settle, timing.close):
        moments.append(moments[-1] + timedelta(seconds=seconds))
    return Deadlines(*moments[1:])
