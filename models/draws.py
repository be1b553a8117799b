"""Draws and winners: what a round's seed gave and who won.

The one rule kept here: a round is drawn once. Its draw row is written when the seed is fixed and never changes in
seed or numbers (a trigger); whatever crashes afterwards goes on with the same one.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    TIMESTAMP,
    CheckConstraint,
    ForeignKey,
    Index,
    SmallInteger,
    case,
    func,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Created, Identifier, Micro
from protocol.numbers import Numbers
from protocol.settlement import Winner

_STREAM_ROWS = 10_000


class Draw(Base):
    """The draw of a round. What stands below ``bonus5`` is filled in when the round becomes DRAWN.

    ``terms`` are the settlement's terms, ``releases`` what each operator is paid, both fixed at the draw
    and posted when the round settles.
    """

    __tablename__ = "draws"
    __table_args__ = (Index("ix_draws_drawn_at", "drawn_at"),)

    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), primary_key=True, autoincrement=False)
    created_at: Mapped[Created]
    draw_seed: Mapped[str]
    beacon_randomness: Mapped[str | None]
    jackpot_number: Mapped[int]
    bonus1: Mapped[int]
    bonus2: Mapped[int]
    bonus3: Mapped[int]
    bonus4: Mapped[int]
    bonus5: Mapped[int]

    drawn_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    winner_counts: Mapped[list[Any] | None]
    winners_root: Mapped[str | None]
    jackpot_amount: Mapped[Micro | None]
    sub_prize_total: Mapped[Micro | None]
    terms: Mapped[dict[str, Any] | None]
    releases: Mapped[dict[str, Any] | None]
    winner_index: Mapped[int | None]
    winning_operator_id: Mapped[str | None]

    @property
    def numbers(self) -> Numbers:
        """The six winning numbers."""
        return Numbers(self.jackpot_number, self.bonus1, self.bonus2, self.bonus3, self.bonus4, self.bonus5)


class WinningTicket(Base):
    """A ticket that won in a tier (0: the jackpot). ``prize_usdc`` is NULL until the round is DRAWN.

    That its draw and its operator's manifest exist is checked once a statement, by a trigger: foreign keys ask once a
    row and took most of the time of matching. Draws and manifests are never deleted, and a win never becomes another.
    """

    __tablename__ = "winners"
    __table_args__ = (
        CheckConstraint("tier BETWEEN 0 AND 5", name="tier"),
        Index("ix_winners_round_id_operator_id_ticket_id", "round_id", "operator_id", "ticket_id"),
        # Every row is written again when prizes are known. There is room for that beside it, so no index hears of it.
        {"postgresql_with": {"fillfactor": 40}},
    )

    round_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    tier: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    operator_id: Mapped[Identifier] = mapped_column(primary_key=True)
    ticket_id: Mapped[Identifier] = mapped_column(primary_key=True)
    prize_usdc: Mapped[Micro | None]
    claim_deadline: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    claimed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))

    @property
    def claimed_in_time(self) -> bool:
        """Whether the prize was reported as paid by its deadline; a prize that was not goes back to the reserve."""
        return self.claimed_at is not None and (self.claim_deadline is None or self.claimed_at <= self.claim_deadline)


def win_counts(session: Session, round_id: int) -> dict[str, list[int]]:
    """Wins per tier 0..5 of each operator that has any."""
    counts: dict[str, list[int]] = {}
    rows = session.execute(
        select(WinningTicket.operator_id, WinningTicket.tier, func.count())
        .where(WinningTicket.round_id == round_id)
        .group_by(WinningTicket.operator_id, WinningTicket.tier)
    )
    for operator_id, tier, count in rows:
        counts.setdefault(operator_id, [0] * 6)[tier] = count
    return counts


def award(session: Session, round_id: int, amounts: Sequence[int], claim_deadline: datetime) -> None:
    """Write what each winner of each tier 0..5 gets (micro-USDC), and until when it can be claimed (UTC)."""
    prize = case(dict(enumerate(amounts)), value=WinningTicket.tier)
    session.execute(
        update(WinningTicket)
        .where(WinningTicket.round_id == round_id)
        .values(prize_usdc=prize, claim_deadline=claim_deadline)
        .execution_options(synchronize_session=False)
    )


def stream_winners(session: Session, round_id: int, amounts: Sequence[int]) -> Iterator[Winner]:
    """Every win in the order it is hashed, with what its tier pays (micro-USDC)."""
    rows = session.execute(
        select(WinningTicket.tier, WinningTicket.operator_id, WinningTicket.ticket_id)
        .where(WinningTicket.round_id == round_id)
        .order_by(WinningTicket.tier, WinningTicket.operator_id, WinningTicket.ticket_id),
        execution_options={"yield_per": _STREAM_ROWS},
    )
    for tier, operator_id, ticket_id in rows:
        yield Winner(tier, operator_id, ticket_id, amounts[tier])


def wins_of_operator(session: Session, round_id: int, operator_id: str) -> Iterator[tuple[str, int]]:
    """``(ticket_id, tier)`` of every win of one operator, by ticketId and then tier."""
    rows = session.execute(
        select(WinningTicket.ticket_id, WinningTicket.tier)
        .where(WinningTicket.round_id == round_id, WinningTicket.operator_id == operator_id)
        .order_by(WinningTicket.ticket_id, WinningTicket.tier),
        execution_options={"yield_per": _STREAM_ROWS},
    )
    for ticket_id, tier in rows:  # noqa: UP028 - rows are not pairs to a type checker
        yield ticket_id, tier


def first_jackpots(session: Session, round_id: int) -> dict[str, str]:
    """The first jackpot ticket, by ticketId, of each operator that has any."""
    rows = session.execute(
        select(WinningTicket.operator_id, func.min(WinningTicket.ticket_id))
        .where(WinningTicket.round_id == round_id, WinningTicket.tier == 0)
        .group_by(WinningTicket.operator_id)
    )
    return {row[0]: row[1] for row in rows}


def winners_by_tier(
    session: Session, round_id: int, tiers: Iterable[int], limit: int, offset: int
) -> dict[int, list[WinningTicket]]:
    """Winners of each tier in the order they are hashed, ``limit`` of each from ``offset`` on: one query for all."""
    wanted = list(tiers)
    # One walk along the primary key for each tier: no more rows are read than are shown or skipped.
    pages = [
        select(WinningTicket)
        .where(WinningTicket.round_id == round_id, WinningTicket.tier == tier)
        .order_by(WinningTicket.operator_id, WinningTicket.ticket_id)
        .limit(limit)
        .offset(offset)
        .subquery()
        for tier in wanted
    ]
    listed: dict[int, list[WinningTicket]] = {tier: [] for tier in wanted}
    for winner in session.scalars(select(WinningTicket).from_statement(union_all(*(select(page) for page in pages)))):
        listed[winner.tier].append(winner)
    return listed


def drawn(session: Session, limit: int, offset: int) -> list[Draw]:
    """A page of the draws that are public, newest first."""
    return list(
        session.scalars(
            select(Draw).where(Draw.drawn_at.is_not(None)).order_by(Draw.round_id.desc()).limit(limit).offset(offset)
        )
    )
