"""One request to the coordinator, sent again as long as that can help, and its answer.

The one rule kept here: what may not count twice is sent twice only when the first surely never arrived. All else is
idempotent by the coordinator's own promise, and the same bytes go again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import SystemRandom
from typing import Any
from urllib.parse import quote, urlsplit

import requests
from urllib3.exceptions import NewConnectionError

from player.coordinator.errors import CoordinatorError, RateLimited, Unreachable, Unreadable, refusal
from player.coordinator.patience import AGAIN, Patience, retry_after

MOST_BYTES = 256 * 1024 * 1024
"""What an answer may inflate to: far more than any has, and less than would take all memory."""
_CHUNK = 64 * 1024
_AGENT = "lottery-sdk/1"


@dataclass(frozen=True, repr=False)
class Ask:
    """A request. `body` is JSON, or bytes that are; `repeatable`: the coordinator promises that it counts once.

    `seconds`: at least so many for an attempt.
    """

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] | None = None
    query: Mapping[str, int | str] | None = None
    repeatable: bool = True
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def path_of(*parts: str | int) -> str:
    """A path below /api; every part is quoted whole."""
    return "/api/" + "/".join(quote(str(part), safe="") for part in parts)


class Transport:
    """Sends requests to one coordinator. Threads may share it: sessions are told to remember nothing."""

    def __init__(
        self,
        base_url: str,
        patience: Patience,
        session: requests.Session | None,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        jitter: Callable[[float, float], float] | None = None,
    ) -> None:
        self.base_url = _checked(base_url)
        self.patience = patience
        self.clock = clock
        self._sleep = sleep
        self._jitter = jitter or SystemRandom().uniform
        self._own = session is None
        self._session = session or requests.Session()
        if self._own:
            self._session.headers["User-Agent"] = _AGENT

    def close(self) -> None:
        """Close the connections; a session that was given stays its owner's."""
        if self._own:
            self._session.close()

    def give_up_at(self) -> float:
        """The moment (of `clock`) at which a call that begins now is given up."""
        return self.clock() + self.patience.overall

    def send(self, ask: Ask, bearer: str | None = None, give_up: float | None = None) -> Any:
        """The parsed answer to a request, sent until one comes.

        :raises CoordinatorError: of the kind that says what can be done about it.
        """
        give_up = self.give_up_at() if give_up is None else give_up
        attempt = 0
        while True:
            attempt += 1
            try:
                status, headers, body = self._once(ask, bearer, give_up)
            except requests.RequestException as error:
                failure: CoordinatorError = Unreachable(str(ask), _named(error))
                again, asked = ask.repeatable or _never_sent(error), None
            else:
                if 200 <= status < 300:
                    if body is None:
                        raise Unreadable(
                            str(ask), f"answered {status} without JSON; is this the coordinator's address?"
                        )
                    return body
                failure = refusal(str(ask), status, body)
                asked = retry_after(headers, datetime.now(UTC))
                if isinstance(failure, RateLimited):
                    failure.retry_after = asked
                # Whoever is told to slow down was told so before anything was done.
                again = status == 429 or (status in AGAIN and ask.repeatable)
            wait = self.patience.wait(attempt, asked, self._jitter)
            if not again or attempt >= self.patience.attempts or self.clock() + wait >= give_up:
                raise failure
            self._sleep(wait)

    def _once(self, ask: Ask, bearer: str | None, give_up: float) -> tuple[int, Mapping[str, str], Any]:
        left = give_up - self.clock()
        if left <= 0:
            raise requests.Timeout
        headers = {"Accept": "application/json", **(ask.headers or {})}
        body = ask.body
        if body is not None:
            headers["Content-Type"] = "application/json"
            if not isinstance(body, bytes):
                body = json.dumps(body).encode()
        with self._session.request(
            ask.method,
            self.base_url + ask.path,
            params=ask.query,
            data=body,
            headers=headers,
            # Given even when there is nothing to say: else requests looks for passwords in ~/.netrc and sends those.
            auth=_Bearer(bearer),
            timeout=min(max(self.patience.timeout, ask.seconds), left),
            allow_redirects=False,
            stream=True,
        ) as answer:
            return answer.status_code, answer.headers, _json(self._read(ask, answer, give_up))

    def _read(self, ask: Ask, answer: requests.Response, give_up: float) -> bytes:
        # In pieces, because a timeout is for each of them: an answer that trickles in for ever ends here, and so does
        # one that never ends.
        pieces, size = [], 0
        for piece in answer.iter_content(_CHUNK):
            pieces.append(piece)
            size += len(piece)
            if self.clock() > give_up:
                raise requests.Timeout
            if size > MOST_BYTES:
                raise Unreadable(str(ask), f"the answer is longer than {MOST_BYTES} bytes")
        return b"".join(pieces)


class _Bearer(requests.auth.AuthBase):
    def __init__(self, token: str | None) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers.pop("Cookie", None)
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _checked(base_url: str) -> str:
    parts = urlsplit(base_url)
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
        raise ValueError("the coordinator's address is http(s)://host[:port][/path], without a user, query or fragment")
    return base_url.rstrip("/")


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _named(error: requests.RequestException) -> str:
    # Not what it says of itself: that may quote what was sent.
    return "no answer in time" if isinstance(error, requests.Timeout) else f"no answer ({type(error).__name__})"


def _never_sent(error: requests.RequestException) -> bool:
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(error, requests.ConnectTimeout) or isinstance(reason, NewConnectionError)
