"""The sandbox a first `make run` furnishes: an admin key, and operators with money to play with.

One rule: it goes through the front door. Operators apply, are approved and funded over HTTP like anybody
else.
"""

from __future__ import annotations

import json
import secrets
import subprocess
from pathlib import Path
from typing import Any

import requests

from deploy.coordinator import Coordinator, here
from deploy.failure import StartFailure
from deploy.keys import write_private
from deploy.procfile import TOP

_OPERATORS = 3
_DEPOSIT_MICRO_USDC = 1_000_000_000 * 1_000_000
_SECONDS = 30


def sandbox(running: Coordinator, file: Path) -> dict[str, Any]:
    """`{"baseUrl", "adminKey", "operators": [{"operatorId", "apiKey"}]}`, also kept in `file`.

    What `file` holds is used again if this database knows its admin key; otherwise everything is made anew.
    """
    content = _kept(file, running.base_url)
    if content is None:
        key = admin_key(running)
        operators = [operator(running.base_url, key, f"Sandbox {n}") for n in range(1, _OPERATORS + 1)]
        content = {"baseUrl": running.base_url, "adminKey": key, "operators": operators}
    content["baseUrl"] = running.base_url
    write_private(file, content)
    return content


def admin_key(running: Coordinator, name: str = "sandbox", role: str = "root") -> str:
    """A fresh admin key, made the way an administrator makes the first one; ``root`` may do everything."""
    command = [
        *["flask", "--app", "app", "ops", "admin-key", "create", "--json", "--role", role, "--name"],
        name,
    ]
    try:
        done = subprocess.run(
            command, cwd=TOP, env=dict(running.env), capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise StartFailure(f"cannot make an admin key within {late.timeout:.0f} s: this machine is very busy") from None
    try:
        return str(json.loads(done.stdout)["adminKey"])
    except (ValueError, KeyError, TypeError):
        raise StartFailure(f"cannot make an admin key:\n{done.stderr.strip() or done.stdout.strip()}") from None


def operator(base_url: str, key: str, company: str) -> dict[str, str]:
    """Apply, approve and fund one operator; its `operatorId` and `apiKey`."""
    tag = secrets.token_hex(4)  # One application may be pending per e-mail; an interrupted start leaves one.
    application = _post(
        f"{base_url}/api/public/apply",
        {
            "companyName": company,
            "jurisdiction": "Malta",
            "gamingLicenseNumber": f"SANDBOX-{tag}",
            "contactEmail": f"operator-{tag}@example.com",
            "contactName": "Sandbox Operator",
            "ethereumAddress": f"0x{secrets.token_hex(20)}",
        },
    )
    approve = f"{base_url}/api/admin/applications/{application['applicationId']}/approve"
    approved = _post(approve, {"reviewNote": "sandbox"}, key)
    deposit = {"amountUsdc": str(_DEPOSIT_MICRO_USDC), "reference": f"sandbox-{tag}"}
    _post(f"{base_url}/api/admin/operators/{approved['operatorId']}/deposits", deposit, key)
    return {"operatorId": approved["operatorId"], "apiKey": approved["apiKey"]}


def _post(url: str, body: dict[str, str], key: str | None = None) -> dict[str, Any]:
    headers = {} if key is None else {"X-Service-Admin-Key": key}
    try:
        response = here.post(url, json=body, headers=headers, timeout=_SECONDS)
    except requests.RequestException as error:
        raise StartFailure(f"POST {url}: {type(error).__name__}") from None
    if not response.ok:
        raise StartFailure(f"POST {url}: {response.status_code} {response.text.strip()[:500]}")
    answer: dict[str, Any] = response.json()
    return answer


def _kept(file: Path, base_url: str) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(file.read_text())
        headers = {"X-Service-Admin-Key": content["adminKey"]}
        response = here.get(f"{base_url}/api/admin/applications", headers=headers, timeout=_SECONDS)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    except requests.RequestException as error:
        raise StartFailure(f"GET {base_url}/api/admin/applications: {type(error).__name__}") from None
    return None if response.status_code == 401 else content
