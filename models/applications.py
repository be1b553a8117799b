"""Applications to become an operator: submitted by a company, reviewed once by a person.

The one rule kept here: one pending application per e-mail address (whatever its case), held by a unique index, and a
review changes a pending application or nothing.
"""

import secrets
from datetime import datetime
from enum import StrEnum

from sqlalchemy import TIMESTAMP, ForeignKey, Index, LargeBinary, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Created, Identifier
from models.credentials import digest, matches
from models.operators import Operator
from models.session import database_now
from protocol.errors import Conflict, NotFound, Unauthenticated
from protocol.identifiers import is_identifier


class ApplicationStatus(StrEnum):
    """``rejected`` is ours; the other two are the published ones."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


class Application(Base):
    """One application, as submitted, and what became of it."""

    __tablename__ = "applications"
    __table_args__ = (
        Index(
            "uq_applications_pending_email",
            text("lower(contact_email)"),
            unique=True,
            postgresql_where=text("status = 'pending'"),
        ),
        Index("ix_applications_status_submitted_at", "status", "submitted_at"),
    )

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    status: Mapped[str] = mapped_column(server_default=ApplicationStatus.PENDING.value)
    token_digest: Mapped[bytes] = mapped_column(LargeBinary)
    company_name: Mapped[str]
    jurisdiction: Mapped[str]
    gaming_license_number: Mapped[str]
    contact_email: Mapped[str]
    contact_name: Mapped[str]
    ethereum_address: Mapped[str]
    website: Mapped[str | None]
    description: Mapped[str | None]
    submitted_at: Mapped[Created]
    reviewed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    review_note: Mapped[str | None]
    operator_id: Mapped[str | None] = mapped_column(ForeignKey("operators.id"), type_=Operator.id.type)


def apply(session: Session, **fields: str | None) -> tuple[str, str]:
    """File an application; returns its id and the token that reads its status, seen only now.

    :raises Conflict: one for the same e-mail is pending; ``applicationId`` names it.
    """
    token = secrets.token_urlsafe(32)
    new = (
        insert(Application)
        .values(id=f"app_{secrets.token_hex(8)}", token_digest=digest(token), **fields)
        .on_conflict_do_nothing(index_elements=[text("lower(contact_email)")], index_where=text("status = 'pending'"))
        .returning(Application.id)
    )
    in_the_way = select(Application.id).where(
        func.lower(Application.contact_email) == func.lower(fields["contact_email"]),
        Application.status == ApplicationStatus.PENDING.value,
    )
    pending = None
    while pending is None:
        made = session.scalars(new).first()
        if made is not None:
            return made, token
        # None when the one we met was decided this very moment: then there is room for ours.
        pending = session.scalars(in_the_way).first()
    raise Conflict(
        "an application for this e-mail is already pending", code="application_pending", applicationId=pending
    )


def application_for_token(session: Session, application_id: str, token: str) -> Application:
    """The application whose token this is.

    :raises Unauthenticated: unknown id or wrong token; the two are not told apart.
    """
    row = session.get(Application, application_id) if is_identifier(application_id) else None
    if not matches(row.token_digest if row else None, token) or row is None:
        raise Unauthenticated("unknown application or wrong application token")
    return row


def review(session: Session, application_id: str, *, approve: bool, note: str | None) -> Application:
    """Decide a pending application; approval makes the operator, under the application's own data.

    :raises NotFound: no such application.
    :raises Conflict: it was decided before.
    """
    known = is_identifier(application_id)
    row = session.get(Application, application_id, with_for_update=True) if known else None
    if row is None:
        raise NotFound("no such application")
    if row.status != ApplicationStatus.PENDING:
        raise Conflict(f"the application is {row.status} already", code="already_reviewed")
    row.status = ApplicationStatus.APPROVED if approve else ApplicationStatus.REJECTED
    row.reviewed_at = database_now(session)
    row.review_note = note
    if approve:
        operator = Operator(
            id=f"op_{secrets.token_hex(8)}",
            name=row.company_name,
            jurisdiction=row.jurisdiction,
            address=row.ethereum_address,
        )
        session.add(operator)
        session.flush()
        row.operator_id = operator.id
    return row
