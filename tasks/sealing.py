"""Sealing: sales end, every operator's tickets are recounted, and the set that agrees is fixed by its hashes.

The one rule kept here: what is sealed is what we counted ourselves. An operator whose manifest says otherwise is left
out; one whose recount is merely late is waited for.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from models.archive_stores import archive_store
from models.archiving import archive_tickets
from models.ledger import POOL, RESERVE, balance
from models.operators import Operator, count_up
from models.participation import (
    MANIFEST_MISMATCH,
    MISSED_SEALING,
    Manifest,
    Participation,
    exclude,
    participations,
)
from models.rounds import Round, round_by_id
from models.session import database_now
from models.work import Kind, Piece, plan
from protocol.chain import GENESIS, anchor_hash, full_manifest_hash, round_hash
from protocol.lifecycle import NO_MANIFESTS, Trigger
from protocol.settlement import Stake, available_for_prizes
from protocol.timestamps import format_timestamp
from tasks.bell import Bell, ring_after_commit
from tasks.steps import Announcement, carry_out, exclusions_data


def end_sales(session: Session, row: Round, now: datetime) -> None:
    """OPEN → SEALING: no more tickets or manifests; a recount is planned for every manifest."""
    manifests = [manifest for _, manifest in participations(session, row.id) if manifest is not None]
    news = {"sealingDeadline": format_timestamp(row.sealing_deadline), "manifestsSubmitted": len(manifests)}
    carry_out(session, row, Trigger.SALES_ENDED, Announcement(rounds={"round.sealing": news}), now)
    pieces = plan(session, row.id, Kind.RECOUNT, [manifest.operator_id for manifest in manifests])
    ring_after_commit(session, Bell.PIECE, pieces)


def recount(session: Session, piece: Piece) -> dict[str, Any]:
    """Count an operator's tickets, hash and archive them, and note whether its manifest agrees."""
    manifest = session.get_one(Manifest, (piece.round_id, piece.operator_id), with_for_update=True)
    counted, root = archive_tickets(session, piece.round_id, piece.operator_id, archive_store(session))
    manifest.counted, manifest.counted_root = counted, root
    manifest.agreed = counted == manifest.ticket_count and manifest.tickets_root in (None, root)
    return {"counted": counted, "root": root, "agreed": manifest.agreed}


def nobody_joined(session: Session, row: Round, now: datetime) -> None:
    """OPEN → FAILED: no operator submitted a manifest."""
    _, excluded, _ = _separate(session, row, now)
    news = Announcement(
        rounds={"round.failed": {"reason": NO_MANIFESTS}},
        operators={"operator.excluded": exclusions_data(row, excluded)},
    )
    carry_out(session, row, Trigger.NOBODY_JOINED, news, now)


def seal(session: Session, row: Round, now: datetime) -> None:
    """SEALING → SEALED: the ticket set, and everything before it, is hashed."""
    sealed, excluded, deadline = _separate(session, row, now)
    _fix(session, row, sealed)
    count_up(session, Operator.rounds_participated, [manifest.operator_id for manifest in sealed])
    counted = {"sealedCount": len(sealed)}
    rounds: dict[str, dict[str, Any]] = {
        "round.sealing_deadline": deadline,
        "round.sealed": counted,
        "round.anchored": {"anchorHash": row.chained_anchor_hash},
    }
    news = Announcement(counted, rounds, {"operator.excluded": exclusions_data(row, excluded)})
    carry_out(session, row, Trigger.RECOUNT_AGREED, news, now)
    pieces = plan(session, row.id, Kind.LIABILITY, [manifest.operator_id for manifest in sealed[:1]])
    ring_after_commit(session, Bell.PIECE, pieces)


def seal_nobody(session: Session, row: Round, now: datetime) -> None:
    """SEALING → FAILED: no manifest agreed with its tickets."""
    _, excluded, deadline = _separate(session, row, now)
    rounds: dict[str, dict[str, Any]] = {"round.sealing_deadline": deadline, "round.failed": {"reason": NO_MANIFESTS}}
    news = Announcement({}, rounds, {"operator.excluded": exclusions_data(row, excluded)})
    carry_out(session, row, Trigger.NOBODY_SEALED, news, now)


def _separate(session: Session, row: Round, now: datetime) -> tuple[list[Manifest], dict[str, str], dict[str, Any]]:
    """Exclude those who missed sealing or disagree; returns the others, the reasons and what the deadline found."""
    everybody = participations(session, row.id)
    reasons = {part.operator_id: _left_out(manifest) for part, manifest in everybody}
    excluded = {operator_id: reason for operator_id, reason in reasons.items() if reason is not None}
    sealed = [manifest for _, manifest in everybody if manifest is not None and manifest.operator_id not in excluded]
    _exclude_all(session, row, [part for part, _ in everybody], excluded, now)
    missed = sum(reason == MISSED_SEALING for reason in excluded.values())
    return sealed, excluded, {"operatorsSealed": len(sealed), "operatorsMissed": missed}


def _left_out(manifest: Manifest | None) -> str | None:
    if manifest is None:
        return MISSED_SEALING
    return None if manifest.agreed else MANIFEST_MISMATCH


def _exclude_all(
    session: Session, row: Round, parts: Sequence[Participation], reasons: dict[str, str], now: datetime
) -> None:
    for part in parts:
        if part.operator_id in reasons:
            exclude(part, reasons[part.operator_id], now)
    row.excluded_operator_count = len(reasons)
    count_up(session, Operator.rounds_excluded, list(reasons))


def _fix(session: Session, row: Round, sealed: Sequence[Manifest]) -> None:
    """Everything that a sealed round can never change again."""
    # The timestamp that is hashed is the one that is shown, to the millisecond.
    moment = database_now(session)
    row.sealed_at = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    row.previous_round_hash = _hash_of_previous(session, row.id)
    row.full_manifest_hash = full_manifest_hash(row.id, [manifest.as_entry() for manifest in sealed])
    row.chained_anchor_hash = anchor_hash(
        row.id,
        row.previous_round_hash,
        row.full_manifest_hash,
        row.seed_commit,
        {manifest.operator_id: manifest.nonce_commit for manifest in sealed if manifest.nonce_commit},
        row.anchored_beacon,
        row.rules_hash,
        format_timestamp(row.sealed_at),
    )
    row.total_tickets = sum(manifest.ticket_count for manifest in sealed)
    # What the worst case has to be covered by is of this moment. The worst case itself takes a look at every ticket,
    # and nobody's round stands still for that (``tasks.assessing``).
    stakes = [Stake(manifest.operator_id, manifest.ticket_count) for manifest in sealed]
    row.coverage_usdc = available_for_prizes(
        row.parsed_rules, stakes, balance(session, POOL), balance(session, RESERVE)
    )


def _hash_of_previous(session: Session, round_id: int) -> str:
    if round_id == 1:
        return GENESIS
    before = round_by_id(session, round_id - 1)
    return round_hash(
        before.id,
        before.state.value,
        before.chained_anchor_hash,
        before.settlement_hash,
        before.failure_reason,
    )
