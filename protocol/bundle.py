"""The proof bundle: everything public about one round, as one JSON object, read without trust.

The rule: a bundle has exactly the fields listed here, each of its type; what is not known yet is null. So
nothing stands in a bundle that the checks in `protocol.proof` do not look at.

Implements docs/protocol.md, section 10 (proof bundle).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from protocol.canonical import DOMAIN, is_hash
from protocol.chain import Exclusion, ManifestEntry
from protocol.errors import Invalid
from protocol.identifiers import is_identifier
from protocol.numbers import LABELS, Numbers
from protocol.rules import Rules, parse_amount
from protocol.seed import MODES, Beacon, BeaconRound
from protocol.timestamps import parse_timestamp

VERSION = f"{DOMAIN}/proof"
STATES = ("OPEN", "SEALING", "SEALED", "ESCROWED", "DRAWN", "SETTLED", "CLOSED", "FAILED")

_SAFE = 2**53 - 1
_T = TypeVar("_T")


@dataclass(frozen=True)
class SealedManifest:
    """One operator's manifest as published: the exact text, its hash, and what was recounted."""

    operator_id: str
    manifest_json: str
    manifest_hash: str
    ticket_count: int
    tickets_root: str | None
    nonce_commit: str | None

    @property
    def entry(self) -> ManifestEntry:
        """The entry of the manifest sets. Raises Invalid before the tickets have a root."""
        if self.tickets_root is None:
            raise Invalid(f"the tickets of {self.operator_id} have no root yet")
        return ManifestEntry(self.operator_id, self.manifest_hash, self.ticket_count, self.tickets_root)


@dataclass(frozen=True)
class ReserveCredit:
    """What an earlier round's expired prizes brought into the reserve, in micro-USDC."""

    round_id: int
    amount: int


@dataclass(frozen=True)
class Bundle:
    """A proof bundle, its types checked and nothing else. Field by field in docs/protocol.md, section 10."""

    round_id: int
    state: str
    mode: str
    honest_limits: tuple[str, ...]
    rules: Rules
    rules_hash: str
    previous_round_hash: str | None
    seed_commit: str
    manifests: tuple[SealedManifest, ...]
    exclusions: tuple[Exclusion, ...]
    sealed_at: str | None
    beacon: BeaconRound | None
    secret: bytes | None
    nonces: dict[str, bytes]
    beacon_value: Beacon | None
    full_manifest_hash: str | None
    chained_anchor_hash: str | None
    effective_manifest_hash: str | None
    draw_seed: str | None
    numbers: Numbers | None
    winner_counts: tuple[int, ...] | None
    winners_root: str | None
    reserve_credits: tuple[ReserveCredit, ...] | None
    ledger: dict[str, str] | None
    settlement_hash: str | None
    failure_reason: str | None
    round_hash: str | None

    @property
    def effective(self) -> tuple[SealedManifest, ...]:
        """The manifests of the operators in the draw: all that sealed but the excluded, by operator id."""
        excluded = {exclusion.operator_id for exclusion in self.exclusions}
        return tuple(manifest for manifest in self.manifests if manifest.operator_id not in excluded)


