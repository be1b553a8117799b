"""Showing that one ticket is part of what was sealed."""

from __future__ import annotations

import json

import pytest

from protocol.lifecycle import State
from protocol.merkle import CHUNK, leaf_hash, verify_inclusion
from protocol.tickets import ticket_line
from tests.app.conftest import Caller, assert_error
from tests.factories import (
    a_round,
    an_operator,
    manifest,
    move_clock_to,
    some_operators,
    some_tickets,
    submit,
    take_part,
    take_to,
    work,
)

SEALED = CHUNK + 20


def path_of(round_id: int, operator_id: str, ticket_id: str) -> str:
    return f"/api/public/rounds/{round_id}/tickets/{operator_id}/{ticket_id}/proof"


@pytest.mark.usefixtures("house")
def test_a_stranger_checks_a_ticket_against_the_bundle(anybody: Caller) -> None:
    operators = some_operators(2)
    round_id = a_round(operators)
    take_part(round_id, operators, SEALED)
    take_to(round_id, State.ESCROWED)
    bundle = anybody.get(f"/api/public/rounds/{round_id}/proof").get_json()
    sold = sorted(some_tickets(SEALED, 1))  # the second operator's
    for place in (0, CHUNK - 1, CHUNK, SEALED - 1):
        ticket = sold[place]
        shown = anybody.get(path_of(round_id, "op_b", ticket[0])).get_json()
        leaf = leaf_hash(ticket_line(round_id, "op_b", *ticket))
        assert (shown["leafHash"], shown["leafIndex"], shown["treeSize"]) == (leaf.hex(), place, SEALED)
        root = bytes.fromhex(bundle["manifests"][1]["ticketsRoot"])
        siblings = [bytes.fromhex(node) for node in shown["proof"]]
        assert verify_inclusion(leaf, place, SEALED, siblings, root)
        assert shown["ticketsRoot"] == root.hex()
        assert shown["fullManifestHash"] == bundle["fullManifestHash"]
        assert shown["line"] is None  # the numbers are secret until the draw
    take_to(round_id, State.DRAWN)
    line = anybody.get(path_of(round_id, "op_b", "t-0")).get_json()["line"]
    assert line.encode() == ticket_line(round_id, "op_b", *some_tickets(1, 1)[0])
    assert json.loads(line)["ticketId"] == "t-0"


@pytest.mark.usefixtures("house")
def test_there_is_a_proof_only_of_what_was_sealed(anybody: Caller) -> None:
    operators = [*some_operators(2), an_operator("liar"), an_operator("idle")]
    round_id = a_round(operators)
    take_part(round_id, operators[:2])
    submit(round_id, "op_liar", some_tickets(3))
    manifest(round_id, "op_liar", ticketsRoot="0" * 64)
    assert_error(anybody.get(path_of(round_id, "op_a", "t-0")), 409, "not_sealed")
    move_clock_to(round_id, "sealing_deadline")
    work(round_id)
    assert anybody.get(path_of(round_id, "op_a", "t-0")).status_code == 200
    for operator_id, ticket_id in [
        ("op_a", "t-30"),
        ("op_a", "A"),  # before the first
        ("op_a", "t 0"),
        ("op_liar", "t-0"),
        ("op_idle", "t-0"),
        ("op_nobody", "t-0"),
    ]:
        assert_error(anybody.get(path_of(round_id, operator_id, ticket_id)), 404, "not_found")
    assert_error(anybody.get(path_of(99, "op_a", "t-0")), 404, "not_found")
