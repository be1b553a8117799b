"""That a ticket was in: the way from its leaf to the root that the coordinator sealed (docs/protocol.md, section 5).

The one rule kept here: a proof is shown as it was kept when the round was sealed, in the form in which the coordinator
shows its own, so that the same check reads both.
"""

import json
from typing import Any

from sqlalchemy.orm import Session

from player.models.chores import View
from player.models.rounds import Round
from player.models.tickets import Ticket
from protocol.errors import Conflict
from protocol.merkle import leaf_hash
from protocol.tickets import ticket_line

HASH_BYTES = 32


def inclusion_proof(session: Session, ticket: Ticket) -> dict[str, Any]:
    """The fields of the coordinator's inclusion proof for one ticket; ``fullManifestHash`` is None until we know it.

    ``Ticket.proof`` is the sibling hashes one after the other, 32 bytes each, from the leaf upwards.

    :raises Conflict: code ``not_sealed``.
    """
    round_ = session.get_one(Round, ticket.round_id)
    if ticket.proof is None or ticket.leaf_index is None or round_.manifest is None:
        raise Conflict(f"the tickets of round {round_.id} are not sealed", code="not_sealed")
    operator_id = str(json.loads(round_.manifest)["operatorId"])
    line = ticket_line(
        round_.id,
        operator_id,
        ticket.ticket_id,
        ticket.jackpot_number,
        ticket.bonus1,
        ticket.bonus2,
        ticket.bonus3,
        ticket.bonus4,
        ticket.bonus5,
        ticket.is_quick_pick,
    )
    nodes = range(0, len(ticket.proof), HASH_BYTES)
    return {
        "roundId": round_.id,
        "operatorId": operator_id,
        "ticketId": ticket.ticket_id,
        "line": line.decode("ascii"),
        "leafHash": leaf_hash(line).hex(),
        "leafIndex": ticket.leaf_index,
        "treeSize": round_.ticket_count,
        "proof": [ticket.proof[start : start + HASH_BYTES].hex() for start in nodes],
        "ticketsRoot": round_.tickets_root,
        "fullManifestHash": _full_manifest_hash(session, round_.id),
    }


def _full_manifest_hash(session: Session, round_id: int) -> str | None:
    seen = session.get(View, f"round:{round_id}")
    found = None if seen is None else seen.body.get("fullManifestHash")
    return found if isinstance(found, str) else None
