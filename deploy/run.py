"""`make run`: the coordinator on this machine until Ctrl-C.

One rule: it ends the way it says. Started, it prints where and with which keys; stopped, it has stopped all
of it; failed, it prints one message and leaves nothing running.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

from deploy.coordinator import coordinator
from deploy.data_folder import hold
from deploy.engines import leave_on_sigterm
from deploy.failure import Failure
from deploy.processes import port_of
from deploy.sandbox import sandbox


def main() -> int:
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    leave_on_sigterm()
    try:
        _run()
    except Failure as failure:
        print(f"run: {failure}", file=sys.stderr, flush=True)
        return 1
    except OSError as error:
        print(f"run: {error}", file=sys.stderr, flush=True)
        return 1
    except (KeyboardInterrupt, SystemExit):
        pass
    print("stopped", flush=True)
    return 0


def _run() -> None:
    data = Path(os.environ.get("DATA_DIR") or ".data")
    port = port_of(os.environ.get("PORT") or "8000")
    in_sandbox = (os.environ.get("SANDBOX") or "1").strip().lower() in {"1", "true", "yes", "on"}
    with hold(data) as folder:
        print(f"starting: data in {data}, port {port}", flush=True)
        with coordinator(folder, port, durable=True, sandbox=in_sandbox) as running:
            if in_sandbox:
                file = data / "sandbox.json"
                content = sandbox(running, file)
                print(json.dumps(content, indent=2))
                print(f"the same is in {file}")
            print(f"ready: {running.base_url} (Ctrl-C stops it)", flush=True)
            try:
                running.supervisor.wait()
            except (KeyboardInterrupt, SystemExit):
                print("\nstopping: requests and work in hand are finished first", flush=True)
                raise


if __name__ == "__main__":
    sys.exit(main())
