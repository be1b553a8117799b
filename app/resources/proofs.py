"""The proof bundle: every input of a round's hashes, numbers and sums (docs/protocol.md, "Proof bundle").

The one rule kept here: a secret is in the bundle from DRAWN on, and not a moment before.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from models.draws import Draw
from models.encryption import decrypt
from models.expiries import ReserveCredit
from models.participation import MANIFEST_MISMATCH, Manifest, Participation
from models.rounds import Round
from protocol.bundle import VERSION
from protocol.chain import round_hash
from protocol.errors import NotFound
from protocol.identifiers import is_identifier
from protocol.lifecycle import DRAWN_STATES, FINISHED
from protocol.seed import HONEST_LIMITS
from protocol.timestamps import format_timestamp


def proof(
    row: Round,
    draw: Draw | None,
    everybody: Sequence[tuple[Participation, Manifest | None]],
    credited: Sequence[ReserveCredit],
) -> dict[str, Any]:
    """The bundle of a round as far as it is public by now."""
    drawn = draw if row.state in DRAWN_STATES else None
    beacon = row.anchored_beacon
    return {
        "v": VERSION,
        "roundId": row.id,
        "state": row.state.value,
        "mode": row.mode,
        "honestLimits": list(HONEST_LIMITS[row.mode]),
        "rules": row.rules,
        "rulesHash": row.rules_hash,
        "previousRoundHash": row.previous_round_hash,
        "seedCommit": row.seed_commit,
        "manifests": [_manifest(manifest) for part, manifest in everybody if _sealed(row, part, manifest)],
        "exclusions": [
            {"operatorId": part.operator_id, "reason": part.excluded_reason}
            for part, _ in everybody
            if part.excluded_reason
        ],
        "sealedAt": format_timestamp(row.sealed_at) if row.sealed_at else None,
        "beacon": beacon.as_anchored() if beacon else None,
        "seed": _seed(row, drawn, everybody),
        "fullManifestHash": row.full_manifest_hash,
        "chainedAnchorHash": row.chained_anchor_hash,
        "effectiveManifestHash": row.effective_manifest_hash,
        "drawSeed": drawn.draw_seed if drawn else None,
        "numbers": drawn.numbers.as_hashed() if drawn else None,
        "winnerCounts": drawn.winner_counts if drawn else None,
        "winnersRoot": drawn.winners_root if drawn else None,
        "reserveCredits": _credits(credited) if drawn else None,
        "ledger": drawn.terms if drawn else None,
        "settlementHash": row.settlement_hash,
        "failureReason": row.failure_reason,
        "roundHash": _round_hash(row),
    }


def _sealed(row: Round, part: Participation, manifest: Manifest | None) -> bool:
    return row.sealed_at is not None and manifest is not None and part.excluded_reason != MANIFEST_MISMATCH


def sealed_manifest(session: Session, row: Round, operator_id: str) -> Manifest:
    """What an operator sealed in a round, or is about to.

    :raises NotFound: nothing, or its manifest did not fit its tickets.
    """
    manifest = session.get(Manifest, (row.id, operator_id)) if is_identifier(operator_id) else None
    if manifest is None or manifest.agreed is False:
        raise NotFound("this operator sealed no tickets in this round")
    return manifest


def _manifest(manifest: Manifest | None) -> dict[str, Any]:
    assert manifest is not None  # ``_sealed`` looked
    return {
        "operatorId": manifest.operator_id,
        "manifestJson": manifest.manifest_json,
        "manifestHash": manifest.manifest_hash,
        "ticketCount": manifest.ticket_count,
        "ticketsRoot": manifest.counted_root,
        "nonceCommit": manifest.nonce_commit,
    }


def _credits(credited: Sequence[ReserveCredit]) -> list[dict[str, Any]]:
    return [{"roundId": credit.round_id, "amount": str(credit.amount)} for credit in credited]


def _seed(row: Round, drawn: Draw | None, everybody: Sequence[tuple[Participation, Manifest | None]]) -> dict[str, Any]:
    if drawn is None:
        return {"secret": None, "nonces": [], "beacon": None}
    assert row.secret_encrypted is not None  # every commit-reveal round has one
    return {
        "secret": decrypt(row.secret_encrypted).hex(),
        "nonces": [
            {"operatorId": part.operator_id, "nonce": part.nonce.hex()}
            for part, _ in everybody
            if part.nonce is not None and part.excluded_at is None
        ],
        "beacon": None,
    }


def _round_hash(row: Round) -> str | None:
    if row.state not in FINISHED:
        return None
    return round_hash(row.id, row.state.value, row.chained_anchor_hash, row.settlement_hash, row.failure_reason)
