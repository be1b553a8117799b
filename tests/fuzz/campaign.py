"""A fuzzing campaign: a real coordinator with a little history, schemathesis as everybody who may knock, its findings.

One rule: nothing of it outlives it. The coordinator and every fuzzer are our children, its folder and its reports are
thrown away; what remains is the outcome.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from deploy import children
from deploy.coordinator import Coordinator, coordinator, here
from deploy.data_folder import throw_away
from deploy.processes import Running
from deploy.procfile import TOP, search_path
from deploy.sandbox import admin_key
from tests.chaos.playing import Lottery, furnish, open_round, take_part
from tests.dns_server import naming
from tests.polling import until

CONFIGURATION = "tests/fuzz/schemathesis.toml"
ADMIN_ROLES = ("reviewer", "treasurer", "oncall")
NO_LIMITS = {"RATE_LIMIT_PUBLIC": "1000000/second", "RATE_LIMIT_AUTHENTICATED": "1000000/second"}
# What a fuzzer may take longer than it was given: loading the schema, finishing its last example, writing its report.
PATIENCE = 60.0


@dataclass(frozen=True)
class Somebody:
    """Who knocks: a credential (or none), which paths are tried with it, and for which share of the time."""

    name: str
    headers: Mapping[str, str]
    paths: str
    share: float


@dataclass(frozen=True)
class Finding:
    """One thing that is not as the published document says it is."""

    who: str
    operation: str
    what: str
    curl: str

    def __str__(self) -> str:
        return f"{self.operation} as {self.who}: {self.what}\n    {self.curl}"


@dataclass(frozen=True)
class Outcome:
    """What came of a campaign."""

    seed: int
    requests: int
    findings: Sequence[Finding]

    def __str__(self) -> str:
        return f"fuzz: {self.requests} requests, {len(self.findings)} findings (SEED={self.seed})"


def campaign(seconds: float, seed: int, say: Callable[[str], None] = print) -> Outcome:
    """Fuzz for so many seconds, everybody in turn; the same seed makes up the same requests."""
    clean = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(throw_away())
        # Made-up hosts are made up everywhere: they do not exist, whether this machine has a DNS or not.
        environ = clean | NO_LIMITS | {"DNS_SERVERS": stack.enter_context(naming()).address}
        running = stack.enter_context(coordinator(folder, log_dir=folder.path, environ=environ))
        lottery = furnish(running)
        with_some_history(lottery, seed)
        requests, findings = 0, []
        for somebody in everybody(running, lottery):
            sent, found = knock(running, somebody, seconds * somebody.share, seed, folder.path)
            say(f"as {somebody.name}: {sent} requests, {len(found)} findings")
            requests += sent
            findings += found
        findings += list(what_remains(running, lottery, folder.path))
    return Outcome(seed, requests, findings)


def with_some_history(lottery: Lottery, seed: int) -> None:
    """Round 1 is CLOSED and has winners, round 2 has tickets and sells more."""
    first = open_round(lottery, (3, 0.2, 0.2, 0.2, 0.2, 0.2))
    take_part(lottery, first, seed, tickets=500)
    until(lambda: lottery.get(f"/api/public/rounds/{first}")["state"] == "CLOSED", within=60, what="round 1 to close")
    open_round(lottery, (3_600, 60, 60, 60, 60, 60))


def everybody(running: Coordinator, lottery: Lottery) -> list[Somebody]:
    """Nobody in particular, an operator by its key and by a token, and an admin of every role."""
    operator = next(iter(lottery.operators.values()))
    token = lottery.post("/api/auth/operator/login", {"apiKey": operator})["accessToken"]
    roles = [(role, admin_key(running, "fuzz", role)) for role in ADMIN_ROLES]
    return [
        Somebody("nobody", {}, "^/", 0.2),
        Somebody("operator", {"X-Service-Key": operator}, "^/api/(operator|auth)/", 0.25),
        Somebody("operator with a token", {"Authorization": f"Bearer {token}"}, "^/api/operator/", 0.05),
        *(Somebody(role, {"X-Service-Admin-Key": key}, "^/api/admin/", 0.08) for role, key in roles),
        Somebody("root", {"X-Service-Admin-Key": lottery.admin}, "^/api/(admin|public)/", 0.26),
    ]


def knock(
    running: Coordinator | Running, somebody: Somebody, seconds: float, seed: int, folder: Path
) -> tuple[int, list[Finding]]:
    """Run the fuzzer once; the number of its requests and what it found."""
    count, report, log = (folder / f"{somebody.name.replace(' ', '-')}.{kind}" for kind in ("count", "xml", "fuzz"))
    command = [
        *("schemathesis", "--config-file", CONFIGURATION, "run", f"{running.base_url}/openapi.json"),
        *("--url", running.base_url, "--include-path-regex", somebody.paths, "--seed", str(seed)),
        *("--max-time", str(max(1, round(seconds))), "--report", "junit", "--report-junit-path", str(report)),
    ]
    for name, value in somebody.headers.items():
        command += ["--header", f"{name}: {value}"]
    env = os.environ | {"FUZZ_COUNT_FILE": str(count), "PATH": search_path()}
    with children.open_log(log) as output:
        process = children.spawn(command, env=env, output=output, death_signal=signal.SIGTERM, cwd=TOP)
    deadline = time.monotonic() + seconds + PATIENCE
    try:
        until(lambda: process.poll() is not None, within=deadline - time.monotonic(), what="the fuzzer to end")
    finally:
        children.stop(process, signal.SIGTERM, 5)
    sent = int(count.read_text()) if count.exists() else 0
    found = list(reported(somebody, report)) if report.exists() else []
    if process.returncode and not found:
        found = [Finding(somebody.name, "the fuzzer", f"ended with {process.returncode}", children.last_lines(log, 40))]
    return sent, found


def reported(somebody: Somebody, report: Path) -> Iterator[Finding]:
    """The findings in a report: each failed example is numbered, names its checks, and ends with a curl line."""
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - written by the fuzzer just now
        for problem in case:
            if problem.tag not in ("failure", "error"):
                continue
            text = problem.text or problem.get("message") or ""
            examples = re.split(r"^\d+\. Test Case ID: \w+$", text, flags=re.MULTILINE)
            for example in examples[1:] or examples:
                checks = re.findall(r"^- (ST\d+ .*)$", example, flags=re.MULTILINE)
                _, _, replay = example.partition("Reproduce with:")
                what = "; ".join(checks) or example.strip()
                yield Finding(somebody.name, case.get("name", ""), what, replay.strip() or "(no request)")


def what_remains(running: Coordinator, lottery: Lottery, folder: Path) -> Iterator[Finding]:
    """Whatever was sent: every process lives, nothing unexpected is in the logs, and no money is made or lost."""
    yield from unwell(running, folder, ("web", "worker", "scheduler"))
    if (total := lottery.rows("SELECT coalesce(sum(balance), 0)::bigint FROM ledger_accounts")) != [(0,)]:
        yield Finding("anybody", "the ledger", f"its accounts add up to {total[0][0]}", "afterwards")


def unwell(running: Coordinator | Running, folder: Path, logs: Sequence[str]) -> Iterator[Finding]:
    """What does not live any more, and what was unexpected by the logs."""
    ready = here.get(f"{running.base_url}/health/ready", timeout=30)
    if ready.status_code != 200:
        yield Finding("anybody", "GET /health/ready", ready.text, "afterwards")
    for log in logs:
        lines = (folder / f"{log}.log").read_text(errors="replace").splitlines()
        bad = [line for line in lines if '"level": "error"' in line or "Traceback" in line or "died with" in line]
        if bad:
            yield Finding("anybody", f"the log of {log}", f"{len(bad)} errors, the last of them {bad[-1][-2_000:]}", "")
