"""``flask ops rounds``: opening, watching and ending rounds, and having them tabulated again."""

from datetime import datetime
from typing import Any

import click
from flask.cli import AppGroup

from app.desk.rounds import fail, listed, opened, retabulate, shown
from app.fields import identifier
from app.ops.asking import (
    AHEAD,
    Checked,
    actor_option,
    confirm,
    json_option,
    limit_option,
    must_be_askable,
    offset_option,
    reason_option,
    yes_option,
)
from app.ops.screen import Column, facts, moment, show_json, table, usdc
from models.session import transaction

rounds = AppGroup("rounds", help="Watch rounds; open one, fail one, have one tabulated again.")

COLUMNS = (
    Column("round", right=True),
    Column("state"),
    Column("tickets", right=True),
    Column("operators\nescrowed/excluded", right=True),
    Column("deposited\nUSDC", right=True),
    Column("opened", narrowest=20),
    Column("draw", narrowest=20),
)
TABULATED = (
    Column("operator"),
    Column("wins on record\nin the archive", right=True),
    Column("what is wrong"),
    Column("tickets, tier, where alone"),
)
STEPS = (Column("step"), Column("then it was"), Column("at", narrowest=20))


@rounds.command("list")
@limit_option
@offset_option
@json_option
def list_rounds(limit: int, offset: int, as_json: bool) -> None:
    """Rounds, newest first.

    OPEN, SEALING, SEALED, ESCROWED, DRAWN, SETTLED, CLOSED follow each other; FAILED can come before DRAWN.
    """
    with transaction() as session:
        answer = listed(session, limit, offset)
    if as_json:
        show_json(answer)
        return
    table(COLUMNS, (_row(one) for one in answer["rounds"]), "There are no rounds.")


@rounds.command("show")
@click.argument("round_id", type=int)
@json_option
def show_round(round_id: int, as_json: bool) -> None:
    """One round: its deadlines, every step it took, who was excluded, how its webhooks fare, and whether its winners
    are the same when they are counted a second time.
    """
    with transaction() as session:
        answer = shown(session, round_id)
    _print_one(answer, as_json)


@rounds.command("open")
@click.option("--seal-at", type=AHEAD, required=True, help="When sales end: 2026-01-31T20:00:00Z, or from now: 2h.")
@click.option("--sealing-deadline", type=AHEAD, required=True, help="When manifests must be verified.")
@click.option("--escrow-deadline", type=AHEAD, required=True, help="When escrow must be there.")
@click.option("--draw", type=AHEAD, required=True, help="When numbers are drawn.")
@click.option("--settle-at", type=AHEAD, help="When money is released. [default: by the settings]")
@click.option("--close-at", type=AHEAD, help="When the round is over. [default: by the settings]")
@click.option(
    "--operator",
    "operator_ids",
    type=Checked(identifier(), "ID"),
    multiple=True,
    help="Invite this one; may be repeated. [default: every active operator]",
)
@actor_option
@json_option
def open_round(
    seal_at: datetime,
    sealing_deadline: datetime,
    escrow_deadline: datetime,
    draw: datetime,
    settle_at: datetime | None,
    close_at: datetime | None,
    operator_ids: tuple[str, ...],
    actor: str,
    as_json: bool,
) -> None:
    """Open a round.

    \b
    For example:
      flask ops rounds open --seal-at 20h --sealing-deadline 21h --escrow-deadline 22h --draw 23h
    """
    moments = {
        "sealAt": seal_at,
        "sealingDeadline": sealing_deadline,
        "escrowDeadline": escrow_deadline,
        "scheduledDrawTime": draw,
        "settleAt": settle_at,
        "closeAt": close_at,
    }
    with transaction() as session:
        answer = opened(session, actor, list(operator_ids) or None, moments)
    _print_one(answer, as_json)


@rounds.command("fail")
@click.argument("round_id", type=int)
@reason_option
@actor_option
@yes_option
@json_option
def fail_round(round_id: int, reason: str, actor: str, yes: bool, as_json: bool) -> None:
    """End a round that is not drawn yet, for good; all escrow goes back to the operators.

    It asks first. A worker does it within seconds; a paused "rounds" queue delays it. The reason is published.
    """
    must_be_askable(yes)
    with transaction() as session:
        before = shown(session, round_id)
    confirm(f"Fail round {round_id} ({before['state']}, {before['totalTickets']:,} tickets) for good?", yes)
    with transaction() as session:
        answer = fail(session, actor, round_id, reason)
    if as_json:
        show_json(answer)
    else:
        click.echo(f"Round {round_id} will be failed and refunded within seconds.")
        click.echo(f"See: flask ops rounds show {round_id}")


