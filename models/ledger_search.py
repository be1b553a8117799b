"""Reading the books: postings, newest first, page by page, and what is on each account.

The one rule kept here: a page starts behind the last posting of the one before, and costs two statements however many
entries its postings have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from models.ledger import Account, Entry, Posting


@dataclass(frozen=True)
class PostingsWanted:
    """Which postings: those that fit everything that is given. ``since`` is included, ``until`` is not."""

    account: str | None = None
    kind: str | None = None
    round_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None


def postings(
    session: Session, wanted: PostingsWanted, limit: int, before_id: int | None = None
) -> Sequence[tuple[Posting, list[Entry]]]:
    """So many postings, newest first, from below ``before_id`` on, each with its entries by account."""
    query = select(Posting).order_by(Posting.id.desc()).limit(limit)
    if wanted.account is not None:
        touched = (Entry.posting_id == Posting.id) & (Entry.account_id == wanted.account)
        query = query.where(exists().where(touched))
    for column, value in ((Posting.kind, wanted.kind), (Posting.round_id, wanted.round_id)):
        if value is not None:
            query = query.where(column == value)
    if wanted.since is not None:
        query = query.where(Posting.created_at >= wanted.since)
    if wanted.until is not None:
        query = query.where(Posting.created_at < wanted.until)
    if before_id is not None:
        query = query.where(Posting.id < before_id)
    found = session.scalars(query).all()
    entries: dict[int, list[Entry]] = {row.id: [] for row in found}
    theirs = select(Entry).where(Entry.posting_id.in_(entries)).order_by(Entry.posting_id, Entry.account_id)
    for entry in session.scalars(theirs):
        entries[entry.posting_id].append(entry)
    return [(row, entries[row.id]) for row in found]


def accounts(session: Session) -> Sequence[Account]:
    """Every account, in the byte order of the names. The balances add up to zero."""
    return session.scalars(select(Account).order_by(Account.id)).all()
