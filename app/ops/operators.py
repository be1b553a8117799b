"""``flask ops operators``: reading, suspending, new API keys, deposits."""

from typing import Any

import click
from flask.cli import AppGroup

from app.desk import deposits
from app.desk.operators import LONGEST_OVERLAP_SECONDS, activate, listed, rotate_key, shown
from app.fields import Amount, Filled
from app.ops.asking import Checked, actor_option, json_option, limit_option, offset_option, reason_option
from app.ops.screen import Column, facts, moment, show_json, table, usdc
from models.session import transaction

operators = AppGroup("operators", help="See operators; suspend them, replace API keys, record deposits.")

COLUMNS = (
    Column("operator"),
    Column("name"),
    Column("state"),
    Column("balance\nUSDC", right=True),
    Column("repu-\ntation", right=True),
    Column("last heartbeat", narrowest=20),
)
KEYS = (Column("API key"), Column("made", narrowest=20), Column("ends", narrowest=20), Column("signs webhooks"))


@operators.command("list")
@limit_option
@offset_option
@json_option
def list_operators(limit: int, offset: int, as_json: bool) -> None:
    """Operators, in the order in which they were registered."""
    with transaction() as session:
        answer = listed(session, limit, offset)
    if as_json:
        show_json(answer)
        return
    table(COLUMNS, (_row(one) for one in answer["operators"]), "There are no operators.")


@operators.command("show")
@click.argument("operator_id")
@json_option
def show_operator(operator_id: str, as_json: bool) -> None:
    """One operator: its record, balance, webhook address, and the API keys in force (never the keys themselves)."""
    with transaction() as session:
        answer = shown(session, operator_id)
    _print_one(answer, as_json)


@operators.command("suspend")
@click.argument("operator_id")
@reason_option
@actor_option
@json_option
def suspend(operator_id: str, reason: str, actor: str, as_json: bool) -> None:
    """Refuse everything the operator asks (403) and invite it to no new round. Rounds it is in go on."""
    with transaction() as session:
        answer = activate(session, actor, operator_id, False, reason)
    _print_one(answer, as_json)


@operators.command("reinstate")
@click.argument("operator_id")
@reason_option
@actor_option
@json_option
def reinstate(operator_id: str, reason: str, actor: str, as_json: bool) -> None:
    """Let a suspended operator in again."""
    with transaction() as session:
        answer = activate(session, actor, operator_id, True, reason)
    _print_one(answer, as_json)


@operators.command("rotate-key")
@click.argument("operator_id")
@click.option(
    "--overlap",
    type=click.IntRange(0, LONGEST_OVERLAP_SECONDS),
    metavar="SECONDS",
    required=True,
    help="How long the old key goes on working, up to 604800 (a week). 0: not at all, for a key that was stolen.",
)
@reason_option
@actor_option
@json_option
def rotate(operator_id: str, overlap: int, reason: str, actor: str, as_json: bool) -> None:
    """Make a new API key for an operator. It is printed once and cannot be shown again.

    Webhooks are signed with the new key at once, so the operator needs it before it checks the next signature. Access
    and refresh tokens end with the key they were made with.
    """
    with transaction() as session:
        answer = rotate_key(session, actor, operator_id, overlap, reason)
    if as_json:
        show_json(answer)
        return
    ends = answer["previousKeyExpiresAt"]
    click.echo(f"New API key of {operator_id}. It is shown only now:\n\n    {answer['apiKey']}\n")
    click.echo(f"The old key ends at {moment(ends)}." if ends else "There was no other key in force.")


@operators.command("deposit")
@click.argument("operator_id")
@click.option(
    "--micro-usdc", "amount", type=Checked(Amount(), "AMOUNT"), required=True, help="In micro-USDC: 1 USDC is 1000000."
)
@click.option(
    "--reference", type=Checked(Filled(longest=200), "TEXT"), required=True, help="Of the transfer that brought it."
)
@actor_option
@json_option
def deposit(operator_id: str, amount: int, reference: str, actor: str, as_json: bool) -> None:
    """Record money that an operator sent. The same amount and reference again changes nothing."""
    with transaction() as session:
        answer = deposits.record_deposit(session, actor, operator_id, amount, reference)
    if as_json:
        show_json(answer)
        return
    click.echo(f"{usdc(amount)} USDC are on record under this reference.")
    click.echo(f"The balance is {usdc(answer['balanceUsdc'])} USDC.")


def _row(one: dict[str, Any]) -> list[object]:
    return [
        one["operatorId"],
        one["name"],
        _state(one),
        usdc(one["balanceUsdc"], decimals=6),
        one["reputationScore"],
        moment(one["lastHeartbeat"]),
    ]


def _state(one: dict[str, Any]) -> str:
    return "active" if one["active"] else "suspended"


def _print_one(one: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(one)
        return
    facts(
        [
            ("operator", one["operatorId"]),
            ("name", one["name"]),
            ("jurisdiction", one["jurisdiction"]),
            ("address", one["address"]),
            ("state", _state(one)),
            ("registered", moment(one["registeredAt"])),
            ("balance", f"{usdc(one['balanceUsdc'])} USDC"),
            ("webhook", one["webhookUrl"]),
            ("last heartbeat", moment(one["lastHeartbeat"])),
            ("reputation", f"{one['reputationScore']} of 100"),
            (
                "rounds",
                f"{one['totalRoundsParticipated']} sealed, {one['totalRoundsEscrowed']} escrowed, "
                f"{one['totalRoundsExcluded']} excluded, {one['totalRoundsWon']} won",
            ),
            ("payouts", f"{one['totalPayoutsOnTime']} on time, {one['totalPayoutsLate']} late"),
            ("missed", f"{one['heartbeatsMissed']} heartbeats; {one['noncesWithheld']} nonces withheld"),
        ]
    )
    keys = (
        [key["keyId"], moment(key["createdAt"]), moment(key["expiresAt"]), "" if place else "yes"]
        for place, key in enumerate(one["apiKeys"])
    )
    table(KEYS, keys, "It has no API key in force.")