@rounds.command("retabulate")
@click.argument("round_id", type=int)
@reason_option
@actor_option
@yes_option
@json_option
def retabulate_round(round_id: int, reason: str, actor: str, yes: bool, as_json: bool) -> None:
    """Count the winners of a drawn round a second time again, once what made the counts differ is mended.

    It asks first: if both counts agree now, the round is settled and the money goes out.
    """
    must_be_askable(yes)
    with transaction() as session:
        before = shown(session, round_id)
    compared = before["secondTabulation"]["verdict"].replace("_", " ")
    confirm(f"Tabulate round {round_id} ({before['state']}, tabulations: {compared}) again?", yes)
    with transaction() as session:
        answer = retabulate(session, actor, round_id, reason)
    if as_json:
        show_json(answer)
    else:
        click.echo(f"Round {round_id} will be tabulated again within seconds.")
        click.echo(f"See: flask ops rounds show {round_id}")


def _row(one: dict[str, Any]) -> list[object]:
    return [
        one["id"],
        one["state"],
        f"{one['totalTickets']:,}",
        f"{one['operatorCount']}\n{one['escrowedOperatorCount']}/{one['excludedOperatorCount']}",
        usdc(one["totalDeposited"]),
        moment(one["createdAt"]),
        moment(one["scheduledDrawTime"]),
    ]


def _print_one(one: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(one)
        return
    at, sent = one["deadlines"], one["deliveries"]
    excluded = ", ".join(f"{out['operatorId']} ({out['reason']})" for out in one["exclusions"])
    facts(
        [
            ("round", one["id"]),
            ("state", one["state"]),
            ("why it failed", one["failureReason"]),
            ("tickets", f"{one['totalTickets']:,} at {usdc(one['ticketPriceUsdc'])} USDC"),
            ("operators", ", ".join(one["operatorIds"])),
            ("escrowed", ", ".join(one["escrowedOperatorIds"])),
            ("excluded", excluded),
            ("deposited", f"{usdc(one['totalDeposited'])} USDC"),
            ("sales end", moment(at["sealAt"])),
            ("sealing deadline", moment(at["sealingDeadline"])),
            ("escrow deadline", moment(at["escrowDeadline"])),
            ("draw", moment(at["scheduledDrawTime"])),
            ("settling", moment(at["settleAt"])),
            ("closing", moment(at["closeAt"])),
            ("tabulations", _compared(one["secondTabulation"])),
            ("webhooks", f"{sent['delivered']} delivered, {sent['pending']} pending, {sent['failed']} failed"),
        ]
    )
    if one["secondTabulation"]["verdict"] == "disagree":
        apart = [_apart(each) for each in one["secondTabulation"]["operators"] if each["verdict"] == "disagree"]
        table(TABULATED, apart, "Every operator's winners agree; it is the sums that do not.")
    steps = ([step["trigger"], step["state"], moment(step["at"])] for step in one["timeline"])
    table(STEPS, steps, "It took no step yet.")


def _compared(both: dict[str, Any]) -> str:
    """What came of comparing, and the sums where these are not the same."""
    done = sum(each["verdict"] != "under_way" for each in both["operators"])
    said = {
        "not_begun": "",
        "under_way": f"under way, {done} of {len(both['operators'])} operators done",
        "agree": "agree",
        "disagree": "DISAGREE: the round is not settled",
    }[both["verdict"]]
    sums = [both[name] for name in ("drawnCounts", "storedCounts", "foundCounts")]
    if both["verdict"] == "disagree" and all(sums) and len(set(map(tuple, sums))) > 1:
        drawn, stored, found = (", ".join(map(str, each)) for each in sums)
        said += f"\nwins by tier: {drawn} drawn\n{stored} on record\n{found} in the archives"
    return said


def _apart(one: dict[str, Any]) -> list[object]:
    named = (
        f"{each['ticketId']}{'' if each['tier'] is None else ', tier ' + str(each['tier'])}: {each['onlyIn']}"
        for each in one["differences"]
    )
    found = "unknown" if one["foundWins"] is None else f"{one['foundWins']:,}"
    wrong = "\n".join(fault.replace("_", " ") for fault in one["faults"])
    return [one["operatorId"], f"{one['storedWins'] or 0:,}\n{found}", wrong, "\n".join(named)]
