"""Where the verifier reads from: a coordinator's public API, or files.

The rule: what cannot be read is Unavailable (nothing was learnt); what was read and is damaged is Invalid or
NotVerified (it was).

Implements docs/protocol.md, section 10 (proof bundle).
"""

from __future__ import annotations

import gzip
import http.client
import io
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import IO, Any, Protocol, cast
from urllib.parse import quote

from protocol.canonical import parse_strict_json
from protocol.checks import NotVerified
from protocol.credits import TierClaims
from protocol.errors import Invalid, NotFound, Unavailable
from protocol.winners import TIER_COUNT

USER_AGENT = "lottery-protocol-verify/2"
TIMEOUT_SECONDS = 60
TRIES = 6
LONGEST_WAIT_SECONDS = 65
LARGEST_BUNDLE = 64 << 20
LONGEST_LINE = 1 << 12
CHUNK = 1 << 18
CLAIMS_PAGE = 10_000


class Source(Protocol):
    """Where bundles and tickets come from."""

    def bundle(self) -> Any:
        """The bundle in question, as parsed JSON."""

    def tickets(self, operator_id: str) -> Iterator[bytes]:
        """An operator's sealed ticket lines, without line ends."""

    def previous(self, round_id: int) -> Any:
        """An earlier round's bundle as parsed JSON, or None."""

    def claims(self, round_id: int) -> Sequence[TierClaims] | None:
        """What was claimed of an earlier round's tiers 1 to 5, or None."""


class Coordinator:
    """Reads from a coordinator's public API, waiting when it asks for patience (429, 503)."""

    def __init__(self, url: str, round_id: int, sleep: Callable[[float], None] = time.sleep) -> None:
        self._base = f"{url.rstrip('/')}/api/public/rounds"
        self._draws = f"{url.rstrip('/')}/api/public/sub-prizes"
        self._round_id = round_id
        self._sleep = sleep

    def bundle(self) -> Any:
        try:
            bundle = self._proof(self._round_id)
        except NotFound as problem:
            raise Unavailable(problem.message) from None
        if isinstance(bundle, dict) and bundle.get("roundId") != self._round_id:
            raise NotVerified("roundId", f"expected {self._round_id}, found {bundle.get('roundId')}")
        return bundle

    def tickets(self, operator_id: str) -> Iterator[bytes]:
        with self._open(f"{self._base}/{self._round_id}/tickets/{quote(operator_id, safe='')}") as answer:
            yield from _lines(answer)

    def previous(self, round_id: int) -> Any:
        try:
            return self._proof(round_id)
        except NotFound:
            raise NotVerified(f"round {round_id}", "its proof is not published") from None

    def claims(self, round_id: int) -> Sequence[TierClaims]:
        listed = [[0, 0] for _ in range(TIER_COUNT - 1)]
        last = [("", "")] * len(listed)
        for offset in count(0, CLAIMS_PAGE):
            url = f"{self._draws}/{round_id}?limit={CLAIMS_PAGE}&offset={offset}"
            with self._open(url) as answer:
                page = claims_page(_parsed(answer, f"sub-prizes of round {round_id}"))
            for tier, prizes in enumerate(page):
                for operator_id, ticket_id, claimed in prizes:
                    if (operator_id, ticket_id) <= last[tier]:
                        raise NotVerified(f"sub-prizes of round {round_id}", f"{ticket_id!r} stands twice or astray")
                    last[tier] = operator_id, ticket_id
                    listed[tier][0] += 1
                    listed[tier][1] += not claimed
            if all(len(prizes) < CLAIMS_PAGE for prizes in page):
                return [TierClaims(*tier) for tier in listed]
        raise AssertionError("unreachable: pages end")

    def _proof(self, round_id: int) -> Any:
        with self._open(f"{self._base}/{round_id}/proof") as answer:
            return _parsed(answer, f"bundle of round {round_id}")

    def _open(self, url: str) -> IO[bytes]:
        headers = {"Accept-Encoding": "gzip", "User-Agent": USER_AGENT}
        for attempt in range(1, TRIES + 1):
            try:
                # The command line lets only http and https through.
                request = urllib.request.Request(url, headers=headers)  # noqa: S310
                answer: IO[bytes] = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)  # noqa: S310
                return answer
            except urllib.error.HTTPError as refusal:
                with refusal:
                    if refusal.code == 404:
                        raise NotFound(f"{url} answers 404 (not found)") from None
                    if refusal.code not in (429, 503) or attempt == TRIES:
                        raise Unavailable(f"{url} answers {refusal.code}") from None
                    self._sleep(_patience(refusal.headers.get("Retry-After"), attempt))
            except (OSError, http.client.HTTPException, ValueError) as problem:
                reason = getattr(problem, "reason", None) or problem
                raise Unavailable(f"cannot read {url}: {reason}") from None
        raise AssertionError("unreachable: the last attempt returns or raises")


