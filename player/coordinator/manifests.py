"""What an operator binds itself to: the root of its tickets, and the manifest that names it.

The one rule kept here: both follow from their arguments alone, so a program that has restarted makes the same ones, and
sends the same manifest again instead of a second one that would be refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from protocol.canonical import canonical_json
from protocol.manifest import manifest_hash
from protocol.tickets import Ticket
from protocol.tickets import tickets_root as root_of_lines


@dataclass(frozen=True)
class Manifest:
    """A manifest's exact text, and its SHA-256."""

    json: str
    hash: str


def tickets_root(round_id: int, operator_id: str, tickets: Iterable[Ticket]) -> str:
    """The Merkle root (64 hex digits) of an operator's tickets of a round, given in any order.

    :raises ValueError: a ticket id stands twice.
    """
    ordered = sorted(tickets, key=lambda ticket: ticket.ticket_id)
    for one, other in pairwise(ordered):
        if one.ticket_id == other.ticket_id:
            raise ValueError(f"ticket id {one.ticket_id!r} stands twice")
    return root_of_lines(ticket.line(round_id, operator_id) for ticket in ordered)


def make_manifest(
    round_id: int, operator_id: str, tickets_root: str, ticket_count: int, nonce_commit: str | None = None
) -> Manifest:
    """The manifest that claims all of this (docs/protocol.md, section 6)."""
    claims = {"roundId": round_id, "operatorId": operator_id, "ticketCount": ticket_count, "ticketsRoot": tickets_root}
    if nonce_commit is not None:
        claims["nonceCommit"] = nonce_commit
    text = canonical_json(claims).decode()
    return Manifest(text, manifest_hash(text))
