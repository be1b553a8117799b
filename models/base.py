"""What every table shares: the metadata with its naming rules, column types, and the ``Due`` columns.

The one rule kept here: a row that stands for pending work says so itself, in ``due_at``. Redis holds nothing that is
not also such a row.
"""

from datetime import datetime
from typing import Annotated, Any

from sqlalchemy import TIMESTAMP, BigInteger, Dialect, MetaData, Numeric, Text, TypeDecorator, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

BYTE_ORDER = Text(collation="C")
"""Text compared by its UTF-8 bytes, as the protocol sorts. Identifiers are kept in it."""

Identifier = Annotated[str, mapped_column(BYTE_ORDER)]
Micro = Annotated[int, mapped_column(BigInteger)]
"""micro-USDC. 64 bits hold 9.2 million million USD."""


class Whole(TypeDecorator[int]):
    """An integer of up to 30 digits, for the few amounts that 64 bits may not hold."""

    impl = Numeric(30, 0)
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        """What the driver gives is a Decimal."""
        return None if value is None else int(value)


Instant = Annotated[datetime, mapped_column(TIMESTAMP(timezone=True))]
Created = Annotated[datetime, mapped_column(TIMESTAMP(timezone=True), server_default=func.clock_timestamp())]


class Base(DeclarativeBase):
    """Parent of every mapped table."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {
        str: Text(),
        int: BigInteger(),
        dict[str, Any]: JSONB(none_as_null=True),
        list[Any]: JSONB(none_as_null=True),
    }


class Due:
    """Columns of a row that is, or will be, work.

    ``due_at``: when the work may be done; NULL once there is none. ``ring_at``: not to be rung for before this
    moment; whoever rings for the row pushes it ahead, so that a bell that was lost is rung again when the time is over
    and one that was heard is not repeated for nothing.
    """

    due_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    ring_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=func.clock_timestamp())
