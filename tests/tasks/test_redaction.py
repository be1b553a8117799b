"""What is kept of an answer: all that helps, and nothing that opens a door, whatever came back of what we sent."""

from __future__ import annotations

import html
import json
import random
import re
import time
from base64 import b32encode, b64encode, encodebytes, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import parse_qsl, quote, unquote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.webhook import headers, standard_secret
from tasks.exchange import KEPT_BYTES, READ_BYTES
from tasks.redaction import GONE, RUN, kept, without_query, without_secrets

BODY = b'{"event":"round.drawn","roundId":7,"timestamp":"2026-01-02T03:04:05.678Z","data":{"note":"caf\xc3\xa9"}}'
HEX = "0123456789abcdef"
KEY = "sk_2c70e12b7a0646f9_" + "".join(random.Random(7).choices(HEX, k=64))


def sent_with(key: str, delivery: str = "3f1b0a52-6c0e-4f4e-9a53-2d6f6f0c8f11") -> dict[str, str]:
    return headers("round.drawn", delivery, 1_769_889_603, BODY, key)


def secrets_of(key: str) -> tuple[str, str, str]:
    """The API key and both signatures of an attempt."""
    sent = sent_with(key)
    return key, sent["X-Service-Signature"], sent["webhook-signature"].removeprefix("v1,")


SENT, SECRETS = sent_with(KEY), secrets_of(KEY)
DUMP = "".join(f"{name}: {value}\r\n" for name, value in SENT.items()) + f"\r\nkey={KEY}\r\n"


