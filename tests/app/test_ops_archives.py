"""``flask ops archives``: what was sealed is found damaged, put back as it was, and copied elsewhere."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.desk.archives import restored
from models import archive_format
from models.archive_reader import open_archive
from models.session import transaction
from models.settings import settings
from protocol.lifecycle import State
from tests.app.conftest import Caller
from tests.app.ops import Shell
from tests.dying import deaths
from tests.factories import a_played_round, a_round, rows, some_operators, some_tickets
from tests.tampering import A_FLIPPED_BYTE, tampered
from tests.ticket_drops import age, do_what_is_due, has_rows, keep_rows_for

FLIPPED = A_FLIPPED_BYTE.format("%/op\\_b/%")
LOST = "DELETE FROM archive_files WHERE key LIKE '%/op\\_b/%'"
HALF_LOST = "DELETE FROM archive_pieces WHERE key LIKE '%/op\\_b/%'"
RESTORE = ("archives", "restore", "1", "--reason", "a disk", "--as", "nina", "--yes")


@pytest.fixture
def sealed(shell: Shell) -> list[Any]:
    """Round 1, sealed by op_a and op_b; what is on record of its archives."""
    a_played_round(some_operators(2), State.ESCROWED)
    return on_record()


@pytest.fixture
def backups(shell: Shell, sealed: list[Any], tmp_path: Path) -> Path:
    """A folder with backups of both."""
    shell.run("archives", "export", "1", str(tmp_path))
    return tmp_path


def on_record() -> list[Any]:
    """What an archive is, without where its file lies."""
    return rows("SELECT round_id, operator_id, sha256, bytes, tickets, store FROM ticket_archives ORDER BY 1, 2")


def everything() -> list[Any]:
    """All that restoring could change."""
    return [
        rows("SELECT * FROM ticket_archives ORDER BY 1, 2"),
        rows("SELECT key, bytes FROM archive_files ORDER BY 1"),
        rows("SELECT key, place, md5(content) FROM archive_pieces ORDER BY 1, 2"),
        rows("SELECT * FROM audit_log"),
    ]


def restore(actor: str) -> dict[str, Any]:
    """What the command does, in one transaction."""
    with transaction() as session:
        return restored(session, actor, 1, "a disk")


def found(shell: Shell, ends: int) -> dict[str, str | None]:
    """What a check finds of each operator's archive."""
    answer = json.loads(shell.run("archives", "check", "--json", ends=ends).stdout)
    assert answer["faulty"] == sum(not one["intact"] for one in answer["archives"])
    return {one["operatorId"]: one["fault"] for one in answer["archives"]}


def drop_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_rows_for(30, monkeypatch)
    age(1, 31)
    do_what_is_due()
    assert not has_rows(1)


def test_archives_are_listed_with_what_is_on_record(shell: Shell, sealed: list[Any]) -> None:
    shell.run("archives", "check", "1")
    [first, second] = shell.json("archives", "list")["archives"]
    assert [tuple(first[name] for name in ("roundId", "operatorId", "sha256", "bytes", "tickets", "store"))] == sealed[
        :1
    ]
    assert (second["operatorId"], second["rowsDroppedAt"], second["intact"]) == ("op_b", None, True)
    screen = shell.run("archives", "list", "--round", "1").stdout
    for said in ("op_a", sealed[0][2], sealed[1][2], "postgres", "there", "intact"):
        assert said in screen
    assert shell.json("archives", "list", "--limit", "1", "--offset", "1")["archives"] == [second]
    assert "no such round" in shell.refused("archives", "list", "--round", "7")
    assert "no such round" in shell.refused("archives", "check", "1", "7")


def test_archives_that_are_whole_are_said_to_be(shell: Shell, sealed: list[Any]) -> None:
    assert "whole: 2." in shell.run("archives", "check", "--roots").stdout
    assert rows("SELECT operator_id, intact FROM archive_checks ORDER BY 1") == [("op_a", True), ("op_b", True)]
    assert "is whole. Nothing was changed" in shell.run(*RESTORE).stdout
    assert rows("SELECT * FROM audit_log") == []


