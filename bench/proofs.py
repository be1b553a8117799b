"""`make bench-proofs`: proofs, the sealed tickets and the verifier, at a million tickets of one operator.

The one rule kept here: no ticket is asked for twice, so that nothing comes from memory; and the rows are dropped
before, so that all of it comes from the archive.
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
from typing import TypeVar

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
_Row = tuple[str, str, str, str]
_T = TypeVar("_T")


def main() -> None:
    """Measure and print the table."""
    leave_on_sigterm()
    with throw_away() as folder, engines(folder, environ={}) as servers:
        prepare(servers, ROUND_RETENTION="1")
        # Settings are read at import.
        from bench.large_round import play_large, without_rows

        play_large(TICKETS)
        without_rows()
        with serving("bench.reads_app:application") as (port, web):
            rows = [*_proofs(port), *_download(port, web), *_verify(port)]
    _show(rows)


def _proofs(port: int) -> Iterator[_Row]:
    pick = random.Random(7)
    numbers = pick.sample(range(TICKETS), min(2 * REQUESTS, TICKETS))
    base = "/api/public/rounds/1/tickets/op_a"
    paths = {
        "bare view": ["/bare/"] * REQUESTS,
        "inclusion": [f"{base}/t-{number:09}/proof" for number in numbers[:REQUESTS]],
        "absence": [f"{base}/t-{number:09}./absence" for number in numbers[REQUESTS:]],
    }
    bare = 0.0
    for name, asked in paths.items():
        _times(port, asked[:20] if name == "bare view" else [asked[0]])
        times, plain, packed = _times(port, asked)
        p50, p99 = statistics.median(times), statistics.quantiles(times, n=100)[98]
        bare = bare or p50
        yield f"{name}, p50", f"{p50 * 1000:.1f} ms", f"{p50 / bare:.0f} × the bare view", ""
        if name != "bare view":
            yield f"{name}, p99", f"{p99 * 1000:.1f} ms", "", f"≤ {AIM_MS} ms"
            size = statistics.quantiles(packed, n=100)[98]
            yield f"{name}, gzip, p99", f"{size:,.0f} bytes", f"{max(packed):,} at most", f"≤ {AIM_BYTES:,}"
            yield f"{name}, plain", f"{max(plain):,} bytes", "", ""


def _times(port: int, paths: list[str]) -> tuple[list[float], list[int], list[int]]:
    """Of each answer: seconds, bytes as they are, and bytes as they are sent."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    times, plain, packed = [], [], []
    for path in paths:
        start = time.perf_counter()
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        times.append(time.perf_counter() - start)
        if answer.status != 200:
            raise RuntimeError(body.decode(errors="replace"))
        packed.append(len(body))
        plain.append(len(gzip.decompress(body)) if answer.headers["Content-Encoding"] == "gzip" else len(body))
    connection.close()
    return times, plain, packed


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
    table = Table(title=f"{TICKETS:,} tickets of one operator, read from the archive, one web process")
    for heading in ("what", "measured", "", "aim"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
