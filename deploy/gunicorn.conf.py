"""How the web processes serve: gunicorn's settings.

One rule: nothing is opened before the fork. A database connection shared by two processes corrupts both, so
the application is loaded in each worker, never in the master (no preload_app).
"""

import os
from typing import Any

from deploy import plain_errors
from models.schema import exit_unless_usable

_sandbox = os.environ.get("SANDBOX", "").strip().lower() in {"1", "true", "yes", "on"}

# A sandbox is open to this machine only, unless HOST says otherwise.
_host = os.environ.get("HOST") or ("127.0.0.1" if _sandbox else "0.0.0.0")  # noqa: S104
bind = f"{_host}:{os.environ.get('PORT') or '8000'}"

worker_class = "gthread"
workers = int(os.environ.get("WEB_CONCURRENCY") or "2")
threads = int(os.environ.get("WEB_THREADS") or "8")

# SIGTERM: finish the requests in hand. Five seconds less than a platform gives before it kills.
graceful_timeout = 20
# Longer than the slowest honest request (a full batch of tickets over a slow line).
timeout = 60
# An idle client keeps its connection this long: heartbeats of a busy operator share one.
keepalive = 15

# Workers prove they live by touching a file. On a disk that stalls, so does the proof.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108

# Gunicorn believes no proxy but those on this machine, and only about the scheme.
forwarded_allow_ips = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1,::1")

# Requests are logged by the application, as structured lines with the round and the operator in them.
accesslog = None
errorlog = "-"
loglevel = os.environ.get("LOG_LEVEL", "info").lower()
capture_output = False

# What is not HTTP never reaches the application; it is answered in JSON all the same.
plain_errors.install()

# The control socket is a second door with no lock of ours on it.
control_socket_disable = True

proc_name = "coordinator-web"


def on_starting(server: Any) -> None:
    """Say why in one line and stop, instead of starting workers that cannot work."""
    exit_unless_usable("web")
