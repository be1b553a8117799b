"""``closed``: the last tickets, their count, and the manifest that binds us to them.

The one rule kept here: a manifest is on record here before it is sent, so a worker that died is followed by one that
sends the same bytes.
"""

from datetime import datetime

from player.coordinator import make_manifest, nonce_commit
from player.models.looks import hold
from player.models.rounds import Round, Stage
from player.models.sealed import plant
from player.models.session import transaction
from player.models.submissions import doubt_all, sold
from player.tasks.looking import Disagreement, Look
from player.tasks.sending import send_all
from protocol.manifest import manifest_hash, read_manifest


def bind(look: Look) -> datetime | None:
    """``closed`` → ``bound``; a round without any ticket gets the manifest of no tickets, which takes part as well."""
    if look.lost():
        return None
    on_record = look.own.manifest_hash
    if on_record is None:
        if look.own.state != "OPEN" or look.own.seal_at <= look.now:
            # Too late. That we are left out is said when the round is sealed, and then players get their money back.
            return look.soon
        send_all(look)
        _compare_counts(look)
        row = _write_manifest(look)
        claims = read_manifest(str(row.manifest))
        look.coordinator.submit_manifest(
            row.id, claims["ticketsRoot"], claims["ticketCount"], claims.get("nonceCommit")
        )
    elif look.row.manifest is None or on_record != manifest_hash(look.row.manifest):
        raise Disagreement("the coordinator has a manifest of ours that is not the one on record here")
    with transaction() as session:
        hold(session, look.row.id, Stage.CLOSED).stage = Stage.BOUND
    return look.now


def _compare_counts(look: Look) -> None:
    with transaction() as session:
        ours = sold(session, look.row.id)
    theirs = look.ask_again().ticket_count
    if theirs < ours:
        with transaction() as session:
            doubt_all(session, look.row.id)
        send_all(look)
        theirs = look.ask_again().ticket_count
    if theirs != ours:
        raise Disagreement(f"{ours} tickets were sold here, and {theirs} are on record at the coordinator")


def _write_manifest(look: Look) -> Round:
    operator_id = look.coordinator.operator_id
    with transaction() as session:
        row = hold(session, look.row.id, Stage.CLOSED)
        if row.manifest is None:
            tree = plant(session, row.id, operator_id)
            root, commit = tree.root.hex(), nonce_commit(row.id, operator_id, row.nonce)
            row.manifest = make_manifest(row.id, operator_id, root, len(tree), commit).json
            row.tickets_root, row.ticket_count = root, len(tree)
    return row
