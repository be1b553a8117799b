"""``flask ops endpoints``: how operators' webhook receivers are doing, and holding one up."""

from typing import Any

import click
from flask.cli import AppGroup

from app.desk.endpoints import listed, pause, resume
from app.ops.asking import actor_option, cursor_option, json_option, limit_option, reason_option
from app.ops.screen import Column, age, moment, show_json, table
from models.endpoint_search import EndpointState
from models.session import transaction

endpoints = AppGroup("endpoints", help="See how operators' webhook receivers are doing; pause and resume one.")

COLUMNS = (
    Column("operator\nurl", narrowest=26),
    Column("state\nfailures", narrowest=8),
    Column("waiting\nin flight", right=True, narrowest=9),
    Column("oldest\ndue", right=True, narrowest=6),
    Column("held until, or by\nwhom, when and why", narrowest=20),
)


@endpoints.command("list")
@click.option("--state", type=click.Choice([state.value for state in EndpointState]), help="Only those doing so.")
@limit_option
@cursor_option(str)
@json_option
def list_endpoints(state: str | None, limit: int, cursor: tuple[str] | None, as_json: bool) -> None:
    """Every operator's webhook endpoint, and what waits for it.

    \b
    healthy   its last attempt succeeded, or there was none yet
    failing   its last attempts failed; the next is made all the same
    open      so many failed in a row that we wait a while, then try with one
    paused    somebody paused it

    Nothing that waits loses an attempt by that. "failures" are those in a row. "waiting" is what is due
    now, and "oldest due" for how long.
    """
    with transaction() as session:
        answer = listed(session, EndpointState(state) if state else None, limit, cursor)
    if as_json:
        show_json(answer)
        return
    table(COLUMNS, (_row(one) for one in answer["endpoints"]), "There is no such endpoint.")
    if answer["nextCursor"]:
        click.echo(f"More: --cursor {answer['nextCursor']}")


@endpoints.command("pause")
@click.argument("operator_id")
@reason_option
@actor_option
@json_option
def pause_one(operator_id: str, reason: str, actor: str, as_json: bool) -> None:
    """Send this operator nothing from now on, whichever worker it is.

    What is being sent is finished. The rest waits, keeps its attempts, and goes out after "resume".
    """
    with transaction() as session:
        answer = pause(session, actor, operator_id, reason)
    _print_one(answer, as_json)


@endpoints.command("resume")
@click.argument("operator_id")
@reason_option
@actor_option
@json_option
def resume_one(operator_id: str, reason: str, actor: str, as_json: bool) -> None:
    """Send to this operator again, at once: after a pause, or when its receiver is back before we try by ourselves."""
    with transaction() as session:
        answer = resume(session, actor, operator_id, reason)
    _print_one(answer, as_json)


def _print_one(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(answer)
    else:
        table(COLUMNS, [_row(answer)], "")


def _row(one: dict[str, Any]) -> list[object]:
    held = f"until\n{moment(one['openUntil'])}" if one["openUntil"] else None
    if one["state"] == EndpointState.PAUSED.value:
        held = f"{one['pausedBy']}\n{moment(one['pausedAt'])}\n{one['reason']}"
    return [
        f"{one['operatorId']}\n{one['url'] or 'no address yet'}",
        f"{one['state']}\n{one['failures']}",
        f"{one['waiting']:,}\n{one['inFlight']:,}",
        age(one["oldestDueSeconds"]),
        held,
    ]
