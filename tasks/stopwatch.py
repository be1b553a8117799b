"""Timing the phases of a call.

The one rule kept here: every moment belongs to one phase, so that the phases add up to the whole.
"""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Phases:
    """Seconds that each phase took until it ended or was cut; None where it did not happen.

    On a reused connection there is no ``dns``, ``connect`` or ``tls``. ``wait`` is from the end of our request to the
    first byte of the answer, ``receive`` from there to its end.
    """

    dns: float | None = None
    connect: float | None = None
    tls: float | None = None
    send: float | None = None
    wait: float | None = None
    receive: float | None = None


class Stopwatch:
    """Runs from its making; one phase at a time. A phase that is started again goes on where it was."""

    def __init__(self) -> None:
        self.phase: str | None = None
        self._began = self._since = time.perf_counter()
        self._laps: dict[str, float] = {}

    def start(self, phase: str) -> None:
        """End the running phase and begin this one (a field of Phases)."""
        self._lap()
        self.phase = phase

    def stop(self) -> tuple[Phases, float]:
        """The phases, and the seconds of it all."""
        self._lap()
        self.phase = None
        return Phases(**self._laps), self._since - self._began

    def _lap(self) -> None:
        if self.phase is None:
            return  # what was before the first phase counts as its beginning
        now = time.perf_counter()
        self._laps[self.phase] = self._laps.get(self.phase, 0.0) + now - self._since
        self._since = now
