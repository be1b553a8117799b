"""``bound``: what was sealed is compared with what we sold, the nonce is revealed, inclusion proofs are kept.

The one rule kept here: the nonce is the first thing to go out, because the draw does not wait; and it goes out only for
the tickets that are ours.
"""

import logging
from datetime import datetime

from player.coordinator import Conflict
from player.models.looks import hold
from player.models.rounds import Stage
from player.models.sealed import keep_proofs, plant
from player.models.session import transaction
from player.tasks.looking import Disagreement, Look
from protocol.manifest import manifest_hash

log = logging.getLogger(__name__)


def reveal(look: Look) -> datetime | None:
    """``bound`` → ``revealed``."""
    if look.lost():
        return None
    own, row = look.own, look.row
    if own.state in ("OPEN", "SEALING"):
        return look.soon
    if own.tickets_root != row.tickets_root or own.manifest_hash != manifest_hash(str(row.manifest)):
        raise Disagreement("the coordinator sealed other tickets than we sold")
    if not own.nonce_revealed:
        try:
            look.coordinator.reveal_nonce(row.id, row.nonce)
        except Conflict as problem:
            # It is part of the seed or it is not; the draw is as fair to everybody else, and our tickets are in it.
            log.warning("the nonce came too late", extra={"round": row.id, "error": str(problem)})
    _keep_proofs(look)
    with transaction() as session:
        hold(session, row.id, Stage.BOUND).stage = Stage.REVEALED
    return look.now


def _keep_proofs(look: Look) -> None:
    with transaction() as session:
        tree = plant(session, look.row.id, look.coordinator.operator_id)
    if tree.root.hex() != look.row.tickets_root:
        raise Disagreement("the tickets on record here are not those that the manifest is of")
    start: int | None = 0
    while start is not None:
        with transaction() as session:
            start = keep_proofs(session, look.row.id, tree, start)
