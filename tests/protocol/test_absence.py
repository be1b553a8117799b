"""Showing that a ticket is not there: what holds, and what nobody can make hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from protocol.absence import Neighbour, verify_absence
from protocol.merkle import EMPTY_ROOT, Tree, leaf_hash
from protocol.tickets import ticket_line

IDS = st.from_regex(r"[A-Za-z0-9._:-]{1,6}", fullmatch=True)
SETS = st.lists(IDS, unique=True, max_size=40).map(sorted)
ROUND, OPERATOR = 7, "opA"


class Sealed:
    """Tickets with these ids, in this order, as they are sealed."""

    def __init__(self, ids: list[str]) -> None:
        self.ids = ids
        self.lines = [line_of(ticket_id) for ticket_id in ids]
        self.tree = Tree(map(leaf_hash, self.lines))

    def at(self, index: int) -> Neighbour | None:
        if not 0 <= index < len(self.ids):
            return None
        return Neighbour(self.lines[index], index, self.tree.inclusion_proof(index))

    def around(self, ticket_id: str) -> tuple[Neighbour | None, Neighbour | None]:
        gap = sum(known < ticket_id for known in self.ids)
        return self.at(gap - 1), self.at(gap)

    def shows(
        self,
        ticket_id: str,
        before: Neighbour | None,
        after: Neighbour | None,
        round_id: int = ROUND,
        operator_id: str = OPERATOR,
    ) -> bool:
        return verify_absence(round_id, operator_id, ticket_id, before, after, len(self.ids), self.tree.root)


def line_of(ticket_id: str, round_id: int = ROUND, operator_id: str = OPERATOR) -> bytes:
    return ticket_line(round_id, operator_id, ticket_id, 1_234_567, 1, 2, 3, 4, 5, is_quick_pick=True)


@given(SETS, IDS)
def test_every_id_that_is_not_there_is_shown_not_to_be(ids: list[str], ticket_id: str) -> None:
    assume(ticket_id not in ids)
    sealed = Sealed(ids)
    before, after = sealed.around(ticket_id)
    assert sealed.shows(ticket_id, before, after)


@given(SETS.filter(bool), st.data())
def test_no_pair_shows_that_a_ticket_which_is_there_is_not(ids: list[str], data: st.DataObject) -> None:
    sealed = Sealed(ids)
    ticket_id = data.draw(st.sampled_from(ids))
    everybody = [None, *map(sealed.at, range(len(ids)))]
    for before in everybody:
        for after in everybody:
            assert not sealed.shows(ticket_id, before, after)


@given(SETS.filter(bool), IDS)
def test_only_the_two_that_stand_around_the_gap_show_it(ids: list[str], ticket_id: str) -> None:
    assume(ticket_id not in ids)
    sealed = Sealed(ids)
    right = sealed.around(ticket_id)
    everybody = [None, *map(sealed.at, range(len(ids)))]
    shown = [(before, after) for before in everybody for after in everybody if sealed.shows(ticket_id, before, after)]
    assert shown == [right]


@given(SETS.filter(bool), IDS, st.data())
def test_any_flipped_bit_is_caught(ids: list[str], ticket_id: str, data: st.DataObject) -> None:
    assume(ticket_id not in ids)
    sealed = Sealed(ids)
    pair = list(sealed.around(ticket_id))
    side = data.draw(st.sampled_from([place for place in (0, 1) if pair[place] is not None]))
    neighbour = pair[side]
    assert neighbour is not None
    what = data.draw(st.sampled_from(["line", "index", *range(len(neighbour.proof))]))
    if what == "line":
        forged = replace(neighbour, line=flipped(neighbour.line, data))
    elif what == "index":
        forged = replace(neighbour, index=neighbour.index ^ 1 << data.draw(st.integers(0, 8)))
    else:
        assert isinstance(what, int)
        nodes = list(neighbour.proof)
        nodes[what] = flipped(nodes[what], data)
        forged = replace(neighbour, proof=nodes)
    pair[side] = forged
    assert not sealed.shows(ticket_id, *pair)
    assert not verify_absence(
        ROUND, OPERATOR, ticket_id, *sealed.around(ticket_id), len(ids), flipped(sealed.tree.root, data)
    )


def flipped(content: bytes, data: st.DataObject) -> bytes:
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@given(SETS.filter(lambda ids: len(ids) > 1), st.data())
def test_a_neighbour_that_was_not_sealed_is_caught(ids: list[str], data: st.DataObject) -> None:
    """The forger hides a ticket behind one that it makes up, at the hidden one's place."""
    sealed = Sealed(ids)
    hidden = data.draw(st.integers(0, len(ids) - 1))
    forged_id = data.draw(IDS.filter(lambda one: one not in ids))
    forged = Neighbour(line_of(forged_id), hidden, sealed.tree.inclusion_proof(hidden))
    assert not sealed.shows(ids[hidden], forged, sealed.at(hidden + 1))
    assert not sealed.shows(ids[hidden], sealed.at(hidden - 1), forged)


def test_neighbours_with_one_between_them_are_caught_and_so_is_their_wrong_order() -> None:
    sealed = Sealed(["a", "c", "e", "g"])
    assert sealed.shows("d", sealed.at(1), sealed.at(2))
    assert not sealed.shows("d", sealed.at(0), sealed.at(2))
    assert not sealed.shows("c", sealed.at(0), sealed.at(2))
    assert not sealed.shows("d", sealed.at(2), sealed.at(1))
    assert not sealed.shows("d", sealed.at(1), None)
    assert not sealed.shows("d", None, sealed.at(2))
    assert not sealed.shows("d", None, None)
    assert not sealed.shows("z", sealed.at(1), sealed.at(2))


def test_the_neighbours_are_of_this_round_and_this_operator() -> None:
    sealed = Sealed(["a", "c"])
    assert sealed.shows("b", sealed.at(0), sealed.at(1))
    assert not sealed.shows("b", sealed.at(0), sealed.at(1), round_id=8)
    assert not sealed.shows("b", sealed.at(0), sealed.at(1), operator_id="opB")


@pytest.mark.parametrize("line", [b"", b"{}", b'{"ticketId":"a"}', b"\xff", line_of("a") + b"\n"])
def test_a_leaf_that_is_no_ticket_shows_nothing(line: bytes) -> None:
    tree = Tree([leaf_hash(line)])
    assert not verify_absence(ROUND, OPERATOR, "b", Neighbour(line, 0, []), None, 1, tree.root)


def test_of_nothing_everything_is_absent_and_of_something_nothing_is_without_neighbours() -> None:
    assert verify_absence(ROUND, OPERATOR, "a", None, None, 0, EMPTY_ROOT)
    assert not verify_absence(ROUND, OPERATOR, "a", None, None, 1, EMPTY_ROOT)
    assert not verify_absence(ROUND, OPERATOR, "a", None, None, 0, Sealed(["b"]).tree.root)
