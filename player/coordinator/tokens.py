"""Access and refresh tokens: got when first needed, renewed before they end, kept in memory alone.

The one rule kept here: a refresh token is for one use. When the answer to a refresh is lost nobody knows whether it was
used, so then, as with any other doubt, the API key is exchanged anew.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from player.coordinator.errors import CoordinatorError, RateLimited, Unauthorized, Unreadable
from player.coordinator.reading import read
from player.coordinator.transport import Ask, Transport

_BEFORE_IT_ENDS = 60.0
"""Seconds: a token that would end so soon is renewed first, since a request may be on its way for a while."""

_LONGEST_LIFE = 10**9
"""Seconds: no token lives as long."""

_FAREWELL = 5.0
"""Seconds that logging out may take: nobody waits for that."""


@dataclass(frozen=True)
class _Login:
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_in: int


class Tokens:
    """The session of one API key. Threads share it: one of them renews, the others wait for what it gets."""

    def __init__(self, transport: Transport, api_key: str | None) -> None:
        self._transport = transport
        self._api_key = api_key
        self._held: _Login | None = None
        self._ends = 0.0
        self._lock = threading.Lock()

    def use_key(self, api_key: str) -> None:
        """Go on with another API key; what was got with the one before ends with it."""
        with self._lock:
            self._api_key, self._held = api_key, None

    def current(self, give_up: float) -> str:
        """An access token that lives long enough for a request.

        :raises Unauthorized: there is no API key, or it is not known.
        """
        with self._lock:
            if self._held is None or self._transport.clock() >= self._ends - self._margin():
                self._renew(give_up)
            assert self._held is not None
            return self._held.access_token

    def instead_of(self, refused: str, give_up: float) -> str:
        """Another access token than the one that was refused.

        :raises Unauthorized: there is none to be had.
        """
        with self._lock:
            if self._held is None or self._held.access_token == refused:
                self._renew(give_up)
            assert self._held is not None
            return self._held.access_token

    def end(self) -> None:
        """Void the refresh token, as far as the coordinator can be reached."""
        with self._lock:
            held, self._held = self._held, None
        if held is not None:
            ask = Ask("POST", "/api/auth/logout", {"refreshToken": held.refresh_token}, repeatable=False)
            try:
                self._transport.send(ask, None, self._transport.clock() + _FAREWELL)
            except CoordinatorError:
                return  # it ends by itself

    def _margin(self) -> float:
        return min(_BEFORE_IT_ENDS, self._held.expires_in / 2) if self._held else 0.0

    def _renew(self, give_up: float) -> None:
        held, self._held = self._held, None
        if held is not None:
            refresh = Ask("POST", "/api/auth/refresh", {"refreshToken": held.refresh_token}, repeatable=False)
            try:
                self._take(refresh, give_up)
                return
            except RateLimited:
                self._held = held  # it was not used: next time
                raise
            except CoordinatorError:
                pass
        ask = Ask("POST", "/api/auth/operator/login", {"apiKey": self._api_key})
        if self._api_key is None:
            raise Unauthorized(str(ask), 401, "unauthenticated", "this client was given no API key")
        self._take(ask, give_up)

    def _take(self, ask: Ask, give_up: float) -> None:
        began = self._transport.clock()
        held = read(_Login, self._transport.send(ask, None, give_up), str(ask))
        # A header cannot carry everything, and what fails to fit into one says in its error what it was.
        if not (held.access_token.isascii() and held.access_token.isprintable() and held.expires_in < _LONGEST_LIFE):
            raise Unreadable(str(ask), "the answer is not a Login (no usable access token)")
        self._held, self._ends = held, began + held.expires_in
