"""Retiring an encryption key: what older keys encrypted is written anew with the newest.

The one rule kept here: it may be interrupted, repeated and raced. Each value is replaced in a transaction of its own,
and only while it still is what was read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import InstrumentedAttribute

from models.credentials import OperatorApiKey
from models.encryption import reencrypted
from models.rounds import Round
from models.session import transaction

ENCRYPTED: tuple[tuple[str, InstrumentedAttribute[Any], InstrumentedAttribute[Any]], ...] = (
    ("API keys", OperatorApiKey.id, OperatorApiKey.encrypted),
    ("round secrets", Round.id, Round.secret_encrypted),
)
"""Every encrypted column there is: what it holds, the key of its table, itself. A test holds it against the tables."""


@dataclass
class Rewriting:
    """What came of one kind of secret: how many there are, and how many of them needed an older key."""

    secrets: str
    count: int = 0
    outdated: int = 0


def reencrypt(*, dry_run: bool = False) -> list[Rewriting]:
    """Write every value that needs an older key anew; with ``dry_run``, only count them.

    :raises SettingsError: a value fits none of ENCRYPTION_KEYS. What was rewritten by then stays so.
    """
    done = []
    for name, key, column in ENCRYPTED:
        report = Rewriting(name)
        for row_id, old in _values(key, column):
            report.count += 1
            new = reencrypted(old)
            if new is not None:
                report.outdated += 1
                if not dry_run:
                    with transaction() as session:
                        session.execute(update(key.class_).where(key == row_id, column == old).values({column: new}))
        done.append(report)
    return done


def _values(key: InstrumentedAttribute[Any], column: InstrumentedAttribute[Any]) -> Iterator[tuple[Any, bytes]]:
    with transaction() as session:
        row_ids = session.scalars(select(key).where(column.is_not(None)).order_by(key)).all()
    for row_id in row_ids:
        with transaction() as session:
            value = session.scalars(select(column).where(key == row_id)).one()
        yield row_id, value
