"""Options that commands share, and asking before something large is done.

The one rule kept here: what may be written is decided by the fields of the admin API (``app.fields``); a command
line that takes what the API refuses would be a way around it.
"""

import getpass
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from marshmallow import ValidationError
from marshmallow.fields import Field

from app.fields import Filled, Moment
from app.ops.group import MISUSED, REFUSED, Refused
from app.ops.screen import on_terminal
from app.resources.cursors import DEFAULT_PAGE, Cursor
from app.resources.paging import LARGEST_PAGE

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Checked(click.ParamType[Any]):
    """A value that a field of the admin API accepts."""

    def __init__(self, field: Field[Any], name: str) -> None:
        self.field = field
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.field.deserialize(value)
        except ValidationError as error:
            self.fail(" ".join(error.normalized_messages()["_schema"]), param, ctx)


class When(Checked):
    """A moment: ISO 8601 with its offset, or a time from now, such as 90s, 10m, 2h, 1d."""

    def __init__(self, *, ago: bool) -> None:
        super().__init__(Moment(), "TIME")
        self.sign = -1 if ago else 1

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        match = re.fullmatch(r"([0-9]{1,6})([smhd])", value) if isinstance(value, str) else None
        if match is None:
            try:
                return super().convert(value, param, ctx)
            except click.BadParameter as error:
                self.fail(f"{error.message} Or a time from now: 90s, 10m, 2h, 1d.", param, ctx)
        return datetime.now(UTC) + self.sign * timedelta(**{_UNITS[match[2]]: int(match[1])})


AGO = When(ago=True)
AHEAD = When(ago=False)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

json_option = click.option("--json", "as_json", is_flag=True, help="Print the admin API's JSON instead of a table.")
json_object_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
"""For what the admin API does not have."""
yes_option = click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal to ask on.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only count what would be done; change nothing.")
reason_option = click.option(
    "--reason", type=Checked(Filled(longest=500), "TEXT"), required=True, help="Why, for the audit log."
)
limit_option = click.option(
    "--limit", type=click.IntRange(1, LARGEST_PAGE), default=DEFAULT_PAGE, show_default=True, help="Rows to show."
)
offset_option = click.option("--offset", type=click.IntRange(0), default=0, help="Rows to leave out first.")


def cursor_option(*kinds: type) -> Decorator:
    """``--cursor``: where the last page ended."""
    kind = Checked(Cursor(*kinds), "CURSOR")
    return click.option("--cursor", type=kind, help="Go on where a page ended; the page says how.")


def times(decorated: Callable[..., Any]) -> Callable[..., Any]:
    """``--since`` and ``--until``."""
    until = click.option("--until", type=AGO, help="Only before this time, given like --since.")
    since = click.option("--since", type=AGO, help="Only from this time on: 30m, 2h, 1d (ago) or 2026-01-31T20:00:00Z.")
    return since(until(decorated))


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


def _actor(ctx: click.Context, param: click.Parameter, name: str | None) -> str:
    return f"{name or _login()} (command line)"


actor_option = click.option(
    "--as",
    "actor",
    metavar="NAME",
    type=Checked(Filled(longest=100), "NAME"),
    callback=_actor,
    help="Who you are, for the audit log. [default: your login name]",
)


def must_be_askable(yes: bool) -> None:
    """Refuse something large where nobody can be asked and nobody said --yes, before anything is looked at."""
    if not yes and not on_terminal():
        raise Refused("there is no terminal to ask on: say --yes if you are sure", MISUSED)


def confirm(question: str, yes: bool) -> None:
    """Ask on the terminal, unless --yes was said; anything but a yes ends the command with exit code 1."""
    must_be_askable(yes)
    if not yes and not click.confirm(question, err=True):
        raise Refused("nothing was changed", REFUSED)