def parse_bundle(value: Any) -> Bundle:
    """Reads a bundle from parsed JSON. Raises Invalid, naming the field, for anything not shaped as
    docs/protocol.md, section 10 says.
    """
    fields = _Fields(value, "bundle")
    if (version := fields.text("v")) != VERSION:
        raise Invalid(f"v: expected {VERSION}, found {version}")
    seed = _Fields(fields.take("seed"), "seed")
    bundle = Bundle(
        round_id=fields.whole("roundId", 1),
        state=fields.one_of("state", STATES),
        mode=fields.one_of("mode", MODES),
        honest_limits=tuple(fields.rows("honestLimits", _as_text)),
        rules=fields.read("rules", lambda raw, _: Rules.from_hashed(raw)),
        rules_hash=fields.read("rulesHash", _as_hash),
        previous_round_hash=fields.maybe("previousRoundHash", _as_hash),
        seed_commit=fields.read("seedCommit", _as_hash),
        manifests=tuple(fields.rows("manifests", _as_manifest)),
        exclusions=tuple(fields.rows("exclusions", _as_exclusion)),
        sealed_at=fields.maybe("sealedAt", _as_timestamp),
        beacon=fields.maybe("beacon", _as_beacon_round),
        secret=seed.maybe("secret", _as_32_bytes),
        nonces=dict(_in_order("nonces", seed.rows("nonces", _as_nonce), lambda nonce: nonce[0])),
        beacon_value=seed.maybe("beacon", _as_beacon),
        full_manifest_hash=fields.maybe("fullManifestHash", _as_hash),
        chained_anchor_hash=fields.maybe("chainedAnchorHash", _as_hash),
        effective_manifest_hash=fields.maybe("effectiveManifestHash", _as_hash),
        draw_seed=fields.maybe("drawSeed", _as_hash),
        numbers=fields.maybe("numbers", _as_numbers),
        winner_counts=fields.maybe("winnerCounts", _as_counts),
        winners_root=fields.maybe("winnersRoot", _as_hash),
        reserve_credits=fields.maybe("reserveCredits", _as_credits),
        ledger=fields.maybe("ledger", _as_ledger),
        settlement_hash=fields.maybe("settlementHash", _as_hash),
        failure_reason=fields.maybe("failureReason", _as_text),
        round_hash=fields.maybe("roundHash", _as_hash),
    )
    seed.no_more()
    fields.no_more()
    _in_order("manifests", bundle.manifests, lambda manifest: manifest.operator_id)
    _in_order("exclusions", bundle.exclusions, lambda exclusion: exclusion.operator_id)
    return bundle


class _Fields:
    """An object's fields, taken one by one; `no_more` finds what nobody took."""

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise Invalid(f"{path}: not an object")
        self._left = dict(value)
        self._path = path

    def take(self, key: str) -> Any:
        if key not in self._left:
            raise Invalid(f"{self._path}: the field {key} is missing")
        return self._left.pop(key)

    def read(self, key: str, convert: Callable[[Any, str], _T]) -> _T:
        path = key if self._path == "bundle" else f"{self._path}.{key}"
        raw = self.take(key)
        try:
            return convert(raw, path)
        except Invalid as problem:
            if problem.message.startswith((f"{path}:", f"{path}.", f"{path}[")):
                raise
            raise Invalid(f"{path}: {problem.message}") from None

    def maybe(self, key: str, convert: Callable[[Any, str], _T]) -> _T | None:
        return self.read(key, lambda raw, path: None if raw is None else convert(raw, path))

    def rows(self, key: str, convert: Callable[[Any, str], _T]) -> list[_T]:
        def convert_all(raw: Any, path: str) -> list[_T]:
            if not isinstance(raw, list):
                raise Invalid("not a list")
            return [convert(item, f"{path}[{position}]") for position, item in enumerate(raw)]

        return self.read(key, convert_all)

    def text(self, key: str) -> str:
        return self.read(key, _as_text)

    def whole(self, key: str, lowest: int) -> int:
        return self.read(key, lambda raw, path: _as_whole(raw, path, lowest))

    def one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        def check(raw: Any, _: str) -> str:
            if raw not in allowed:
                raise Invalid(f"expected one of {', '.join(allowed)}, found {raw!r}")
            return str(raw)

        return self.read(key, check)

    def identifier(self, key: str) -> str:
        def check(raw: Any, _: str) -> str:
            if not is_identifier(raw):
                raise Invalid(f"not an identifier: {raw!r}")
            return str(raw)

        return self.read(key, check)

    def no_more(self) -> None:
        if self._left:
            raise Invalid(f"{self._path}: unknown field {min(self._left)!r}")


def _in_order(name: str, rows: tuple[_T, ...] | list[_T], key: Callable[[_T], str]) -> tuple[_T, ...] | list[_T]:
    for before, after in pairwise(rows):
        if key(before) >= key(after):
            raise Invalid(f"{name}: {key(after)!r} is out of order or stands twice")
    return rows


