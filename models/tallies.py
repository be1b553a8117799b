"""Tallies: how many webhook attempts came to what, since the first.

The one rule kept here: a tally is written in the transaction that records what it counts, so that it is right after any
crash and the same whoever is asked. (Counting the rows themselves would take longer every month, and forget what was
purged.)
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from sqlalchemy import select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base


class Kind(StrEnum):
    """What is counted; the label says which.

    ``outcome``: attempts by error class, ``delivered`` or ``ours`` (put off for a fault of our own). ``given_up``:
    deliveries that failed with their last attempt, by its error class. ``seconds``:
    attempts by how long they took, and ``wait``: first attempts by how long after the commit they began, labelled by
    the upper bound of BUCKETS_SECONDS they fall under (``+Inf`` above all). ``*_sum_us``: the sum of those times in
    microseconds. ``connection``: attempts over a ``new`` or a ``reused`` connection.
    """

    OUTCOME = "outcome"
    GIVEN_UP = "given_up"
    SECONDS = "seconds"
    SECONDS_SUM = "seconds_sum_us"
    WAIT = "wait"
    WAIT_SUM = "wait_sum_us"
    CONNECTION = "connection"


BUCKETS_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Tally(Base):
    """One count."""

    __tablename__ = "webhook_tallies"

    kind: Mapped[str] = mapped_column(primary_key=True)
    label: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int]


def bucket(seconds: float) -> str:
    """The label of the bucket that so many seconds fall into."""
    return next((str(bound) for bound in BUCKETS_SECONDS if seconds <= bound), "+Inf")


def add(session: Session, counts: Mapping[tuple[Kind, str], int]) -> None:
    """Add to tallies. Done last in a transaction: others wait for these rows until it is committed."""
    # In one order, so that two who add at once wait for each other and never both.
    entries = sorted((kind.value, label, count) for (kind, label), count in counts.items())
    if entries:
        kinds, labels, numbers = zip(*entries, strict=True)
        session.execute(_ADD, {"kinds": list(kinds), "labels": list(labels), "counts": list(numbers)})


_ADD = text("""
    INSERT INTO webhook_tallies (kind, label, count)
    SELECT * FROM unnest(CAST(:kinds AS text[]), CAST(:labels AS text[]), CAST(:counts AS bigint[]))
    ON CONFLICT (kind, label) DO UPDATE SET count = webhook_tallies.count + excluded.count
""")


def tallies(session: Session) -> dict[Kind, dict[str, int]]:
    """Every tally, by kind and label."""
    found: dict[Kind, dict[str, int]] = {kind: {} for kind in Kind}
    for row in session.scalars(select(Tally).order_by(Tally.kind, Tally.label)):
        found[Kind(row.kind)][row.label] = row.count
    return found
