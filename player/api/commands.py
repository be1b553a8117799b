"""``flask --app player.api.factory staff-key``: keys of the admin API, for whoever has a shell on the node.

The one rule kept here: a key is printed once, when it is made; whatever is refused is said in one line, exit code 1.
"""

import getpass
import json
from collections.abc import Callable
from functools import wraps
from typing import Any

import click
from flask.cli import AppGroup
from sqlalchemy.exc import OperationalError, ProgrammingError

from player.models.schema import schema_fault
from player.models.session import engine, transaction
from player.models.staff import StaffKey, issue_staff_key, note, revoke, staff_keys
from protocol.errors import LotteryError
from protocol.timestamps import format_timestamp

staff_key = AppGroup("staff-key", help="Make, list and revoke keys of the admin API (header X-Admin-Key).")


def _refusing(command: Callable[..., None]) -> Callable[..., None]:
    @wraps(command)
    def run(**options: Any) -> None:
        try:
            command(**options)
        except LotteryError as error:
            raise click.ClickException(error.message) from None
        except (OperationalError, ProgrammingError) as error:
            # The database is away, or has no tables yet. With all of that in order it is a fault of ours.
            fault = schema_fault(engine())
            if fault is None:
                raise
            raise click.ClickException(fault) from error

    return run


def _name(context: click.Context, option: click.Parameter, value: str) -> str:
    if not value.strip() or not value.isprintable() or len(value) > 100:
        raise click.BadParameter("a name is 1 to 100 printable characters")
    return value.strip()


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@staff_key.command("create")
@click.option("--name", required=True, callback=_name, help="Whose key it is, for the audit log.")
@as_json
@_refusing
def create(name: str, as_json: bool) -> None:
    """Make a key. It is printed once and cannot be shown again."""
    with transaction() as session:
        row, key = issue_staff_key(session, name)
        note(session, _somebody(), "staff_key.create", f"staff_key:{row.id}", f"made for {name}")
    if as_json:
        click.echo(json.dumps({"keyId": row.id, "name": row.name, "staffKey": key}))
    else:
        click.echo(f"staff key {row.id} for {name}, to be sent as X-Admin-Key. It is shown only now:\n\n    {key}\n")


@staff_key.command("list")
@as_json
@_refusing
def list_keys(as_json: bool) -> None:
    """Show every key, revoked ones too; never the secrets."""
    with transaction() as session:
        rows = staff_keys(session)
    if as_json:
        click.echo(json.dumps([_shown(row) for row in rows]))
    elif not rows:
        click.echo("no staff key has been made yet")
    else:
        width = max(len(row.name) for row in rows)
        for row in rows:
            state = f"revoked {format_timestamp(row.revoked_at)}" if row.revoked_at else "in force"
            click.echo(f"{row.id}  {row.name:{width}}  made {format_timestamp(row.created_at)}  {state}")


@staff_key.command("revoke")
@click.argument("key_id")
@click.option("--reason", required=True, callback=_name, help="Why, for the audit log.")
@_refusing
def revoke_key(key_id: str, reason: str) -> None:
    """Take a key out of force, from the next request on."""
    with transaction() as session:
        row = revoke(session, key_id)
        note(session, _somebody(), "staff_key.revoke", f"staff_key:{row.id}", reason)
    click.echo(f"staff key {row.id} for {row.name} is revoked")


def _shown(row: StaffKey) -> dict[str, Any]:
    revoked = None if row.revoked_at is None else format_timestamp(row.revoked_at)
    return {"keyId": row.id, "name": row.name, "createdAt": format_timestamp(row.created_at), "revokedAt": revoked}


def _somebody() -> str:
    """Who is at the shell, as far as the machine knows."""
    try:
        return f"shell:{getpass.getuser()}"
    except (KeyError, OSError):
        return "shell"
