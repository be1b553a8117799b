"""``flask ops queues``: what waits, and holding it up."""

from typing import Any

import click
from flask.cli import AppGroup

from app.desk.queues import listed, pause_queue, resume_queue
from app.ops.asking import actor_option, json_option, reason_option
from app.ops.screen import Column, age, moment, show_json, table
from models.session import transaction
from tasks.bell import QUEUES

queues = AppGroup("queues", help="See what waits; pause and resume work.")

COLUMNS = (
    Column("queue"),
    Column("state"),
    Column("waiting", right=True),
    Column("oldest due", right=True),
    Column("in flight", right=True),
    Column("paused by, when, why"),
)
name_argument = click.argument("name", type=click.Choice(QUEUES))


@queues.command("list")
@json_option
def list_queues(as_json: bool) -> None:
    """How much work is due, since when, and how much is being done.

    \b
    deliveries   webhooks to operators
    rounds       everything else: steps of rounds, counting tickets, drawing, settling

    "waiting" is work whose time has come and that nobody is at; "oldest due" is for how long the oldest of it has
    waited. A round that waits for something else (the one before it, its tickets being counted) counts as well.
    """
    with transaction() as session:
        answer = listed(session)
    _print(answer, answer["queues"], as_json)


@queues.command("pause")
@name_argument
@reason_option
@actor_option
@json_option
def pause(name: str, reason: str, actor: str, as_json: bool) -> None:
    """Begin no more work of a queue, in any worker, from now on.

    What a worker is at is finished. Everything else waits where it is and is done after "resume"; nothing is lost.
    A paused "rounds" queue makes rounds late.
    """
    with transaction() as session:
        answer = pause_queue(session, actor, name, reason)
    _print(answer, [answer], as_json)


@queues.command("resume")
@name_argument
@reason_option
@actor_option
@json_option
def resume(name: str, reason: str, actor: str, as_json: bool) -> None:
    """Let a paused queue go on. What is due is begun at once."""
    with transaction() as session:
        answer = resume_queue(session, actor, name, reason)
    _print(answer, [answer], as_json)


def _print(answer: dict[str, Any], rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        show_json(answer)
        return
    table(COLUMNS, (_row(one) for one in rows), "There are no queues.")


def _row(one: dict[str, Any]) -> list[object]:
    held = f"{one['pausedBy']}\n{moment(one['pausedAt'])}\n{one['reason']}" if one["paused"] else None
    state = "paused" if one["paused"] else "running"
    return [one["name"], state, one["depth"], age(one["oldestDueSeconds"]), one["inFlight"], held]
