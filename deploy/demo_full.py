"""`make demo-full`: a coordinator, two nodes and fifty players, through a whole round, to the last micro-USDC.

One rule: three systems, each with engines of its own, that talk over HTTP and share nothing. The last line says
`reconciled` only when every balance is what it must be.

    python -m deploy.demo_full [plain] [no-webhooks] [kill]
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import secrets
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from deploy.coordinator import coordinator
from deploy.data_folder import throw_away
from deploy.demo_books import Operator, reconcile
from deploy.demo_full_round import PACE, PLAYERS, UNDER_FIRE, Pace, draw_and_claim, open_and_sell, register
from deploy.demo_killer import Killer
from deploy.demo_screen import Screen
from deploy.engines import leave_on_sigterm
from deploy.failure import Failure
from deploy.player_node import player_node, staff_key
from deploy.sandbox import admin_key, operator

VARIANTS = ("plain", "no-webhooks", "kill")
_NAMES = ("Alba", "Bora")
_FUNDS = 1_000_000_000 * 1_000_000
"""What the sandbox gives an operator, micro-USDC."""

# One process of each kind will do. Fifty players behind one address ask more than the published limits allow one.
_SMALL = {"WEB_CONCURRENCY": "1", "WORKER_PROCESSES": "1"}
_NODE = {"RATE_LIMITS": "off", "HEARTBEAT_SECONDS": "5"}
_NOBODY_LISTENS = "http://127.0.0.1:9/"
_INHERITED = ("PATH", "HOME", "USER", "TMPDIR", "TZ", "LANG", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONPATH")


def main(arguments: Sequence[str]) -> int:
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    leave_on_sigterm()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.update(NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    wanted = [argument.removeprefix("--") for argument in arguments] or list(VARIANTS)
    if unknown := [each for each in wanted if each not in VARIANTS]:
        print(f"demo-full: no variant {unknown[0]!r}; there are {', '.join(VARIANTS)}", file=sys.stderr)
        return 2
    screen = Screen()
    try:
        for variant in wanted:
            _demonstrate(variant, screen)
    except (Failure, OSError) as failure:
        print(f"demo-full: failed: {failure}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print("demo-full: interrupted, everything is stopped", file=sys.stderr, flush=True)
        return 130
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    print("demo-full: reconciled", flush=True)
    return 0


def _demonstrate(variant: str, screen: Screen) -> None:
    pace = UNDER_FIRE if variant == "kill" else PACE
    seed = int(os.environ.get("SEED") or secrets.randbits(32))
    screen.step(f"{variant}: seed {seed} (SEED={seed} gives the same tickets and kills)")
    environ = {name: os.environ[name] for name in _INHERITED if name in os.environ} | _SMALL
    with throw_away() as folder, contextlib.ExitStack() as running:
        try:
            lottery = running.enter_context(coordinator(folder, log_dir=folder.path / "logs", environ=environ))
            key = admin_key(lottery, "demo")
            operators = [
                running.enter_context(_operator(name, lottery.base_url, key, variant, pace, environ)) for name in _NAMES
            ]
            screen.step(f"coordinator at {lottery.base_url}, nodes at {', '.join(o.node.base_url for o in operators)}")
            seconds = register(operators, variant)
            screen.step(f"{PLAYERS * len(operators)} players registered and paid in, in {seconds:.0f} s")
            killer = Killer(operators[0].node, seed) if variant == "kill" else None
            with killer or contextlib.nullcontext():
                round_id = open_and_sell(operators, lottery.base_url, key, seed, pace, seconds, screen)
                draw_and_claim(operators, lottery.base_url, round_id, screen)
            if killer:
                screen.step(f"processes of {operators[0].name} were killed {killer.killed} times")
            _check_webhooks(operators, variant, screen)
            books = reconcile(operators, round_id, lottery.base_url, key, screen.step)
            screen.table(books.table)
            screen.step(f"{variant}: {books.compared} amounts are what they must be")
        except Failure as failure:
            raise Failure(f"{variant}: {failure}{_last_words(folder.path)}") from None


@contextlib.contextmanager
def _operator(
    name: str, url: str, key: str, variant: str, pace: Pace, environ: Mapping[str, str]
) -> Iterator[Operator]:
    made = operator(url, key, f"Operator {name}")
    webhooks = {"WEBHOOK_URL": _NOBODY_LISTENS if variant == "no-webhooks" else "on"}
    settings = {**environ, **_NODE, **webhooks, "SALES_LEAD_SECONDS": f"{pace.lead:.0f}"}
    with (
        throw_away() as folder,
        player_node(folder, url, made["apiKey"], log_dir=folder.path / "logs", environ=settings) as node,
    ):
        try:
            yield Operator(name, made["operatorId"], made["apiKey"], _FUNDS, node, staff_key(node, "demo"))
        except Failure as failure:
            raise Failure(f"{failure}{_last_words(folder.path)}") from None


def _check_webhooks(operators: Sequence[Operator], variant: str, screen: Screen) -> None:
    received = [operator.staff("webhooks?limit=200")["count"] for operator in operators]
    if variant == "no-webhooks" and any(received):
        raise Failure(f"webhooks were to be blocked, and {sum(received)} came")
    if variant == "plain" and not all(received):
        raise Failure("no webhook came to a node that listens")
    screen.step(f"webhooks received: {', '.join(f'{o.name} {n}' for o, n in zip(operators, received, strict=True))}")


def _last_words(folder: Path) -> str:
    """What the logs in a folder complain of, before the folder is gone."""
    found = []
    for file in sorted((folder / "logs").glob("*.log")):
        lines = [line for line in file.read_text(errors="replace").splitlines() if '"error"' in line or "Error" in line]
        found += [f"\n{file.name}: {line[:400]}" for line in lines[-4:]]
    return "".join(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
