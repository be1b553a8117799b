"""Whatever is sent to whichever endpoint: a 4xx in JSON that says what is wrong, and nothing stored.

One rule: the endpoints come from the URL map and their query parameters from the published schema, so that a new one
is tried like the others from its first day. Each is tried with some of the odd values, in every run with others.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import zlib
from collections.abc import Iterable, Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from flask import Flask
from sqlalchemy import text

from models.settings import settings
from protocol.identifiers import is_identifier
from tests.app.conftest import assert_error
from tests.app.endpoints import (
    BODIES,
    BOOLEANS,
    FREE_TEXT,
    IDS,
    WITHOUT_BODY,
    Endpoint,
    World,
    a_small_world,
    endpoints,
)

BULK = "POST /api/operator/tickets"
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

NO_ID = [
    *("0", "-1", "+1", "1.0", "1e3", "0x1", "1_0", "01", "１", "٣", "²", " 1", "1 ", "1\n", "1;", "1,1", "NaN", "null"),
    *("true", str(2**31), str(2**53), str(2**63), str(2**64), str(10**18), str(10**400), "draw_", "draw_0", "draw_-1"),
    *("draw_01", "draw_draw_1", "DRAW_1", f"draw_{2**63}", f"draw_{2**64}", "\0", "1\0", "a\0b", "\x01", "\x7f"),
    *("'", '"', "`", "\\", "' OR 1=1 --", "1; DROP TABLE rounds", "%", "%s", "%00", "{0}", "$1", ":id", "<1>"),
    *(
        "../1",
        "../../etc/passwd",
        "1/../1",
        "1/",
        "/1",
        "a/b",
        "?",
        "#",
        "&",
        "*",
        "é",
        "e\u0301",
        "İ",
        "😀",
        "\u202e1",
    ),
    *("\u00a0", "\ufeff", "\ud7ff", "\uffff", "x" * 65, "x" * 10_000, "9" * 10_000, "ａ", "OP_A", "op_a ", "APP_1"),
]
NO_ID_AS_SENT = ["%ff", "%ed%a0%80", "%c0%af", "%2e%2e%2f1", "%2F", "%252F", "%2500", "1%2F", "%", "%zz", "%u0031"]

NO_NUMBER = [
    *("", " ", "-1", "-0", "+1", "1.0", "1.5", "1e3", "0x1", "1_0", "１", "٣", "²", " 1", "1 ", "1\n", "NaN", "null"),
    *(
        "true",
        "[]",
        "{}",
        "1,2",
        "\0",
        "1\0",
        "'",
        "' OR 1=1 --",
        "😀",
        str(2**53),
        str(2**63),
        str(2**64),
        "9" * 5_000,
    ),
]
ANY_WORD = {"account", "kind", "action", "subject", "actor"}
NO_WORD = ["", " ", "\0", "1\0", "'", "' OR 1=1 --", "😀", "１", "null", "[]", "x" * 10_000]


@pytest.fixture(scope="module")
def world(shared_house: None) -> World:
    from app import create_app

    return a_small_world(create_app())


def some(values: Iterable[Any], *about: object) -> list[Any]:
    """A third of these, other ones for everything they are about; HYPOTHESIS_SEED says which (every run prints it)."""
    everything = list(values)
    chance = random.Random(f"{os.environ['HYPOTHESIS_SEED']} {about}")
    return chance.sample(everything, -(-len(everything) // 3))


def reading(world: World) -> list[Endpoint]:
    return [endpoint for endpoint in endpoints(world.application) if endpoint.method == "GET"]


def taking_a_body(world: World) -> list[Endpoint]:
    return [endpoint for endpoint in endpoints(world.application) if str(endpoint) in BODIES]


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


def test_an_id_that_is_none_is_not_found(world: World) -> None:
    ids = [*(quote(each, safe="") for each in NO_ID), *NO_ID_AS_SENT]
    with nothing_stored():
        for endpoint in endpoints(world.application):
            for parameter in endpoint.parameters:
                for odd in some([*ids, *sorted(respelled(IDS[parameter]))], endpoint, parameter):
                    path = endpoint.path(**{parameter: odd})
                    body = BODIES.get(str(endpoint))
                    answer = world.send(endpoint, path, **({"json": body} if body else {}))
                    if endpoint.rule.endswith("application-status/<application_id>"):
                        # Whether there is such an application is nobody's business who does not hold its token.
                        assert answer.status_code in (401, 404), path
                        refused(answer, answer.status_code, endpoint, odd)
                    else:
                        refused(answer, 404, endpoint, odd)


def respelled(known: str) -> set[str]:
    """Other ways to write an id that exists."""
    bare = known.replace("-", "")
    return {quote(each) for each in (known.upper(), bare, f"{{{known}}}", f"urn:uuid:{known}", f"0{known}")} - {known}


def test_a_path_that_is_none_is_not_found(world: World) -> None:
    paths = ["//", "/api", "/api/", "/api/public", "/API/public/rounds", "/api/public/rounds/", "/api//public/rounds"]
    paths += ["/api/public/rounds%00", "/api/public/%2e%2e/admin/rounds", "/api/public/../admin/rounds", "/health/"]
    paths += ["/api/public/rounds%0a", "/%ff", "/" + "x" * 10_000, "/api/public/rounds;x=1", "/.env", "/static/x"]
    for path in paths:
        for method in ("GET", "POST", "PUT", "DELETE"):
            answer = world.anybody.client.open(path, method=method)
            refused(answer, 404, Endpoint(method, path))


def test_a_method_that_a_path_does_not_take_is_refused(world: World) -> None:
    known: dict[str, set[str]] = {}
    for endpoint in endpoints(world.application):
        known.setdefault(endpoint.rule, set()).add(endpoint.method)
    with nothing_stored():
        for rule, methods in known.items():
            for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND"} - methods:
                endpoint = Endpoint(method, rule)
                # A word in a path may also be read as the id that another endpoint of this method takes.
                refused(world.send(endpoint), 404 if leads_elsewhere(world, endpoint) else 405, endpoint)


def leads_elsewhere(world: World, endpoint: Endpoint) -> bool:
    return world.application.url_map.bind("").test(endpoint.path(), method=endpoint.method)


def test_a_query_is_read_strictly_everywhere(world: World) -> None:
    documented = {
        str(Endpoint(method.upper(), path)): details.get("parameters", [])
        for path, methods in published(world.application)["paths"].items()
        for method, details in methods.items()
        if method != "parameters"
    }
    with nothing_stored():
        for endpoint in endpoints(world.application):
            if str(endpoint) == BULK:
                continue
            base = {"json": BODIES[str(endpoint)]} if str(endpoint) in BODIES else {}
            name = str(endpoint).replace("<", "{").replace(">", "}")
            known = [each for each in documented[name] if each.get("in") == "query"]
            for query in ("unknown=1", "=1", "limit[]=1", "Limit=1", "%00=1", "é=1", "%ff=1", "a&b", "limit%20=1"):
                refused(world.send(endpoint, f"{endpoint.path()}?{query}", **base), 422, endpoint, query)
            for parameter in known:
                values = NO_NUMBER if "integer" in parameter["schema"].get("type", "") else NO_WORD
                if parameter["name"] == "operatorId":
                    values = [value for value in values if not is_identifier(value)]
                if parameter["name"] in ANY_WORD:
                    values = [value for value in values if not value.strip() or "\0" in value or len(value) > 1_000]
                queries = [f"{parameter['name']}={quote(value)}" for value in values]
                queries += [f"{parameter['name']}=1&{parameter['name']}=1", parameter["name"]]
                for query in some(queries, endpoint, parameter["name"]):
                    refused(world.send(endpoint, f"{endpoint.path()}?{query}"), 422, endpoint, query)


def published(application: Flask) -> dict[str, Any]:
    spec: dict[str, Any] = application.extensions["flask-smorest"]["apis"][""]["ext_obj"].collected()
    return spec


def test_a_credential_that_is_none_lets_nobody_in(world: World) -> None:
    operator, admin = world.operator.headers["X-Service-Key"], world.admin.headers["X-Service-Admin-Key"]
    garbage = [
        "",
        " ",
        "x",
        "sk",
        "sk_",
        "sk__",
        "ak__",
        "_",
        "sk_é_1",
        "ÿ",
        "sk_%00_1",
        "x" * 10_000,
        "sk_" + "9" * 9_000,
    ]
    garbage += [
        operator[:-1],
        operator + "0",
        operator.upper(),
        f" {operator[3:]}",
        admin[:-1],
        admin + "0",
        "' OR 1=1 --",
    ]
    header = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0"
    tokens = [
        "x",
        "a.b.c",
        "..",
        f"{header}.e30.",
        f"{header}.e30.AA",
        "e30.e30.AA",
        "é.é.é",
        "W10.W10.W10",
        "." * 9_000,
    ]
    tokens += ["eyJhbGciOiJIUzI1NiIsImtpZCI6e319.e30.AA", "eyJhbGciOiJIUzI1NiIsImtpZCI6InRlc3QifQ.e30.AA", operator]
    with nothing_stored():
        for value in garbage:
            for path, name in (("/api/operator/me", "X-Service-Key"), ("/api/admin/rounds/1", "X-Service-Admin-Key")):
                assert_error(world.application.test_client().get(path, headers={name: value}), 401)
            status = "/api/public/application-status/app_1"
            assert_error(world.application.test_client().get(status, headers={"X-Application-Token": value}), 401)
        for token in tokens:
            for scheme in ("Bearer", "bearer", "Basic", "", "Bearer Bearer"):
                headers = {"Authorization": f"{scheme} {token}"}
                assert_error(world.application.test_client().get("/api/operator/me", headers=headers), 401)
        for path in ("/api/operator/me", "/api/admin/rounds/1"):
            for name, key in (("X-Service-Key", admin), ("X-Service-Admin-Key", operator)):
                assert_error(world.application.test_client().get(path, headers={name: key}), 401)


def refused(answer: Any, status: int, *context: Any) -> None:
    """This status, JSON with a sentence and a code, and not the whole of what was sent back again."""
    about = " | ".join(str(each)[:200] for each in context)
    assert answer.status_code == status, f"{about}: {answer.status_code} {answer.text[:300]}"
    assert answer.content_type == "application/json", about
    body = answer.get_json()
    assert set(body) <= {"error", "code", "details"}, about
    assert isinstance(body["error"], str), about
    assert isinstance(body["code"], str), about
    assert body["error"], about
    assert body["code"], about
    assert len(answer.data) < 20_000, f"{about}: an answer of {len(answer.data)} bytes"


class nothing_stored:
    """Within this block no row of any table was written, changed or deleted."""

    def __enter__(self) -> None:
        self._before = fingerprint()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            assert fingerprint() == self._before


def fingerprint() -> list[tuple[Any, ...]]:
    """Of every table how many rows it has and which transaction was the last to write one that is still there."""
    from models.session import engine

    with engine().connect() as connection:
        names = connection.scalars(
            text(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"
            )
        ).all()
        one_each = " UNION ALL ".join(
            f"SELECT '{name}', count(*), sum(xmin::text::bigint), max(xmin::text::bigint) FROM {name}" for name in names
        )
        return [tuple(row) for row in connection.execute(text(one_each))]
