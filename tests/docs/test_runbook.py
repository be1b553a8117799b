"""The runbook, read as somebody does who was woken: its pages are the alerts, and what it tells to type exists.

The one rule kept here: every command on the page is taken as it stands, with an example for each word in capitals, and
is parsed by the program that it is for.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest
import yaml
from sqlalchemy import text

from app.ops import ops
from deploy.procfile import TOP
from tests.docs.pages import blocks

PAGE = (TOP / "docs" / "runbook.md").read_text(encoding="utf-8")
ALERTS = yaml.safe_load((TOP / "deploy" / "alerts.yml").read_text(encoding="utf-8"))
PARTS = ["What it means.", "Who feels it.", "Look.", "Do.", "Don't."]
EXAMPLES = {
    "OPERATOR": "op_a",
    "ROUND": "1",
    "DELIVERY": "00000000-0000-4000-8000-000000000001",
    "JOB": "1",
    "FOLDER": ".",
    "WHY": "a drill",
}
ADDRESS = re.compile(r"\$URL(/[\w/]+)")


def typed() -> Iterator[str]:
    """Every command of the page: the lines of its shell blocks, and what stands in backticks."""
    for block in blocks(PAGE):
        assert block.language == "sh", f"line {block.line}"
        yield from block.text.splitlines()
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))


def words(line: str) -> list[str]:
    """The words of a command, examples for its capitals, without its comment."""
    for name, example in EXAMPLES.items():
        line = re.sub(rf"\b{name}\b", example, line)
    return shlex.split(line, comments=True)


COMMANDS = sorted({line.split("#")[0].strip() for line in typed() if line.startswith("flask ops ")})


def parse(*typed: str) -> None:
    """Parse the words behind ``flask ops`` as click would, and run nothing.

    :raises click.ClickException: they would be refused.
    """
    command: click.Command = ops
    rest = list(typed)
    while isinstance(command, click.Group):
        name = rest.pop(0)
        if name not in command.commands:
            raise click.UsageError(f"no such command: {name}")
        command = command.commands[name]
    with command.make_context(command.name, rest):
        pass


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_exists_and_takes_what_it_is_given(line: str) -> None:
    parse(*words(line)[2:])


def test_a_command_that_does_not_exist_would_be_found() -> None:
    for wrong in ("flask ops lunch list", "flask ops queues list --hungry", "flask ops queues pause deliveries"):
        with pytest.raises(click.ClickException):
            parse(*words(wrong)[2:])


def test_the_commands_are_told_apart() -> None:
    assert len(COMMANDS) > 15


def test_every_address_exists(house: None) -> None:
    from app import create_app

    asked = {path for line in typed() for path in ADDRESS.findall(line)}
    assert asked == {"/health", "/health/ready", "/metrics"}
    assert asked <= {str(rule) for rule in create_app().url_map.iter_rules()}


def test_the_question_to_the_database_is_answered(house: None) -> None:
    from models.session import transaction

    asked = re.findall(r'psql "\$DATABASE_URL" -c "([^"]+)"', PAGE)
    assert len(asked) == 1
    with transaction() as session:
        columns = session.execute(text(asked[0])).keys()
    assert list(columns) == ["pid", "open_for", "state", "wait_event", "query"]


def test_there_is_a_page_for_every_alert_and_an_alert_for_every_page() -> None:
    named = [rule["alert"] for group in ALERTS["groups"] for rule in group["rules"]]
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE) == named


def test_every_page_says_the_same_five_things_in_the_same_order() -> None:
    pages = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    assert [re.findall(r"^\*\*([^*]+)\*\*", page, re.MULTILINE) for page in pages] == [PARTS] * len(pages)


def test_links_within_the_page_lead_somewhere() -> None:
    headings = {heading.lower() for heading in re.findall(r"^## (.+)$", PAGE, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= headings
    for path in re.findall(r"\]\(\.\./([^)#]+)\)", PAGE):
        assert (TOP / path).is_file()


@pytest.mark.parametrize(
    "said",
    [
        "cannot ring for due rows",
        "archive damaged",
        "ringing for due rows again",
        "cannot lease deliveries",
        "cannot write down attempts",
        "webhook put off",
        "attempt went wrong",
        "our resolver does not answer",
        "a mistake of the coordinator",
        "the worker was stopped",
        "the database cannot be reached",
    ],
)
def test_what_the_page_looks_for_in_logs_is_what_the_program_says(said: str) -> None:
    assert said in PAGE
    folders = ("app", "models", "tasks", "scheduler")
    sources = (path for folder in folders for path in (TOP / folder).rglob("*.py"))
    assert any(said in path.read_text(encoding="utf-8") for path in sources)
