"""``flask ops ledger``: the books."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click
from flask.cli import AppGroup

from app.desk.records import balances
from app.desk.records import ledger as postings_of
from app.fields import Filled
from app.ops.asking import Checked, cursor_option, json_option, limit_option, times
from app.ops.screen import BLANK, Column, moment, older, show_json, table, usdc
from models.ledger_search import PostingsWanted
from models.session import transaction

ledger = AppGroup("ledger", help="Read the books: every movement of money, and every balance.")

COLUMNS = (
    Column("posting", right=True),
    Column("at\nreference", narrowest=20),
    Column("account", narrowest=28),
    Column("USDC", right=True),
)


@ledger.command("list")
@click.option("--account", type=Checked(Filled(longest=200), "NAME"), help="Only those that touch it: operator:op_…, …")
@click.option("--kind", type=Checked(Filled(longest=100), "KIND"), help="deposit, escrow, settlement, refund, expiry.")
@click.option("--round", "round_id", type=click.IntRange(1), help="Only those of this round.")
@times
@limit_option
@cursor_option(int)
@json_option
def list_postings(
    account: str | None,
    kind: str | None,
    round_id: int | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    cursor: tuple[int] | None,
    as_json: bool,
) -> None:
    """Postings, newest first, each with what it adds to every account; the lines of a posting add up to zero.

    \b
    Accounts: external (the world outside), operator:ID, escrow:ROUND,
              pool (the jackpot), reserve (for sub-prizes), fee (ours)
    """
    with transaction() as session:
        answer = postings_of(session, PostingsWanted(account, kind, round_id, since, until), limit, cursor)
    if as_json:
        show_json(answer)
        return
    rows = (row for one in answer["postings"] for row in _rows(one))
    table(COLUMNS, rows, "No posting fits.")
    older(answer)


@ledger.command("accounts")
@json_option
def list_accounts(as_json: bool) -> None:
    """Every account and what is on it. The balances add up to zero.

    Below zero are "external", and operators that owe expired prizes.
    """
    with transaction() as session:
        answer = balances(session)
    if as_json:
        show_json(answer)
        return
    rows = ([one["account"], usdc(one["balanceUsdc"], decimals=6)] for one in answer["accounts"])
    table((Column("account"), Column("USDC", right=True)), rows, "Nothing is on the books.")


def _rows(one: dict[str, Any]) -> Iterator[list[object]]:
    # A line for every entry, so that no account can slip beside another's amount. There are always two or more.
    beside = [moment(one["createdAt"]), one["reference"]]
    for place, entry in enumerate(one["entries"]):
        yield [
            BLANK if place else one["postingId"],
            beside[place] if place < len(beside) else BLANK,
            entry["account"],
            usdc(entry["amountUsdc"], decimals=6),
        ]
