"""The verifier's command line on files: what it accepts, what it finds out, and how it says so."""

from __future__ import annotations

import contextlib
import copy
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from protocol.rules import Rules
from protocol.verify import Progress, main
from tests.protocol.rounds import Round, before_the_draw, make_failed_round, make_round

TOP = Path(__file__).parents[2]
SMALL_ROUND = make_round(tickets={"opA": 4, "opB": 3}, excluded={"opC": "missed_sealing"}, salt=1)


def _run(*arguments: object) -> tuple[int, list[str], str]:
    """Exit code, lines of stdout, and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 99
    return code, out.getvalue().splitlines(), err.getvalue()


def _refused(*arguments: object) -> str:
    """The last line of a run that must end with exit code 1, without its opening words."""
    code, lines, err = _run(*arguments)
    assert (code, err) == (1, "")
    assert lines[-1].startswith("not verified: ")
    return lines[-1].removeprefix("not verified: ")


def _could_not_look(*arguments: object) -> str:
    """The one line of a run that must end with exit code 2."""
    code, lines, err = _run(*arguments)
    assert code == 2
    assert "verified" not in "".join(lines)
    assert err.count("\n") == 1
    return err.rstrip("\n")


@pytest.mark.parametrize("packed", [False, True])
def test_an_honest_round_is_verified_and_every_check_is_listed(tmp_path: Path, packed: bool) -> None:
    path = make_round().save(tmp_path, packed=packed)
    code, lines, err = _run(path, "--tickets", tmp_path)
    assert (code, err) == (0, "")
    assert lines[0] == "round 1, CLOSED, commit-reveal"
    assert "✓ settlementHash" in lines
    assert "✓ tickets of opB (30)" in lines
    assert all(line.startswith("✓ ") for line in lines[1:-1])
    assert lines[-1] == "verified"


@pytest.mark.parametrize("lie", ["\nverified", "\r\x1b[2Kverified", "\x85\u2028verified", " " * 200 + "verified"])
def test_what_is_found_cannot_say_verified_on_a_line_of_its_own(tmp_path: Path, lie: str) -> None:
    made = copy.deepcopy(SMALL_ROUND.bundle)
    for wrong in (made | {"v": lie}, made | {"ledger": made["ledger"] | {"G": lie}}, made | {"ledger": {lie: "1"}}):
        SMALL_ROUND.save(tmp_path).write_text(json.dumps(wrong), encoding="utf-8")
        told = _refused(tmp_path / "bundle.json", "--tickets", tmp_path)
        assert told.isprintable(), told
        assert "  " not in told


def test_changing_any_one_digit_of_the_bundle_is_found_and_named(tmp_path: Path) -> None:
    path = SMALL_ROUND.save(tmp_path)
    text = path.read_text()
    assert _run(path, "--tickets", tmp_path)[0] == 0
    in_a_hash = [range(*found.span()) for found in re.finditer("[0-9a-f]{64}", text)]
    letters = {position for span in in_a_hash for position in span}
    digits = [place for place, sign in enumerate(text) if sign in "0123456789" or place in letters]
    assert len(digits) > 1_400
    for place in digits:
        alphabet = "0123456789abcdef" if place in letters else "0123456789"
        changed = alphabet[(alphabet.index(text[place]) + 1) % len(alphabet)]
        path.write_text(text[:place] + changed + text[place + 1 :])
        named = _refused(path, "--tickets", tmp_path)
        assert re.match(r"[A-Za-z][\w.,:/ ()\[\]-]*: .+", named), (text[place - 20 : place + 20], named)


@pytest.mark.parametrize("operator_id", ["opA", "opB"])
def test_changing_any_one_digit_of_a_ticket_line_is_found_and_named(tmp_path: Path, operator_id: str) -> None:
    path = SMALL_ROUND.save(tmp_path)
    tickets = tmp_path / f"{operator_id}.ndjson"
    content = tickets.read_bytes()
    for place in [place for place, byte in enumerate(content) if chr(byte).isdigit()]:
        changed = b"0123456789"[(content[place] - ord("0") + 1) % 10 :][:1]
        tickets.write_bytes(content[:place] + changed + content[place + 1 :])
        named = _refused(path, "--tickets", tmp_path)
        assert re.match(rf"(tickets of {operator_id}: line [1-4]: |ticketsRoot of {operator_id}: expected )", named)


def _changed(path: tuple[Any, ...]) -> Round:
    """The small round with the last digit (or letter) of one value changed."""
    bundle = copy.deepcopy(SMALL_ROUND.bundle)
    place: Any = bundle
    for key in path[:-1]:
        place = place[key]
    value = place[path[-1]]
    if isinstance(value, int):
        place[path[-1]] = value + 1
    else:
        body, found, rest = re.match(r"(.*)(\d)(\D*)", value, re.DOTALL).groups()  # type: ignore[union-attr]
        place[path[-1]] = f"{body}{(int(found) + 1) % 10}{rest}"
    return Round(bundle, SMALL_ROUND.lines)


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("v", "v: expected svc-lottery/v2/proof, found svc-lottery/v3/proof"),
        ("roundId", "roundId in manifestJson of opA: expected 2, found 1"),
        ("rules.feeBps", "rulesHash: expected"),
        ("rules.prizes.4", "rulesHash: expected"),
        ("rulesHash", "rulesHash: expected"),
        ("previousRoundHash", "chainedAnchorHash: expected"),
        ("seedCommit", "chainedAnchorHash: expected"),
        ("sealedAt", "chainedAnchorHash: expected"),
        ("manifests.0.manifestJson", "manifestHash of opA: expected"),
        ("manifests.1.manifestHash", "manifestHash of opB: expected"),
        ("manifests.0.ticketCount", "ticketCount in manifestJson of opA: expected 5, found 4"),
        ("manifests.1.ticketsRoot", "ticketsRoot in manifestJson of opB: expected"),
        ("manifests.0.nonceCommit", "nonceCommit of opA: expected"),
        ("seed.secret", "seedCommit: expected"),
        ("seed.nonces.0.nonce", "nonce of opA: expected"),
        ("fullManifestHash", "fullManifestHash: expected"),
        ("chainedAnchorHash", "chainedAnchorHash: expected"),
        ("effectiveManifestHash", "effectiveManifestHash: expected"),
        ("drawSeed", "drawSeed: expected"),
        ("numbers.jackpotNumber", "numbers.jackpotNumber: expected"),
        ("numbers.bonus3", "numbers.bonus3: expected"),
        ("winnerCounts.0", "winnerCounts (jackpot): expected"),
        ("winnerCounts.5", "winnerCounts (bonus5): expected"),
        ("winnersRoot", "winnersRoot: expected"),
        ("ledger.G", "ledger.G: expected"),
        ("ledger.pool0", "ledger.A: expected"),
        ("ledger.reserve1", "ledger.reserve1: expected"),
        ("settlementHash", "settlementHash: expected"),
        ("roundHash", "roundHash: expected"),
    ],
)
def test_what_was_changed_is_what_is_named(tmp_path: Path, path: str, named: str) -> None:
    keys = tuple(int(key) if key.isdigit() else key for key in path.split("."))
    assert _refused(_changed(keys).save(tmp_path), "--tickets", tmp_path).startswith(named)


def test_a_key_given_twice_is_found_in_the_bundle_and_in_a_ticket(tmp_path: Path) -> None:
    path = SMALL_ROUND.save(tmp_path)
    text = path.read_text()
    path.write_text(text.replace('"roundId": 1,', '"roundId": 1, "roundId": 1,', 1))
    assert 'the key "roundId" is given twice' in _refused(path, "--tickets", tmp_path)
    path.write_text(text)
    tickets = tmp_path / "opB.ndjson"
    tickets.write_bytes(tickets.read_bytes().replace(b'"roundId":1,', b'"roundId":1,"roundId":1,', 1))
    assert _refused(path, "--tickets", tmp_path) == (
        'tickets of opB: line 1: the key "roundId" is given twice in one object'
    )


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"v":NaN}', "[" * 100_000, "\ufeff{}", "<html></html>"])
def test_a_file_that_is_no_bundle_is_not_verified(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bundle.json"
    path.write_text(text, encoding="utf-8")
    assert "bundle" in _refused(path, "--tickets", tmp_path)


@pytest.mark.parametrize("kept", [0.99, 0.5, 0.1])
def test_compressed_tickets_that_end_early_are_found(tmp_path: Path, kept: float) -> None:
    path = make_round().save(tmp_path, packed=True)
    tickets = tmp_path / "opA.ndjson.gz"
    content = tickets.read_bytes()
    tickets.write_bytes(content[: int(len(content) * kept)])
    assert _refused(path, "--tickets", tmp_path).startswith("tickets of opA: ")


def test_damaged_compressed_data_is_found(tmp_path: Path) -> None:
    path = make_round().save(tmp_path, packed=True)
    tickets = tmp_path / "opA.ndjson.gz"
    content = bytearray(tickets.read_bytes())
    content[-5] ^= 1
    tickets.write_bytes(content)
    assert "the compressed data is damaged or ends early" in _refused(path, "--tickets", tmp_path)
    tickets.write_bytes(gzip.compress(b"x" * 100_000_000))
    assert _refused(path, "--tickets", tmp_path) == "tickets of opA: a line is longer than 4096 bytes"


def test_a_last_line_without_its_end_is_as_good_and_a_blank_line_is_not(tmp_path: Path) -> None:
    path = SMALL_ROUND.save(tmp_path)
    tickets = tmp_path / "opA.ndjson"
    content = tickets.read_bytes()
    tickets.write_bytes(content.rstrip(b"\n"))
    assert _run(path, "--tickets", tmp_path)[0] == 0
    for wrong in (content + b"\n", b"\n" + content, content.replace(b"\n", b"\r\n"), content + b"\0"):
        tickets.write_bytes(wrong)
        assert _refused(path, "--tickets", tmp_path).startswith("tickets of opA: line ")


def test_earlier_bundles_close_the_chain(tmp_path: Path) -> None:
    one = make_round(1)
    two = make_round(2, previous=one)
    earlier = tmp_path / "one.json"
    earlier.write_text(json.dumps(one.bundle))
    path = two.save(tmp_path)
    code, lines, _ = _run(path, "--tickets", tmp_path)
    assert (code, lines[-2]) == (0, "– previousRoundHash, pool0 and reserve0: taken as stated")
    code, lines, _ = _run(path, "--tickets", tmp_path, "--previous", earlier)
    assert (code, lines[-3:]) == (0, ["✓ previousRoundHash", "✓ pool0 and reserve0", "verified"])
    earlier.write_text(json.dumps(make_round(1, salt=2).bundle))
    named = _refused(path, "--tickets", tmp_path, "--previous", earlier)
    assert named.startswith("previousRoundHash: expected")


@pytest.mark.parametrize("state", ["SEALED", "ESCROWED"])
def test_a_round_not_drawn_yet_is_verified_so_far_without_tickets(tmp_path: Path, state: str) -> None:
    path = before_the_draw(make_round(), state).save(tmp_path)
    code, lines, _ = _run(path)
    assert (code, lines[-1]) == (0, f"verified so far: {state}")


def test_a_drawn_round_is_verified_so_far_and_a_failed_one_wholly(tmp_path: Path) -> None:
    path = make_round(state="DRAWN").save(tmp_path)
    assert _run(path, "--tickets", tmp_path)[1][-1] == "verified so far: DRAWN"
    path = make_failed_round(1).save(tmp_path)
    assert _run(path)[1][-1] == "verified"


def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path) -> None:
    assert _could_not_look(tmp_path / "none.json") == f"cannot read {tmp_path}/none.json: No such file or directory"
    assert _could_not_look(tmp_path) == f"cannot read {tmp_path}: Is a directory"
    path = make_round().save(tmp_path)
    assert "--tickets DIR" in _could_not_look(path)
    (tmp_path / "opB.ndjson").unlink()
    missing = f"the sealed tickets of opB are neither in {tmp_path}/opB.ndjson nor in opB.ndjson.gz"
    assert _could_not_look(path, "--tickets", tmp_path) == missing


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "required: URL|BUNDLE"),
        (["http://localhost:1"], "a URL needs --round N"),
        (["http://localhost:1", "--round", "0"], "a URL needs --round N"),
        (["http://localhost:1", "--round", "x"], "invalid int value"),
        (["http://localhost:1", "--round", "1", "--tickets", "x"], "go with a file"),
        (["bundle.json", "--round", "1"], "--round goes with a URL"),
        (["localhost:8000", "--round", "1"], "from https:// or http:// on"),
        (["bundle.json", "--surprise"], "unrecognized arguments"),
    ],
)
def test_wrong_usage_is_explained(arguments: list[str], complaint: str) -> None:
    code, lines, err = _run(*arguments)
    assert (code, lines) == (2, [])
    assert err.startswith("usage: python -m protocol.verify")
    assert complaint in err.splitlines()[-1]


@pytest.mark.parametrize(("change", "code", "last"), [(False, 0, "verified"), (True, 1, "not verified: roundHash")])
def test_it_runs_as_a_program(tmp_path: Path, change: bool, code: int, last: str) -> None:
    made = _changed(("roundHash",)) if change else SMALL_ROUND
    path = made.save(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "protocol.verify", path, "--tickets", tmp_path],
        cwd=TOP, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.splitlines()[-1].startswith(last)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_on_a_terminal_and_nowhere_else() -> None:
    terminal, pipe = _Terminal(), io.StringIO()
    for screen in (terminal, pipe):
        progress = Progress(10_000, screen)
        assert len(list(progress.over(iter([b""] * 10_000)))) == 10_000
        progress.clear()
    assert pipe.getvalue() == ""
    assert " 41%  4,096 of 10,000" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_tickets_are_streamed_and_never_held_all_at_once(tmp_path: Path) -> None:
    path = make_round(tickets={"opA": 30_000}, rules=Rules()).save(tmp_path)
    size = (tmp_path / "opA.ndjson").stat().st_size
    _run(path, "--tickets", tmp_path)
    tracemalloc.start()
    try:
        code, _, _ = _run(path, "--tickets", tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert code == 0
    assert peak < size / 2, f"{peak:,} bytes at most, for {size:,} bytes of tickets"