@pytest.mark.parametrize(
    ("happened", "fault"),
    [(FLIPPED, "archive_damaged"), (HALF_LOST, "archive_damaged"), (LOST, "archive_missing")],
    ids=["a flipped byte", "its pieces gone", "its file gone"],
)
def test_what_happened_to_an_archive_is_found_and_put_back_from_the_rows(
    shell: Shell, sealed: list[Any], anybody: Caller, happened: str, fault: str
) -> None:
    tampered(happened)
    assert found(shell, 1) == {"op_a": None, "op_b": fault}
    checked = shell.run("archives", "check", "1", ends=1)
    assert "1 of 2 not as sealed" in checked.stderr
    assert fault.removeprefix("archive_") in checked.stdout
    assert "coordinator_archives_damaged 1.0" in anybody.get("/metrics").text
    before = everything()
    assert "could be put back" in shell.run(*RESTORE, "--dry-run").stdout
    assert everything() == before
    shell.run(*RESTORE)
    assert found(shell, 0) == {"op_a": None, "op_b": None}
    assert "coordinator_archives_damaged 0.0" in anybody.get("/metrics").text
    assert on_record() == sealed
    with transaction() as session:
        assert list(open_archive(session, 1, "op_b").tickets()) == sorted(some_tickets(30, 1))
    [(actor, reason, details)] = rows("SELECT actor, reason, details FROM audit_log WHERE action = 'archive.restore'")
    assert (actor, reason, list(details["archives"])) == ("nina (command line)", "a disk", ["op_b"])
    assert (details["archives"]["op_b"]["fault"], details["archives"]["op_b"]["from"]) == (fault, "rows")


def test_a_damaged_file_stays_beside_the_one_that_is_put_back_however_often(shell: Shell, sealed: list[Any]) -> None:
    first = f"r1/op_b/{sealed[1][2]}"
    for place in (2, 3):
        tampered(FLIPPED)
        assert shell.json(*RESTORE)["restored"][0]["key"] == f"{first}.{place}.parquet"
    kept = rows("SELECT key FROM archive_files WHERE key LIKE '%op\\_b%' ORDER BY 1")
    assert kept == [(f"{first}.2.parquet",), (f"{first}.3.parquet",), (f"{first}.parquet",)]
    tampered(FLIPPED)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(restore, ("nina", "otto")))
    assert sorted(len(each["restored"]) for each in done) == [0, 1]


