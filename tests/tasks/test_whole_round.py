"""A round from OPEN to CLOSED: states, log, webhooks, hashes and money, each held against an independent account."""

from __future__ import annotations

import json
from typing import Any

import pytest

from models.encryption import decrypt
from protocol.chain import GENESIS, ManifestEntry, anchor_hash, effective_manifest_hash, full_manifest_hash, round_hash
from protocol.lifecycle import State
from protocol.numbers import Numbers, draw_numbers, tiers_won
from protocol.rules import Rules
from protocol.seed import COMMIT_REVEAL, draw_seed, nonce_commit, seed_commit
from protocol.settlement import Stake, settle
from protocol.tickets import ticket_line, tickets_root
from protocol.timestamps import format_timestamp
from tests.factories import (
    GENEROUS,
    PRICE,
    a_played_round,
    a_round,
    balances,
    manifest,
    rows,
    some_operators,
    some_tickets,
    submit,
    take_part,
    take_to,
    the_round,
    work,
)

pytestmark = pytest.mark.usefixtures("house")


def told(round_id: int) -> list[tuple[str, str, dict[str, Any]]]:
    """Every webhook of the round as (event, operator, data), in the order written."""
    found = rows(
        "SELECT event, operator_id, body FROM deliveries WHERE round_id = :r ORDER BY created_at, id", r=round_id
    )
    return [(event, operator_id, json.loads(bytes(body))["data"]) for event, operator_id, body in found]


def test_it_goes_through_every_state_and_tells_everybody() -> None:
    operators = some_operators(3)
    round_id = a_round(operators)
    take_part(round_id, operators)
    for state in (State.SEALING, State.ESCROWED, State.DRAWN, State.SETTLED, State.CLOSED):
        take_to(round_id, state)
    log = [kind for (kind,) in rows("SELECT type FROM round_events ORDER BY id")]
    assert log == ["ROUND_OPENED", *["MANIFEST_SUBMITTED"] * 3, "ROUND_SEALED", "ROUND_DRAWN", "ROUND_SETTLED"]
    events = told(round_id)
    in_order = list(dict.fromkeys(event for event, _, _ in events))
    assert in_order == [
        "round.opened",
        "round.sealing",
        "round.sealing_deadline",
        "round.sealed",
        "round.anchored",
        "round.escrowed",
        "round.drawn",
        "round.settled",
        "round.closed",
    ]
    for event in in_order:
        assert sorted(operator for name, operator, _ in events if name == event) == operators


