"""What every table shares: the metadata with its naming rules, column types, and the ``Due`` column.

The one rule kept here: a row that stands for pending work says so itself, in ``due_at``. Redis holds nothing that is
not also such a row.
"""

from datetime import datetime
from typing import Annotated, Any

from sqlalchemy import TIMESTAMP, BigInteger, Identity, MetaData, Text, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

BYTE_ORDER = Text(collation="C")
"""Text compared by its UTF-8 bytes, as the protocol sorts ticket ids."""

Number = Annotated[int, mapped_column(BigInteger, Identity(), primary_key=True)]
"""An id that counts up."""
Micro = Annotated[int, mapped_column(BigInteger)]
"""micro-USDC."""
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
        datetime: TIMESTAMP(timezone=True),
        dict[str, Any]: JSONB(none_as_null=True),
        list[Any]: JSONB(none_as_null=True),
    }


class Due:
    """The column of a row that is, or will be, work: when it may be done (again); NULL once there is none.

    Whoever takes the row pushes it ahead by the length of its lease, so a worker that dies is followed by another.
    """

    due_at: Mapped[datetime | None]
