"""The node's OpenAPI document: valid, and complete for every operation."""

from __future__ import annotations

import re

from flask.testing import FlaskClient
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from tests.player.operations import document, operations

ABOUT_THE_API = {"api-docs.openapi_json", "docs.page"}


def test_it_is_a_valid_openapi_3_1_document(client: FlaskClient) -> None:
    told = document(client.application)
    assert [str(problem.message)[:300] for problem in OPENAPI_31_VALIDATOR.iter_errors(told)] == []


def test_every_route_is_in_it(client: FlaskClient) -> None:
    routes = {
        (re.sub(r"<(?:[^:<>]+:)?(\w+)>", r"{\1}", rule.rule), method)
        for rule in client.application.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.endpoint not in ABOUT_THE_API
    }
    assert routes == {(each.path, each.method) for each in operations(client.application)}
    assert len(routes) >= 30


def test_every_operation_says_what_it_is_and_how_it_may_be_refused(client: FlaskClient) -> None:
    for each in operations(client.application):
        assert each.told["summary"], each
        assert "``" not in each.told["summary"] + each.told.get("description", ""), each
        assert each.told["tags"], each
        answers = each.told["responses"]
        assert "default" not in answers, each
        good = [answer for status, answer in answers.items() if status.startswith("2")]
        assert good, each
        expected = {"422", "500"}
        if each.credential:
            expected |= {"401", "429", "503"}
        if "requestBody" in each.told:
            expected |= {"400", "413", "415"}
        if "{" in each.path:
            expected |= {"404"}
        assert set(answers) >= expected, each
        for status in set(answers) - {"200", "201", "202", "204"}:
            assert answers[status]["description"], each
            assert answers[status]["content"]["application/json"]["schema"]["$ref"].endswith("/Error"), each
        for parameter in each.told["parameters"]:
            assert parameter.get("description"), f"{each}: {parameter['name']}"
