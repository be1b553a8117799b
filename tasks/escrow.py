"""Escrow: each sealed operator pays for its tickets out of its prefunded balance, or is left out.

The one rule kept here: escrow is taken as soon as the balance suffices, in the transaction that says so, once (its
ledger reference is the round and the operator).
"""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from models.ledger import balance_for_update, escrow_account, operator_account, post
from models.operators import Operator, count_up
from models.participation import MISSED_ESCROW, Participation, exclude, participations
from models.rounds import Round
from protocol.chain import Exclusion, effective_manifest_hash
from protocol.lifecycle import NO_ESCROW, Trigger
from tasks.failing import refund
from tasks.steps import Announcement, carry_out, exclusions_data


def collect(session: Session, row: Round, now: datetime) -> None:
    """Take the escrow of every sealed operator whose balance suffices. No change of state.

    A deposit recorded while nothing ran is honoured even past the deadline: our delay never excludes an operator.
    """
    for part in _sealed(session, row):
        if part.escrowed_at is not None:
            continue
        needed = part.ticket_count * row.parsed_rules.ticket_price
        own = operator_account(part.operator_id)
        if balance_for_update(session, own) < needed:
            continue
        moved = {own: -needed, escrow_account(row.id): needed}
        post(session, f"escrow:{row.id}:{part.operator_id}", "escrow", moved, row.id)
        part.escrow_usdc, part.escrowed_at = needed, now
        row.total_deposited += needed
        row.escrowed_operator_count += 1
    session.flush()


def complete(session: Session, row: Round, now: datetime) -> None:
    """SEALED → ESCROWED: everybody paid."""
    _accept(session, row, Trigger.ESCROW_COMPLETE, {}, now)


def complete_without_some(session: Session, row: Round, now: datetime) -> None:
    """SEALED → ESCROWED: the deadline is over, and those who missed it are left out."""
    _accept(session, row, Trigger.ESCROW_DEADLINE, _exclude_unpaid(session, row, now), now)


def nobody_paid(session: Session, row: Round, now: datetime) -> None:
    """SEALED → FAILED: the deadline is over and there is no escrow at all."""
    missed = _exclude_unpaid(session, row, now)
    refund(session, row)
    rounds: dict[str, dict[str, Any]] = {
        "round.escrow_deadline": _deadline(missed),
        "round.failed": {"reason": NO_ESCROW},
    }
    news = Announcement({}, rounds, {"operator.excluded": exclusions_data(row, missed)})
    carry_out(session, row, Trigger.NOBODY_PAID, news, now)


def _accept(session: Session, row: Round, trigger: Trigger, missed: dict[str, str], now: datetime) -> None:
    paid = _sealed(session, row)
    count_up(session, Operator.rounds_escrowed, [part.operator_id for part in paid])
    _fix(session, row)
    rounds: dict[str, dict[str, Any]] = {
        "round.escrow_deadline": _deadline(missed),
        "round.escrowed": {"totalEscrowed": row.total_deposited, "operatorsDeposited": len(paid)},
    }
    news = Announcement({}, rounds, {"operator.excluded": exclusions_data(row, missed)})
    carry_out(session, row, trigger, news, now)


def _exclude_unpaid(session: Session, row: Round, now: datetime) -> dict[str, str]:
    unpaid = [part for part in _sealed(session, row) if part.escrowed_at is None]
    for part in unpaid:
        exclude(part, MISSED_ESCROW, now)
    session.flush()
    row.excluded_operator_count += len(unpaid)
    missed = {part.operator_id: MISSED_ESCROW for part in unpaid}
    count_up(session, Operator.rounds_excluded, list(missed))
    return missed


def _deadline(missed: dict[str, str]) -> dict[str, Any]:
    return {"operatorsExcluded": sorted(missed)}


def _sealed(session: Session, row: Round) -> list[Participation]:
    return [part for part, manifest in participations(session, row.id) if manifest and part.excluded_at is None]


def _fix(session: Session, row: Round) -> None:
    """Who takes part in the draw, and who does not and why."""
    everybody = participations(session, row.id)
    assert row.chained_anchor_hash is not None  # a SEALED round has one
    effective = [manifest.as_entry() for part, manifest in everybody if manifest and part.excluded_at is None]
    exclusions = [Exclusion(part.operator_id, part.excluded_reason) for part, _ in everybody if part.excluded_reason]
    row.effective_manifest_hash = effective_manifest_hash(row.id, row.chained_anchor_hash, effective, exclusions)
    row.total_tickets = sum(entry.ticket_count for entry in effective)
