"""An operator's node on this machine: engines of its own, migrations, its web, worker and clock, ready to answer.

One rule: it is told of the coordinator what any operator is told, an address and an API key.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from deploy.data_folder import DataFolder
from deploy.failure import StartFailure
from deploy.keys import OF_A_NODE, keys
from deploy.processes import Running, address, claim_port, running
from deploy.procfile import TOP

STAFF_KEY = ("flask", "--app", "player.api.factory", "staff-key")


@contextlib.contextmanager
def player_node(
    folder: DataFolder,
    coordinator_url: str,
    api_key: str,
    port: int = 0,
    *,
    durable: bool = False,
    sandbox: bool = True,
    log_dir: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Running]:
    """Start everything on `port` (0: a free one) with the data in `folder`; Failure says why it cannot.

    What player/settings.py reads and `environ` has is respected: DATABASE_URL, JWT_KEYS, PUBLIC_URL and so on.
    """
    host = environ.get("HOST") or ("127.0.0.1" if sandbox else "0.0.0.0")  # noqa: S104
    port = claim_port(host, port)
    settings = {
        **keys(folder, environ, OF_A_NODE),
        "SANDBOX": "1" if sandbox else "0",
        "COORDINATOR_URL": coordinator_url,
        "OPERATOR_API_KEY": api_key,
        "PUBLIC_URL": environ.get("PUBLIC_URL") or address(host, port),
    }
    with running(
        folder, TOP / "player" / "Procfile", settings,
        host=host, port=port, cwd=TOP, durable=durable, log_dir=log_dir, environ=environ,
    ) as started:  # fmt: skip
        yield started


def staff_key(node: Running, name: str = "sandbox") -> str:
    """A fresh key of the node's admin API, made as somebody with a shell on the node makes one."""
    command = [*STAFF_KEY, "create", "--json", "--name", name]
    done = subprocess.run(command, cwd=TOP, env=dict(node.env), capture_output=True, text=True, timeout=60, check=False)
    try:
        return str(json.loads(done.stdout)["staffKey"])
    except (ValueError, KeyError, TypeError):
        raise StartFailure(f"cannot make a staff key:\n{done.stderr.strip() or done.stdout.strip()}") from None
