"""Whatever body is sent to whichever endpoint: a 4xx in JSON that says what is wrong, and nothing stored.

One rule: the endpoints come from the URL map, so that a new one is tried like the others from its first day. Each is
tried with some of the odd values, in every run with others.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask

from models.settings import settings
from tests.app.conftest import assert_error
from tests.app.endpoints import (
    BODIES,
    BOOLEANS,
    FREE_TEXT,
    WITHOUT_BODY,
    Endpoint,
    World,
    a_small_world,
    endpoints,
)
from tests.app.refusals import BULK, nothing_stored, refused, some, taking_a_body

SMALL_LIMIT, BULK_LIMIT = 1024 * 1024, 16 * 1024 * 1024

NOT_JSON = [
    *(b"", b" ", b"{", b"nothing", b"{'a': 1}", b'{"a": 1,}', b"// what\n{}", b'{"a": 01}', b'{"a": .5}', b"{}{}"),
    *(b'{"a": NaN}', b'{"a": Infinity}', b'{"a": -Infinity}', b'{"a": 1e999}', b'{"a": ' + b"9" * 5_000 + b"}"),
    *(b'{"a": 1, "a": 1}', b'{"a": {"b": 1, "b": 2}}', b'{"a": "\n"}', b'{"a": "\x00"}', b'{"a": "\\x41"}'),
    *(b'{"a": "\xff"}', b"\xef\xbb\xbf{}", '{"a": 1}'.encode("utf-16"), '{"a": 1}'.encode("utf-32-le")),
    *(b'{"a": "\\ud800"}', b'{"\\udfff": 1}', b'{"a": "\\udc00\\ud800"}', b'{"a": "\xed\xa0\x80"}'),
    *(b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    *(b'{"a":' * 65 + b"1" + b"}" * 65, gzip.compress(b"{}", mtime=0), b"\x00", b"companyName=x&jurisdiction=y"),
]
NO_OBJECT = [b"[]", b"[{}]", b'"text"', b'""', b"null", b"true", b"0", b"1.5", b"-0"]
UNKNOWN = ["extra", "__proto__", "", "a\u0000b", "roundid", "ROUNDID", "roundId ", "id", "é", "x" * 10_000]

# In place of any value. As text, since no value of Python's is written as some of these.
NEVER_A_VALUE = [
    *("{}", '{"a": 1}', "[null]", "[[]]", "[{}]", '"a\\u0000b"', "-1", "1.5", "1.0", "1e0", "-0.0"),
    *(str(10**400), f"-{10**400}", str(2**53), str(2**63), str(2**64)),
]
# In place of a value that is not any text there is.
NEVER_A_WORD = [
    *('""', '" "', '"１"', '"٣"', '"\\u202e1"', '"e\\u0301"', '"😀"'),
    *('"İ"', '"ＡＢＣ"', '"a b"', '"a\\n"', '"\\u00a0"', '"\\ufeff"', '"../../etc/passwd"', '"\' OR 1=1 --"'),
    *('"<script>alert(1)</script>"', '"%00"', '"' + "x" * 100_000 + '"'),
]
# The same, but an identifier may be like this.
NEVER_A_NUMBER = ['"-1"', '"1e3"', '"0x1"', '"1.0"', '"null"']
NEVER_JSON = ["NaN", "Infinity", "-Infinity", "1e999", '"\\ud800"', '"\\udc00\\ud800"', '{"a": 1, "a": 1}']


@pytest.fixture(scope="module")
def world(shared_house: None) -> World:
    from app import create_app

    return a_small_world(create_app())


def test_every_endpoint_that_changes_something_is_written_down(world: World) -> None:
    changing = {str(endpoint) for endpoint in endpoints(world.application) if endpoint.method != "GET"}
    assert changing == set(BODIES) | WITHOUT_BODY


def test_the_bodies_that_are_bent_here_are_good_before(application: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    # No worker is at work here: a test webhook is not waited for.
    monkeypatch.setattr("app.operator.sandbox.MARGIN_SECONDS", -settings().webhook_timeout_seconds)
    world = a_small_world(application)
    for endpoint in taking_a_body(world):
        body = json.dumps(BODIES[str(endpoint)]).replace("2100-01-01", soon())
        answer = world.send_json(endpoint, body)
        assert answer.status_code in (200, 201, 202, 401, 409), f"{endpoint}: {answer.text}"


def soon() -> str:
    return (datetime.now(UTC) + timedelta(days=2)).date().isoformat()


def test_a_body_that_is_not_strict_json_is_refused(world: World) -> None:
    with nothing_stored():
        for endpoint in taking_a_body(world):
            for body in some(NOT_JSON, endpoint):
                refused(world.send_json(endpoint, body), 400, endpoint, body)
            twice = json.dumps(BODIES[str(endpoint)])
            first = next(iter(BODIES[str(endpoint)]))
            refused(world.send_json(endpoint, f'{{"{first}": 1, {twice[1:]}'), 400, endpoint, "a key twice")


def test_json_that_is_no_object_is_refused(world: World) -> None:
    with nothing_stored():
        for endpoint in taking_a_body(world):
            for body in NO_OBJECT:
                refused(world.send_json(endpoint, body), 422, endpoint, body)


def test_a_field_that_nobody_asked_for_is_refused(world: World) -> None:
    with nothing_stored():
        for endpoint in taking_a_body(world):
            for name in UNKNOWN:
                body = BODIES[str(endpoint)] | {name: 1}
                refused(world.send_json(endpoint, json.dumps(body)), 422, endpoint, name)


def test_a_field_that_is_missing_is_named(world: World) -> None:
    with nothing_stored():
        for endpoint in taking_a_body(world):
            body = assert_error(world.send_json(endpoint, "{}"), 422) if required(endpoint) else {"details": {}}
            assert set(body["details"]) == required(endpoint), endpoint


def required(endpoint: Endpoint) -> set[str]:
    return set(BODIES[str(endpoint)]) - endpoint.optional


def test_a_value_that_merely_looks_like_one_is_refused(world: World) -> None:
    with nothing_stored():
        for endpoint in taking_a_body(world):
            for name, body in bent(endpoint, NEVER_JSON):
                refused(world.send_json(endpoint, body), 400, endpoint, name, body)
            for name, body in bent(endpoint, NEVER_A_VALUE):
                refused(world.send_json(endpoint, body), 422, endpoint, name, body)
            for name, body in bent(endpoint, ["true", "false"]):
                if name not in BOOLEANS:
                    refused(world.send_json(endpoint, body), 422, endpoint, name, body)
            for name, body in bent(endpoint, ["null"]):
                if name not in endpoint.optional:
                    refused(world.send_json(endpoint, body), 422, endpoint, name, body)
            for name, body in bent(endpoint, NEVER_A_WORD):
                if name not in FREE_TEXT:
                    refused(world.send_json(endpoint, body), 422, endpoint, name, body)
            for name, body in bent(endpoint, NEVER_A_NUMBER):
                if name not in FREE_TEXT | {"ticketId", "operatorId"}:
                    refused(world.send_json(endpoint, body), 422, endpoint, name, body)


def bent(endpoint: Endpoint, values: Iterable[str]) -> Iterator[tuple[str, str]]:
    """``(field, body)``: the endpoint's good body with one value, at any depth, written as each of these."""
    for place in places(BODIES[str(endpoint)]):
        body: Any = deepcopy(BODIES[str(endpoint)])
        inner = body
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = "here"
        written = json.dumps(body)
        name = next(step for step in reversed(place) if isinstance(step, str))
        for value in some(values, endpoint, place):
            yield name if isinstance(place[-1], str) else f"{name}[]", written.replace('"here"', value)


