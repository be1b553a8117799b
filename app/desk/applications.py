"""Reviewing applications.

The one rule kept here: an approval makes the operator and its API key in one transaction; the key is in the answer
once, and never in the audit log.
"""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.resources.applications import reviewer_view
from models.applications import Application, ApplicationStatus, review
from models.audit import record
from models.credentials import issue_api_key
from protocol.errors import NotFound
from protocol.identifiers import is_identifier

LAST = 200


def listed(session: Session, status: str | None) -> dict[str, Any]:
    """The last 200 applications (of a status), newest first."""
    wanted = select(Application).order_by(Application.submitted_at.desc()).limit(LAST)
    if status:
        wanted = wanted.where(Application.status == status)
    rows = [reviewer_view(row) for row in session.scalars(wanted)]
    return {"applications": rows, "count": len(rows)}


def shown(session: Session, application_id: str) -> dict[str, Any]:
    """One application.

    :raises NotFound: no such application.
    """
    row = session.get(Application, application_id) if is_identifier(application_id) else None
    if row is None:
        raise NotFound("no such application")
    return reviewer_view(row)


def decide(session: Session, actor: str, application_id: str, approve: bool, note: str | None) -> dict[str, Any]:
    """Approve or reject a pending application; ``note`` is read by the applicant.

    :raises NotFound: no such application.
    :raises Conflict: it was decided before.
    """
    row = review(session, application_id, approve=approve, note=note)
    key = issue_api_key(session, row.operator_id) if row.operator_id else None
    facts = {"operatorId": row.operator_id} if row.operator_id else {}
    record(session, actor, "application.approve" if approve else "application.reject", row.id, note, **facts)
    assert (row.status == ApplicationStatus.APPROVED) == (key is not None)  # an approved application has an operator
    return {"applicationId": row.id, "status": row.status, "operatorId": row.operator_id, "apiKey": key}
