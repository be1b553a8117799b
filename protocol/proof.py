"""Recomputes a round from its proof bundle and its sealed tickets, and stops at the first thing that differs.

The rule: nothing is believed that can be computed. A stated value is only ever compared with ours; what
cannot be computed from what was handed in is reported as taken as stated.

Implements docs/protocol.md, section 10 (proof bundle).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from protocol import chain, seed
from protocol.bundle import Bundle, SealedManifest, parse_bundle
from protocol.checks import Check, NotVerified, needed, same
from protocol.credits import Claims, check_credits
from protocol.errors import Invalid
from protocol.history import Earlier, walked_back
from protocol.manifest import contradictions, manifest_hash, read_manifest
from protocol.numbers import draw_numbers
from protocol.outcome import Tickets, check_outcome
from protocol.rules import parse_amount
from protocol.stages import check_stage, is_settled

Previous = Callable[[int], Any]
"""Gives the bundle of an earlier round as parsed JSON, or None when the caller has none to offer."""


def check_bundle(
    value: Any, tickets: Tickets | None, previous: Previous | None, claims: Claims | None = None
) -> Iterator[Check]:
    """Checks a bundle (parsed JSON), yielding each check as it holds (docs/protocol.md, section 10).

    `tickets` is asked once for every operator in the draw, from DRAWN on; without it the winner counts are
    taken as stated. `previous` is asked for the rounds before, back to the last one settled, and for those
    whose expired prizes came into the reserve; `claims` for what is public about the claims of the latter.
    Raises NotVerified at the first difference; what the callables raise, other than Invalid and NotFound,
    passes through.
    """
    try:
        bundle = parse_bundle(value)
        yield Check("bundle has every field, each of its type")
        yield from _check_stated_fields(bundle)
        yield from _check_sealing(bundle)
        yield from _check_draw(bundle)
        yield from check_outcome(bundle, tickets)
        yield from _check_round_hash(bundle)
        earlier = None if previous is None else _offered(previous)
        yield from _check_previous(bundle, earlier)
        yield from check_credits(bundle, earlier, claims)
    except NotVerified:
        raise
    except Invalid as problem:
        raise NotVerified("", problem.message) from None


def _check_stated_fields(bundle: Bundle) -> Iterator[Check]:
    """What follows from the state and the mode alone: which fields are there, and what they say in every
    bundle.
    """
    check_stage(bundle)
    same("honestLimits", list(seed.HONEST_LIMITS[bundle.mode]), list(bundle.honest_limits))
    same("rulesHash", bundle.rules.hash, bundle.rules_hash)
    yield Check("rulesHash")


def _check_sealing(bundle: Bundle) -> Iterator[Check]:
    reasons = {exclusion.operator_id: exclusion.reason for exclusion in bundle.exclusions}
    for manifest in bundle.manifests:
        _check_manifest(bundle.round_id, manifest)
    sealed = {manifest.operator_id for manifest in bundle.manifests}
    for operator_id, reason in reasons.items():
        # Who sealed can only have missed its escrow, and nobody else can: a misfit manifest is left out at sealing.
        if (reason == "missed_escrow") != (operator_id in sealed):
            raise NotVerified(f"exclusion of {operator_id}", f"{reason} contradicts the manifests")
    if bundle.manifests:
        yield Check(f"manifests ({len(bundle.manifests)})")

    if bundle.full_manifest_hash is not None:
        for manifest in bundle.manifests:
            needed(f"ticketsRoot of {manifest.operator_id}", manifest.tickets_root)
        entries = [manifest.entry for manifest in bundle.manifests]
        same("fullManifestHash", chain.full_manifest_hash(bundle.round_id, entries), bundle.full_manifest_hash)
        yield Check("fullManifestHash")
    if bundle.chained_anchor_hash is not None:
        same("chainedAnchorHash", _anchor(bundle), bundle.chained_anchor_hash)
        yield Check("chainedAnchorHash")
    if bundle.effective_manifest_hash is not None:
        computed = chain.effective_manifest_hash(
            bundle.round_id,
            needed("chainedAnchorHash", bundle.chained_anchor_hash),
            [manifest.entry for manifest in bundle.effective],
            bundle.exclusions,
        )
        same("effectiveManifestHash", computed, bundle.effective_manifest_hash)
        yield Check("effectiveManifestHash")


def _check_manifest(round_id: int, manifest: SealedManifest) -> None:
    operator_id = manifest.operator_id
    same(f"manifestHash of {operator_id}", manifest_hash(manifest.manifest_json), manifest.manifest_hash)
    try:
        claims = read_manifest(manifest.manifest_json)
    except Invalid as problem:
        raise NotVerified(f"manifestJson of {operator_id}", problem.message) from None
    facts: dict[str, Any] = {
        "roundId": round_id,
        "operatorId": operator_id,
        "ticketCount": manifest.ticket_count,
    }
    if manifest.tickets_root is not None:
        facts["ticketsRoot"] = manifest.tickets_root
    for key in contradictions(claims, facts):
        same(f"{key} in manifestJson of {operator_id}", facts[key], claims[key])
    same(f"nonceCommit of {operator_id}", claims.get("nonceCommit"), manifest.nonce_commit)


def _anchor(bundle: Bundle) -> str:
    if (bundle.beacon is None) == (bundle.mode == seed.DRAND):
        raise NotVerified("beacon", f"does not fit mode {bundle.mode}")
    return chain.anchor_hash(
        bundle.round_id,
        needed("previousRoundHash", bundle.previous_round_hash),
        needed("fullManifestHash", bundle.full_manifest_hash),
        bundle.seed_commit,
        {row.operator_id: row.nonce_commit for row in bundle.manifests if row.nonce_commit is not None},
        bundle.beacon,
        bundle.rules_hash,
        needed("sealedAt", bundle.sealed_at),
    )


def _check_draw(bundle: Bundle) -> Iterator[Check]:
    if bundle.secret is not None:
        same("seedCommit", seed.seed_commit(bundle.round_id, bundle.secret), bundle.seed_commit)
        yield Check("seedCommit")
    commits = {manifest.operator_id: manifest.nonce_commit for manifest in bundle.effective}
    for operator_id, nonce in bundle.nonces.items():
        if operator_id not in commits:
            raise NotVerified(f"nonce of {operator_id}", "its operator is not in the draw")
        computed = seed.nonce_commit(bundle.round_id, operator_id, nonce)
        same(f"nonce of {operator_id}", computed, commits.get(operator_id))
    if bundle.nonces:
        yield Check(f"nonces ({len(bundle.nonces)})")
    if bundle.draw_seed is not None:
        # Nobody but the operator can tell whether it withheld its nonce or was not heard.
        for operator_id, commit in commits.items():
            if commit is not None and operator_id not in bundle.nonces and bundle.mode == seed.COMMIT_REVEAL:
                yield Check(f"nonce of {operator_id} not revealed", proved=False)
    if bundle.beacon_value is not None:
        named = None if bundle.beacon is None else bundle.beacon.as_anchored()
        same("seed.beacon", named, bundle.beacon_value.as_anchored())
        yield Check("randomness of the beacon", proved=False)
    if bundle.draw_seed is not None:
        same("drawSeed", _draw_seed(bundle), bundle.draw_seed)
        yield Check("drawSeed")
    if bundle.numbers is not None:
        drawn = draw_numbers(needed("drawSeed", bundle.draw_seed), bundle.rules.number_ranges)
        for name, computed_number in drawn.as_hashed().items():
            same(f"numbers.{name}", computed_number, bundle.numbers.as_hashed()[name])
        yield Check("numbers")


def _draw_seed(bundle: Bundle) -> str:
    anchor = needed("chainedAnchorHash", bundle.chained_anchor_hash)
    effective = needed("effectiveManifestHash", bundle.effective_manifest_hash)
    try:
        return seed.draw_seed(
            bundle.round_id, bundle.mode, anchor, effective, bundle.secret, bundle.nonces, bundle.beacon_value
        )
    except Invalid as problem:
        raise NotVerified("seed", problem.message) from None


def _check_round_hash(bundle: Bundle) -> Iterator[Check]:
    if bundle.round_hash is None:
        return
    computed = chain.round_hash(
        bundle.round_id,
        bundle.state,
        bundle.chained_anchor_hash,
        bundle.settlement_hash,
        bundle.failure_reason,
    )
    same("roundHash", computed, bundle.round_hash)
    yield Check("roundHash")


def _check_previous(bundle: Bundle, earlier: Earlier | None) -> Iterator[Check]:
    """Walks back to the last settled round, whose hash and balances this one must carry on."""
    if bundle.previous_round_hash is None:
        return
    for later, before in walked_back(bundle, earlier):
        if before is None:
            yield Check("previousRoundHash, pool0 and reserve0", proved=False)
            return
        if later.previous_round_hash is None:
            yield Check(f"round {before.round_id}, before round {later.round_id} that failed unsealed", proved=False)
        if bundle.ledger is None or is_settled(before):
            balances = {} if before.ledger is None else before.ledger
            break
    else:
        if bundle.round_id <= 1:
            same("previousRoundHash", chain.GENESIS, bundle.previous_round_hash)
        balances = {"pool1": "0", "reserve1": "0"}
    yield Check("previousRoundHash")
    if bundle.ledger is not None:
        same("ledger.pool0", balances.get("pool1"), bundle.ledger.get("pool0"))
        same("ledger.reserve0", _with_credits(bundle, balances.get("reserve1")), bundle.ledger.get("reserve0"))
        yield Check("pool0 and reserve0")


def _with_credits(bundle: Bundle, reserve1: str | None) -> str | None:
    """The reserve that the last settled round left, and what expired since then."""
    for credit in bundle.reserve_credits or ():
        if credit.round_id >= bundle.round_id:
            raise NotVerified("reserveCredits", f"round {credit.round_id} is not before round {bundle.round_id}")
    if reserve1 is None:
        return None
    return str(parse_amount(reserve1) + sum(credit.amount for credit in bundle.reserve_credits or ()))


def _offered(previous: Previous) -> Earlier:
    known: dict[int, Bundle] = {}

    def earlier(round_id: int) -> Bundle | None:
        if round_id not in known:
            raw = previous(round_id)
            if raw is None:
                return None
            # Checked already, and much the largest part of it.
            known[round_id] = replace(_check_earlier(round_id, raw), manifests=())
        return known[round_id]

    return earlier


def _check_earlier(round_id: int, raw: Any) -> Bundle:
    """An earlier round's bundle, checked in everything but its tickets, and finished."""
    try:
        for _ in check_bundle(raw, None, None):
            pass
        earlier = parse_bundle(raw)
        same("roundId", round_id, earlier.round_id)
        needed("roundHash", earlier.round_hash)
    except NotVerified as problem:
        raise NotVerified(f"round {round_id}", problem.message) from None
    return earlier
