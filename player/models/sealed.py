"""What players can prove: where each of their tickets stands under the root that we are bound to.

The one rule kept here: a proof is of the tree whose root is in the manifest; a tree with another root is never used.
"""

from collections.abc import Sequence

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from player.models.submissions import tickets_of_round
from player.models.tickets import Ticket
from protocol.merkle import Tree, leaf_hash

_AT_ONCE = 5_000
_KEEP = text(
    "UPDATE tickets SET leaf_index = kept.leaf_index, proof = kept.proof FROM unnest("
    "CAST(:ids AS bigint[]), CAST(:places AS bigint[]), CAST(:proofs AS bytea[])) AS kept (id, leaf_index, proof) "
    "WHERE tickets.id = kept.id AND tickets.leaf_index IS NULL"
)


def plant(session: Session, round_id: int, operator_id: str) -> Tree:
    """The tree over all of the round's tickets."""
    return Tree(leaf_hash(ticket.line(round_id, operator_id)) for ticket in tickets_of_round(session, round_id))


def keep_proofs(session: Session, round_id: int, tree: Tree, start: int) -> int | None:
    """Write the place and the audit path of some tickets from leaf ``start`` on; where to go on, None at the end."""
    ids = _ids(session, round_id, start)
    places = range(start, start + len(ids))
    proofs = [b"".join(tree.inclusion_proof(place)) for place in places]
    if ids:
        session.execute(_KEEP, {"ids": list(ids), "places": list(places), "proofs": proofs})
    return start + len(ids) if len(ids) == _AT_ONCE else None


def _ids(session: Session, round_id: int, start: int) -> Sequence[int]:
    wanted = select(Ticket.id).where(Ticket.round_id == round_id).order_by(Ticket.ticket_id)
    return session.scalars(wanted.offset(start).limit(_AT_ONCE)).all()
