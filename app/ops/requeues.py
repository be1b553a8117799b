"""``flask ops deliveries requeue-matching``, ``jobs``, ``watch`` and ``cancel``: sending many failed ones again.

The one rule kept here: the work is a row that the workers work off. Whoever watches it may go away; it goes on.
"""

import time
from typing import Any

import click

from app.desk import requeues
from app.ops.asking import (
    actor_option,
    confirm,
    cursor_option,
    dry_run_option,
    json_option,
    limit_option,
    must_be_askable,
    reason_option,
    yes_option,
)
from app.ops.deliveries import filters
from app.ops.group import MISUSED, Refused
from app.ops.screen import Column, facts, moment, older, progress, show_json, table
from models.delivery_search import Wanted
from models.session import transaction

LOOK_SECONDS = 0.5
STILL_SECONDS = 15.0
NO_FILTER = Wanted()

COLUMNS = (
    Column("job\nstate", narrowest=9),
    Column("asked for\nby", narrowest=20),
    Column("which\nwhy"),
    Column("matched\nrequeued", right=True, narrowest=8),
    Column("delivered\nfailed", right=True, narrowest=9),
)
job_argument = click.argument("job_id", metavar="JOB", type=click.IntRange(1, 2**63 - 1))


@click.command("requeue-matching")
@filters
@click.option("--all", "everything", is_flag=True, help="Every failed delivery of everybody, without a filter.")
@reason_option
@actor_option
@dry_run_option
@yes_option
@click.option("--no-wait", is_flag=True, help="Begin and return at once; do not watch it.")
@json_option
def requeue_matching(
    wanted: Wanted,
    everything: bool,
    reason: str,
    actor: str,
    dry_run: bool,
    yes: bool,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Send all failed deliveries that fit again.

    \b
    For example, after an operator's outage:
      flask ops deliveries requeue-matching --operator op_… --since 6h \\
          --reason "their outage" --dry-run

    The same without --dry-run does it. It asks first. Then the workers do it, some a second, behind all that is new,
    and this command shows how far it is. Ctrl-C ends the watching only: "jobs" and "watch" show it again, "cancel" ends
    it. What fails once more meanwhile is not taken twice. A receiver that cannot keep up gets a second's worth and no
    more until it has dealt with that: the job goes on with the others, and is over when this one is done too.
    """
    if not dry_run:
        must_be_askable(yes)
        if wanted == NO_FILTER and not everything:
            raise Refused("this would be every failed delivery: name a filter, or say --all", MISUSED)
    with transaction() as session:
        found = requeues.previewed(session, wanted)
    if dry_run:
        show_json(found) if as_json else _print_preview(found)
        return
    if found["matched"]:
        _say_most(found)
        confirm(f"Send {found['matched']:,} failed deliveries again?", yes)
    with transaction() as session:
        begun = requeues.start(session, actor, wanted, reason, everything=everything)
    _follow(begun, as_json, wait=not no_wait)


@click.command("jobs")
@limit_option
@cursor_option(int)
@json_option
def jobs(limit: int, cursor: tuple[int] | None, as_json: bool) -> None:
    """Re-queues of many, newest first: who began them and why, and how far each is.

    \b
    matched     failed deliveries that fitted when it was begun
    requeued    of these, queued again so far; of these again:
    delivered   the operator has answered 200 since
    failed      given up once more
    """
    with transaction() as session:
        answer = requeues.listed(session, limit, cursor)
    if as_json:
        show_json(answer)
        return
    table(COLUMNS, (_row(one) for one in answer["requeues"]), "Nobody has sent many again yet.")
    older(answer)


@click.command("watch")
@job_argument
@json_option
def watch(job_id: int, as_json: bool) -> None:
    """Show how far a re-queue is until it is over. Ctrl-C ends the watching, not the re-queue."""
    with transaction() as session:
        answer = requeues.shown(session, job_id)
    _follow(answer, as_json, wait=True)


@click.command("cancel")
@job_argument
@reason_option
@actor_option
@json_option
def cancel(job_id: int, reason: str, actor: str, as_json: bool) -> None:
    """End a re-queue before its time. What it has queued again stays queued; the rest stays failed."""
    with transaction() as session:
        answer = requeues.cancel(session, actor, job_id, reason)
    _print_one(answer, as_json)


def _follow(one: dict[str, Any], as_json: bool, *, wait: bool) -> None:
    """Watch until it is over, if that is wanted, and print where it stands then."""
    job_id = one["jobId"]
    if wait and one["state"] == "running":
        try:
            _watch(job_id, one["matched"])
        except KeyboardInterrupt:
            click.echo(f"\nThe re-queue goes on without you:{_ways(job_id)}", err=True)
        with transaction() as session:
            one = one | requeues.shown(session, job_id)
    elif one["state"] == "running":
        click.echo(f"It is begun:{_ways(job_id)}", err=True)
    _print_one(one, as_json)


def _ways(job_id: int) -> str:
    command = "flask ops deliveries"
    return f'\n  watch it:  {command} watch {job_id}\n  end it:    {command} cancel {job_id} --reason "…"'


def _watch(job_id: int, matched: int) -> None:
    seen, moved = 0, time.monotonic()
    with progress("queueing again", matched) as done:
        while True:
            with transaction() as session:
                over, requeued = requeues.how_far(session, job_id)
            if requeued > seen:
                done(requeued - seen)
                seen, moved = requeued, time.monotonic()
            if over:
                return
            if time.monotonic() - moved > STILL_SECONDS:
                click.echo(
                    f"Nothing was queued again for {STILL_SECONDS:.0f} s. Receivers may be slow, down or paused "
                    "(endpoints list), the queue paused (queues list), or no worker running.",
                    err=True,
                )
                moved = float("inf")
            time.sleep(LOOK_SECONDS)


def _say_most(found: dict[str, Any]) -> None:
    for title, name, rows in (
        ("to", "operatorId", found["operators"]),
        ("of", "event", found["events"]),
        ("last error", "errorClass", found["errorClasses"]),
    ):
        most = [f"{one[name] or 'unknown'} {one['deliveries']:,}" for one in rows[:3]]
        click.echo(f"{title:>10}  {', '.join(most)}{', …' if len(rows) > 3 else ''}", err=True)


def _print_preview(found: dict[str, Any]) -> None:
    click.echo(f"{found['matched']:,} failed deliveries fit. Nothing was changed.")
    for title, name, rows in (
        ("operator", "operatorId", found["operators"]),
        ("event", "event", found["events"]),
        ("last error", "errorClass", found["errorClasses"]),
    ):
        if rows:
            columns = (Column(title, narrowest=30), Column("deliveries", right=True))
            table(columns, ([one[name], f"{one['deliveries']:,}"] for one in rows), "")


def _row(one: dict[str, Any]) -> list[object]:
    return [
        f"{one['jobId']}\n{one['state']}",
        f"{moment(one['createdAt'])}\n{one['actor']}",
        f"{_which(one)}\n{one['reason']}",
        f"{one['matched']:,}\n{one['requeued']:,}",
        f"{one['delivered']:,}\n{one['failed']:,}",
    ]


def _which(one: dict[str, Any]) -> str:
    filters = one["filters"]
    shown = {
        "operator": filters["operatorId"],
        "round": filters["roundId"],
        "event": filters["event"],
        "error": filters["errorClass"],
        "since": filters["since"] and moment(filters["since"]),
        "until": filters["until"] and moment(filters["until"]),
    }
    return ", ".join(f"{name} {value}" for name, value in shown.items() if value is not None) or "all"


def _ended(one: dict[str, Any]) -> str | None:
    if one["cancelledAt"]:
        return f"{moment(one['cancelledAt'])} by {one['cancelledBy']}"
    return moment(one["finishedAt"])


def _print_one(one: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(one)
        return
    facts(
        [
            ("job", one["jobId"]),
            ("state", one["state"]),
            ("which", _which(one)),
            ("why", one["reason"]),
            ("begun", f"{moment(one['createdAt'])} by {one['actor']}"),
            ("ended", _ended(one)),
            ("matched", f"{one['matched']:,}"),
            ("queued again", f"{one['requeued']:,}"),
            ("delivered", f"{one['delivered']:,}"),
            ("still to send", f"{one['pending']:,}"),
            ("failed again", f"{one['failed']:,}"),
        ]
    )
