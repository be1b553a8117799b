"""The books of the full demo: players, nodes and the coordinator, held against what must be in them.

One rule: every amount is known twice, once from whoever is asked and once from what the players did and what was drawn.
The two are equal to the micro-USDC, or the demo has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from deploy.demo_player import PRICE, Player
from deploy.demo_screen import usd
from deploy.failure import Failure
from deploy.processes import Running, here
from protocol.numbers import tiers_won
from protocol.rules import Rules
from protocol.settlement import Stake, settle


class BooksFailure(Failure):
    """Two amounts that must be one are not."""


@dataclass
class Operator:
    """An operator of the demo: its node, and its players. `funds` is what it paid the coordinator, micro-USDC."""

    name: str
    operator_id: str
    api_key: str
    funds: int
    node: Running
    staff_key: str
    players: list[Player] = field(default_factory=list)

    def staff(self, path: str) -> dict[str, Any]:
        """What the node's admin API says."""
        return _read(f"{self.node.base_url}/api/admin/{path}", {"X-Admin-Key": self.staff_key})

    @property
    def tickets(self) -> int:
        """How many tickets its players bought."""
        return sum(len(player.tickets) for player in self.players)

    @property
    def prizes(self) -> int:
        """What its players were paid, micro-USDC."""
        return sum(sum(player.won.values()) for player in self.players)


class Books:
    """Collects what is compared, and shows it."""

    def __init__(self) -> None:
        self._compared = 0
        self.table = Table(title="Books, in USDC", title_justify="left", header_style="bold")
        for column in ("whose", "what", "must be", "is"):
            self.table.add_column(column, justify="left" if column in ("whose", "what") else "right")

    def same(self, whose: str, what: str, must: int, found: int, *, shown: bool = True) -> None:
        """Compare two amounts of micro-USDC."""
        self._compared += 1
        if shown:
            self.table.add_row(whose, what, usd_signed(must), usd_signed(found))
        if must != found:
            raise BooksFailure(f"{whose}: {what} must be {must} micro-USDC and is {found}")

    @property
    def compared(self) -> int:
        """How many amounts were compared."""
        return self._compared


def usd_signed(micro: int) -> str:
    """micro-USDC in dollars, with its sign."""
    return f"-{usd(-micro)}" if micro < 0 else usd(micro)


def reconcile(
    operators: Sequence[Operator], round_id: int, url: str, admin_key: str, say: Callable[[str], None]
) -> Books:
    """Compare everything; BooksFailure names the first amount that is not what it must be."""
    books = Books()
    _players(books, operators)
    for operator in operators:
        _node(books, operator)
    say(f"{sum(len(operator.players) for operator in operators)} players and {len(operators)} nodes agree")
    _coordinator(books, operators, round_id, url, admin_key)
    return books


def _players(books: Books, operators: Sequence[Operator]) -> None:
    players = [(operator, player) for operator in operators for player in operator.players]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda pair: (pair[1].shown_balance(), pair[1].statement()), players))
    for (_, player), (balance, lines) in zip(players, told, strict=True):
        books.same(player.name, "balance", player.balance, balance, shown=False)
        counted = sum(int(line["amount"]) for line in lines if line["status"] == "completed")
        books.same(player.name, "sum of the statement", player.balance, counted, shown=False)
        for kind, amount in (
            ("deposit", player.deposited),
            ("purchase", -len(player.tickets) * PRICE),
            ("prize", sum(player.won.values())),
            ("withdrawal", -player.withdrawn),
        ):
            found = sum(int(line["amount"]) for line in lines if line["type"] == kind)
            books.same(player.name, kind, amount, found, shown=False)


def _node(books: Books, operator: Operator) -> None:
    found, players = operator.staff("reports/books"), operator.players
    if not found["balanced"] or found["faults"]:
        raise BooksFailure(f"{operator.name} finds its books wrong: {found['faults']}")
    moved = sum(player.deposited - player.withdrawn for player in players)
    for what, must in (
        ("players", sum(player.balance for player in players)),
        ("house", operator.tickets * PRICE - operator.prizes),
        ("world", -moved),
        ("sales", 0),
        ("withdrawals", 0),
    ):
        books.same(operator.name, what, must, int(found[what]))


def _coordinator(books: Books, operators: Sequence[Operator], round_id: int, url: str, admin_key: str) -> None:
    staff = {"X-Service-Admin-Key": admin_key}
    rows = _read(f"{url}/api/admin/ledger/accounts", staff)["accounts"]
    accounts = {str(row["account"]): int(row["balanceUsdc"]) for row in rows}
    bundle = _read(f"{url}/api/public/rounds/{round_id}/proof")
    numbers, rules = list(bundle["numbers"].values()), Rules.from_hashed(bundle["rules"])
    drawn = [bundle["numbers"][name] for name in ("jackpotNumber", *(f"bonus{place}" for place in range(1, 6)))]
    assert len(numbers) == len(drawn)
    stakes = [Stake(operator.operator_id, operator.tickets) for operator in operators]
    settled = settle(rules, stakes, {one.operator_id: _wins(one.players, drawn) for one in operators}, 0, 0)
    terms = settled.terms
    for operator in operators:
        release = settled.releases[operator.operator_id]
        must = operator.funds - operator.tickets * PRICE + release.total
        own = _read(f"{url}/api/operator/balance", {"X-Service-Key": operator.api_key})
        books.same("coordinator", f"balance of {operator.name}", must, int(own["balanceUsdc"]))
        books.same(
            operator.name, "prizes released are prizes paid", release.sub_prizes + release.jackpot, operator.prizes
        )
    for what, must in (
        ("tickets sold", terms.G - sum(operator.tickets for operator in operators) * PRICE),
        ("every account together", sum(accounts.values())),
        (f"escrow of round {round_id}", accounts.get(f"escrow:{round_id}", 0)),
    ):
        books.same("coordinator", f"{what}, too much or too little", 0, must)
    for name, term in bundle["ledger"].items():
        books.same("coordinator", f"term {name} of the settlement", int(getattr(terms, name)), int(term))
    for account, must in (("pool", terms.pool1), ("reserve", terms.reserve1)):
        books.same("coordinator", account, must, accounts.get(account, 0))


def _wins(players: Sequence[Player], drawn: Sequence[int]) -> list[int]:
    tiers = [
        tier
        for player in players
        for numbers in player.tickets.values()
        for tier in tiers_won(numbers, drawn)  # type: ignore[arg-type]
    ]
    return [tiers.count(tier) for tier in range(6)]


def _read(url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    response = here.get(url, headers=dict(headers or {}), timeout=30)
    if not response.ok:
        raise BooksFailure(f"GET {url}: {response.status_code} {response.text.strip()[:300]}")
    answer: dict[str, Any] = response.json()
    return answer
