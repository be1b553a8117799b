"""`make bench-proofs`: proofs, the sealed tickets and the verifier, at a million tickets of one operator.

The one rule kept here: no ticket is asked for twice, so that nothing comes from memory. The rows are dropped before
anything is read from the archive.
"""

from __future__ import annotations

import gzip
import http.client
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

import psutil
from rich.console import Console
from rich.table import Table

from bench.web import prepare, serving
from deploy.data_folder import throw_away
from deploy.engines import engines, leave_on_sigterm
from deploy.procfile import TOP

TICKETS = int(os.environ.get("BENCH_TICKETS", "1000000"))
REQUESTS = int(os.environ.get("BENCH_REQUESTS", "1000"))
AIM_MS, AIM_BYTES, AIM_VERIFY_SECONDS = 50, 1_536, 10
CLIENTS = 4
_BARE = "/bare/"
_TICKET = "/api/public/rounds/1/tickets/op_a/t-{:09}"
_Row = tuple[str, str, str, str]
_T = TypeVar("_T")


class _Answer(NamedTuple):
    """How long an answer took, its bytes as they are, and its bytes as they were sent."""

    seconds: float
    plain: int
    packed: int


def main() -> None:
    """Measure and print the table."""
    leave_on_sigterm()
    with throw_away() as folder, engines(folder, environ={}) as servers:
        prepare(servers, ROUND_RETENTION="1")
        # Settings are read at import.
        from bench.large_round import play_large

        play_large(TICKETS)
        with serving("bench.reads_app:application") as (port, web):
            rows = [*_proofs(port, web), *_download(port, web), *_verify(port)]
    _show(rows)


def _proofs(port: int, web: psutil.Process) -> Iterator[_Row]:
    """Both proofs from rows, as of rounds of before there were archives, and from the archive, the rows dropped."""
    from bench.large_round import before_archives, without_rows

    _times(port, [_BARE] * 20)
    bare = statistics.median(each.seconds for each in _times(port, [_BARE] * REQUESTS))
    yield "bare view, p50", f"{bare * 1000:.1f} ms", "", ""
    tickets = iter(random.Random(7).sample(range(TICKETS), min(10 * REQUESTS, TICKETS)))
    with before_archives():
        yield from _latencies(port, web, "rows", tickets)[0]
    without_rows()
    rows, answers = _latencies(port, web, "the archive", tickets)
    yield from rows
    # Its neighbours stand on either side of the middle: they share no sibling.
    middle = 1 << (TICKETS - 1).bit_length() - 1
    answers["absence, at the worst place"] = _times(port, [f"{_TICKET.format(middle - 1)}./absence"])
    for kind, measured in answers.items():
        for how, sizes in (("plain", [each.plain for each in measured]), ("gzip", [each.packed for each in measured])):
            p99 = statistics.quantiles(sizes * 2, n=100)[98]
            yield f"{kind}, {how}", f"p99 {p99:,.0f} bytes", f"{max(sizes):,} at most", f"≤ {AIM_BYTES:,}"


def _latencies(
    port: int, web: psutil.Process, source: str, tickets: Iterator[int]
) -> tuple[list[_Row], dict[str, list[_Answer]]]:
    """Of each kind of proof, asked for by one client and by several at a time."""
    rows, answers = [], {}
    for kind, end in (("inclusion", "/proof"), ("absence", "./absence")):
        for clients in (1, CLIENTS):
            warm, *asked = [_TICKET.format(number) + end for number in islice(tickets, REQUESTS + 1)]
            _times(port, [warm])
            before = web.cpu_times()
            with ThreadPoolExecutor(clients) as pool:
                parts = pool.map(partial(_times, port), [asked[first::clients] for first in range(clients)])
                answers[kind] = [each for part in parts for each in part]
            after = web.cpu_times()
            own = (after.user + after.system - before.user - before.system) / len(asked)
            cuts = statistics.quantiles([each.seconds * 1000 for each in answers[kind]], n=100)
            rows.append(
                (
                    f"{kind} from {source}, {clients} at a time",
                    f"p50 {cuts[49]:.1f}, p99 {cuts[98]:.1f} ms",
                    f"{own * 1000:.1f} ms of CPU each",
                    f"p99 ≤ {AIM_MS} ms",
                )
            )
    return rows, answers


def _times(port: int, paths: list[str]) -> list[_Answer]:
    """Ask for one after the other on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    answers = []
    for path in paths:
        start = time.perf_counter()
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        seconds = time.perf_counter() - start
        if answer.status != 200:
            raise RuntimeError(body.decode(errors="replace"))
        plain = gzip.decompress(body) if answer.headers["Content-Encoding"] == "gzip" else body
        answers.append(_Answer(seconds, len(plain), len(body)))
    connection.close()
    return answers


def _download(port: int, web: psutil.Process) -> Iterator[_Row]:
    def take() -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/api/public/rounds/1/tickets/op_a")
        answer, size = connection.getresponse(), 0
        while block := answer.read(1 << 16):
            size += len(block)
        return size

    before = web.memory_info().rss
    seconds, size, peak = _watched(take, lambda: web.memory_info().rss)
    yield "all sealed tickets", f"{seconds:.1f} s", f"{size / 1e6:.0f} MB, {TICKETS / seconds:,.0f} tickets/s", ""
    yield "… memory of the web process", f"{peak / 2**20:.0f} MiB", f"{(peak - before) / 2**20:.0f} more", ""


def _verify(port: int) -> Iterator[_Row]:
    command = [sys.executable, "-m", "protocol.verify", f"http://127.0.0.1:{port}", "--round", "1"]
    with subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True) as verifier:
        process = psutil.Process(verifier.pid)

        def rss() -> int:
            return process.memory_info().rss if verifier.poll() is None else 0

        seconds, (told, _), peak = _watched(verifier.communicate, rss)
    if not told.endswith("\nverified\n"):
        raise RuntimeError(told)
    yield "protocol.verify, over HTTP", f"{seconds:.1f} s", f"{peak / 2**20:.0f} MiB", f"≤ {AIM_VERIFY_SECONDS} s"


def _watched(work: Callable[[], _T], memory: Callable[[], int]) -> tuple[float, _T, int]:
    """Seconds, what came out, and the most memory meanwhile, bytes."""
    peak, start = memory(), time.perf_counter()
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        while not working.done():
            peak = max(peak, memory())
            time.sleep(0.02)
    return time.perf_counter() - start, working.result(), peak


def _show(rows: list[_Row]) -> None:
    table = Table(title=f"{TICKETS:,} tickets of one operator, one web process")
    for heading in ("what", "measured", "", "aim"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
