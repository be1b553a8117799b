"""A process that dies between any two of its statements, played within this one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from sqlalchemy import Engine, event

from models.session import engine


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


def dies_at(statement: int, work: Callable[[], object], its: Callable[[], Engine] = engine) -> bool:
    """Do the work in a process that ends when it sends so many statements; False when it sends fewer."""
    sent = count(1)

    def send(*_: object) -> None:
        if next(sent) == statement:
            raise Killed

    event.listen(its(), "before_cursor_execute", send)
    try:
        work()
    except Killed:
        return True
    finally:
        event.remove(its(), "before_cursor_execute", send)
    return False


def deaths(work: Callable[[], object], untouched: Callable[[], bool]) -> int:
    """Do the work over and over, killed one statement later each time, until it comes through; after every death
    ``untouched`` must hold. Returns how often it died.
    """
    died = 0
    while dies_at(died + 1, work):
        died += 1
        assert untouched(), f"something was left by a death at statement {died}"
    return died
