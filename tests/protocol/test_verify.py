"""The verifier as a stranger runs it: a command line, files or a URL, an exit code and a last line."""

from __future__ import annotations

import gzip
import http.server
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.verify import main
from tests.protocol.rounds import Round, before_the_draw, make_failed_round, make_round


@pytest.fixture(scope="module")
def made() -> Round:
    return make_round(1, tickets={"opA": 25, "opB": 15}, nonces=("opA", "opB"))


def verify(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("packed", [False, True])
def test_an_honest_round_is_verified_from_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: Round, packed: bool
) -> None:
    code, out, _ = verify(capsys, made.save(tmp_path, packed=packed), "--tickets", tmp_path)
    assert (code, out.splitlines()[-1]) == (0, "verified")
    assert "✓ tickets of opA (25)" in out


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every string and number in a bundle that holds a digit."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from places(inner, (*path, place))
    elif isinstance(value, (str, int)) and not isinstance(value, bool) and re.search(r"\d", str(value)):
        yield path


def with_one_digit_changed(value: Any) -> Any:
    changed = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), str(value)[::-1], count=1)[::-1]
    return int(changed) if isinstance(value, int) else changed


def forged(bundle: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(bundle))
    holder: Any = copy
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = with_one_digit_changed(holder[path[-1]])
    return copy


def test_one_digit_changed_anywhere_in_the_bundle_is_found_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: Round
) -> None:
    made.save(tmp_path)
    tried = 0
    for path in places(made.bundle):
        changed = tmp_path / "changed.json"
        changed.write_text(json.dumps(forged(made.bundle, path)))
        code, out, err = verify(capsys, changed, "--tickets", tmp_path)
        assert code == 1, (path, out, err)
        last = out.splitlines()[-1]
        assert last.startswith("not verified: "), (path, last)
        assert len(last) > len("not verified: ") + 5
        tried += 1
    assert tried > 60


def test_one_digit_changed_in_any_ticket_is_found_and_its_operator_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: Round
) -> None:
    bundle = made.save(tmp_path)
    file = tmp_path / "opB.ndjson"
    honest = file.read_bytes()
    for place in [match.start() for match in re.finditer(rb"\d", honest)][::3]:
        digit = (int(honest[place : place + 1]) + 1) % 10
        file.write_bytes(honest[:place] + str(digit).encode() + honest[place + 1 :])
        code, out, _ = verify(capsys, bundle, "--tickets", tmp_path)
        assert code == 1, place
        assert "opB" in out.splitlines()[-1]


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: lines[:-1],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: [],
        lambda lines: [lines[0] + b" ", *lines[1:]],
    ],
)
def test_tickets_missing_repeated_reordered_or_rewritten_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: Round, damage: Any
) -> None:
    bundle = made.save(tmp_path)
    (tmp_path / "opA.ndjson").write_bytes(b"".join(line + b"\n" for line in damage(made.lines["opA"])))
    code, out, _ = verify(capsys, bundle, "--tickets", tmp_path)
    assert code == 1
    assert out.splitlines()[-1].startswith("not verified: ")
    assert "opA" in out.splitlines()[-1]


def test_a_file_cut_off_in_the_middle_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str], made: Round) -> None:
    bundle = made.save(tmp_path, packed=True)
    file = tmp_path / "opA.ndjson.gz"
    file.write_bytes(file.read_bytes()[:-20])
    code, out, err = verify(capsys, bundle, "--tickets", tmp_path)
    assert code in (1, 2)
    assert "opA" in out + err


def test_a_bundle_with_a_key_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], made: Round) -> None:
    path = made.save(tmp_path)
    path.write_text(path.read_text().replace('"roundId": 1,', '"roundId": 1, "roundId": 1,', 1))
    code, out, err = verify(capsys, path, "--tickets", tmp_path)
    assert code in (1, 2)
    assert "roundId" in out + err


def test_what_is_not_public_yet_is_not_claimed(tmp_path: Path, capsys: pytest.CaptureFixture[str], made: Round) -> None:
    code, out, _ = verify(capsys, before_the_draw(made, "ESCROWED").save(tmp_path), "--tickets", tmp_path)
    assert (code, out.splitlines()[-1]) == (0, "verified so far: ESCROWED")


@pytest.mark.parametrize(
    "arguments",
    [
        ["http://127.0.0.1:1", "--round", "1"],
        ["/nowhere/bundle.json"],
        ["http://127.0.0.1:1"],
        ["http://127.0.0.1:1", "--round", "0"],
        ["bundle.json", "--round", "1"],
        [],
    ],
)
def test_what_cannot_be_looked_at_ends_with_2_and_a_line(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "protocol.verify", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


@pytest.fixture
def coordinator() -> Iterator[tuple[str, dict[int, Round], list[int]]]:
    """A stand-in that serves bundles and tickets; the numbers in its list are statuses to answer first."""
    rounds: dict[int, Round] = {}
    first: list[int] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = re.fullmatch(r"/api/public/rounds/(\d+)/(proof|tickets/(.+))", self.path)
            made = rounds.get(int(found[1])) if found else None
            if first:
                self.answer(first.pop(0), b"{}", {"Retry-After": "0"})
            elif found is None or made is None:
                self.answer(404, b'{"error": "no such round", "code": "not_found"}', {})
            elif found[3] is None:
                self.answer(200, json.dumps(made.bundle).encode(), {})
            else:
                lines = b"".join(line + b"\n" for line in made.lines[found[3]])
                self.answer(200, gzip.compress(lines), {"Content-Encoding": "gzip"})

        def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", rounds, first
    server.shutdown()
    server.server_close()


def test_a_chain_of_rounds_is_verified_from_a_url(
    capsys: pytest.CaptureFixture[str], coordinator: tuple[str, dict[int, Round], list[int]]
) -> None:
    url, rounds, _ = coordinator
    rounds[1] = make_round(1)
    rounds[2] = make_failed_round(2, previous=rounds[1])
    # The failed round hands on its hash, the settled one before it the balances.
    rounds[3] = make_round(3, previous=Round(rounds[2].bundle | {"ledger": rounds[1].bundle["ledger"]}))
    code, out, err = verify(capsys, url, "--round", 3)
    assert (code, out.splitlines()[-1]) == (0, "verified"), out + err
    assert "✓ pool0 and reserve0" in out


def test_another_round_in_the_place_of_the_previous_one_is_found(
    capsys: pytest.CaptureFixture[str], coordinator: tuple[str, dict[int, Round], list[int]]
) -> None:
    url, rounds, _ = coordinator
    rounds[1] = make_round(1)
    rounds[2] = make_round(2, previous=rounds[1])
    rounds[1] = make_round(1, tickets={"opA": 3, "opB": 4})
    code, out, _ = verify(capsys, url, "--round", 2)
    assert code == 1
    assert "previous" in out.splitlines()[-1].lower()


def test_a_coordinator_that_asks_for_patience_gets_it(
    capsys: pytest.CaptureFixture[str], coordinator: tuple[str, dict[int, Round], list[int]]
) -> None:
    url, rounds, first = coordinator
    rounds[1] = make_round(1)
    first.extend([429, 503])
    assert verify(capsys, url, "--round", 1)[0] == 0


def test_an_unknown_round_is_said_to_be_unknown(
    capsys: pytest.CaptureFixture[str], coordinator: tuple[str, dict[int, Round], list[int]]
) -> None:
    code, _, err = verify(capsys, coordinator[0], "--round", 9)
    assert code == 2
    assert "9" in err
