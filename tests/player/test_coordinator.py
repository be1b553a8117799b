"""The client and the real coordinator: an operator's whole way, from the application to the payouts."""

from __future__ import annotations

import gzip
import json
import random

import pytest
import requests

from models.credentials import AdminRole, issue_admin_key
from models.session import transaction
from player.coordinator import (
    Application,
    Conflict,
    Coordinator,
    Forbidden,
    Invalid,
    NotFound,
    Ticket,
    Unauthorized,
    Win,
    nonce_commit,
    tickets_root,
)
from player.coordinator.batches import ticket_batches
from protocol.bundle import parse_bundle
from protocol.lifecycle import State
from tests.factories import GENEROUS, PRICE, a_round, an_operator, fund, manifest, submit, take_to, the_round

NONCE = bytes(range(32))
FORM = Application("Lotto Ltd", "Malta", "MGA/1", "office@lotto.example", "Ann", f"0x{'ab' * 20}")
ODDS = (GENEROUS.odds_range, *GENEROUS.ranges)


def some_tickets(count: int, prefix: str = "t") -> list[Ticket]:
    pick = random.Random(count).randint
    made = [
        Ticket(f"{prefix}-{n}", tuple(pick(1, top) for top in ODDS), n % 2 == 0)  # type: ignore[arg-type]
        for n in range(count)
    ]
    return made[::-1]  # not in the order in which they are hashed


def approved(url: str) -> Coordinator:
    """A client whose company has applied and was approved."""
    with transaction() as session:
        _, admin = issue_admin_key(session, "root", AdminRole.ROOT)
    with Coordinator(url) as public:
        applied = public.apply(FORM)
        assert applied.application_token not in repr(applied)
        with pytest.raises(Conflict) as again:
            public.apply(FORM)
        assert again.value.code == "application_pending"
        approve = f"{url}/api/admin/applications/{applied.application_id}/approve"
        answer = requests.post(approve, json={"reviewNote": "Hi"}, headers={"X-Service-Admin-Key": admin}, timeout=20)
        status = public.application_status(applied.application_id, applied.application_token)
        assert (status.status, status.review_note) == ("approved", "Hi")
        client = Coordinator(url, answer.json()["apiKey"])
        assert status.operator_id == client.operator_id
        return client


@pytest.mark.usefixtures("generous")
def test_an_operator_plays_a_round_from_its_application_to_its_payouts(coordinator_url: str) -> None:
    us = approved(coordinator_url)
    me, them = us.operator_id, an_operator("b")
    assert us.me().last_heartbeat is None
    assert us.heartbeat().timestamp == us.me().last_heartbeat
    us.set_webhook("http://127.0.0.1:9/hook")
    assert us.me().webhook_url == "http://127.0.0.1:9/hook"
    fund(me, 100 * PRICE)
    assert (us.balance().balance_usdc, us.balance().in_escrow_usdc) == (100 * PRICE, 0)

    round_id = a_round([me, them])
    submit(round_id, them, [(one.ticket_id, *one.numbers, one.is_quick_pick) for one in some_tickets(5)])
    manifest(round_id, them)
    [invited] = us.rounds()
    assert (invited.id, invited.state, invited.ticket_price_usdc) == (round_id, State.OPEN, PRICE)
    assert us.round(round_id).seal_at == the_round(round_id).seal_at.replace(
        microsecond=the_round(round_id).seal_at.microsecond // 1000 * 1000
    )
    tickets = some_tickets(60)
    heard: list[int] = []
    assert us.submit_tickets(round_id, tickets, heard.append).tickets == 60
    assert us.submit_tickets(round_id, iter(tickets)).batches == 1  # again: nothing changes
    assert (heard, us.round(round_id).ticket_count) == ([60], 60)
    root = tickets_root(round_id, me, tickets)
    commit = nonce_commit(round_id, me, NONCE)
    for _ in range(2):
        accepted = us.submit_manifest(round_id, root, 60, commit)
        assert (accepted.sealed_count, accepted.total_invited) == (2, 2)
    with pytest.raises(Conflict, match="manifest_submitted"):
        us.submit_tickets(round_id, some_tickets(1, "late"))
    with pytest.raises(Conflict, match="wrong_state"):
        us.reveal_nonce(round_id, NONCE)

    take_to(round_id, State.ESCROWED)
    us.reveal_nonce(round_id, NONCE)
    mine = us.round(round_id)
    assert (mine.tickets_root, mine.nonce_revealed, mine.excluded_reason) == (root, True, None)
    assert mine.escrow.deposited_usdc == mine.escrow.required_usdc == 60 * PRICE
    assert us.balance().in_escrow_usdc == 60 * PRICE
    proof = us.inclusion_proof(round_id, me, tickets[7].ticket_id)
    assert proof.holds(tickets[7].line(round_id, me), root)
    assert not proof.holds(tickets[8].line(round_id, me), root)
    assert not proof.holds(tickets[7].line(round_id, me), "no root")
    with pytest.raises(NotFound):
        us.draw(round_id)
    with pytest.raises(Conflict, match="not_drawn"):
        us.check_tickets(round_id)

    take_to(round_id, State.DRAWN)
    numbers = us.draw(round_id).numbers
    books = {
        Win(tier, ticket.ticket_id)
        for ticket in tickets
        for tier, (picked, drawn) in enumerate(zip(ticket.numbers, numbers, strict=True))
        if picked == drawn
    }
    checked = us.check_tickets(round_id).wins
    assert set(checked) == books
    assert len(checked) == len(books) > 10
    published = us.winners(round_id)
    listed = {
        Win(tier.tier, w.ticket_id) for tier in published.sub_prize_tiers for w in tier.winners if w.operator_id == me
    }
    assert listed == {win for win in books if win.tier}
    assert sum(tier.count for tier in published.sub_prize_tiers) == published.total_sub_prize_winners
    with pytest.raises(Conflict, match="not_settled"):
        us.report_payouts(round_id, books)

    take_to(round_id, State.SETTLED)
    paid = us.report_payouts(round_id, books, heard.append)
    assert (paid.accepted, paid.already_claimed, paid.late) == (len(books), 0, 0)
    assert us.report_payouts(round_id, books).already_claimed == len(books)
    assert heard == [60, len(books)]
    with pytest.raises(Invalid):
        us.report_payouts(round_id, [Win(1, "nobody")])
    public = us.public_round(round_id)
    assert (public.state, public.draw_seed) == (State.SETTLED, us.draw(round_id).draw_seed)
    assert us.jackpot().current_odds_range == us.odds().current_odds_range
    assert [event.type for event in us.events(round_id)][-1] == "ROUND_SETTLED"
    assert parse_bundle(us.proof_bundle(round_id)).round_id == round_id
    assert us.round(round_id).claim_deadline is not None
    assert {log.event for log in us.webhook_logs(200)} >= {"round.opened", "round.drawn", "operator.won"}
    us.close()


