"""``flask ops admin-key``: keys of the admin API."""

import click
from flask.cli import AppGroup

from app.ops.asking import actor_option, json_object_option
from app.ops.screen import show_json
from models.audit import record
from models.credentials import AdminRole, issue_admin_key
from models.session import transaction

admin_key = AppGroup("admin-key", help="Make keys of the admin API.")


@admin_key.command("create")
@click.option("--role", type=click.Choice([role.value for role in AdminRole]), required=True, help="What it may do.")
@click.option("--name", required=True, help="Whose key it is, for the audit log.")
@actor_option
@json_object_option
def create_admin_key(role: str, name: str, actor: str, as_json: bool) -> None:
    """Make an admin key. It is printed once and cannot be shown again.

    \b
    reviewer    applications, reading operators
    treasurer   deposits, reading the ledger
    oncall      deliveries, queues, rounds, reading operators
    root        everything, operators' keys and the audit log too
    """
    with transaction() as session:
        row, key = issue_admin_key(session, name, AdminRole(role))
        record(session, actor, "admin_key.create", f"{name} ({row.id})", role=role)
    if as_json:
        show_json({"keyId": row.id, "adminKey": key, "role": role})
    else:
        click.echo(f"admin key {row.id} for {name}, role {role}. It is shown only now:\n\n    {key}\n")