class Files:
    """Reads a bundle and its tickets from files: DIR/<operatorId>.ndjson or .ndjson.gz."""

    def __init__(self, bundle: Path, tickets: Path | None, previous: Iterable[Path]) -> None:
        self._bundle = bundle
        self._tickets = tickets
        self._previous = list(previous)

    def bundle(self) -> Any:
        return self._read(self._bundle)

    def tickets(self, operator_id: str) -> Iterator[bytes]:
        if self._tickets is None:
            raise Unavailable("this round is drawn: name the folder of its sealed tickets with --tickets DIR")
        plain = self._tickets / f"{operator_id}.ndjson"
        packed = self._tickets / f"{operator_id}.ndjson.gz"
        if not plain.exists() and not packed.exists():
            raise Unavailable(f"the sealed tickets of {operator_id} are neither in {plain} nor in {packed.name}")
        with _opened(plain if plain.exists() else packed) as file:
            yield from _lines(file)

    def previous(self, round_id: int) -> Any:
        for path in self._previous:
            earlier = self._read(path)
            if isinstance(earlier, dict) and earlier.get("roundId") == round_id:
                return earlier
        return None

    def claims(self, round_id: int) -> None:
        return None

    def _read(self, path: Path) -> Any:
        with _opened(path) as file:
            return _parsed(file, f"bundle {path}")


def claims_page(raw: Any) -> list[list[tuple[str, str, bool]]]:
    """The prizes on a page by tier 1 to 5, each with its operator, its ticket and whether it was claimed. Raises
    NotVerified when it is no such page.
    """
    try:
        page = [[_prize(winner) for winner in tier["winners"]] for tier in raw["tiers"]]
        numbers = [tier["tier"] for tier in raw["tiers"]]
    except (KeyError, TypeError):
        numbers = []
    if numbers != list(range(1, TIER_COUNT)):
        raise NotVerified("sub-prizes", "not a list of five tiers")
    return page


def _prize(winner: Any) -> tuple[str, str, bool]:
    operator_id, ticket_id, claimed = winner["operatorId"], winner["ticketId"], winner["claimed"]
    if not isinstance(operator_id, str) or not isinstance(ticket_id, str) or not isinstance(claimed, bool):
        raise TypeError
    return operator_id, ticket_id, claimed


def _patience(retry_after: str | None, attempt: int) -> float:
    if retry_after is None or not retry_after.isdecimal():
        return float(min(2**attempt, LONGEST_WAIT_SECONDS))
    # A number of more digits is longer than we wait in any case, and one of very many cannot be read.
    return float(min(int(retry_after[:9]), LONGEST_WAIT_SECONDS))


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as problem:
        raise Unavailable(f"cannot read {path}: {problem.strerror}") from None


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream's content, inflated if it is gzip. Raises Invalid when damaged, Unavailable when it cannot
    be read.
    """
    # An HTTP answer reads like a raw stream, though its type does not say so.
    try:
        with io.BufferedReader(cast(io.RawIOBase, stream)) as buffered:
            packed = buffered.peek(2)[:2] == b"\x1f\x8b"
            content = gzip.GzipFile(fileobj=buffered) if packed else buffered
            while chunk := content.read(CHUNK):
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise Invalid(f"the compressed data is damaged or ends early ({problem})") from None
    except (OSError, http.client.HTTPException) as problem:
        raise Unavailable(f"reading broke off: {problem}") from None


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in _chunks(stream):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        if len(rest) > LONGEST_LINE:
            raise Invalid(f"a line is longer than {LONGEST_LINE} bytes")
    if rest:
        yield rest


def _parsed(stream: IO[bytes], name: str) -> Any:
    content = bytearray()
    try:
        for chunk in _chunks(stream):
            content += chunk
            if len(content) > LARGEST_BUNDLE:
                raise Invalid(f"larger than {LARGEST_BUNDLE >> 20} MiB")
        return parse_strict_json(bytes(content))
    except Invalid as problem:
        raise NotVerified(name, problem.message) from None
