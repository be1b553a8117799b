"""Taking secrets out of what is kept of a webhook attempt.

The one rule kept here: what a receiver sends back is kept for people to read, and receivers send back what they got.
Of a secret that we know, no RUN characters in a row are kept, whether it came back whole or torn, as it was or
escaped, in base64 or in other letters.

Everything here takes time in proportion to the text, whoever wrote it.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from tasks.exchange import KEPT_BYTES

GONE: Final = "[redacted]"
RUN: Final = 11
"""The shortest piece of a known secret that is taken out: 44 bits of one in hex. Less than that opens nothing."""
_BLOCK: Final = (RUN + 1) // 2
"""Of a secret cut into blocks of so many characters, every RUN in a row hold a whole one."""

# What echoing may change: the case, and which of the two alphabets of base64 it is.
_SAME: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", "abcdefghijklmnopqrstuvwxyz+/")
_A_RUN: Final = re.compile(rf"[a-z0-9+/=]{{{RUN}}}")
"""Our secrets are made of these only, so "thanks for the news" is not searched for them."""
_NAMED: Final = {"plus": "+", "sol": "/", "equals": "=", "lowbar": "_", "comma": ",", "amp": "&"}
_ESCAPE: Final = re.compile(
    r"(?:\\u00|\\x|%|&\#x0{0,4})(?P<hex>[0-9a-f]{2});?"
    r"|&\#0{0,4}(?P<decimal>[0-9]{2,3});"
    rf"|&(?P<named>{'|'.join(_NAMED)});"
    r'|\\(?P<itself>["\\/])',
    re.IGNORECASE | re.VERBOSE,
)
_ESCAPED_AT_MOST: Final = 3
"""JSON within JSON within a page of HTML: so many times over."""

# How we write secrets, and other people theirs: for those that we do not know. Nothing in them is repeated without
# an end that comes into view at once, and each begins where the one before ended, or a text could make them slow.
_VALUE: Final = r"[^\s\"'&<>,;]"
_IS: Final = r"[\"']?\s{0,4}(?:=>|[:=])\s{0,4}[\"']?"
_HAS_A_DIGIT: Final = rf"(?={_VALUE}{{0,64}}[0-9])"
"""``token: expired`` and ``Bearer authentication needed`` are what somebody at three in the morning wants to read."""
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"()(?<![0-9a-z])(?:sk|ak)_[0-9a-f]{8,16}_[0-9a-f]{8,64}",
        r"()(?<![0-9a-z])whsec_[a-z0-9+/=_-]{8,}",
        r"()(?<![0-9a-z])v1,[a-z0-9+/]{40,}={0,2}",
        r"()(?<![a-z0-9_-])eyJ[a-z0-9_-]{8,}+\.[a-z0-9_-]++\.[a-z0-9_-]*",
        rf"((?:bearer|basic)\s){_HAS_A_DIGIT}{_VALUE}{{8,}}",
        rf"((?:passw(?:or)?d|secret){_IS})(?:(?<=\")[^\"]+|{_VALUE}+)",
        rf"((?:token|api[_-]?key|signature|cookie|authorization){_IS}){_HAS_A_DIGIT}{_VALUE}{{8,}}",
    )
)


def kept(body: str, *known: str) -> str:
    """What is kept of an answer's body: no secrets, and at most KEPT_BYTES of UTF-8, whatever redacting made of it."""
    return without_secrets(body, *known).encode()[:KEPT_BYTES].decode(errors="ignore")


def without_secrets(text: str, *known: str) -> str:
    """The text with ``[redacted]`` for every piece of a known secret, and for everything that looks like one."""
    text = _without_known(text, known)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\1{GONE}", text)
    return text


def without_query(url: str, *known: str) -> str:
    """An address whose name and password, query and fragment, where people put tokens, are out. It may be no URL."""
    address, _, query = url.partition("#")[0].partition("?")
    address = re.sub(r"^([^/]{0,32}//)[^/]*@", rf"\1{GONE}@", address)
    return without_secrets(address, *known) + (f"?{GONE}" if query else "")


def _without_known(text: str, known: Iterable[str]) -> str:
    plain, begins = _unescaped(text)
    plain = plain.translate(_SAME)
    if not _A_RUN.search(plain):
        return text
    pieces = sorted(
        piece
        for secret in known
        for written in _ways_to_write(secret)
        for piece in _pieces(plain, written.translate(_SAME))
    )
    out: list[str] = []
    done = 0
    for start, end in pieces:
        if begins is not None:
            start, end = begins[start], begins[end]
        if start > done or not out:
            out += [text[done:start], GONE]
        done = max(done, end)
    return "".join([*out, text[done:]])


def _ways_to_write(secret: str) -> Iterator[str]:
    """The secret, and what it is in base64, behind any number of other bytes."""
    yield secret
    for before in range(3):
        coded = b64encode(bytes(before) + secret.encode()).decode()
        # The first characters may hold bits of what was before, the last ones of what comes after.
        whole = coded if "=" not in coded else coded.rstrip("=")[:-1]
        yield whole[(0, 2, 3)[before] :]


def _pieces(text: str, secret: str) -> Iterator[tuple[int, int]]:
    """Where RUN or more characters in a row of the secret stand in the text: from where to where."""
    for at, end in pairwise(range(0, len(secret) + 1, _BLOCK)):
        block = secret[at:end]
        found = text.find(block)
        while found >= 0:
            start, stop = found, found + _BLOCK
            before, after = at, end
            while before and start and text[start - 1] == secret[before - 1]:
                start, before = start - 1, before - 1
            while after < len(secret) and stop < len(text) and text[stop] == secret[after]:
                stop, after = stop + 1, after + 1
            if stop - start >= RUN:
                yield start, stop
            found = text.find(block, max(found + 1, stop - _BLOCK + 1))


def _unescaped(text: str) -> tuple[str, list[int] | None]:
    """The text with its escapes undone, and where each of its characters, and its end, began; None if nowhere else."""
    begins: list[int] | None = None
    for _ in range(_ESCAPED_AT_MOST):
        parts: list[str] = []
        at: list[int] = []
        done = 0
        for escape in _ESCAPE.finditer(text):
            parts += [text[done : escape.start()], _meant(escape)]
            at += range(done, escape.start() + 1)
            done = escape.end()
        if not parts:
            break
        parts.append(text[done:])
        at += range(done, len(text) + 1)
        text = "".join(parts)
        begins = at if begins is None else [begins[place] for place in at]
    return text, begins


def _meant(escape: re.Match[str]) -> str:
    if escape["hex"]:
        return chr(int(escape["hex"], 16))
    if escape["decimal"]:
        return chr(int(escape["decimal"]))
    return _NAMED[escape["named"].lower()] if escape["named"] else escape["itself"]