def test_its_webhooks_carry_the_published_fields() -> None:
    operators = some_operators(2)
    round_id = a_played_round(operators, State.CLOSED, 10)
    data = {event: carried for event, _, carried in told(round_id)}
    row = the_round(round_id)
    numbers = {"jackpotNumber", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5"}
    assert data["round.opened"] == {
        "roundId": 1,
        "ticketPriceUsdc": PRICE,
        "operatorCount": 2,
        "scheduledDrawTime": data["round.opened"]["scheduledDrawTime"],
    }
    assert data["round.sealing"].keys() == {"roundId", "sealingDeadline", "manifestsSubmitted"}
    assert data["round.sealing_deadline"] == {"roundId": 1, "operatorsSealed": 2, "operatorsMissed": 0}
    assert data["round.sealed"] == {"roundId": 1, "sealedCount": 2}
    assert data["round.anchored"] == {"roundId": 1, "anchorHash": row.chained_anchor_hash}
    assert data["round.escrowed"] == {"roundId": 1, "totalEscrowed": 20 * PRICE, "operatorsDeposited": 2}
    assert data["round.drawn"].keys() == {
        "roundId",
        "drawSeed",
        "winnerIndex",
        "winningOperatorId",
        "totalTickets",
        *numbers,
    }
    assert data["round.settled"].keys() == {
        "roundId",
        "settlementHash",
        "winningOperatorId",
        "totalPotUsdc",
        "serviceFeeUsdc",
        "operatorPoolUsdc",
        "winnerBonusUsdc",
        "winnerPayoutUsdc",
    }
    assert data["round.closed"] == {"roundId": 1, "totalTickets": 20, "totalOperators": 2}


@pytest.mark.usefixtures("generous")
def test_its_hashes_numbers_winners_and_money_are_what_the_protocol_says() -> None:
    operators = some_operators(3)
    round_id = a_round(operators)
    nonce = bytes(range(32))
    sold = {name: some_tickets(40, seed, GENEROUS.number_ranges) for seed, name in enumerate(operators)}
    for operator_id, batch in sold.items():
        submit(round_id, operator_id, batch)
    manifest(round_id, "op_a", nonceCommit=nonce_commit(round_id, "op_a", nonce))
    manifest(round_id, "op_b", ticketsRoot=_root(round_id, "op_b", sold["op_b"]))
    manifest(round_id, "op_c")
    take_to(round_id, State.ESCROWED)
    _reveal(round_id, "op_a", nonce)
    take_to(round_id, State.CLOSED)

    row = the_round(round_id)
    found = rows("SELECT operator_id, manifest_hash, nonce_commit FROM manifests ORDER BY operator_id")
    entries = [
        ManifestEntry(operator_id, digest, 40, _root(round_id, operator_id, sold[operator_id]))
        for operator_id, digest, _ in found
    ]
    assert row.secret_encrypted is not None
    assert row.sealed_at is not None
    secret = decrypt(row.secret_encrypted)
    assert row.seed_commit == seed_commit(round_id, secret)
    assert row.full_manifest_hash == full_manifest_hash(round_id, entries)
    anchor = anchor_hash(
        round_id,
        GENESIS,
        row.full_manifest_hash,
        row.seed_commit,
        {"op_a": nonce_commit(round_id, "op_a", nonce)},
        None,
        GENEROUS.hash,
        format_timestamp(row.sealed_at),
    )
    assert row.chained_anchor_hash == anchor
    assert row.effective_manifest_hash == effective_manifest_hash(round_id, anchor, entries, [])
    seed = draw_seed(round_id, COMMIT_REVEAL, anchor, row.effective_manifest_hash, secret, {"op_a": nonce}, None)
    numbers = draw_numbers(seed, GENEROUS.number_ranges)
    drawn = rows("SELECT draw_seed, jackpot_number, bonus1, bonus2, bonus3, bonus4, bonus5 FROM draws")[0]
    assert drawn == (seed, *numbers)

    wins = _wins(sold, numbers)
    assert {
        (tier, name, ticket) for tier, name, ticket in rows("SELECT tier, operator_id, ticket_id FROM winners")
    } == wins
    counts = {name: [sum(one[:2] == (tier, name) for one in wins) for tier in range(6)] for name in operators}
    outcome = settle(GENEROUS, [Stake(name, 40) for name in operators], counts, 0, 0)
    after = balances()
    assert after["pool"] if outcome.terms.pool1 else "pool" not in after or after["pool"] == 0
    assert after.get("pool", 0) == outcome.terms.pool1
    assert after.get("reserve", 0) == outcome.terms.reserve1
    assert after.get("fee", 0) == outcome.terms.feeKept
    assert after[f"escrow:{round_id}"] == 0
    for name in operators:
        assert after[f"operator:{name}"] == 10**12 - 40 * PRICE + outcome.releases[name].total
    assert sum(after.values()) == 0


def _root(round_id: int, operator_id: str, batch: list[Any]) -> str:
    return tickets_root(ticket_line(round_id, operator_id, *ticket) for ticket in sorted(batch))


def _wins(sold: dict[str, list[Any]], numbers: Numbers) -> set[tuple[int, str, str]]:
    return {
        (tier, name, ticket[0])
        for name, batch in sold.items()
        for ticket in batch
        for tier in tiers_won(ticket[1:7], numbers)
    }


def _reveal(round_id: int, operator_id: str, nonce: bytes) -> None:
    from models.participation import Participation
    from models.session import transaction

    with transaction() as session:
        session.get_one(Participation, (round_id, operator_id)).nonce = nonce


@pytest.mark.usefixtures("generous")
def test_a_won_jackpot_names_the_first_winning_ticket_and_pays_each_seller() -> None:
    operators = some_operators(3)
    round_id = a_round(operators)
    sold = {name: some_tickets(40, seed, GENEROUS.number_ranges) for seed, name in enumerate(operators)}
    for operator_id, batch in sold.items():
        submit(round_id, operator_id, batch)
        manifest(round_id, operator_id)
    take_to(round_id, State.SETTLED)
    jackpot = rows("SELECT jackpot_number, winner_index, winning_operator_id, terms FROM draws")[0]
    effective = [(name, ticket) for name in operators for ticket in sorted(sold[name])]
    winning = [place for place, (_, ticket) in enumerate(effective) if ticket[1] == jackpot[0]]
    assert jackpot[1:3] == (winning[0], effective[winning[0]][0])
    sellers = {effective[place][0] for place in winning}
    won = {name: data for event, name, data in told(round_id) if event == "operator.won"}
    assert won.keys() == sellers
    for name in sellers:
        mine = [place for place in winning if effective[place][0] == name]
        assert won[name]["winnerIndex"] == mine[0]
        assert won[name]["payoutUsdc"] == int(jackpot[3]["P"]) // len(winning) * len(mine)
    assert rows("SELECT draws_since_last_win, last_win_round_id, cumulative_tickets FROM jackpot") == [(0, 1, 120)]
    assert {name for name, won in rows("SELECT id, rounds_won FROM operators") if won} == sellers


def test_a_round_seals_only_on_top_of_a_finished_one_and_chains_to_it() -> None:
    operators = some_operators(2)
    first, second = a_round(operators), a_round(operators)
    for round_id in (first, second):
        take_part(round_id, operators)
    take_to(first, State.ESCROWED)
    from tests.factories import move_clock_to

    move_clock_to(second, "sealing_deadline")
    work(second)
    assert the_round(second).state is State.SEALING
    take_to(first, State.SETTLED)
    work(second)
    before = the_round(first)
    assert the_round(second).previous_round_hash == round_hash(
        first, "SETTLED", before.chained_anchor_hash, before.settlement_hash, None
    )
    take_to(first, State.CLOSED)
    take_to(second, State.CLOSED)
    pool0, pool1 = rows("SELECT terms->>'pool0', terms->>'pool1' FROM draws ORDER BY round_id")[0:2]
    assert pool1[0] == pool0[1]


def test_prizes_beyond_all_money_are_cut_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rich = Rules(PRICE, 1_000_000_000, 500, 1_000, 400, 1_000, (10**9,) * 5, (1, 1, 1, 1, 1))
    monkeypatch.setattr("tasks.opening.current_rules", lambda cumulative: rich)
    operators = some_operators(1)
    round_id = a_round(operators)
    submit(round_id, "op_a", [("t-1", 5, 1, 1, 1, 1, 1, True)])
    manifest(round_id, "op_a")
    take_to(round_id, State.CLOSED)
    terms = rows("SELECT terms FROM draws")[0][0]
    assert int(terms["L"]) == 5 * 10**9 > int(terms["A"])
    prize = 10**9 * int(terms["A"]) // int(terms["L"])
    assert {amount for (amount,) in rows("SELECT prize_usdc FROM winners")} == {prize}
    assert sum(balances().values()) == 0
