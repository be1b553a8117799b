"""Reading the books and the audit log."""

from typing import Any

from sqlalchemy.orm import Session

from app.resources.cursors import cursor_at, page_of
from app.resources.records import account_view, audit_view, posting_view
from models.audit import AuditWanted, entries
from models.ledger_search import PostingsWanted, accounts, postings


def ledger(session: Session, wanted: PostingsWanted, limit: int, after: tuple[int] | None) -> dict[str, Any]:
    """A page of postings, newest first."""
    found = postings(session, wanted, limit + 1, after[0] if after else None)
    page, next_cursor = page_of(found, limit, lambda one: cursor_at(one[0].id))
    rows = [posting_view(row, its_entries) for row, its_entries in page]
    return {"postings": rows, "count": len(rows), "nextCursor": next_cursor}


def balances(session: Session) -> dict[str, Any]:
    """Every account and what is on it."""
    rows = [account_view(row) for row in accounts(session)]
    return {"accounts": rows, "count": len(rows)}


def audit(session: Session, wanted: AuditWanted, limit: int, after: tuple[int] | None) -> dict[str, Any]:
    """A page of the audit log, newest first."""
    found = entries(session, wanted, limit + 1, after[0] if after else None)
    page, next_cursor = page_of(found, limit, lambda row: cursor_at(row.id))
    return {"entries": [audit_view(row) for row in page], "count": len(page), "nextCursor": next_cursor}
