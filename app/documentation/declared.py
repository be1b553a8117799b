"""What a view says of itself that its schemas do not: the errors it refuses with, and the credential it reads.

The one rule kept here: an error is declared by an example of it, beside the code that raises it. Status, code and
body follow from the example, so the document cannot say one thing and the code another.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from marshmallow import Schema

from protocol.errors import LotteryError

Made = TypeVar("Made", bound=Callable[..., Any])

Refusal = tuple[LotteryError, type[Schema] | None]
"""An example of an error, and the schema of its body where that is not the usual one."""


def refuses(*examples: LotteryError, schema: type[Schema] | None = None) -> Callable[[Made], Made]:
    """Declare that a view or a guard may answer with errors like these; adds to what is declared already."""

    def declare(function: Made) -> Made:
        refusals = [(example, schema) for example in examples]
        function.refuses = [*refusals, *refusals_of(function)]  # type: ignore[attr-defined]
        return function

    return declare


def reads_credential(*schemes: str) -> Callable[[Made], Made]:
    """Declare that a view or a guard lets in whoever holds one of these (``app.documentation.credentials``)."""

    def declare(function: Made) -> Made:
        function.credentials = schemes  # type: ignore[attr-defined]
        return function

    return declare


def refusals_of(function: Callable[..., Any]) -> list[Refusal]:
    """What was declared of a function. Decorators pass it on (``functools.wraps``)."""
    return list(getattr(function, "refuses", ()))


def credentials_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the credentials that a function reads."""
    return tuple(getattr(function, "credentials", ()))


def for_roles(*roles: str) -> Callable[[Made], Made]:
    """Declare that a view is for admins of these roles."""

    def declare(function: Made) -> Made:
        function.roles = sorted(roles)  # type: ignore[attr-defined]
        return function

    return declare


def roles_of(function: Callable[..., Any]) -> list[str]:
    """The roles of admins that a function lets in; none if it does not ask."""
    return list(getattr(function, "roles", ()))


def without_engines(function: Made) -> Made:
    """Declare that a view answers even when neither the database nor Redis does."""
    function.needs_engines = False  # type: ignore[attr-defined]
    return function


def needs_engines(function: Callable[..., Any]) -> bool:
    """Whether a function can be out of order because an engine is."""
    return bool(getattr(function, "needs_engines", True))
