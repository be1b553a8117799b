"""What we add to the fuzzer: it counts its requests, gets past what no schema can say, and stays on this machine.

One rule: only what the schema allows is bent, and only half of it: what should be refused is sent as it was made up.
"""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import schemathesis
from schemathesis import GenerationMode

_sent = 0


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    global _sent
    _sent += 1


@schemathesis.hook
def filter_failure(context: Any, failure: Any, case: Any, response: Any) -> bool:
    """Addresses and headers that are too long end at the web server; no operation documents what it never hears of."""
    return response.status_code not in (414, 431)


@atexit.register
def _write_count() -> None:
    if file := os.environ.get("FUZZ_COUNT_FILE"):
        Path(file).write_text(str(_sent))


@schemathesis.hook
def map_case(context: Any, case: Any) -> Any:
    """Let a good body mean something to the service, where chance alone never would."""
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE or not isinstance(case.body, dict):
        return case
    bend = _BENT.get(f"{case.method} {case.operation.path}")
    case.body = bend(_whole(case.body)) if bend else _whole(case.body)
    return case


def _whole(value: Any) -> Any:
    # To a schema 1.0 is a whole number; we take only what is written as one.
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _address(body: dict[str, Any]) -> dict[str, Any]:
    # Always: a made-up host may well be somebody's. Nobody listens at port 9.
    try:
        parts = urlsplit(body["url"])
    except ValueError:
        return body
    return body | {"url": urlunsplit(parts._replace(netloc="127.0.0.1:9"))} if parts.netloc else body


def _manifest(body: dict[str, Any]) -> dict[str, Any]:
    text = body["manifestJson"]
    try:
        digest = sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        return body
    return body | {"manifestHash": digest} if _every_other(body) else body


def _deadlines(body: dict[str, Any]) -> dict[str, Any]:
    if not _every_other(body):
        return body
    moment, bent = datetime.now(UTC) + timedelta(minutes=10), dict(body)
    for name in ("sealAt", "sealingDeadline", "escrowDeadline", "scheduledDrawTime", "settleAt", "closeAt"):
        moment += timedelta(minutes=1)
        if body.get(name) is not None:
            bent[name] = moment.isoformat()
    return bent | {"operatorIds": None} if _every_other(body["sealAt"]) else bent


def _tickets(body: dict[str, Any]) -> dict[str, Any]:
    if not _every_other(body):
        return body
    return body | {
        "tickets": [
            ticket | {"ticketId": f"f-{number}-{sha256(str(ticket).encode()).hexdigest()[:8]}", "jackpotNumber": 1}
            for number, ticket in enumerate(body["tickets"])
            if isinstance(ticket, dict)
        ]
    }


def _every_other(made_up: Any) -> bool:
    return sha256(json.dumps(made_up, sort_keys=True).encode()).digest()[0] % 2 == 0


_BENT: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "PUT /api/operator/webhook": _address,
    "POST /api/operator/manifest": _manifest,
    "POST /api/operator/tickets": _tickets,
    "POST /api/admin/rounds": _deadlines,
}
