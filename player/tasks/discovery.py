"""Learning of rounds and of what became of them: by asking, so a webhook that is lost costs nothing.

The one rule kept here: a round is known with all that selling it needs, or not at all.
"""

from datetime import timedelta
from secrets import token_bytes

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert

from player.coordinator import Coordinator, InvitedRound, OwnRound
from player.models.rounds import Round, Stage
from player.models.session import transaction
from player.settings import settings
from protocol.seed import SECRET_BYTES

MOST_AT_ONCE = 20
"""New rounds taken in by one look: each takes a request."""


def look_for_rounds(coordinator: Coordinator) -> None:
    """Take in rounds that we are invited to and do not know yet, and call workers to those that have gone on."""
    listed = coordinator.rounds()
    with transaction() as session:
        known = {
            round_id: (state, stage)
            for round_id, state, stage in session.execute(
                select(Round.id, Round.state, Round.stage).where(Round.id.in_([each.id for each in listed]))
            )
        }
        newest = session.scalars(select(func.max(Round.id))).one() or 0
    new = [each for each in listed if each.id not in known and _concerns_us(each, newest)]
    for each in sorted(new, key=lambda one: one.id)[:MOST_AT_ONCE]:
        _take_in(coordinator.round(each.id))
    for each in listed:
        state, stage = known.get(each.id, (each.state, None))
        if state != each.state and stage not in (Stage.DONE, Stage.FAILED):
            _wake(each)


def _concerns_us(each: InvitedRound, newest: int) -> bool:
    # What was over before this node was first started is history; what came and went while it was down is not.
    return each.state == "OPEN" or 0 < newest < each.id


def _take_in(own: OwnRound) -> None:
    missed = own.state != "OPEN"
    values = {
        "id": own.id,
        "stage": Stage.FAILED if missed else Stage.SELLING,
        "state": own.state,
        "ticket_price": own.ticket_price_usdc,
        "odds_range": own.odds_range,
        "seal_at": own.seal_at,
        "sales_close_at": own.seal_at - timedelta(seconds=settings().sales_lead_seconds),
        "scheduled_draw_time": own.scheduled_draw_time,
        "nonce": token_bytes(SECRET_BYTES),
        # Nothing of it was sold, so there is nothing to be given back.
        "failure_reason": "missed: this node was not running" if missed else None,
        "due_at": None if missed else func.clock_timestamp(),
        "ended_at": func.clock_timestamp() if missed else None,
    }
    with transaction() as session:
        session.execute(insert(Round).values(values).on_conflict_do_nothing())


def _wake(each: InvitedRound) -> None:
    with transaction() as session:
        session.execute(
            update(Round)
            .where(Round.id == each.id, Round.due_at.is_not(None))
            .values(state=each.state, due_at=func.least(Round.due_at, func.clock_timestamp()))
        )
