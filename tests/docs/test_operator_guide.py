"""The operator guide, done by somebody who does exactly what it says: from the application to a settled round.

The one rule kept here: the page is the test. Its shell blocks run as they stand, in one bash, against a real
coordinator; what it needs from outside (an address, a sandbox's file, a free port) is what its reader has.
"""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import children
from deploy.coordinator import coordinator, here
from deploy.data_folder import throw_away
from deploy.demo_round import Pace
from deploy.procfile import TOP, search_path
from deploy.sandbox import sandbox
from protocol.webhook import envelope, headers
from tests.docs.pages import Step, blocks, differences, steps
from tests.polling import until

PAGE = (TOP / "docs" / "operator-guide.md").read_text(encoding="utf-8")
BLOCKS = blocks(PAGE)
STEPS = steps(BLOCKS)
ROUND_EVENTS = ("opened", "sealing", "sealing_deadline", "sealed", "anchored", "escrowed", "drawn")
LONGEST_SECONDS = 120
# How long the guide's round sells and how long its steps take, on a machine at ease; half as long again on a slow
# one. Typing what has to be in by then takes a second or two.
SALES_SECONDS, STEP_SECONDS, SLOWEST = 6, 2, 1.5

# Not a character that any answer holds: stands in the output before that of each step.
MARK = "\x1e"
# A reader sees an error and stops. So does this one, except where the page says that there will be one.
STOP_AT_ERRORS = 'curl() { command curl --show-error --fail-with-body "$@"; }\n'
SHOW_WHY = "trap 'test $? = 0 || echo \"${ANSWER-}\"' EXIT\n"
GO_ON = 'curl() { command curl --show-error "$@"; }\n'


def script() -> str:
    """All that is typed, in order, with a mark before each step."""
    typed = [f"printf '{MARK}'\n{GO_ON if step.is_refused else STOP_AT_ERRORS}{step.typed.text}" for step in STEPS]
    return SHOW_WHY + "set -euo pipefail\n" + "".join(typed)