def readings(text: str) -> set[str]:
    """A text and all that it is to those who undo its escapes, in any order, and read base64 wherever it may be."""
    found = {text, text.lower()}
    for _ in range(3):
        found |= {undo(each) for each in found for undo in (html.unescape, unquote, _unslashed)}
    for each in list(found):
        for coded in re.findall(r"[A-Za-z0-9+/_-]{12,}", each.replace("\n", "")):
            for skipped in range(4):
                whole = coded[skipped:][: (len(coded) - skipped) // 4 * 4]
                found.add(urlsafe_b64decode(whole.translate(str.maketrans("+/", "-_"))).decode("latin-1"))
    return found


def _unslashed(text: str) -> str:
    """Without the escapes of JSON, C and Python."""
    return re.sub(r"\\(?:(?:u00|x)([0-9a-fA-F]{2})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else m[2], text)


def survivors(text: str, secrets: tuple[str, ...] = SECRETS) -> set[str]:
    """The pieces of the secrets that somebody can read out of a text."""
    pieces = {secret[at : at + RUN] for secret in secrets for at in range(len(secret) - RUN + 1)}
    return {piece for reading in readings(text) for piece in pieces if piece in reading}


# Every way of sending back what was sent, and how its reader would get at it again.
ECHOES: dict[str, Callable[[str], str]] = {
    "as it came": lambda text: text,
    "in capitals": str.upper,
    "as a string in JSON": json.dumps,
    "as JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "as JSON in JSON in JSON": lambda text: json.dumps(json.dumps(json.dumps(text))),
    "with slashes escaped": lambda text: json.dumps(text).replace("/", "\\/"),
    "as PHP writes JSON": lambda text: "".join(c if c.isalnum() else f"\\u{ord(c):04X}" for c in text),
    "on a page": html.escape,
    "on a page, with numbers": lambda text: "".join(c if c.isalnum() else f"&#{ord(c)};" for c in text),
    "on a page, with numbers in hex": lambda text: "".join(c if c.isalnum() else f"&#x{ord(c):02X};" for c in text),
    "on a page, every character": lambda text: "".join(f"&#{ord(c):04d};" for c in text),
    "on a page, named": lambda text: text.replace("+", "&plus;").replace("/", "&sol;").replace("=", "&equals;"),
    "in a URL": lambda text: quote(text, safe=""),
    "in a URL in a URL": lambda text: quote(quote(text, safe=""), safe=""),
    "as a form": lambda text: urlencode({"sent": text}),
    "as Python writes bytes": lambda text: "".join(c if c.isalnum() else f"\\x{ord(c):02x}" for c in text),
    "in base64": lambda text: b64encode(text.encode()).decode(),
    "in base64, one byte on": lambda text: b64encode(f"-{text}".encode()).decode(),
    "in base64, two bytes on": lambda text: b64encode(f"--{text}".encode()).decode(),
    "in base64 for URLs": lambda text: urlsafe_b64encode(text.encode()).decode(),
    "in base64 in JSON": lambda text: json.dumps({"body": b64encode(text.encode()).decode()}).replace("/", "\\/"),
    "in lines of base64": lambda text: encodebytes(text.encode()).decode(),
    "in lines of forty": lambda text: "\n".join(text[at : at + 40] for at in range(0, len(text), 40)),
}


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("secret", range(3))
def test_a_secret_sent_back_is_not_kept(echo: str, secret: int) -> None:
    back = ECHOES[echo](SECRETS[secret])
    shown = kept(f"you sent {back} to us", *SECRETS)
    assert shown.startswith("you sent "), shown
    assert shown.endswith(" to us"), shown
    assert GONE in shown
    assert not survivors(shown)
    assert survivors(back) or back.isupper()  # or this would show nothing


@pytest.mark.parametrize("echo", ECHOES)
def test_of_all_we_sent_sent_back_no_secret_is_kept(echo: str) -> None:
    shown = kept(ECHOES[echo](DUMP), *SECRETS)
    assert shown.count(GONE) >= 3
    assert not survivors(shown)


def test_what_helps_is_kept() -> None:
    """A receiver's own words, the message and the headers that are no secret."""
    shown = kept(DUMP, *SECRETS)
    for said in ("X-Service-Event: round.drawn", SENT["webhook-id"], SENT["webhook-timestamp"]):
        assert said in shown
    for text in (
        "",
        "ok",
        '{"error":"invalid token: expired","code":401}',
        "Bearer authentication required",
        "signature mismatch for delivery 3f1b0a52-6c0e-4f4e-9a53-2d6f6f0c8f11",
        "<h1>502 Bad Gateway</h1><hr>nginx/1.24.0",
        "psycopg2.OperationalError: could not connect to server: Connection refused (10.0.0.7:5432)",
        BODY.decode(),
        "Ünïcödé 💥 \\u00e9 %C3%A9 &eacute; &#233; 100 % \\",
    ):
        assert kept(text, *SECRETS) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"key {KEY}.", f"key {GONE}."),
        (f"key {KEY[:30]}…", f"key {GONE}…"),
        (f"standard {standard_secret(KEY)}", f"standard {GONE}"),
        ("Authorization: Bearer abc123def456", f"Authorization: Bearer {GONE}"),
        ("authorization: basic dXNlcjpwYXNzd29yZDE=", f"authorization: basic {GONE}"),
        ('{"password": "open sesame", "x": 1}', f'{{"password": "{GONE}", "x": 1}}'),
        ("user=a&password=hunter2&b=1", f"user=a&password={GONE}&b=1"),
        ("client_secret=s3cr3t", f"client_secret={GONE}"),
        ("'DB_PASSWORD' => 'hunter2'", f"'DB_PASSWORD' => '{GONE}'"),
        ("access_token=ya29.a0AfH6SM;", f"access_token={GONE};"),
        ("Cookie: session=8a7f6e5d4c3b2a19", f"Cookie: {GONE}"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", f"jwt {GONE}"),
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_is_not_kept_even_if_it_is_none_that_we_know(text: str, shown: str) -> None:
    assert kept(text) == shown


KEYS = st.builds("sk_{}_{}".format, st.text(HEX, min_size=16, max_size=16), st.text(HEX, min_size=64, max_size=64))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.text(HEX + "+/=_-v1,%\\&#;", max_size=60)


@given(KEYS, st.lists(st.tuples(TEXTS, st.integers(0, 2), st.sampled_from(sorted(ECHOES))), max_size=5), TEXTS)
def test_no_secret_survives_whatever_is_around_it(key: str, parts: list[tuple[str, int, str]], last: str) -> None:
    secrets = secrets_of(key)
    answer = "".join(f"{text}{ECHOES[echo](secrets[secret])}" for text, secret, echo in parts) + last
    shown = kept(answer, *secrets)
    assert not survivors(shown, secrets)
    assert kept(shown, *secrets) == shown or len(shown.encode()) > KEPT_BYTES - 16


@given(KEYS, st.integers(0, 2), st.sampled_from(sorted(ECHOES)), st.integers(0, 900), st.sampled_from(["x", "é", " "]))
def test_no_half_of_a_secret_survives_where_an_answer_was_cut(
    key: str, secret: int, echo: str, missing: int, around: str
) -> None:
    """Both cuts: what was read of the answer ends anywhere in the secret, and so does what is kept of that."""
    secrets = secrets_of(key)
    back = ECHOES[echo](secrets[secret])
    torn = back[: max(0, len(back) - missing)]
    room = (KEPT_BYTES - len(torn.encode())) // len(around.encode())
    for answer in (around * room + torn, around * room + torn + back, torn[::-1][:5] + torn):
        cut = answer.encode()[:KEPT_BYTES].decode(errors="replace")
        for shown in (kept(cut, *secrets), kept(answer, *secrets)):
            assert not survivors(shown[-1_000:], secrets)
            assert len(shown.encode()) <= KEPT_BYTES


@given(st.integers(0, 83), st.integers(0, 84))
def test_any_piece_of_the_key_of_eleven_characters_or_more_goes(start: int, end: int) -> None:
    piece = KEY[start:end]
    assert (kept(f"<{piece}>", KEY) == f"<{GONE}>") == (len(piece) >= RUN)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_what_holds_no_secret_only_ever_gets_shorter_by_what_looks_like_one(text: str) -> None:
    shown = kept(text, *SECRETS)
    assert GONE in shown or shown == text


def test_never_more_than_16_kib_are_kept_whatever_redacting_made_of_it() -> None:
    for text in ("secret=a " * 2_000, "�" * KEPT_BYTES, "a" * KEPT_BYTES, "é" * KEPT_BYTES):
        assert KEPT_BYTES - 3 <= len(kept(text[:KEPT_BYTES], *SECRETS).encode()) <= KEPT_BYTES


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.example/hooks/lottery", "https://a.example/hooks/lottery"),
        ("https://a.example/hooks?", "https://a.example/hooks"),
        ("https://a.example/hooks?token=abc#part", f"https://a.example/hooks?{GONE}"),
        ("https://a.example/hooks#token=abc?x", "https://a.example/hooks"),
        ("https://me:open-sesame@a.example/", f"https://{GONE}@a.example/"),
        ("https://me@x:y@a.example/@b", f"https://{GONE}@a.example/@b"),
        (f"https://a.example/{KEY}/in", f"https://a.example/{GONE}/in"),
        (f"https://a.example/{quote(standard_secret(KEY))}", f"https://a.example/whsec_{GONE}"),
        ("https://[::1/", "https://[::1/"),  # refused, and on record all the same
        ("", ""),
    ],
)
def test_what_people_put_into_addresses_is_not_kept(url: str, shown: str) -> None:
    assert without_query(url, *SECRETS) == shown


