"""The real nginx with the real ``deploy/nginx.conf``, on a free port of this machine.

The one rule kept here: the configuration is the file that is installed. Only what it leaves to the installation is
ours: where to listen, and where the web processes are.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.coordinator import claim_port
from deploy.procfile import TOP
from tests.polling import until

MAIN = """
{user}
worker_processes 2;
daemon off;
pid nginx.pid;
error_log error.log info;
events {{}}
http {{
    access_log off;
    client_body_temp_path bodies;
    proxy_temp_path answers;
    fastcgi_temp_path unused;
    uwsgi_temp_path unused;
    scgi_temp_path unused;
    include {edge};
}}
"""


def nginx_binary() -> str:
    """Debian puts it where only root looks."""
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if found is None:
        pytest.fail("nginx is needed here. On Debian: apt-get install nginx-light", pytrace=False)
    return found


@contextlib.contextmanager
def nginx(folder: Path, upstream: str, listen: str = "") -> Iterator[int]:
    """Run it in ``folder`` before ``upstream`` (host:port); the port it listens on. ``listen`` goes to listen.conf."""
    binary = nginx_binary()
    port = claim_port("127.0.0.1", 0)
    site = folder / "coordinator"
    site.mkdir(parents=True)
    (site / "upstream.conf").write_text(f"server {upstream};\n")
    (site / "listen.conf").write_text(f"listen 127.0.0.1:{port};\n{listen}\n")
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(MAIN.format(user=user, edge=TOP / "deploy" / "nginx.conf"))
    log = folder / "error.log"
    command = [binary, "-p", f"{folder}/", "-c", "nginx.conf", "-e", "error.log"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        until(lambda: process.poll() is not None or _listens(port), within=20, what="nginx listens")
        assert process.poll() is None, log.read_text()
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
