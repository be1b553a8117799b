"""``flask ops`` and its commands."""

import json
from typing import Any

import click
from flask.cli import AppGroup
from sqlalchemy.exc import OperationalError, ProgrammingError

from models.audit import record
from models.credentials import AdminRole, issue_admin_key
from models.schema import schema_fault
from models.session import engine, transaction


class OpsGroup(AppGroup):
    """Says in one line what is wrong with the database, where there is something wrong with it."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (OperationalError, ProgrammingError):
            fault = schema_fault(engine())
            if fault is None:
                raise
            raise click.ClickException(fault) from None


ops = OpsGroup("ops", help="Run the coordinator: keys, deliveries, queues.")
admin_key = AppGroup("admin-key", help="Keys of the admin API.")
ops.add_command(admin_key)


@admin_key.command("create")
@click.option("--role", type=click.Choice([role.value for role in AdminRole]), required=True)
@click.option("--name", required=True, help="Whose key it is, for the audit log.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def create_admin_key(role: str, name: str, as_json: bool) -> None:
    """Make an admin key. It is printed once and cannot be shown again."""
    with transaction() as session:
        row, key = issue_admin_key(session, name, AdminRole(role))
        record(session, "command line", "admin_key.create", f"{name} ({row.id})", role=role)
    if as_json:
        click.echo(json.dumps({"keyId": row.id, "adminKey": key, "role": role}))
    else:
        click.echo(f"admin key {row.id} for {name}, role {role}. It is shown only now:\n\n    {key}\n")
