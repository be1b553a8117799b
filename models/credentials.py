"""Credentials: operators' API keys, refresh tokens, admin keys, and the digests that recognise them.

The one rule kept here: a secret is shown once, when it is made; what is stored can only recognise it. An operator's API
key is kept encrypted as well, because the published interface signs webhooks with it.
Digests are SHA-256 of 256-bit random secrets: nothing to guess, so nothing to slow down.
"""

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID, uuid4

from sqlalchemy import TIMESTAMP, ColumnElement, ForeignKey, LargeBinary, func, or_, select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Created, Identifier, Instant
from models.encryption import decrypt, encrypt
from models.session import database_now
from protocol.errors import Unauthenticated
from protocol.identifiers import is_identifier

REFRESH_TOKEN_DAYS = 7


def digest(secret: str) -> bytes:
    """What is stored of a secret that only has to be recognised."""
    return hashlib.sha256(secret.encode()).digest()


_NOBODY = digest(secrets.token_hex(32))


def matches(stored: bytes | None, secret: str) -> bool:
    """Compare in constant time; an unknown id (None) takes as long as a wrong secret."""
    return hmac.compare_digest(stored if stored is not None else _NOBODY, digest(secret)) and stored is not None


class OperatorApiKey(Base):
    """One API key of an operator. The newest unrevoked one signs its webhooks."""

    __tablename__ = "operator_api_keys"

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    operator_id: Mapped[Identifier] = mapped_column(ForeignKey("operators.id"), index=True)
    secret_digest: Mapped[bytes] = mapped_column(LargeBinary)
    encrypted: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[Created]
    expires_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))


def issue_api_key(session: Session, operator_id: str) -> str:
    """Make a key ``sk_<id>_<secret>`` for the operator; the return value is the only time it is seen."""
    key_id, secret = secrets.token_hex(8), secrets.token_hex(32)
    key = f"sk_{key_id}_{secret}"
    session.add(
        OperatorApiKey(id=key_id, operator_id=operator_id, secret_digest=digest(key), encrypted=encrypt(key.encode()))
    )
    return key


def operator_of_api_key(session: Session, key: str) -> tuple[str, str]:
    """The operator and the key id behind an API key.

    :raises Unauthenticated: unknown, wrong or expired; the three are not told apart.
    """
    prefix, _, rest = key.partition("_")
    key_id, _, _ = rest.partition("_")
    row = session.get(OperatorApiKey, key_id) if prefix == "sk" and is_identifier(key_id) else None
    known = matches(row.secret_digest if row else None, key)
    if row is None or not known or _expired(session, row):
        raise Unauthenticated("unknown or expired API key")
    return row.operator_id, row.id


def _expired(session: Session, key: OperatorApiKey) -> bool:
    return key.expires_at is not None and key.expires_at <= database_now(session)


def _in_force() -> ColumnElement[bool]:
    return or_(OperatorApiKey.expires_at.is_(None), OperatorApiKey.expires_at > func.clock_timestamp())


def key_in_force(session: Session, operator_id: str, key_id: str) -> bool:
    """Whether this key of the operator still opens the door. What was made with it ends when it ends.

    Otherwise whoever stole a key and was quick to log in would stay in after the key was replaced.
    """
    wanted = select(OperatorApiKey.id).where(
        OperatorApiKey.id == key_id, OperatorApiKey.operator_id == operator_id, _in_force()
    )
    return session.scalars(wanted).first() is not None


def keys_in_force(session: Session, operator_id: str) -> list[OperatorApiKey]:
    """The operator's keys that authenticate now, newest first; the first of them signs."""
    wanted = select(OperatorApiKey).where(OperatorApiKey.operator_id == operator_id, _in_force())
    return list(session.scalars(wanted.order_by(OperatorApiKey.created_at.desc())))


def rotate_api_key(session: Session, operator_id: str, overlap_seconds: int) -> tuple[str, datetime | None]:
    """Make a new key, which signs from now on, and let every earlier one end in ``overlap_seconds`` at the latest.

    The caller holds the operator's row, so that two rotations at once do not each spare the other's key. Returns
    the new key, seen only now, and when the earlier ones have ended (UTC); None when there was none in force.
    """
    ends_at = database_now(session) + timedelta(seconds=overlap_seconds)
    earlier = keys_in_force(session, operator_id)
    for row in earlier:
        row.expires_at = min(row.expires_at or ends_at, ends_at)
    last_end = max((row.expires_at for row in earlier if row.expires_at), default=None)
    return issue_api_key(session, operator_id), last_end


