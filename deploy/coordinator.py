"""The coordinator on this machine: engines, migrations, the trio, ready to answer.

One rule: what a sandbox is allowed beyond the published limits is said here and nowhere else.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from deploy.data_folder import DataFolder
from deploy.keys import OF_A_COORDINATOR, keys
from deploy.processes import Running as Coordinator
from deploy.processes import claim_port, here, running
from deploy.procfile import TOP

__all__ = ["Coordinator", "claim_port", "coordinator", "here"]

# A sandbox is one machine on which a script plays every operator and looks often: a hundred times what is published.
_SANDBOX_LIMITS = {"RATE_LIMIT_PUBLIC": "6000/minute", "RATE_LIMIT_AUTHENTICATED": "12000/minute"}


@contextlib.contextmanager
def coordinator(
    folder: DataFolder,
    port: int = 0,
    *,
    durable: bool = False,
    sandbox: bool = True,
    log_dir: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Coordinator]:
    """Start everything on `port` (0: a free one) with the data in `folder`; Failure says why it cannot.

    The processes' output goes to `log_dir`/NAME.log, or line by line to our standard output. `environ` is
    what the processes inherit; DATABASE_URL, REDIS_URL, ENCRYPTION_KEYS and JWT_KEYS in it are respected.
    """
    host = environ.get("HOST") or ("127.0.0.1" if sandbox else "0.0.0.0")  # noqa: S104
    port = claim_port(host, port)
    settings = {**keys(folder, environ, OF_A_COORDINATOR), "SANDBOX": "1" if sandbox else "0"}
    inherited = {**(_SANDBOX_LIMITS if sandbox else {}), **environ}
    with running(
        folder, TOP / "Procfile", settings,
        host=host, port=port, cwd=TOP, durable=durable, log_dir=log_dir, environ=inherited,
    ) as started:  # fmt: skip
        yield started
