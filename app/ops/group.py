"""The group that every command of ``flask ops`` belongs to, and how they end.

The one rule kept here: 0 is done, 1 refused (not found, wrong state, not confirmed), 2 used wrongly, 3 an engine is
down or not ready. Whatever is wrong is said in a line or two on standard error, never by a traceback.
"""

from typing import Any, NoReturn

import click
from flask.cli import AppGroup
from redis.exceptions import RedisError
from sqlalchemy.exc import InterfaceError, OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from app.ops.screen import plain
from models.schema import schema_fault
from models.session import engine
from protocol.errors import Invalid, LotteryError, Unavailable

REFUSED, MISUSED, ENGINE_DOWN = 1, 2, 3


class Refused(click.ClickException):
    """Ends a command with a message on standard error and one of the exit codes above."""

    def __init__(self, message: str, exit_code: int = REFUSED) -> None:
        super().__init__(plain(message))
        # click has it as a fact of the class; here it depends on what happened.
        self.exit_code = exit_code  # type: ignore[misc]


class OpsGroup(AppGroup):
    """Maps what goes wrong to a sentence and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LotteryError as error:
            raise Refused(_told(error), _exit_code(error)) from None
        except (OperationalError, InterfaceError, PoolExhausted, RedisError) as error:
            _engine_down(error)
        except ProgrammingError as error:
            # A table that is not there yet. With the right schema it is a fault of ours, and stays one.
            if schema_fault(engine()) is None:
                raise
            _engine_down(error)


def _engine_down(error: Exception) -> NoReturn:
    fault = "Redis cannot be reached" if isinstance(error, RedisError) else schema_fault(engine())
    raise Refused(fault or f"the database did not answer ({type(error).__name__})", ENGINE_DOWN) from None


def _exit_code(error: LotteryError) -> int:
    if isinstance(error, Unavailable):
        return ENGINE_DOWN
    return MISUSED if isinstance(error, Invalid) else REFUSED


def _told(error: LotteryError) -> str:
    if not isinstance(error.details, dict):
        return error.message
    lines = [f"  {name}: {' '.join(map(str, told))}" for name, told in error.details.items()]
    return "\n".join([f"{error.message}:", *lines])