def test_refusals_say_what_is_wrong_where(coordinator_url: str) -> None:
    us = approved(coordinator_url)
    theirs, ours = a_round([an_operator("b")]), a_round([us.operator_id])
    with pytest.raises(Forbidden, match="not_invited"):
        us.round(theirs)
    with pytest.raises(NotFound):
        us.round(99)
    with pytest.raises(Invalid) as raised:
        us.submit_tickets(ours, [Ticket("t-1", (1, 1, 1, 1, 1, 101), True)])
    assert raised.value.details["faults"][0]["field"] == "bonus5"
    with pytest.raises(Invalid) as raised:
        us.submit_tickets(ours, [Ticket('"},{"', (1, 1, 1, 1, 1, 1), True)])
    assert raised.value.details["faults"][0]["field"] == "ticketId"
    assert us.submit_tickets(ours, []).batches == 0
    with pytest.raises(Conflict, match="no_webhook"):
        us.test_webhook("round.opened")
    us.use_key("sk_0123456789abcdef_" + "0" * 64)
    with pytest.raises(Unauthorized):
        us.rounds()


def test_tickets_are_cut_by_number_and_by_bytes() -> None:
    tickets = some_tickets(10)
    batches = list(ticket_batches(7, iter(tickets), most_tickets=4))
    assert [batch.tickets for batch in batches] == [4, 4, 2]
    sent = [json.loads(gzip.decompress(batch.body)) for batch in batches]
    assert [ticket["ticketId"] for body in sent for ticket in body["tickets"]] == [each.ticket_id for each in tickets]
    assert {body["roundId"] for body in sent} == {7}
    assert sent[0]["tickets"][0] == {
        "ticketId": "t-9",
        **dict(zip(("jackpotNumber", *(f"bonus{n}" for n in range(1, 6))), tickets[0].numbers, strict=True)),
        "isQuickPick": False,
    }
    for most in (400, 401, 500, 10_000):
        small = [gzip.decompress(batch.body) for batch in ticket_batches(7, tickets, most_bytes=most)]
        assert all(len(body) <= most for body in small)
        assert sum(len(json.loads(body)["tickets"]) for body in small) == 10
    assert batches == list(ticket_batches(7, tickets, most_tickets=4))


def test_a_root_is_the_same_in_any_order_and_of_each_ticket_once() -> None:
    tickets = some_tickets(9)
    assert tickets_root(7, "op_a", tickets) == tickets_root(7, "op_a", sorted(tickets, key=lambda each: each.ticket_id))
    with pytest.raises(ValueError, match="t-3"):
        tickets_root(7, "op_a", [*tickets, tickets[5]])