def _filled(piece: str) -> str:
    return (piece * (READ_BYTES // len(piece) + 1))[:READ_BYTES]


SLOW = (
    *(SECRETS[1] + " ", SECRETS[1][:6], SECRETS[1][:10] + "!", b64encode(KEY.encode()).decode() + ".", KEY[:-1] + "g"),
    "".join(SECRETS[1][at : at + 10] + "!" for at in range(54)),
    *("0", "%25", "%252525", "&amp;", "&#0000", "\\", "\\u00", "\"'", "İ", "//@"),
    *("eyJaaaaaaaa-", "eyJaaaaaaaa.", "eyJ", "sk_", "sk_00000000_", "v1,", "v1," + "a" * 39 + "!", "whsec_", "whsec_!"),
    *("token", "token=", "token:aa", "secret=", 'secret" ', "secret" + " " * 9_000, "api-key_", "cookie=>"),
    *("bearer ", "bearer aaaaaaaa", "basic\taaaa", 'password="aaaaaaaaa', "authorization:\n"),
)


@pytest.mark.parametrize("piece", SLOW)
def test_no_answer_keeps_us_busy(piece: str) -> None:
    """64 KiB of what is hardest, four times what there ever is: hundredths of a second, and far from seconds."""
    begun = time.process_time()
    kept(_filled(piece), *SECRETS)
    without_query(_filled(piece), *SECRETS)
    assert time.process_time() - begun < 2


def test_time_grows_as_the_text_does() -> None:
    def seconds(text: str) -> float:
        begun = time.process_time()
        without_secrets(text, *SECRETS)
        return time.process_time() - begun

    piece = 'eyJaaaaaaaa-token=secret"bearer %25&amp;' + SECRETS[1][:9]
    short, long = (piece * (size // len(piece)) for size in (1 << 16, 1 << 19))
    seconds(short)
    assert seconds(long) < 8 * 4 * max(seconds(short), 0.01)


def test_a_secret_in_an_alphabet_that_we_do_not_read_is_known_to_be_kept() -> None:
    """So that nobody takes this for more than it is: there is no end to the ways of writing a thing."""
    assert GONE not in kept(b32encode(KEY.encode()).decode(), *SECRETS)


def test_a_form_that_was_read_keeps_nothing_either() -> None:
    back = dict(parse_qsl(urlencode(SENT | {"key": KEY}), strict_parsing=True))
    assert not survivors(kept(json.dumps(back), *SECRETS))
    assert not survivors(kept(json.dumps(back, indent=2), *SECRETS))
    assert not survivors(kept(repr(back), *SECRETS))
