"""Waiting in tests: look until it is so, or fail at a deadline. Never sleep and hope."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import psutil

_T = TypeVar("_T")


def until(condition: Callable[[], _T], within: float = 10.0, what: str = "") -> _T:
    """The first true value of `condition()`; AssertionError after `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        if value := condition():
            return value
        assert time.monotonic() < deadline, f"not within {within:g} s: {what or condition}"
        time.sleep(0.02)


def gone(pids: Iterable[int]) -> bool:
    """Whether none of the processes runs any more. A zombie nobody has collected yet does not run."""
    return not any(_runs(pid) for pid in pids)


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def family(pid: int) -> list[int]:
    """The process's descendants."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]
