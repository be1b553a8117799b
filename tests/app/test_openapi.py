"""The OpenAPI document: valid, complete for every operation, true in every example and about every webhook.

One rule: no operation is named here. Whatever is registered is looked at, so what is added tomorrow is as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs
import pytest
from flask import Flask
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR
from sqlalchemy import text

from app import create_app
from app.documentation.prose import CREDENTIALS
from app.openapi import METHODS, document_of, template_of
from models.operators import record_heartbeat
from models.session import transaction
from protocol.lifecycle import State
from protocol.webhook import EVENTS, headers
from tasks.heartbeats import check_heartbeat
from tests.app.conformance import validator
from tests.app.conftest import Caller
from tests.factories import GENEROUS, a_round, an_operator, rows, some_operators, take_part, take_to

APPLICATION = create_app()
DOCUMENT: dict[str, Any] = document_of(APPLICATION).document
OPERATIONS = [
    pytest.param(path, method, operation, id=operation["operationId"])
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
]

every_operation = pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
Operation = dict[str, Any]


def followed(part: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    _, _, kind, name = part["$ref"].split("/")
    found: dict[str, Any] = DOCUMENT["components"][kind][name]
    return found


def answers(operation: Operation) -> dict[str, dict[str, Any]]:
    return {status: followed(answer) for status, answer in operation["responses"].items()}


def parts(of: Any) -> Iterator[dict[str, Any]]:
    """Every object anywhere in the document."""
    if isinstance(of, dict):
        yield of
        for value in of.values():
            yield from parts(value)
    elif isinstance(of, list):
        for value in of:
            yield from parts(value)


def test_it_is_a_valid_openapi_3_1_document() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    assert [str(problem.message)[:300] for problem in OPENAPI_31_VALIDATOR.iter_errors(DOCUMENT)] == []


def test_every_schema_is_one_of_json_schema_2020_12() -> None:
    for name, schema in DOCUMENT["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(schema), name
        # Compiled, so that every pattern is one that a reader in any language can use.
        validator(DOCUMENT, schema)
        assert schema["description"], name


def test_every_field_has_a_value_to_show() -> None:
    assert document_of(APPLICATION).lacking == [], "app/documentation/world.py knows no value for these"


def test_every_reference_leads_somewhere() -> None:
    for part in parts(DOCUMENT):
        if isinstance(part.get("$ref"), str):
            assert followed(part)


def test_nothing_is_nullable_in_the_old_way_and_no_pattern_is_pythons() -> None:
    for part in parts(DOCUMENT["components"]["schemas"]):
        assert "nullable" not in part
        assert not re.search(r"\\[AZz]", part["pattern"] if isinstance(part.get("pattern"), str) else "")


def test_every_route_is_in_it_but_the_documentation_itself(application: Flask) -> None:
    routed = {
        (template_of(rule), method.lower())
        for rule in application.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if not rule.endpoint.startswith("documentation.")
    }
    assert routed == {(path, method) for path, item in DOCUMENT["paths"].items() for method in item}
    assert {method for _, method in routed} <= set(METHODS)


def test_every_operation_has_a_name_of_its_own() -> None:
    described = [*DOCUMENT["paths"].values(), *DOCUMENT["webhooks"].values()]
    names = [operation["operationId"] for item in described for operation in item.values()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][A-Za-z]+", name) for name in names)


@every_operation
def test_an_operation_says_what_it_is_and_who_may_call_it(path: str, method: str, operation: Operation) -> None:
    assert operation["summary"]
    assert not operation["summary"].endswith(".")
    assert "\n" not in operation["summary"]
    assert "``" not in operation["summary"] + operation.get("description", "")
    assert operation["tags"]
    assert set(operation["tags"]) <= {tag["name"] for tag in DOCUMENT["tags"]}
    assert {name for one in operation["security"] for name in one} <= set(CREDENTIALS)


def test_the_credentials_it_names_are_those_it_asks_for(anybody: Caller) -> None:
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            answer = anybody.client.open(path.replace("{", "").replace("}", ""), method=method)
            named = [name for one in operation["security"] for name in one]
            assert (answer.status_code == 401) == bool(named), path
            if named:
                asked = answer.get_json()["error"]
                assert all(CREDENTIALS[name].get("name", "Bearer") in asked for name in named), asked


@every_operation
def test_a_parameter_says_what_it_means_and_what_it_may_be(path: str, method: str, operation: Operation) -> None:
    parameters = operation.get("parameters", [])
    assert re.findall(r"{([^}]+)}", path) == [one["name"] for one in parameters if one["in"] == "path"]
    for one in parameters:
        assert one["description"]
        assert one["schema"]
        assert isinstance(one["schema"]["type"], str), "null cannot be written in a path or a query"
        if one["in"] == "path":
            assert validator(DOCUMENT, one["schema"]).is_valid(one["example"])


@every_operation
def test_a_request_is_described_and_shown(path: str, method: str, operation: Operation) -> None:
    body = operation.get("requestBody")
    assert method not in ("get", "delete") or body is None
    if body:
        assert body["required"] is True
        [(kind, about)] = body["content"].items()
        assert kind == "application/json"
        assert validator(DOCUMENT, about["schema"]).is_valid(about["example"]), about["example"]
        for name in schemas_under(about["schema"]):
            assert DOCUMENT["components"]["schemas"][name]["additionalProperties"] is False


def schemas_under(schema: Any) -> set[str]:
    """The names of all schemas that this one is made of."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        for part in parts(waiting.pop()):
            name = part.get("$ref", "").rpartition("/")[2] if isinstance(part.get("$ref"), str) else ""
            if name and name not in found:
                found.add(name)
                waiting.append(DOCUMENT["components"]["schemas"][name])
    return found