def _as_text(raw: Any, path: str) -> str:
    if not isinstance(raw, str):
        raise Invalid(f"{path}: not a string")
    return raw


def _as_whole(raw: Any, path: str, lowest: int) -> int:
    if not isinstance(raw, int) or isinstance(raw, bool) or not lowest <= raw <= _SAFE:
        raise Invalid(f"{path}: not a whole number from {lowest} to 2^53 - 1: {raw!r}")
    return raw


def _as_hash(raw: Any, path: str) -> str:
    if not is_hash(raw):
        raise Invalid(f"{path}: not 64 lowercase hex digits: {raw!r}")
    return str(raw)


def _as_32_bytes(raw: Any, path: str) -> bytes:
    return bytes.fromhex(_as_hash(raw, path))


def _as_timestamp(raw: Any, _: str) -> str:
    parse_timestamp(raw)
    return str(raw)


def _as_manifest(raw: Any, path: str) -> SealedManifest:
    fields = _Fields(raw, path)
    manifest = SealedManifest(
        operator_id=fields.identifier("operatorId"),
        manifest_json=fields.text("manifestJson"),
        manifest_hash=fields.read("manifestHash", _as_hash),
        ticket_count=fields.whole("ticketCount", 0),
        tickets_root=fields.maybe("ticketsRoot", _as_hash),
        nonce_commit=fields.maybe("nonceCommit", _as_hash),
    )
    fields.no_more()
    return manifest


def _as_exclusion(raw: Any, path: str) -> Exclusion:
    fields = _Fields(raw, path)
    exclusion = Exclusion(fields.identifier("operatorId"), fields.text("reason"))
    fields.no_more()
    return exclusion


def _as_nonce(raw: Any, path: str) -> tuple[str, bytes]:
    fields = _Fields(raw, path)
    nonce = fields.identifier("operatorId"), fields.read("nonce", _as_32_bytes)
    fields.no_more()
    return nonce


def _as_beacon_round(raw: Any, path: str) -> BeaconRound:
    fields = _Fields(raw, path)
    beacon = BeaconRound(fields.text("chainHash"), fields.whole("round", 1))
    fields.no_more()
    return beacon


def _as_beacon(raw: Any, path: str) -> Beacon:
    fields = _Fields(raw, path)
    beacon = Beacon(fields.text("chainHash"), fields.whole("round", 1), fields.text("randomness"))
    fields.no_more()
    return beacon


def _as_numbers(raw: Any, path: str) -> Numbers:
    fields = _Fields(raw, path)
    numbers = Numbers(*(fields.whole(key, 1) for key in ("jackpotNumber", *LABELS[1:])))
    fields.no_more()
    return numbers


def _as_counts(raw: Any, path: str) -> tuple[int, ...]:
    if not isinstance(raw, list) or len(raw) != len(LABELS):
        raise Invalid(f"{path}: not a list of six counts")
    return tuple(_as_whole(count, f"{path}[{tier}]", 0) for tier, count in enumerate(raw))


def _as_credits(raw: Any, path: str) -> tuple[ReserveCredit, ...]:
    if not isinstance(raw, list):
        raise Invalid(f"{path}: not a list")
    found = tuple(_as_credit(item, f"{path}[{position}]") for position, item in enumerate(raw))
    for before, after in pairwise(found):
        if before.round_id >= after.round_id:
            raise Invalid(f"{path}: round {after.round_id} is out of order or stands twice")
    return found


def _as_credit(raw: Any, path: str) -> ReserveCredit:
    fields = _Fields(raw, path)
    credit = ReserveCredit(fields.whole("roundId", 1), fields.read("amount", lambda amount, _: parse_amount(amount)))
    fields.no_more()
    if credit.amount == 0:
        raise Invalid(f"{path}.amount: a credit of nothing")
    return credit


def _as_ledger(raw: Any, path: str) -> dict[str, str]:
    if not isinstance(raw, dict):
        raise Invalid(f"{path}: not an object")
    return {key: _as_text(term, f"{path}.{key}") for key, term in raw.items()}
