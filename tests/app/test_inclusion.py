"""Showing that one ticket is part of what was sealed, or that it is not."""

from __future__ import annotations

import gzip
import hashlib
import json
from typing import Any

import pytest
from flask import Response
from flask.testing import FlaskClient
from sqlalchemy import text

from models.archive_reader import ArchiveDamaged
from models.chunks import BLOCK
from models.sealed_tickets import SealedTree
from models.session import transaction
from protocol.absence import Neighbour, verify_absence
from protocol.lifecycle import State
from protocol.merkle import CHUNK, leaf_hash, read_path, verify_inclusion
from protocol.tickets import ticket_line
from tests.app.conftest import Caller, assert_error
from tests.factories import (
    a_played_round,
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

SEALED = CHUNK + BLOCK + 1


def path_of(round_id: int, operator_id: str, ticket_id: str) -> str:
    return f"/api/public/rounds/{round_id}/tickets/{operator_id}/{ticket_id}/proof"


@pytest.mark.usefixtures("house")
def test_a_stranger_checks_a_ticket_against_the_bundle(anybody: Caller) -> None:
    operators = some_operators(2)
    round_id = a_played_round(operators, State.ESCROWED, SEALED)
    bundle = anybody.get(f"/api/public/rounds/{round_id}/proof").get_json()
    sold = sorted(some_tickets(SEALED, 1))  # the second operator's
    for place in (0, CHUNK - 1, CHUNK, SEALED - 1):
        ticket = sold[place]
        shown = anybody.get(path_of(round_id, "op_b", ticket[0])).get_json()
        leaf = leaf_hash(ticket_line(round_id, "op_b", *ticket))
        assert (shown["leafHash"], shown["leafIndex"], shown["treeSize"]) == (leaf.hex(), place, SEALED)
        root = bytes.fromhex(bundle["manifests"][1]["ticketsRoot"])
        assert verify_inclusion(leaf, place, SEALED, read_path(shown["auditPath"]), root)
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


def absence_of(round_id: int, operator_id: str, ticket_id: str) -> str:
    return path_of(round_id, operator_id, ticket_id).removesuffix("proof") + "absence"


def neighbours(shown: dict[str, Any]) -> list[Neighbour | None]:
    above = read_path(shown["sharedPath"])
    return [
        one and Neighbour(one["line"].encode(), one["leafIndex"], read_path(one["auditPath"]) + above)
        for one in (shown["before"], shown["after"])
    ]


@pytest.mark.usefixtures("house")
def test_a_stranger_checks_that_a_ticket_is_not_there(anybody: Caller) -> None:
    operators = some_operators(2)
    round_id = a_round(operators)
    submit(round_id, "op_a", some_tickets(SEALED))
    for operator_id in operators:
        manifest(round_id, operator_id)
    take_to(round_id, State.DRAWN)
    bundle = anybody.get(f"/api/public/rounds/{round_id}/proof").get_json()
    ids = sorted(ticket[0] for ticket in some_tickets(SEALED))
    first_of_second_chunk = ids[CHUNK]
    between = [ids[CHUNK - 1] + ".", first_of_second_chunk + "."]
    for ticket_id in ["A", "t-", *between, "t-1000.", "t-99999", "zz", "." * 64]:
        shown = anybody.get(absence_of(round_id, "op_a", ticket_id)).get_json()
        root = bytes.fromhex(bundle["manifests"][0]["ticketsRoot"])
        assert verify_absence(round_id, "op_a", ticket_id, *neighbours(shown), SEALED, root), ticket_id
        assert (shown["ticketsRoot"], shown["treeSize"]) == (root.hex(), SEALED)
    shown = anybody.get(absence_of(round_id, "op_b", "t-0")).get_json()
    assert (shown["before"], shown["after"], shown["sharedPath"], shown["treeSize"]) == (None, None, "", 0)
    assert verify_absence(round_id, "op_b", "t-0", None, None, 0, bytes.fromhex(shown["ticketsRoot"]))


@pytest.mark.usefixtures("house")
def test_absence_is_shown_once_tickets_are_public_and_only_of_what_is_absent(anybody: Caller) -> None:
    operators = some_operators(1)
    round_id = a_round(operators)
    take_part(round_id, operators)
    assert_error(anybody.get(absence_of(round_id, "op_a", "x")), 409, "not_drawn")
    take_to(round_id, State.ESCROWED)
    # The neighbours would tell two tickets, and players' numbers are nobody's business before the draw.
    assert_error(anybody.get(absence_of(round_id, "op_a", "x")), 409, "not_drawn")
    assert_error(anybody.get(absence_of(round_id, "op_a", "t-0")), 409, "not_drawn")
    take_to(round_id, State.DRAWN)
    assert_error(anybody.get(absence_of(round_id, "op_a", "t-0")), 409, "ticket_sealed")
    for operator_id, ticket_id in [("op_a", "t 0"), ("op_a", "t" * 65), ("op_nobody", "x")]:
        assert_error(anybody.get(absence_of(round_id, operator_id, ticket_id)), 404, "not_found")
    assert_error(anybody.get(absence_of(99, "op_a", "x")), 404, "not_found")


@pytest.mark.usefixtures("house")
def test_proofs_are_packed_for_those_who_can_unpack_them(anybody: Caller) -> None:
    operators = some_operators(1)
    round_id = a_played_round(operators, State.DRAWN, 300)
    somebody = Caller(FlaskClient(anybody.client.application, Response), {})  # One who unpacks by hand.
    for path in (path_of(round_id, "op_a", "t-0"), absence_of(round_id, "op_a", "t-0.")):
        plain = somebody.get(path)
        for _ in range(2):  # The second comes from memory.
            packed = somebody.get(path, headers={"Accept-Encoding": "br, gzip"})
            assert packed.headers["Content-Encoding"] == "gzip"
            assert packed.headers["ETag"] == f"W/{plain.headers['ETag']}"
            assert packed.headers["Content-Length"] == str(len(packed.data))
            assert gzip.decompress(packed.data) == plain.data
            assert len(packed.data) < len(plain.data)
        assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"
        assert "Content-Encoding" not in plain.headers
        assert somebody.get(path, headers={"Accept-Encoding": "gzip;q=0"}).data == plain.data
        known = {"Accept-Encoding": "gzip", "If-None-Match": packed.headers["ETag"]}
        assert somebody.get(path, headers=known).status_code == 304
    refused = somebody.get(path_of(round_id, "op_a", "nothing"), headers={"Accept-Encoding": "gzip"})
    assert refused.get_json()["code"] == "not_found"


@pytest.mark.usefixtures("house")
def test_the_sealed_tickets_are_exactly_the_lines_under_the_root(anybody: Caller) -> None:
    operators = some_operators(1)
    round_id = a_played_round(operators, State.DRAWN, SEALED)
    path = f"/api/public/rounds/{round_id}/tickets/op_a"
    answer = anybody.get(path)
    lines = [ticket_line(round_id, "op_a", *ticket) for ticket in sorted(some_tickets(SEALED, 0))]
    assert gzip.decompress(answer.data) == b"".join(line + b"\n" for line in lines)
    assert "Content-Length" not in answer.headers
    root = anybody.get(f"/api/public/rounds/{round_id}/proof").get_json()["manifests"][0]["ticketsRoot"]
    assert answer.headers["ETag"] == f'W/"{root}"'
    again = anybody.get(path, headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    asked = anybody.client.head(path)
    assert (asked.status_code, asked.data, asked.headers["ETag"]) == (200, b"", answer.headers["ETag"])


@pytest.mark.usefixtures("house")
def test_who_hangs_up_or_reads_slowly_holds_no_connection_to_the_database() -> None:
    from models.sealed_tickets import sealed_batches
    from models.session import engine

    operators = some_operators(1)
    round_id = a_played_round(operators, State.DRAWN)
    batches = sealed_batches(round_id, "op_a")
    assert len(next(batches)) == 30
    assert engine().pool.checkedout() == 0  # type: ignore[attr-defined]
    batches.close()  # type: ignore[attr-defined]
    assert engine().pool.checkedout() == 0  # type: ignore[attr-defined]


@pytest.mark.usefixtures("house")
def test_proofs_at_every_border_hold_and_are_the_same_whatever_they_are_read_from(anybody: Caller) -> None:
    sizes = dict(zip(some_operators(5), (0, 1, BLOCK, BLOCK + 1, SEALED), strict=True))
    round_id = a_round(list(sizes))
    for operator_id, size in sizes.items():
        submit(round_id, operator_id, some_tickets(size))
        manifest(round_id, operator_id)
    take_to(round_id, State.DRAWN)
    bundle = anybody.get(f"/api/public/rounds/{round_id}/proof").get_json()
    roots = {one["operatorId"]: bytes.fromhex(one["ticketsRoot"]) for one in bundle["manifests"]}
    asked = [f"/api/public/rounds/{round_id}/tickets/{operator_id}" for operator_id in sizes]
    for operator_id, size in sizes.items():
        sold = sorted(some_tickets(size))
        for place in sorted(place % size for place in BORDERS if -size <= place < size):
            asked.append(path_of(round_id, operator_id, sold[place][0]))
            shown = anybody.get(asked[-1]).get_json()
            leaf = leaf_hash(ticket_line(round_id, operator_id, *sold[place]))
            assert verify_inclusion(leaf, place, size, read_path(shown["auditPath"]), roots[operator_id]), asked[-1]
        after_borders = [sold[place][0] + "." for place in BORDERS if -size <= place < size]
        for ticket_id in ["A", *after_borders]:
            asked.append(absence_of(round_id, operator_id, ticket_id))
            pair = neighbours(anybody.get(asked[-1]).get_json())
            assert verify_absence(round_id, operator_id, ticket_id, *pair, size, roots[operator_id]), asked[-1]
    first = [hashlib.sha256(content(anybody, path)).hexdigest() for path in asked]
    for lost in ("UPDATE ticket_chunks SET blocks = NULL", "DELETE FROM ticket_archives"):
        as_of_an_older_version(lost)
        assert [hashlib.sha256(content(anybody, path)).hexdigest() for path in asked] == first, lost


BORDERS = (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, CHUNK - 1, CHUNK, CHUNK + BLOCK - 1, CHUNK + BLOCK, -2, -1)
"""Places of tickets; from the end where they are negative."""


def as_of_an_older_version(lost: str) -> None:
    """Let something not have been kept, as in rounds that were sealed before it was."""
    with transaction() as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))
        session.execute(text(lost))


@pytest.mark.usefixtures("house")
def test_tickets_that_are_not_those_that_were_sealed_are_proved_by_nothing(anybody: Caller) -> None:
    operators = some_operators(1)
    round_id = a_played_round(operators, State.DRAWN, BLOCK + 5)
    as_of_an_older_version("DELETE FROM ticket_archives")
    as_of_an_older_version(f"UPDATE tickets_r{round_id} SET bonus1 = bonus1 % 5 + 1 WHERE ticket_id = 't-0'")
    with transaction() as session:
        tree = SealedTree(session, round_id, "op_a")
        assert tree.leaf(BLOCK).row == BLOCK  # Of another block.
        with pytest.raises(ArchiveDamaged, match="not as sealed"):
            tree.leaf(1)


def content(caller: Caller, path: str) -> bytes:
    answer = caller.get(path)
    assert answer.status_code == 200
    return gzip.decompress(answer.data) if answer.headers.get("Content-Encoding") == "gzip" else answer.data
