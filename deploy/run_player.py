"""`make run-player`: an operator's node on this machine until Ctrl-C, beside a coordinator that `make run` started.

One rule: it ends the way it says. Started, it prints where and with which key; stopped, it has stopped all of it;
failed, it prints one message and leaves nothing running.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import requests

from deploy.beside import write_command
from deploy.data_folder import hold
from deploy.failure import StartFailure
from deploy.foreground import in_foreground, until_stopped
from deploy.keys import write_private
from deploy.player_node import STAFF_KEY, player_node, staff_key
from deploy.processes import Running, here, port_of


def main() -> int:
    return in_foreground("run-player", _run)


def _run() -> None:
    data = Path(os.environ.get("DATA_DIR") or ".data-player")
    port = port_of(os.environ.get("PORT") or "8100")
    in_sandbox = (os.environ.get("SANDBOX") or "1").strip().lower() in {"1", "true", "yes", "on"}
    coordinator_url = os.environ.get("COORDINATOR_URL") or "http://127.0.0.1:8000"
    api_key = os.environ.get("OPERATOR_API_KEY") or _sandbox_key()
    with hold(data) as folder:
        print(f"starting: data in {data}, port {port}, coordinator {coordinator_url}", flush=True)
        with player_node(folder, coordinator_url, api_key, port, durable=True, sandbox=in_sandbox) as node:
            if in_sandbox:
                file = data / "node.json"
                content = {"baseUrl": node.base_url, "adminKey": _kept_key(file, node) or staff_key(node)}
                write_private(file, content)
                print(json.dumps(content, indent=2))
                print(f"the same is in {file}")
            write_command(data / "staff-key", node, STAFF_KEY)
            print(f"keys for others: {data / 'staff-key'} --help")
            until_stopped(node)


def _sandbox_key() -> str:
    """The API key of one of the sandbox's operators: OPERATOR 1, 2 or 3 in SANDBOX_FILE."""
    file, chosen = Path(os.environ.get("SANDBOX_FILE") or ".data/sandbox.json"), os.environ.get("OPERATOR") or "1"
    try:
        operators: list[dict[str, Any]] = json.loads(file.read_text())["operators"]
        numbered = {str(number): operator for number, operator in enumerate(operators, 1)}
        return str(numbered[chosen]["apiKey"])
    except FileNotFoundError:
        raise StartFailure(
            f"no API key: set OPERATOR_API_KEY, or start a coordinator first (`make run` writes {file})"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise StartFailure(f"there is no operator {chosen} in {file}: OPERATOR=1, 2 or 3 names one") from None


def _kept_key(file: Path, node: Running) -> str | None:
    """The staff key of the last run, if this database knows it."""
    try:
        key = str(json.loads(file.read_text())["adminKey"])
        known = here.get(f"{node.base_url}/api/admin/players", headers={"X-Admin-Key": key}, timeout=30)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    except requests.RequestException as error:
        raise StartFailure(f"GET {node.base_url}/api/admin/players: {type(error).__name__}") from None
    return None if known.status_code == 401 else key


if __name__ == "__main__":
    sys.exit(main())
