"""The books and the audit log as the people who run the coordinator read them."""

from collections.abc import Sequence
from typing import Any

from marshmallow import Schema, fields

from app.fields import Shown, SignedMicro, Whole
from models.audit import AuditEntry
from models.ledger import Account, Entry, Posting
from protocol.timestamps import format_timestamp


class EntrySchema(Schema):
    """What a posting adds to an account (micro-USDC); negative when it takes."""

    account = fields.String(required=True)
    amountUsdc = SignedMicro(required=True)


class PostingSchema(Schema):
    """One movement of money. Its entries add up to zero."""

    postingId = Whole(lowest=1, required=True)
    reference = fields.String(required=True)
    kind = fields.String(required=True)
    roundId = Whole(lowest=1, required=True, allow_none=True)
    createdAt = Shown(required=True)
    entries = fields.List(fields.Nested(EntrySchema), required=True)


class PostingListSchema(Schema):
    """A page of postings, newest first; ``nextCursor`` is null on the last one."""

    postings = fields.List(fields.Nested(PostingSchema), required=True)
    count = Whole(required=True)
    nextCursor = fields.String(required=True, allow_none=True)


class AccountSchema(Schema):
    """An account and what is on it (micro-USDC). Below zero are only ``external``, the world
    outside, and operators that owe expired prizes."""

    account = fields.String(required=True)
    balanceUsdc = SignedMicro(required=True)


class AccountListSchema(Schema):
    """Every account; the balances add up to zero."""

    accounts = fields.List(fields.Nested(AccountSchema), required=True)
    count = Whole(required=True)


class AuditEntrySchema(Schema):
    """Who changed what, when and why."""

    entryId = Whole(lowest=1, required=True)
    at = Shown(required=True)
    actor = fields.String(required=True)
    action = fields.String(required=True)
    subject = fields.String(required=True)
    reason = fields.String(required=True, allow_none=True)
    details = fields.Dict(required=True)


class AuditLogSchema(Schema):
    """A page of the audit log, newest first; ``nextCursor`` is null on the last one."""

    entries = fields.List(fields.Nested(AuditEntrySchema), required=True)
    count = Whole(required=True)
    nextCursor = fields.String(required=True, allow_none=True)


def posting_view(row: Posting, entries: Sequence[Entry]) -> dict[str, Any]:
    """One movement of money."""
    return {
        "postingId": row.id,
        "reference": row.reference,
        "kind": row.kind,
        "roundId": row.round_id,
        "createdAt": format_timestamp(row.created_at),
        "entries": [{"account": entry.account_id, "amountUsdc": str(entry.amount)} for entry in entries],
    }


def account_view(row: Account) -> dict[str, Any]:
    """An account and what is on it."""
    return {"account": row.id, "balanceUsdc": str(row.balance)}


def audit_view(row: AuditEntry) -> dict[str, Any]:
    """One entry of the audit log."""
    return {
        "entryId": row.id,
        "at": format_timestamp(row.at),
        "actor": row.actor,
        "action": row.action,
        "subject": row.subject,
        "reason": row.reason,
        "details": row.details,
    }
