"""A recount that dies anywhere was never begun: the next one finds the same root and leaves the same archive."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from models.archiving import Reading
from models.session import transaction
from models.work import Kind, Piece
from protocol.lifecycle import State
from tasks.pieces import do_piece
from tests.dying import Killed, deaths
from tests.factories import a_played_round, rows, some_operators

pytestmark = pytest.mark.usefixtures("house")


def kept() -> dict[str, list[tuple[Any, ...]]]:
    """All that a recount leaves behind."""
    return {
        "manifests": rows("SELECT operator_id, counted, counted_root, agreed FROM manifests ORDER BY 1"),
        "chunks": rows(
            "SELECT operator_id, first_ticket_id, encode(root, 'hex'), md5(blocks) FROM ticket_chunks ORDER BY 1, 2"
        ),
        "archives": rows("SELECT operator_id, sha256, bytes, tickets, key FROM ticket_archives ORDER BY 1"),
        "files": rows("SELECT key, bytes FROM archive_files ORDER BY 1"),
        "pieces": rows("SELECT key, place, md5(content) FROM archive_pieces ORDER BY 1, 2"),
    }


def a_planned_recount() -> int:
    operators = some_operators(1)
    a_played_round(operators, State.SEALING)
    with transaction() as session:
        return session.scalars(select(Piece.id).where(Piece.kind == Kind.RECOUNT.value)).one()


def test_killed_at_any_statement_it_is_done_once_by_the_next() -> None:
    piece_id = a_planned_recount()
    before = kept()
    assert deaths(lambda: do_piece(piece_id), lambda: kept() == before) >= 7
    done = kept()
    assert [len(done[name]) for name in ("chunks", "archives", "files", "pieces")] == [1, 1, 1, 1]
    assert not do_piece(piece_id)
    assert kept() == done


def test_killed_while_tickets_are_read_it_was_never_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    piece_id = a_planned_recount()
    before = kept()
    original = Reading.write
    with monkeypatch.context() as patched:

        def write(self: Reading, row: bytes) -> None:
            if b"t-17\n" in row:
                raise Killed
            original(self, row)

        patched.setattr(Reading, "write", write)
        with pytest.raises(Killed):
            do_piece(piece_id)
    assert kept() == before
    assert do_piece(piece_id)
    assert len(kept()["archives"]) == 1