def signing_key(session: Session, operator_id: str) -> str | None:
    """The key that signs the operator's webhooks: the newest one; None when it has none."""
    row = session.scalars(
        select(OperatorApiKey)
        .where(OperatorApiKey.operator_id == operator_id)
        .order_by(OperatorApiKey.created_at.desc())
        .limit(1)
    ).first()
    return decrypt(row.encrypted).decode() if row else None


class RefreshToken(Base):
    """One refresh token. Tokens descended from one login share a family and fall together."""

    __tablename__ = "refresh_tokens"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    operator_id: Mapped[Identifier] = mapped_column(ForeignKey("operators.id"))
    key_id: Mapped[Identifier] = mapped_column(ForeignKey("operator_api_keys.id"))
    family: Mapped[UUID] = mapped_column(index=True)
    token_digest: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[Created]
    expires_at: Mapped[Instant]
    revoked_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))


def issue_refresh_token(session: Session, operator_id: str, key_id: str, family: UUID | None = None) -> str:
    """Make an opaque refresh token, valid for 7 days; a new family unless one is continued."""
    token = secrets.token_urlsafe(48)
    session.add(
        RefreshToken(
            operator_id=operator_id,
            key_id=key_id,
            family=family or uuid4(),
            token_digest=digest(token),
            expires_at=database_now(session) + timedelta(days=REFRESH_TOKEN_DAYS),
        )
    )
    return token


def _revoke_family(session: Session, family: UUID) -> None:
    session.execute(
        update(RefreshToken)
        .where(RefreshToken.family == family, RefreshToken.revoked_at.is_(None))
        .values(revoked_at=database_now(session))
    )


def spend_refresh_token(session: Session, token: str) -> RefreshToken | None:
    """Revoke the token and return it; None when it cannot be used, or the API key behind it cannot any more.

    A token ends with the API key it was made with. A token used a second time means that two parties hold it: its
    whole family is revoked. The caller commits that even though it answers with an error. Of two simultaneous uses the
    row lock lets one through.
    """
    row = session.scalars(
        select(RefreshToken).where(RefreshToken.token_digest == digest(token)).with_for_update()
    ).first()
    now = database_now(session)
    if row is None or row.expires_at <= now:
        return None
    if row.revoked_at is not None:
        _revoke_family(session, row.family)
        return None
    row.revoked_at = now
    return row if key_in_force(session, row.operator_id, row.key_id) else None


class AdminRole(StrEnum):
    """What an admin key may do; ``root`` may do everything."""

    REVIEWER = "reviewer"
    TREASURER = "treasurer"
    ONCALL = "oncall"
    ROOT = "root"


class AdminKey(Base):
    """A key of a person or a system that runs the coordinator."""

    __tablename__ = "admin_keys"
    id: Mapped[Identifier] = mapped_column(primary_key=True)
    name: Mapped[str]
    role: Mapped[str]
    secret_digest: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[Created]
    revoked_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))


def issue_admin_key(session: Session, name: str, role: AdminRole) -> tuple[AdminKey, str]:
    """Make a key ``ak_<id>_<secret>``; the second value is the only time it is seen."""
    key_id, secret = secrets.token_hex(8), secrets.token_hex(32)
    key = f"ak_{key_id}_{secret}"
    row = AdminKey(id=key_id, name=name, role=role.value, secret_digest=digest(key))
    session.add(row)
    return row, key


def admin_of_key(session: Session, key: str) -> AdminKey:
    """The admin behind a key.

    :raises Unauthenticated: unknown, wrong or revoked; the three are not told apart.
    """
    prefix, _, rest = key.partition("_")
    key_id, _, _ = rest.partition("_")
    row = session.get(AdminKey, key_id) if prefix == "ak" and is_identifier(key_id) else None
    known = matches(row.secret_digest if row else None, key)
    if row is None or not known or row.revoked_at is not None:
        raise Unauthenticated("unknown or revoked admin key")
    return row
