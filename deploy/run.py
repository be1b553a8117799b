"""`make run`: the coordinator on this machine until Ctrl-C.

One rule: it ends the way it says. Started, it prints where and with which keys; stopped, it has stopped all
of it; failed, it prints one message and leaves nothing running.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from deploy.beside import write_command
from deploy.coordinator import coordinator
from deploy.data_folder import hold
from deploy.foreground import in_foreground, until_stopped
from deploy.processes import port_of
from deploy.sandbox import sandbox


def main() -> int:
    return in_foreground("run", _run)


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
            write_command(data / "ops", running, ["flask", "--app", "app", "ops"])
            print(f"its command line: {data / 'ops'} --help")
            until_stopped(running)


if __name__ == "__main__":
    sys.exit(main())
