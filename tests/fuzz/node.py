"""The second target: an operator's node, tried as nobody, as a player and as its staff.

One rule: it stands alone. Its coordinator does not answer, so that what is sent here goes nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from deploy.data_folder import throw_away
from deploy.player_node import player_node, staff_key
from deploy.processes import Running, here
from tests.fuzz.campaign import Finding, Outcome, Somebody, knock, unwell

NOWHERE = "http://127.0.0.1:9"
API_KEY = "sk_0011223344556677_" + "ab" * 32


def campaign_on_a_node(seconds: float, seed: int, say: Callable[[str], None] = print) -> Outcome:
    """Fuzz a node for so many seconds, everybody in turn; the same seed makes up the same requests."""
    clean = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    requests, findings = 0, list[Finding]()
    with (
        throw_away() as folder,
        player_node(
            folder, NOWHERE, API_KEY, log_dir=folder.path, environ=clean | {"RATE_LIMITS": "off", "WEBHOOK_URL": "off"}
        ) as node,
    ):
        for somebody in everybody(node):
            sent, found = knock(node, somebody, seconds * somebody.share, seed, folder.path)
            say(f"at a node as {somebody.name}: {sent} requests, {len(found)} findings")
            requests += sent
            findings += found
        findings += list(unwell(node, folder.path, ("web", "worker", "clock")))
    return Outcome(seed, requests, findings)


def everybody(node: Running) -> list[Somebody]:
    """Nobody in particular, a player, and somebody of the staff."""
    form = {"email": "fuzz@example.com", "password": "correct horse battery", "displayName": "Fuzz"}
    tokens = here.post(f"{node.base_url}/api/auth/register", json=form, timeout=30).json()["tokens"]
    bearer = {"Authorization": f"Bearer {tokens['accessToken']}"}
    return [
        Somebody("nobody", {}, "^/", 0.3),
        Somebody("player", bearer, "^/api/(player|rounds|results)", 0.4),
        Somebody("staff", {"X-Admin-Key": staff_key(node)}, "^/api/admin/", 0.3),
    ]
