"""What is around a measurement: settings for benches only, the schema, and a web server of our own.

One rule: settings are read at import, so `prepare` comes before anything of the product is imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from deploy.coordinator import claim_port
from deploy.engines import Engines
from deploy.procfile import TOP, search_path

UNLIMITED = {"RATE_LIMIT_PUBLIC": "100000000/minute", "RATE_LIMIT_AUTHENTICATED": "100000000/minute"}
_ANSWERS_WITHIN = 20.0
_STOPS_WITHIN = 30.0


def environment(servers: Engines, **more: str) -> dict[str, str]:
    """The settings of whatever is measured on these engines, without limits on anybody; `more` are a bench's own."""
    return {
        **servers.environment,
        "ENCRYPTION_KEYS": "YmVuY2hlcyBvbmx5LCBub3QgYSBzZWNyZXQgYXQgYWw=",
        "JWT_KEYS": "bench:" + "for benches only " * 5,
        "SANDBOX": "1",
        "LOG_LEVEL": "warning",
        "PATH": search_path(),
        **UNLIMITED,
        **more,
    }


def prepare(servers: Engines, **more: str) -> None:
    """Make these settings ours and our children's, and bring the database to the newest schema."""
    os.environ.update(environment(servers, **more))
    subprocess.run([sys.executable, "-m", "alembic", "upgrade", "head"], cwd=TOP, check=True, capture_output=True)


@contextmanager
def serving(application: str, processes: str = "1") -> Iterator[tuple[int, psutil.Process]]:
    """Serve `module:name` with the product's gunicorn while the context lasts; yields the port and the first process
    that serves.
    """
    port = claim_port("127.0.0.1", 0)
    web = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", application],
        cwd=TOP,
        env=os.environ | {"PORT": str(port), "WEB_CONCURRENCY": processes},
    )
    try:
        _wait_for(port)
        yield port, psutil.Process(web.pid).children()[0]
    finally:
        web.terminate()
        web.wait(timeout=_STOPS_WITHIN)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _ANSWERS_WITHIN
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
