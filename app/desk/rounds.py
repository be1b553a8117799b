"""Running rounds: opening, watching, ending; and having a drawn one tabulated again.

The one rule kept here: nothing here changes a round's state but its opening; a round is ended by a worker, on request.
"""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy.orm import Session

from app.resources.rounds import detail, list_rounds
from app.resources.tabulations import second_tabulation
from models.audit import record
from models.deliveries import counts_by_status
from models.draws import Draw
from models.operators import active_operator_ids, unknown_or_inactive
from models.participation import participations
from models.rounds import Round, request_abort, round_by_id, timeline_of
from models.session import database_now
from models.settings import settings
from models.tabulations import tabulate_again, tabulations
from protocol.errors import Conflict, Invalid
from protocol.lifecycle import TRANSITIONS, Deadlines, Trigger
from protocol.timestamps import format_timestamp
from tasks.bell import Bell, ring_after_commit
from tasks.opening import open_round

SHORTEST_SALES = timedelta(minutes=1)
FURTHEST = timedelta(days=366)
_TOO_FAR = "More than a year ahead."


def listed(session: Session, limit: int, offset: int) -> dict[str, Any]:
    """A page of rounds, newest first."""
    rows = list_rounds(session, limit=limit, offset=offset)
    return {"rounds": rows, "count": len(rows)}


def shown(session: Session, round_id: int | None) -> dict[str, Any]:
    """A round with its deadlines, every step it took, exclusions and counts of deliveries.

    :raises NotFound: no such round.
    """
    return _admin_view(session, round_by_id(session, round_id))


def opened(session: Session, actor: str, operator_ids: list[str] | None, moments: dict[str, Any]) -> dict[str, Any]:
    """Open a round that invites these operators, or all active ones. ``moments``: its deadlines by published name.

    :raises Invalid: an operator that cannot be invited, or deadlines that cannot be.
    """
    deadlines = _checked(moments, database_now(session))
    invited = _invited(session, operator_ids)
    row = open_round(session, invited, deadlines)
    record(session, actor, "round.open", f"round {row.id}", operatorIds=invited)
    session.flush()
    return _admin_view(session, row)


def fail(session: Session, actor: str, round_id: int | None, reason: str) -> dict[str, Any]:
    """Ask for a round to be failed and refunded; a worker does it at once.

    :raises NotFound: no such round.
    :raises Conflict: it is drawn, or finished.
    """
    row = round_by_id(session, round_id)
    # Alone from the start: two who shared the row and then both wrote to it would wait for each other.
    session.refresh(row, with_for_update={"key_share": True})
    if (row.state, Trigger.ABORTED) not in TRANSITIONS:
        raise Conflict(f"a round that is {row.state.value} cannot be failed any more", code="wrong_state")
    request_abort(session, row.id, reason)
    record(session, actor, "round.fail", f"round {row.id}", reason)
    ring_after_commit(session, Bell.ROUND, [row.id])
    return {"success": True, "roundId": row.id, "state": row.state.value}


def retabulate(session: Session, actor: str, round_id: int | None, reason: str) -> dict[str, Any]:
    """Have every operator's second tabulation of a round done again; once they agree, the round goes on by itself.

    :raises NotFound: no such round.
    :raises Conflict: the round is not DRAWN, is being tabulated, or agrees.
    """
    row = round_by_id(session, round_id)
    session.refresh(row, with_for_update={"key_share": True})
    before = tabulate_again(session, row)
    # What they had found is replaced by what they find next.
    faults = {piece.operator_id: piece.result["faults"] for piece in before if piece.result and piece.result["faults"]}
    record(session, actor, "round.retabulate", f"round {row.id}", reason, faults=faults)
    ring_after_commit(session, Bell.PIECE, [piece.id for piece in before])
    return {"success": True, "roundId": row.id, "state": row.state.value}


def _invited(session: Session, wanted: list[str] | None) -> list[str]:
    if wanted is None:
        chosen = active_operator_ids(session)
    else:
        chosen = sorted(set(wanted))
        if unknown := unknown_or_inactive(session, chosen):
            message = f"Not active operators: {', '.join(unknown)}."
            raise Invalid("the round cannot be opened", details={"operatorIds": [message]})
    if not chosen:
        raise Invalid("the round cannot be opened", details={"operatorIds": ["There is no active operator to invite."]})
    return chosen


def _checked(body: dict[str, Any], now: datetime) -> Deadlines:
    # Before anything is added to them: the calendar ends with the year 9999.
    far = {name: at for name, at in body.items() if isinstance(at, datetime) and at > now + FURTHEST}
    if far:
        raise Invalid("the deadlines cannot be accepted", details={name: [_TOO_FAR] for name in far})
    settle_at = body["settleAt"] or body["scheduledDrawTime"] + timedelta(seconds=settings().settle_after_seconds)
    close_at = body["closeAt"] or settle_at + timedelta(seconds=settings().close_after_seconds)
    moments = {
        "sealAt": body["sealAt"],
        "sealingDeadline": body["sealingDeadline"],
        "escrowDeadline": body["escrowDeadline"],
        "scheduledDrawTime": body["scheduledDrawTime"],
        "settleAt": settle_at,
        "closeAt": close_at,
    }
    earliest = now if settings().sandbox else now + SHORTEST_SALES
    wrong: dict[str, list[str]] = {}
    if moments["sealAt"] < earliest:
        wrong["sealAt"] = [f"Too early: {format_timestamp(earliest)} at the soonest."]
    if close_at > now + FURTHEST:
        wrong["closeAt"] = [_TOO_FAR]
    names = list(moments)
    for before, after in pairwise(names):
        if moments[after] < moments[before]:
            wrong.setdefault(after, []).append(f"Before {before}.")
    if wrong:
        raise Invalid("the deadlines cannot be accepted", details=wrong)
    return Deadlines(*moments.values())


def _admin_view(session: Session, row: Round) -> dict[str, Any]:
    everybody = participations(session, row.id)
    at = row.deadlines
    return {
        **detail(row, session.get(Draw, row.id), everybody),
        "deadlines": {
            "sealAt": format_timestamp(at.seal_at),
            "sealingDeadline": format_timestamp(at.sealing_deadline),
            "escrowDeadline": format_timestamp(at.escrow_deadline),
            "scheduledDrawTime": format_timestamp(at.scheduled_draw_time),
            "settleAt": format_timestamp(at.settle_at),
            "closeAt": format_timestamp(at.close_at),
        },
        "timeline": [
            {"trigger": step.trigger, "state": step.to_state.value, "at": format_timestamp(step.at)}
            for step in timeline_of(session, row.id)
        ],
        "exclusions": [
            {"operatorId": part.operator_id, "reason": part.excluded_reason}
            for part, _ in everybody
            if part.excluded_reason
        ],
        "deliveries": counts_by_status(session, row.id),
        "secondTabulation": second_tabulation(tabulations(session, row.id)),
    }
