"""The published page, docs/protocol.md: every value it gives for a whole round is the one computed here."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from protocol import chain, merkle, seed
from protocol.manifest import manifest_hash
from protocol.numbers import draw_numbers
from protocol.rules import Rules
from protocol.settlement import (
    Stake,
    Winner,
    settle,
    settlement_hash,
    settlement_proof,
    winner_leaf,
    winners_root,
)
from protocol.tickets import Ticket, tickets_root

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
WHOLE_ROUND = PAGE.partition("\n## 11. ")[2]
TICKETS = [
    Ticket("t-1", (1234567, 1, 2, 3, 4, 5), True),
    Ticket("t-2", (7654321, 10, 20, 30, 40, 50), False),
    Ticket("t-3", (1, 1, 1, 1, 1, 1), False),
]


def _published(name: str) -> str:
    row = re.search(rf"^\| `?{re.escape(name)}`? \| `?([^`|]+?)`? \|$", WHOLE_ROUND, re.MULTILINE)
    assert row, f"the page gives no value for {name}"
    return row[1]


def test_the_whole_round_of_the_page_comes_out_value_by_value() -> None:
    rules, secret, nonce = Rules(), bytes(range(32)), sha256(b"opA nonce").digest()
    lines = [ticket.line(7, "opA") for ticket in TICKETS]
    for line in lines:
        assert f"    {line.decode()}\n    {merkle.leaf_hash(line).hex()}\n" in WHOLE_ROUND
    root = tickets_root(lines)
    assert root == _published("ticketsRoot")
    commit = seed.nonce_commit(7, "opA", nonce)
    assert commit == _published("nonceCommit")
    seed_commit = seed.seed_commit(7, secret)
    assert seed_commit == _published("seedCommit")
    text = _published("manifestJson")
    assert f'"nonceCommit":"{commit}"' in text
    assert manifest_hash(text) == _published("manifestHash")
    assert rules.hash == _published("rulesHash")

    entry = chain.ManifestEntry("opA", manifest_hash(text), 3, root)
    full = chain.full_manifest_hash(7, [entry])
    assert full == _published("fullManifestHash")
    sealed_at = _published("sealedAt")
    anchor = chain.anchor_hash(7, chain.GENESIS, full, seed_commit, {"opA": commit}, None, rules.hash, sealed_at)
    assert anchor == _published("chainedAnchorHash")
    exclusions = [chain.Exclusion("opB", "missed_escrow")]
    effective = chain.effective_manifest_hash(7, anchor, [entry], exclusions)
    assert effective == _published("effectiveManifestHash")

    draw_seed = seed.draw_seed(7, "commit-reveal", anchor, effective, secret, {"opA": nonce}, None)
    assert draw_seed == _published("drawSeed")
    numbers = draw_numbers(draw_seed, rules.number_ranges)
    assert ", ".join(map(str, numbers)) == _published("numbers")

    terms = settle(rules, [Stake("opA", 3)], {}, 0, 0).terms
    stated = dict(re.findall(r"(\w+) ([1-9]\d*)", _published("ledger")))
    assert {name: value for name, value in terms.as_hashed().items() if value != "0"} == stated
    nobody = winners_root(7, [])
    assert nobody == _published("winnersRoot")
    settled = settlement_hash(settlement_proof(7, anchor, effective, draw_seed, numbers, [0] * 6, nobody, terms))
    assert settled == _published("settlementHash")
    assert chain.round_hash(7, "SETTLED", anchor, settled, None) == _published("roundHash")


def test_the_leaf_of_a_win_on_the_page() -> None:
    leaf = merkle.leaf_hash(winner_leaf(7, 2, "opA", "t-1", 1_000_000_000)).hex()
    assert leaf == _published("leaf of a win of `t-1` in tier 2, prize 1000000000")
    assert winners_root(7, [Winner(2, "opA", "t-1", 1_000_000_000)]) == leaf
