"""``flask ops applications``: reviewing applications."""

from typing import Any

import click
from flask.cli import AppGroup

from app.desk.applications import decide, listed, shown
from app.fields import Text
from app.ops.asking import Checked, actor_option, json_option
from app.ops.screen import Column, facts, moment, show_json, table
from models.applications import ApplicationStatus
from models.session import transaction

applications = AppGroup("applications", help="Review companies that want to become operators.")

COLUMNS = (
    Column("application", narrowest=20),
    Column("company\ncontact"),
    Column("jurisdiction\nlicence"),
    Column("status"),
    Column("submitted", narrowest=20),
)
STATUSES = [status.value for status in ApplicationStatus]
note_option = click.option("--note", type=Checked(Text(longest=5_000), "TEXT"), help="Why; the applicant reads it.")


@applications.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only those in this state.")
@json_option
def list_applications(status: str | None, as_json: bool) -> None:
    """Applications, newest first (the last 200)."""
    with transaction() as session:
        answer = listed(session, status)
    if as_json:
        show_json(answer)
        return
    rows = (
        [
            one["applicationId"],
            f"{one['companyName']}\n{one['contactEmail']}",
            f"{one['jurisdiction']}\n{one['gamingLicenseNumber']}",
            one["status"],
            moment(one["submittedAt"]),
        ]
        for one in answer["applications"]
    )
    table(COLUMNS, rows, "There are no such applications.")


@applications.command("show")
@click.argument("application_id")
@json_option
def show_application(application_id: str, as_json: bool) -> None:
    """One application with all that the company wrote."""
    with transaction() as session:
        answer = shown(session, application_id)
    if as_json:
        show_json(answer)
        return
    facts(
        [
            ("application", answer["applicationId"]),
            ("status", answer["status"]),
            ("company", answer["companyName"]),
            ("jurisdiction", answer["jurisdiction"]),
            ("licence", answer["gamingLicenseNumber"]),
            ("contact", f"{answer['contactName']}, {answer['contactEmail']}"),
            ("address", answer["ethereumAddress"]),
            ("website", answer["website"]),
            ("description", answer["description"]),
            ("submitted", moment(answer["submittedAt"])),
            ("reviewed", moment(answer["reviewedAt"])),
            ("note", answer["reviewNote"]),
            ("operator", answer.get("operatorId")),
        ]
    )


@applications.command("approve")
@click.argument("application_id")
@note_option
@actor_option
@json_option
def approve(application_id: str, note: str | None, actor: str, as_json: bool) -> None:
    """Make the company an operator. Its API key is printed once and cannot be shown again: hand it over safely."""
    with transaction() as session:
        answer = decide(session, actor, application_id, True, note)
    _print_decision(answer, as_json)


@applications.command("reject")
@click.argument("application_id")
@note_option
@actor_option
@json_option
def reject(application_id: str, note: str | None, actor: str, as_json: bool) -> None:
    """Turn the company down. It may apply again."""
    with transaction() as session:
        answer = decide(session, actor, application_id, False, note)
    _print_decision(answer, as_json)


def _print_decision(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(answer)
    elif answer["apiKey"]:
        click.echo(f"{answer['applicationId']} is approved: it is operator {answer['operatorId']} now.")
        click.echo("Its API key is shown only here:")
        click.echo(f"\n    {answer['apiKey']}\n")
    else:
        click.echo(f"{answer['applicationId']} is rejected.")