def places(value: Any, so_far: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The way to every value inside this one."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in inside:
        yield (*so_far, step)
        yield from places(inner, (*so_far, step))


def test_any_text_there_is_comes_back_as_it_was_sent(world: World) -> None:
    apply = next(endpoint for endpoint in taking_a_body(world) if endpoint.rule == "/api/public/apply")
    for number, odd in enumerate(
        ["İ é e\u0301 😀", "\u202eback", "' OR 1=1 --", "%00 \\u0000", "ａ\u00a0\ufeff", "\x01\x7fx\t\n"]
    ):
        form = BODIES[str(apply)] | {"companyName": odd, "contactEmail": f"odd{number}@lotto.example"}
        made = world.send_json(apply, json.dumps(form, ensure_ascii=False).encode()).get_json()
        headers = {"X-Application-Token": made["applicationToken"]}
        shown = world.anybody.get(f"/api/public/application-status/{made['applicationId']}", headers=headers)
        assert shown.get_json()["companyName"] == odd


def test_a_body_that_is_too_large_is_refused_however_it_is_sent(world: World) -> None:
    with nothing_stored():
        for endpoint in taking_a_body(world):
            limit = BULK_LIMIT if str(endpoint) == BULK else SMALL_LIMIT
            for size in {limit + 1, max(limit + 1, 10 * SMALL_LIMIT)}:
                body = b'{"a": "' + b"x" * (size - 9) + b'"}'
                refused(world.send_json(endpoint, body), 413, endpoint, size)
                unannounced = {"wsgi.input_terminated": True}
                refused(
                    world.send(
                        endpoint,
                        input_stream=io.BytesIO(body),
                        content_type="application/json",
                        environ_overrides=unannounced,
                    ),
                    413,
                    endpoint,
                    "chunked",
                )


def test_a_body_that_just_fits_is_read(world: World) -> None:
    with nothing_stored():
        for endpoint in taking_a_body(world):
            limit = BULK_LIMIT if str(endpoint) == BULK else SMALL_LIMIT
            answer = world.send_json(endpoint, b"[" + b" " * (limit - 2) + b"]")
            refused(answer, 422, endpoint)


def test_a_body_under_a_wrong_label_is_refused(world: World) -> None:
    labels = [
        *(
            "",
            "text/plain",
            "text/html",
            "application/xml",
            "application/x-www-form-urlencoded",
            "image/png",
            "nonsense",
        ),
        *("application/jsonp", "application/json5", "application/vnd.api+json", "multipart/form-data; boundary=x"),
        *(
            "application/json; charset=latin-1",
            "application/json; charset=utf-16",
            "application/json; charset=nonsense",
        ),
    ]
    with nothing_stored():
        for endpoint in taking_a_body(world):
            body = json.dumps(BODIES[str(endpoint)])
            for label in labels:
                refused(world.send(endpoint, data=body, content_type=label), 415, endpoint, label)
            for encoding in ("br", "deflate", "compress", "gzip, gzip", "nonsense", "gzip;q=1"):
                answer = world.send_json(endpoint, body, headers={"Content-Encoding": encoding})
                refused(answer, 415, endpoint, encoding)


def test_a_bomb_does_not_go_off(world: World) -> None:
    bulk = next(endpoint for endpoint in taking_a_body(world) if str(endpoint) == BULK)
    packed = {"Content-Encoding": "gzip"}
    zeros = gzip.compress(b"0" * (BULK_LIMIT + 1))
    good = json.dumps(BODIES[BULK]).encode()
    with nothing_stored():
        for body in (zeros, gzip.compress(b'{"roundId": 1, "tickets": [' + b"{}," * 6_000_000 + b"{}]}", 1)):
            assert len(body) < SMALL_LIMIT
            refused(world.send_json(bulk, body, headers=packed), 413, bulk, "a bomb")
        for body in (
            *(b"", b"\x1f\x8b", good, zlib.compress(good), gzip.compress(good)[:-1], gzip.compress(good)[:-8]),
            *(
                gzip.compress(good) + b"x",
                gzip.compress(good) + gzip.compress(good),
                gzip.compress(gzip.compress(good)),
            ),
            *(gzip.compress(zeros), gzip.compress(b""), gzip.compress(b"[" * 100_000), gzip.compress(b"\xff")),
            *(gzip.compress(good)[:-8] + b"\0" * 8, b"\x1f\x8b\x08" + b"\xff" * 100),
        ):
            refused(world.send_json(bulk, body, headers=packed), 400, bulk, body[:40])
        # Millions of empty tickets inside the limit: counted, not looked at one by one.
        many = gzip.compress(b'{"roundId": 1, "tickets": [' + b"{}," * 5_000_000 + b"{}]}", 1)
        refused(world.send_json(bulk, many, headers=packed), 422, bulk, "many")
