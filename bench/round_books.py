"""Whether a round of `bench.round` came out right, by everybody's books.

One rule: whatever is counted by us is held against somebody who counted without us, or against money that may not have
appeared from anywhere.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import psycopg2

from bench import round_clients as clients
from bench.round_play import Played, Stage
from deploy.failure import Failure
from player.coordinator import Coordinator


def check(stage: Stage, played: Played) -> str:
    """Hold a CLOSED round against the books; what was found, in a line.

    :raises Failure: something does not hold.
    """
    shown = stage.round(played.round_id)
    with Coordinator(stage.running.base_url) as anybody:
        proof = anybody.proof_bundle(played.round_id)
    drawn = tuple(int(shown[name]) for name in ("jackpotNumber", *(f"bonus{tier}" for tier in range(1, 6))))
    books = stage.pool.map(partial(clients.wins, drawn=drawn), played.sellers)
    sold = [sum(tiers) for tiers in zip(*books, strict=True)]
    wins = sum(sold)
    for what, found, wanted in (
        ("state", shown["state"], "CLOSED"),
        ("tickets", shown["totalTickets"], played.tickets),
        ("operators that paid", shown["escrowedOperatorCount"], len(stage.operators)),
        ("exclusions", shown["exclusions"], []),
        ("winners by tier", proof["winnerCounts"], sold),
        ("second tabulation", shown["secondTabulation"]["verdict"], "agree"),
        ("wins found again", shown["secondTabulation"]["foundCounts"], sold),
        ("escrow left", _ask(stage, _LEFT, f"escrow:{played.round_id}"), 0),
        ("sum of all accounts", _ask(stage, "SELECT sum(balance) FROM ledger_accounts"), 0),
        ("accounts that differ from their entries", _ask(stage, _APART), 0),
    ):
        if found != wanted:
            raise Failure(f"round {played.round_id}, {what}: {found} instead of {wanted}")
    if not wins:
        raise Failure(f"round {played.round_id} has no winners among {played.tickets:,} tickets")
    return f"{wins:,} wins, found twice by us and once by the operators; the books balance"


_LEFT = "SELECT balance FROM ledger_accounts WHERE id = %s"
_APART = (
    "SELECT count(*) FROM ledger_accounts JOIN (SELECT account_id, sum(amount) AS total FROM ledger_entries "
    "GROUP BY account_id) AS entries ON account_id = id WHERE balance <> total"
)


def _ask(stage: Stage, statement: str, *values: Any) -> int:
    connection = psycopg2.connect(stage.running.engines.database_url.replace("+psycopg2", ""))
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return int((cursor.fetchone() or [0])[0])
    finally:
        connection.close()
