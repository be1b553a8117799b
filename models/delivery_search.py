"""Finding deliveries: by what is known of them, newest first, page by page.

The one rule kept here: a page starts after the last row of the one before (keyset), so that a page costs the same
however far back it is, and rows written meanwhile move nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, select, tuple_
from sqlalchemy.orm import Session

from models.deliveries import Delivery, DeliveryStatus
from protocol.errors import NotFound

Place = tuple[datetime, UUID]
"""Where a delivery stands in the order of all: when it was written, and its id."""


@dataclass(frozen=True)
class Wanted:
    """Which deliveries: those that fit everything that is given. ``since`` is included, ``until`` is not."""

    status: DeliveryStatus | None = None
    operator_id: str | None = None
    round_id: int | None = None
    event: str | None = None
    error_class: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """The same in SQL."""
        equal = {
            Delivery.status: self.status.value if self.status else None,
            Delivery.operator_id: self.operator_id,
            Delivery.round_id: self.round_id,
            Delivery.event: self.event,
            Delivery.error_class: self.error_class,
        }
        found = [column == value for column, value in equal.items() if value is not None]
        if self.since is not None:
            found.append(Delivery.created_at >= self.since)
        if self.until is not None:
            found.append(Delivery.created_at < self.until)
        return found


def search(session: Session, wanted: Wanted, limit: int, after: Place | None = None) -> Sequence[Delivery]:
    """So many deliveries, newest first, from behind ``after`` on."""
    query = select(Delivery).where(*wanted.conditions())
    if after is not None:
        query = query.where(tuple_(Delivery.created_at, Delivery.id) < tuple_(*after))
    return session.scalars(query.order_by(Delivery.created_at.desc(), Delivery.id.desc()).limit(limit)).all()


def delivery_by_id(session: Session, delivery_id: UUID | None) -> Delivery:
    """One delivery.

    :raises NotFound: no such delivery.
    """
    row = session.get(Delivery, delivery_id) if delivery_id is not None else None
    if row is None:
        raise NotFound("no such delivery")
    return row