def test_without_the_rows_an_archive_is_put_back_from_its_backup_alone(
    shell: Shell, generous: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_played_round(some_operators(2), State.CLOSED)
    shell.run("archives", "export", "1", str(tmp_path))
    drop_rows(monkeypatch)
    sealed = on_record()
    assert "gone" in shell.run("archives", "list").stdout
    for happened, place in ((FLIPPED, tmp_path), (LOST, tmp_path / f"r1/op_b/{sealed[1][2]}.parquet")):
        tampered(happened)
        assert "were dropped: a backup is needed" in shell.refused(*RESTORE)
        assert rows("SELECT operator_id FROM archive_checks WHERE NOT intact") == [("op_b",)]  # refused, and on record
        assert shell.json(*RESTORE, "--from", str(place))["restored"][0]["from"] == "backup"
        assert found(shell, 0) == {"op_a": None, "op_b": None}
        assert on_record() == sealed


def test_a_wrong_backup_is_refused_and_nothing_is_changed(shell: Shell, backups: Path, sealed: list[Any]) -> None:
    tampered(FLIPPED)
    before = everything()
    right = backups / f"r1/op_b/{sealed[1][2]}.parquet"
    content = right.read_bytes()
    for wrong in (content[:-1], content + b"x", content[:99] + b"x" + content[100:], b""):
        right.write_bytes(wrong)
        told = shell.refused(*RESTORE, "--from", str(right))
        assert hashlib.sha256(wrong).hexdigest() in told
        assert sealed[1][2] in told
        assert "not what was archived of op_b in round 1" in shell.refused(*RESTORE, "--from", str(backups))
    right.unlink()
    assert "there is no backup" in shell.refused(*RESTORE, "--from", str(backups))
    # Another operator's archive is one of this round, and whole: nothing is put back, least of all as op_b's.
    another = str(backups / f"r1/op_a/{sealed[0][2]}.parquet")
    assert shell.json(*RESTORE, "--from", another)["restored"] == []
    assert "is no archive of round 1" in shell.refused(*RESTORE, "--from", another, "--operator", "op_b")
    assert everything() == before


def test_rows_that_are_not_what_was_sealed_are_refused(shell: Shell, sealed: list[Any]) -> None:
    tampered(FLIPPED, "UPDATE tickets_r1 SET bonus1 = bonus1 % 4 + 1 WHERE operator_id = 'op_b' AND ticket_id = 't-7'")
    before = everything()
    assert "the rows of op_b in round 1 are not what was sealed" in shell.refused(*RESTORE)
    assert everything() == before


def test_rows_that_a_newer_library_writes_otherwise_never_change_the_hash(
    shell: Shell, sealed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same tickets as other bytes: what two versions of pyarrow do, done here by another compression."""
    tampered(FLIPPED)
    before = everything()
    monkeypatch.setitem(archive_format.WRITING, "compression", "snappy")
    told = shell.refused(*RESTORE)
    assert "are what was sealed, but pyarrow" in told
    assert "than were archived by pyarrow" in told
    assert everything() == before


@pytest.mark.parametrize("happened", [FLIPPED, LOST])
def test_killed_at_any_statement_nothing_was_put_back(sealed: list[Any], happened: str) -> None:
    tampered(happened)
    before = everything()
    assert deaths(lambda: restore("nina"), lambda: everything() == before) > 8
    assert everything() != before


def test_it_is_put_back_only_by_whoever_means_it(shell: Shell, sealed: list[Any]) -> None:
    tampered(FLIPPED)
    assert "--yes" in shell.refused(*RESTORE[:-1], ends=2)
    assert "--reason" in shell.run("archives", "restore", "1", "--yes", ends=2).stderr
    assert "op_x has no archive in round 1" in shell.refused(*RESTORE, "--operator", "op_x")
    assert "is whole" in shell.run(*RESTORE, "--operator", "op_a").stdout
    assert "no such round" in shell.refused("archives", "restore", "7", "--reason", "x", "--yes")
    assert found(shell, 1)["op_b"] == "archive_damaged"


def test_a_file_and_its_hash_replaced_together_are_not_as_sealed(shell: Shell, sealed: list[Any]) -> None:
    tampered(
        "UPDATE ticket_archives b SET sha256 = a.sha256, bytes = a.bytes, tickets = a.tickets, key = a.key "
        "FROM ticket_archives a WHERE a.operator_id = 'op_a' AND b.operator_id = 'op_b'"
    )
    assert "whole" in shell.run("archives", "check").stdout  # as many tickets, and the hash of its own
    assert "not as sealed" in shell.run("archives", "check", "--roots", ends=1).stdout


def test_a_backup_is_written_whole_or_not_at_all(shell: Shell, backups: Path, sealed: list[Any]) -> None:
    files = sorted(path for path in backups.rglob("*") if path.is_file())
    assert [path.relative_to(backups).as_posix() for path in files] == [
        f"r1/{operator_id}/{sha256}.parquet" for _, operator_id, sha256, *_ in sealed
    ]
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in files] == [row[2] for row in sealed]
    files[0].write_bytes(b"cut sho")
    again = shell.json("archives", "export", "1", str(backups))
    assert [one["written"] for one in again["files"]] == [True, False]
    tampered(FLIPPED)
    files[1].unlink()
    assert "r1/op_b is not what was archived" in shell.run("archives", "export", "1", str(backups), ends=1).stderr
    assert [path for path in backups.rglob("*") if path.is_file()] == files[:1]
    a_round(["op_a"])
    assert "round 2 is OPEN and has no archives" in shell.refused("archives", "export", "2", str(backups))
    assert "Not a directory" in shell.refused("archives", "export", "1", str(files[0] / "below"))


def test_an_archive_in_s3_that_cannot_be_asked_for_ends_with_3(
    shell: Shell, sealed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tampered("UPDATE ticket_archives SET store = 's3' WHERE operator_id = 'op_b'")
    for name, value in {
        "ARCHIVE_URL": "s3://sealed",
        "ARCHIVE_S3_ENDPOINT": "http://127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    done = shell.run("archives", "check", ends=3)
    assert "1 were not read: the archive's store does not answer" in done.stderr
    assert "op_a" in done.stdout
