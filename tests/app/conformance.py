"""Holds every answer that a test gets against the document: what is not described must not be answered.

One rule: this looks at each answer of each test of this folder, so the document is checked by everything else that is.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

import jsonschema_rs
from flask.testing import FlaskClient
from werkzeug.exceptions import HTTPException
from werkzeug.test import TestResponse

from app.openapi import document_of, template_of


class CheckedClient(FlaskClient):
    """A client that accepts no answer which the document does not describe."""

    def open(self, *args: Any, **kwargs: Any) -> TestResponse:
        answer = super().open(*args, **kwargs)
        check(self.application, answer)
        return answer


def check(application: Any, answer: TestResponse) -> None:
    """Hold one answer against the document of the application that gave it."""
    method = answer.request.method.lower()
    document = _document(application)
    try:
        rule, _ = application.url_map.bind("localhost").match(
            answer.request.path, method=method.upper(), return_rule=True
        )
    except HTTPException:
        return  # No such path, or not with this method: no operation answered.
    operation = document["paths"].get(template_of(rule), {}).get(method)
    if operation is None:
        return
    about = f"{method.upper()} {rule.rule} → {answer.status_code}"
    described = operation["responses"].get(str(answer.status_code))
    assert described is not None, f"{about} is not documented: {answer.text}"
    described = _followed(document, described)
    for name, header in described["headers"].items():
        if _followed(document, header).get("required"):
            assert name in answer.headers, f"{about} lacks {name}"
    if not described.get("content"):
        assert not answer.data, f"{about} has a body"
        return
    assert answer.mimetype in described["content"], f"{about}: {answer.mimetype} is not documented"
    if answer.mimetype == "application/json":
        pointer = (operation["operationId"], str(answer.status_code))
        problem = next(_validator(*pointer).iter_errors(answer.get_json()), None)
        assert problem is None, f"{about} at {problem.instance_path}: {problem.message}"


def validator(document: dict[str, Any], schema: dict[str, Any]) -> jsonschema_rs.Validator:
    """What checks values against a schema of the document, formats included."""
    return jsonschema_rs.Draft202012Validator(
        {"allOf": [schema], "components": {"schemas": document["components"]["schemas"]}}, validate_formats=True
    )


_DOCUMENTS: list[dict[str, Any]] = []
_DESCRIBING = threading.Lock()


def _document(application: Any) -> dict[str, Any]:
    # Of the first application of the run: all are made alike, and each would take a moment to describe itself.
    with _DESCRIBING:
        if not _DOCUMENTS:
            _DOCUMENTS.append(document_of(application).document)
    return _DOCUMENTS[0]


@lru_cache(maxsize=1_000)
def _validator(operation_id: str, status: str) -> jsonschema_rs.Validator:
    [document] = _DOCUMENTS
    [operation] = [
        operation
        for item in document["paths"].values()
        for operation in item.values()
        if operation["operationId"] == operation_id
    ]
    described = _followed(document, operation["responses"][status])
    return validator(document, described["content"]["application/json"]["schema"])


def _followed(document: dict[str, Any], described: dict[str, Any]) -> dict[str, Any]:
    if reference := described.get("$ref"):
        _, _, kind, name = reference.split("/")
        found: dict[str, Any] = document["components"][kind][name]
        return found
    return described
