"""``flask ops audit``: who did what."""

import json
from datetime import datetime

import click
from flask.cli import AppGroup

from app.desk.records import audit as entries_of
from app.fields import Filled
from app.ops.asking import Checked, cursor_option, json_option, limit_option, times
from app.ops.screen import Column, moment, older, show_json, table
from models.audit import AuditWanted
from models.session import transaction

audit = AppGroup("audit", help="Read who changed what, when and why.")

COLUMNS = (
    Column("at\nwho", narrowest=20),
    Column("what\nto what"),
    Column("why\ndetails"),
)


@audit.command("list")
@click.option("--action", type=Checked(Filled(longest=100), "ACTION"), help="Only this, such as delivery.requeue.")
@click.option("--subject", type=Checked(Filled(longest=200), "TEXT"), help="Only changes to this, such as an id.")
@click.option("--actor", type=Checked(Filled(longest=200), "NAME"), help="Only by those whose name begins so.")
@times
@limit_option
@cursor_option(int)
@json_option
def list_entries(
    action: str | None,
    subject: str | None,
    actor: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    cursor: tuple[int] | None,
    as_json: bool,
) -> None:
    """Everything that was changed over the admin API and here, newest first."""
    with transaction() as session:
        answer = entries_of(session, AuditWanted(action, subject, actor, since, until), limit, cursor)
    if as_json:
        show_json(answer)
        return
    rows = (
        [
            f"{moment(one['at'])}\n{one['actor']}",
            f"{one['action']}\n{one['subject']}",
            f"{one['reason'] or ''}\n{json.dumps(one['details']) if one['details'] else ''}",
        ]
        for one in answer["entries"]
    )
    table(COLUMNS, rows, "No entry fits.")
    older(answer)
