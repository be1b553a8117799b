"""That a ticket was in: the way from its leaf to the root that the coordinator sealed (docs/protocol.md, section 5).

The one rule kept here: a proof is shown as it was kept when the round was sealed, in the form in which the coordinator
shows its own, so that the same check reads both.
"""

import json
from typing import Any

from sqlalchemy.orm import Session

from player.models.rounds import Round
from player.models.tickets import Ticket
from protocol.errors import Conflict
from protocol.merkle import leaf_hash, write_path
from protocol.tickets import ticket_line


def inclusion_proof(session: Session, ticket: Ticket) -> dict[str, Any]:
    """The fields of the coordinator's inclusion proof for one ticket, without ``fullManifestHash``: what others
    sealed is not ours to say.

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
    return {
        "roundId": round_.id,
        "operatorId": operator_id,
        "ticketId": ticket.ticket_id,
        "line": line.decode("ascii"),
        "leafHash": leaf_hash(line).hex(),
        "leafIndex": ticket.leaf_index,
        "treeSize": round_.ticket_count,
        # Kept as it is published: the sibling hashes one after the other, from the leaf upwards.
        "auditPath": write_path([ticket.proof]),
        "ticketsRoot": round_.tickets_root,
    }