def run(folder: Path, environment: dict[str, str]) -> tuple[int, list[str]]:
    """Type all of it into a bash in ``folder``: its exit code, and what each step said as far as it came."""
    (folder / "typed.sh").write_text(script(), encoding="utf-8")
    with (folder / "said.txt").open("wb") as said:
        shell = children.spawn(
            ["bash", "typed.sh"], env=environment, output=said, death_signal=signal.SIGKILL, cwd=folder
        )
        try:
            code = shell.wait(LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            # The whole group: a receiver that a failed step left behind too.
            children.kill_group(shell)
    return code, (folder / "said.txt").read_text(encoding="utf-8").split(MARK)[1:]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def save_receiver(folder: Path) -> Path:
    """The page's one Python block, under the name that the page gives it."""
    (program,) = (block for block in BLOCKS if block.language == "python")
    named = re.search(r"Save this as `([a-z.]+)`", PAGE)
    assert named
    file = folder / named[1]
    file.write_text(program.text, encoding="utf-8")
    return file


def surroundings(folder: Path, **more: object) -> dict[str, str]:
    """What a reader has: the programs, Flask, the ``protocol`` package; and nothing of this machine's own settings."""
    plain = {
        "PATH": search_path(),
        "PYTHONPATH": str(TOP),
        "HOME": str(folder),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    return plain | {name: str(value) for name, value in more.items()}


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("database", "redis_url")
def test_who_does_what_the_guide_says_settles_a_round(tmp_path: Path) -> None:
    logs, desk = tmp_path / "logs", tmp_path / "desk"
    (desk / ".data").mkdir(parents=True)
    logs.mkdir()
    began = time.monotonic()
    # One process of each kind will do, and starts in half the time. The limits are those that the page speaks of.
    published = {name: value for name, value in os.environ.items() if not name.startswith("RATE_LIMIT_")}
    small = published | {"WEB_CONCURRENCY": "1", "WORKER_PROCESSES": "1"}
    with throw_away() as folder, coordinator(folder, log_dir=logs, environ=small) as running:
        slowness = min(SLOWEST, Pace.of_a_machine_that_starts_in(time.monotonic() - began).slowness)
        sandbox(running, desk / ".data" / "sandbox.json")
        save_receiver(desk)
        times = {"SALES": round(SALES_SECONDS * slowness), "STEP": round(STEP_SECONDS * slowness)}
        environment = surroundings(desk, BASE_URL=running.base_url, RECEIVER_PORT=free_port(), **times)
        code, said = run(desk, environment)
        assert code == 0, f"{where(STEPS[len(said) - 1])} failed ({code}):\n{said[-1]}"
        assert len(said) == len(STEPS)
        for step, output in zip(STEPS, said, strict=True):
            assert not (faults := compare(step, output)), f"{where(step)}: {'; '.join(faults)}\n{output}"
            if "protocol.verify" in step.typed.text:
                assert output.splitlines()[-1] == "verified"
        newest = here.get(f"{running.base_url}/api/public/rounds", timeout=10).json()["rounds"][0]
        assert newest["state"] in ("SETTLED", "CLOSED")

    told = [line.split(" ")[:2] for line in (desk / "receiver.log").read_text().splitlines()]
    heard = [event for event, round_id in told if round_id == str(newest["id"])]
    for event in ROUND_EVENTS:
        assert heard.count(f"round.{event}") == 1, f"round.{event} came {heard.count(f'round.{event}')} times"


def where(step: Step) -> str:
    return f"the block on line {step.typed.line} of the guide"


def compare(step: Step, output: str) -> list[str]:
    """What the page shows of an answer and the answer, the last line that the step wrote, does not have."""
    if step.answer is None:
        return []
    try:
        answer = json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        return ["the last line is no JSON"]
    return differences(step.answer, answer)


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The guide's receiver, running: its address, and the file that it writes to."""
    port, log = free_port(), tmp_path / "receiver.log"
    environment = surroundings(tmp_path, API_KEYS="sk_old_key sk_new_key", RECEIVER_PORT=port)
    with log.open("wb") as output:
        program = children.spawn(
            ["python3", str(save_receiver(tmp_path))], env=environment, output=output, death_signal=signal.SIGKILL
        )
        try:
            url = f"http://127.0.0.1:{port}/webhook"
            until(lambda: _listens(port), within=20)
            yield url, log
        finally:
            children.stop(program, signal.SIGTERM, 5)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


BODY = envelope("round.sealed", 7, "2026-02-01T10:00:00.000Z", {"roundId": 7, "sealedCount": 3})


def post(url: str, signed: dict[str, str], body: bytes = BODY) -> int:
    return here.post(url, body, headers=signed, timeout=10).status_code


def test_the_guides_receiver_believes_either_key_once_and_nothing_else(receiver: tuple[str, Path]) -> None:
    url, log = receiver
    now = int(time.time())
    signed = headers("round.sealed", "d-1", now, BODY, "sk_new_key")
    assert post(url, signed) == 200
    assert post(url, signed) == 200
    assert post(url, headers("round.sealed", "d-2", now, BODY, "sk_old_key")) == 200
    assert post(url, headers("round.sealed", "d-3", now, BODY, "sk_no_key")) == 401
    assert post(url, headers("round.sealed", "d-4", now - 400, BODY, "sk_new_key")) == 401
    assert post(url, signed, BODY.replace(b"7", b"8")) == 401
    for name, value in {
        "X-Service-Delivery": "d-5",  # a recorded delivery under another id, or at another time, is not signed
        "webhook-timestamp": str(now + 1),
        "X-Service-Signature": "é",
        "webhook-signature": "v1,",
    }.items():
        assert post(url, {**signed, name: value}) == 401, name
    assert post(url, {}) == 401

    def handled() -> list[str]:
        return [line for line in log.read_text().splitlines() if line.startswith("round.sealed ")]

    until(lambda: len(handled()) >= 2)
    assert handled() == ['round.sealed 7 {"roundId": 7, "sealedCount": 3}'] * 2
