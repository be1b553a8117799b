"""The books: does what players were told agree with what the ledger holds.

The one rule kept here: nothing is corrected, only found. Whatever is listed in ``faults`` is a bug of ours or a hand
in the database, and somebody has to look at it.
"""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

_SUMS = text("""
SELECT coalesce(sum(balance), 0),
    coalesce(sum(balance) FILTER (WHERE id = 'world'), 0),
    coalesce(sum(balance) FILTER (WHERE id LIKE 'player:%'), 0),
    coalesce(sum(balance) FILTER (WHERE id = 'withdrawals'), 0),
    coalesce(sum(balance) FILTER (WHERE id LIKE 'sales:%'), 0),
    coalesce(sum(balance) FILTER (WHERE id = 'house'), 0)
FROM accounts""")

# Each gives a row per fault: what it is about, what it should be and what it is, micro-USDC.
_FAULTS = {
    "balance of {} is not the sum of its transfers": """
        SELECT coalesce(id, account), coalesce(moved, 0), coalesce(balance, 0) FROM (
            SELECT account, sum(change) AS moved FROM (
                SELECT source AS account, -amount AS change FROM transfers
                UNION ALL SELECT target, amount FROM transfers
            ) AS changes GROUP BY account
        ) AS sums FULL JOIN accounts ON id = account WHERE coalesce(moved, 0) <> coalesce(balance, 0)""",
    "balance of {} is not the sum of the player's transactions": """
        SELECT 'player:' || coalesce(player_id::text, substr(id, 8)), coalesce(told, 0), coalesce(balance, 0) FROM (
            SELECT player_id, sum(amount) AS told FROM transactions
            WHERE status = 'completed' OR (status = 'pending' AND amount < 0) GROUP BY player_id
        ) AS statements
        FULL JOIN (SELECT * FROM accounts WHERE id LIKE 'player:%') AS own ON id = 'player:' || player_id
        WHERE coalesce(told, 0) <> coalesce(balance, 0)""",
    "what {} holds is not what its tickets cost": """
        SELECT 'sales:' || rounds.id, coalesce(sold, 0), coalesce(balance, 0) FROM rounds
        LEFT JOIN accounts ON accounts.id = 'sales:' || rounds.id
        LEFT JOIN (
            SELECT round_id, sum(price) AS sold FROM tickets WHERE status <> 'refunded' GROUP BY round_id
        ) AS prices ON round_id = rounds.id
        WHERE stage NOT IN ('payable', 'done', 'failed') AND coalesce(sold, 0) <> coalesce(balance, 0)""",
    "{} is over and still holds money": """
        SELECT accounts.id, 0, balance FROM accounts JOIN rounds ON accounts.id = 'sales:' || rounds.id
        WHERE stage IN ('payable', 'done', 'failed') AND balance <> 0""",
    "tickets of {} are not refunded though it failed": """
        SELECT 'round ' || rounds.id, 0, sum(price) FROM rounds JOIN tickets ON round_id = rounds.id
        WHERE stage = 'failed' AND status <> 'refunded' GROUP BY rounds.id""",
    "what {} holds is not what is on its way to players": """
        SELECT 'withdrawals', asked, held FROM (
            SELECT coalesce(sum(amount), 0) AS asked FROM payments WHERE kind = 'withdrawal' AND status = 'pending'
        ) AS pending, (SELECT coalesce(sum(balance), 0) AS held FROM accounts WHERE id = 'withdrawals') AS kept
        WHERE asked <> held""",
    "{} is not as its transaction says": """
        SELECT kind || ' ' || payments.id, payments.amount, transactions.amount FROM payments
        JOIN transactions ON transactions.id = transaction_id
        WHERE payments.status <> transactions.status OR type <> kind OR payments.player_id <> transactions.player_id
            OR transactions.amount <> CASE kind WHEN 'deposit' THEN payments.amount ELSE -payments.amount END""",
    "prizes claimed by {} are not the prizes in her statement": """
        SELECT 'player:' || player_id, coalesce(claimed, 0), coalesce(told, 0) FROM (
            SELECT player_id, sum(amount) AS claimed FROM prizes WHERE status = 'claimed' GROUP BY player_id
        ) AS claims FULL JOIN (
            SELECT player_id, sum(amount) AS told FROM transactions WHERE type = 'prize' GROUP BY player_id
        ) AS statements USING (player_id) WHERE coalesce(claimed, 0) <> coalesce(told, 0)""",
}
MOST = 100
"""Faults of one kind that are listed; one is reason enough to look."""


@dataclass(frozen=True)
class Books:
    """What is on which accounts, micro-USDC, and all that does not agree. ``world`` is below zero by what players have
    paid in and not been paid out.
    """

    world: int
    players: int
    withdrawals: int
    sales: int
    house: int
    faults: tuple[str, ...]

    @property
    def balanced(self) -> bool:
        """Whether everything agrees."""
        return not self.faults


def books(session: Session) -> Books:
    """Add everything up. Reads all transfers, transactions and tickets: for reports and tests, not for requests.

    Of a node at work, ask in a ``snapshot()``: otherwise what it finds may be a movement between two of its statements.
    """
    total, world, players, withdrawals, sales, house = map(int, session.execute(_SUMS).one())
    faults = [] if total == 0 else [f"all accounts together hold {total}, not 0"]
    for what, query in _FAULTS.items():
        for subject, wanted, found in session.execute(text(f"{query} LIMIT {MOST}")):
            faults.append(f"{what.format(subject)}: {wanted} and {found}")
    return Books(world, players, withdrawals, sales, house, tuple(faults))