@every_operation
def test_success_is_described_and_shown(path: str, method: str, operation: Operation) -> None:
    good = {status: answer for status, answer in answers(operation).items() if status.startswith("2")}
    assert good
    for answer in good.values():
        assert answer["description"]
        for kind, about in answer["content"].items():
            assert about["schema"], kind
            problem = next(validator(DOCUMENT, about["schema"]).iter_errors(about["example"]), None)
            assert problem is None, f"{problem.instance_path}: {problem.message}"


@every_operation
def test_every_error_that_can_happen_is_described_and_shown(path: str, method: str, operation: Operation) -> None:
    described = answers(operation)
    assert "default" not in described
    expected = {"422", "500"}
    if "requestBody" in operation:
        expected |= {"400", "413", "415"}
    if operation["security"]:
        expected |= {"401"}
    if "adminKey" in str(operation["security"]) or "operatorKey" in str(operation["security"]):
        expected |= {"403"}
    if "{" in path:
        expected |= {"404"}
    if path != "/health":
        expected |= {"503"}
    if not path.startswith("/health"):
        expected |= {"429"}
    assert set(described) >= expected
    for status in set(described) - {status for status in described if status < "4"}:
        answer = described[status]
        assert answer["description"]
        about = answer["content"]["application/json"]
        check = validator(DOCUMENT, about["schema"])
        codes = set()
        for example in about["examples"].values():
            assert check.is_valid(example["value"]), example
            codes.add(example["value"]["code"])
        assert not check.is_valid({"error": "something else", "code": "never_heard_of"})
        assert codes, status


@every_operation
def test_headers_are_described(path: str, method: str, operation: Operation) -> None:
    for status, answer in answers(operation).items():
        named = {name: followed(header) for name, header in answer["headers"].items()}
        if status == "304":
            assert {"ETag", "Cache-Control"} <= set(named)
            assert "content" not in answer
        assert {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} <= set(named)
        assert ("WWW-Authenticate" in named) == (status == "401")
        assert ("Retry-After" in named) == (status == "429")
        for name, header in named.items():
            assert header["description"], name
            assert header["schema"], name


def test_the_application_that_is_pending_already_is_named() -> None:
    conflict = answers(DOCUMENT["paths"]["/api/public/apply"]["post"])["409"]
    about = conflict["content"]["application/json"]
    assert about["examples"]["application_pending"]["value"]["applicationId"]
    assert not validator(DOCUMENT, about["schema"]).is_valid({"error": "pending", "code": "application_pending"})


def test_every_webhook_is_in_it_with_its_headers_and_an_example() -> None:
    assert tuple(DOCUMENT["webhooks"]) == EVENTS
    sent = set(headers("round.opened", "id", 0, b"", "key")) - {"Content-Type", "User-Agent"}
    for event, item in DOCUMENT["webhooks"].items():
        told = item["post"]
        assert told["summary"]
        assert {one["name"] for one in told["parameters"]} == sent
        assert all(one["description"] for one in told["parameters"])
        about = told["requestBody"]["content"]["application/json"]
        assert about["example"]["event"] == event
        assert validator(DOCUMENT, about["schema"]).is_valid(about["example"]), about["example"]


@pytest.mark.usefixtures("house")
def test_what_is_sent_is_what_the_webhooks_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.opening.current_rules", lambda cumulative: GENEROUS)
    operators = [*some_operators(3), an_operator("without_money", 0), an_operator("without_tickets")]
    played, missed_by_all = a_round(operators), a_round(operators)
    take_part(played, operators[:4])
    take_to(played, State.CLOSED)
    take_to(missed_by_all, State.FAILED)
    with transaction() as session:
        record_heartbeat(session, "op_a")
        session.execute(text("UPDATE operators SET due_at = now() - interval '1 second' WHERE id = 'op_a'"))
    assert check_heartbeat("op_a")
    bodies = [json.loads(bytes(body)) for (body,) in rows("SELECT body FROM deliveries")]
    assert {body["event"] for body in bodies} == set(EVENTS)
    for body in bodies:
        schema = DOCUMENT["webhooks"][body["event"]]["post"]["requestBody"]["content"]["application/json"]["schema"]
        problem = next(validator(DOCUMENT, schema).iter_errors(body), None)
        assert problem is None, f"{body['event']} at {problem.instance_path}: {problem.message}"


def test_anybody_may_read_it_from_anywhere_and_keep_it(anybody: Caller) -> None:
    answer = anybody.get("/openapi.json", headers={"Origin": "https://elsewhere.example"})
    assert answer.status_code == 200
    assert answer.mimetype == "application/json"
    assert answer.get_json() == DOCUMENT
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.cache_control.public
    again = anybody.get("/openapi.json", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304
    assert not again.data


def test_what_an_operator_sees_is_in_the_document_too(operator: Callable[[], Caller]) -> None:
    # The client of these tests holds each answer against the document; here is one that must not pass.
    from tests.app import conformance

    caller = operator()
    answer = caller.get("/api/operator/me")
    answer.status = "418 I'm a teapot"
    with pytest.raises(AssertionError, match="418 is not documented"):
        conformance.check(caller.client.application, answer)
