"""``flask ops deliveries``: finding webhook deliveries and sending a failed one again (many: ``app.ops.requeues``)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import Any
from uuid import UUID

import click
from flask.cli import AppGroup

from app.desk.deliveries import listed, requeue_one, shown
from app.fields import identifier
from app.ops.asking import (
    Checked,
    actor_option,
    cursor_option,
    json_option,
    limit_option,
    reason_option,
    times,
)
from app.ops.attempts import timeline
from app.ops.screen import Column, facts, moment, older, show_json, table
from models.deliveries import DeliveryStatus
from models.delivery_search import Place, Wanted
from models.session import transaction
from protocol.retry import ERROR_CLASSES
from protocol.webhook import EVENTS

deliveries = AppGroup("deliveries", help="Find webhook deliveries; send failed ones again.")

COLUMNS = (
    Column("delivery\nwritten", narrowest=36),
    Column("operator\nround"),
    Column("event\nlast error"),
    Column("status\nattempts", narrowest=9),
)
STATUSES = [status.value for status in DeliveryStatus]
SHOWN_CHARACTERS = 600


def filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which deliveries, handed over as one ``wanted``."""

    @click.option("--operator", "operator_id", type=Checked(identifier(), "ID"), help="Only those to this operator.")
    @click.option("--round", "round_id", type=click.IntRange(1), help="Only those about this round.")
    @click.option("--event", type=click.Choice(EVENTS), metavar="EVENT", help="Only this event, such as round.drawn.")
    @click.option(
        "--error-class",
        type=click.Choice(ERROR_CLASSES),
        metavar="CLASS",
        help="Only those that failed so: timeout, connect, dns, tls, status_4xx, status_5xx, no_endpoint, …",
    )
    @times
    @wraps(command)
    def with_filters(
        operator_id: str | None,
        round_id: int | None,
        event: str | None,
        error_class: str | None,
        since: datetime | None,
        until: datetime | None,
        **others: Any,
    ) -> Any:
        return command(Wanted(None, operator_id, round_id, event, error_class, since, until), **others)

    return with_filters


@deliveries.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only those in this state.")
@filters
@limit_option
@cursor_option(datetime, UUID)
@json_option
def list_deliveries(wanted: Wanted, status: str | None, limit: int, cursor: Place | None, as_json: bool) -> None:
    """Deliveries, newest first. Each is one message to one operator.

    \b
    pending     will be tried, or tried again, when its time comes
    delivered   the operator answered 200
    failed      given up after the last attempt; send it again with "requeue"
    """
    with transaction() as session:
        status_wanted = DeliveryStatus(status) if status else None
        answer = listed(session, replace(wanted, status=status_wanted), limit, cursor)
    if as_json:
        show_json(answer)
        return
    table(COLUMNS, (_row(one) for one in answer["deliveries"]), "No delivery fits.")
    older(answer)


@deliveries.command("show")
@click.argument("delivery_id")
@json_option
def show_delivery(delivery_id: str, as_json: bool) -> None:
    """One delivery: what is sent, and what came of every attempt."""
    with transaction() as session:
        answer = shown(session, delivery_id)
    if as_json:
        show_json(answer)
        return
    attempts = answer["attempts"]
    address = [("sent to", attempts[0]["url"])] if attempts else []
    _print_one(answer, *address, ("message", _beginning(answer["body"])))
    timeline(attempts)
    answered = [one for one in attempts if one["responseBody"]]
    if answered:
        facts([(f"answer to #{answered[-1]['number']}", _beginning(answered[-1]["responseBody"]))])


@deliveries.command("requeue")
@click.argument("delivery_id")
@reason_option
@actor_option
@json_option
def requeue(delivery_id: str, reason: str, actor: str, as_json: bool) -> None:
    """Send one failed delivery again, at once, with as many attempts as a new one has.

    The operator sees the same delivery id and the same message. One that is not failed is refused (exit code 1): what
    was delivered is never sent again.
    """
    with transaction() as session:
        answer = requeue_one(session, actor, delivery_id, reason)
    if as_json:
        show_json(answer)
    else:
        _print_one(answer)


def _row(one: dict[str, Any]) -> list[object]:
    about = f"round {one['roundId']}" if one["roundId"] else "no round"
    return [
        f"{one['deliveryId']}\n{moment(one['createdAt'])}",
        f"{one['operatorId']}\n{about}",
        f"{one['event']}\n{one['errorClass'] or ''}",
        f"{one['status']}\n{one['attemptCount']}",
    ]


def _print_one(one: dict[str, Any], *more: tuple[str, object]) -> None:
    earlier = f" ({one['attemptsBefore']} before it was last queued again)" if one["attemptsBefore"] else ""
    facts(
        [
            ("delivery", one["deliveryId"]),
            ("event", one["event"]),
            ("operator", one["operatorId"]),
            ("round", one["roundId"]),
            ("status", one["status"]),
            ("attempts", f"{one['attemptCount']}{earlier}"),
            ("last error", one["errorClass"]),
            ("written", moment(one["createdAt"])),
            ("next attempt", moment(one["nextAttemptAt"])),
            ("being sent until", moment(one["leasedUntil"])),
            ("finished", moment(one["finishedAt"])),
            *more,
        ]
    )


def _beginning(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… (all of it with --json)"
