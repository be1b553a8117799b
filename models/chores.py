"""Chores: work that comes back, such as purging what has been kept long enough.

The one rule kept here: when a chore is due again is written in the transaction that did it, so that it is neither
forgotten nor done by two at once.
"""

from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, Due, Identifier


class Chore(Due, Base):
    """One chore, by name."""

    __tablename__ = "chores"

    name: Mapped[Identifier] = mapped_column(primary_key=True)
