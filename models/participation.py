"""Participation: an operator in a round, from the invitation over its manifest and escrow to its exclusion.

The one rule kept here: all that one operator may do to a round (tickets, manifest, nonce) is serialised by the lock
of its participation row, taken after the round's own.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import (
    TIMESTAMP,
    Boolean,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    select,
)
from sqlalchemy.orm import Mapped, Session, mapped_column, relationship

from models.base import Base, Created, Identifier, Micro
from protocol.chain import Exclusion, ManifestEntry
from protocol.errors import Forbidden

MISSED_SEALING = "missed_sealing"
MANIFEST_MISMATCH = "manifest_mismatch"
MISSED_ESCROW = "missed_escrow"


class Participation(Base):
    """One operator's part in one round. ``ticket_count`` is what is on record, submitted so far."""

    __tablename__ = "participations"
    __table_args__ = (
        Index("ix_participations_operator_id_round_id", "operator_id", "round_id"),
        CheckConstraint("(escrowed_at IS NULL) = (escrow_usdc IS NULL)", name="escrow_whole"),
        CheckConstraint("(excluded_at IS NULL) = (excluded_reason IS NULL)", name="exclusion_whole"),
        CheckConstraint(
            "excluded_reason IN ('missed_sealing', 'manifest_mismatch', 'missed_escrow')",
            name="exclusion_reason",
        ),
    )

    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), primary_key=True)
    operator_id: Mapped[Identifier] = mapped_column(ForeignKey("operators.id"), primary_key=True)
    invited_at: Mapped[Created]
    ticket_count: Mapped[int] = mapped_column(server_default="0")
    nonce: Mapped[bytes | None] = mapped_column(LargeBinary)
    nonce_revealed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    escrow_usdc: Mapped[Micro | None]
    escrowed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    excluded_reason: Mapped[str | None]
    excluded_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))

    manifest: Mapped["Manifest | None"] = relationship(lazy="raise", uselist=False, viewonly=True)


class Manifest(Base):
    """An operator's manifest as submitted, and what our recount of its tickets found.

    ``tickets_root`` and ``nonce_commit`` are what the manifest claims, where it does; ``counted`` and ``counted_root``
    what we found; ``agreed`` whether the two fit. The three are NULL until the recount is done.
    """

    __tablename__ = "manifests"
    __table_args__ = (
        ForeignKeyConstraint(["round_id", "operator_id"], ["participations.round_id", "participations.operator_id"]),
        CheckConstraint("(agreed IS NULL) = (counted_root IS NULL)", name="recount_whole"),
    )

    round_id: Mapped[int] = mapped_column(primary_key=True)
    operator_id: Mapped[Identifier] = mapped_column(primary_key=True)
    manifest_json: Mapped[str]
    manifest_hash: Mapped[str]
    ticket_count: Mapped[int]
    tickets_root: Mapped[str | None]
    nonce_commit: Mapped[str | None]
    submitted_at: Mapped[Created]
    counted: Mapped[int | None]
    counted_root: Mapped[str | None]
    agreed: Mapped[bool | None] = mapped_column(Boolean)

    def as_entry(self) -> ManifestEntry:
        """The recounted manifest as it is hashed."""
        assert self.counted_root is not None  # only called from SEALED on, when every recount is done
        return ManifestEntry(self.operator_id, self.manifest_hash, self.ticket_count, self.counted_root)


def participation(session: Session, round_id: int, operator_id: str, *, lock: bool = True) -> Participation:
    """The operator's part in the round, locked until the transaction ends unless it is only read.

    :raises Forbidden: the operator was not invited to the round.
    """
    row = session.get(Participation, (round_id, operator_id), with_for_update={"key_share": True} if lock else None)
    if row is None:
        raise Forbidden("your operator was not invited to this round", code="not_invited")
    return row


def participations(session: Session, round_id: int) -> Sequence[tuple[Participation, Manifest | None]]:
    """Every invited operator with its manifest, if any, in the byte order of the ids."""
    rows = session.execute(
        select(Participation, Manifest)
        .outerjoin(
            Manifest,
            (Manifest.round_id == Participation.round_id) & (Manifest.operator_id == Participation.operator_id),
        )
        .where(Participation.round_id == round_id)
        .order_by(Participation.operator_id)
    ).all()
    return [(part, manifest) for part, manifest in rows]


def exclude(part: Participation, reason: str, now: datetime) -> Exclusion:
    """Leave an operator out of the round from here on."""
    part.excluded_reason, part.excluded_at = reason, now
    return Exclusion(part.operator_id, reason)
