"""Whatever id, path, method, query or credential is sent: a 4xx in JSON that says what is wrong, and nothing stored.

One rule: the endpoints come from the URL map and their query parameters from the published schema, so that a new one
is tried like the others from its first day. Each is tried with some of the odd values, in every run with others.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from flask import Flask

from protocol.identifiers import is_identifier
from tests.app.conftest import assert_error
from tests.app.endpoints import BODIES, IDS, Endpoint, World, a_small_world, endpoints
from tests.app.refusals import BULK, nothing_stored, refused, some

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
