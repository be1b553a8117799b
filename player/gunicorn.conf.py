"""How a node's web processes serve: gunicorn's settings.

One rule: nothing is opened before the fork. A database connection shared by two processes corrupts both, so
the application is loaded in each worker, never in the master (no preload_app).
"""

import os
from typing import Any

from player.models.schema import exit_unless_usable
from player.payments.port import exit_unless_made

_sandbox = os.environ.get("SANDBOX", "").strip().lower() in {"1", "true", "yes", "on"}
# A sandbox is open to this machine only, unless HOST says otherwise.
_host = os.environ.get("HOST") or ("127.0.0.1" if _sandbox else "0.0.0.0")  # noqa: S104
bind = f"{_host}:{os.environ.get('PORT') or '8100'}"
worker_class = "gthread"
workers = int(os.environ.get("WEB_CONCURRENCY") or "2")
threads = int(os.environ.get("WEB_THREADS") or "8")
graceful_timeout = 20
timeout = 60
keepalive = 15
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108
accesslog = None
errorlog = "-"
loglevel = os.environ.get("LOG_LEVEL", "info").lower()
control_socket_disable = True
proc_name = "player-web"


def on_starting(server: Any) -> None:
    """Say why in one line and stop, instead of starting workers that cannot work."""
    exit_unless_usable("web")
    exit_unless_made("web")
