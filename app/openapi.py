"""The OpenAPI 3.1 document: what flask-smorest collects from schemas and views, completed from the rest of the code.

The one rule kept here: the document is derived. Security comes from the guards, errors from what views and guards
declare, ids from one table, examples from one world. ``tests/app/test_openapi.py`` fails for an operation that lacks
anything, and every answer that the other tests get is held against the document.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from threading import Lock
from typing import Any

from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask
from flask_smorest import Api, Blueprint
from flask_smorest.spec.plugins import FlaskPlugin
from marshmallow import Schema
from werkzeug.routing import Rule

from app.documentation.declared import Refusal, credentials_of, needs_engines, refusals_of, roles_of
from app.documentation.examples import Composer
from app.documentation.parameters import IF_NONE_MATCH, path_id, query_documented
from app.documentation.prose import CREDENTIALS, INFO, SERVERS, plain, summary_and_rest, who_may
from app.documentation.responses import (
    cache_headers,
    described_headers,
    error_responses,
    share,
    standing_headers,
    unchanged,
)
from app.documentation.told import webhooks
from app.fields import OneKindOf
from app.limits import counts
from app.private import is_private
from app.read_cache import freshness
from app.resources.errors import ErrorSchema
from protocol.errors import NotFound

METHODS = ("get", "post", "put", "patch", "delete")
_VARIABLE = re.compile(r"<(?:[^:<>]+:)?([^<>]+)>")


class Collector(Api):
    """flask-smorest's collector, with our error and our own kinds of fields."""

    ERROR_SCHEMA = ErrorSchema
    DEFAULT_ERROR_RESPONSE_NAME = None

    def __init__(self, app: Flask) -> None:
        super().__init__(app)
        self.ma_plugin.converter.add_attribute_function(_one_kind_of)
        self._undescribed: list[Blueprint] = []
        app.extensions["openapi"] = OpenApi(app, self)

    def register_blueprint(self, blp: Blueprint, *, parameters: Any = None, **options: Any) -> None:
        """Take a blueprint's routes now; they are described when the document is asked for, which takes longer than all
        the rest of making an application.
        """
        self._app.extensions["flask-smorest"]["blp_name_to_api"][blp.name] = self
        self._app.register_blueprint(blp, **options)
        self._undescribed.append(blp)

    def collected(self) -> dict[str, Any]:
        """What the views and schemas say, before anything is added to it."""
        for blueprint in self._undescribed:
            blueprint.register_views_in_doc(self, self._app, self.spec, name=blueprint.name, parameters=None)
        self._undescribed.clear()
        collected: dict[str, Any] = self.spec.to_dict()
        return collected


def document_of(app: Flask) -> "OpenApi":
    """The application's document."""
    made: OpenApi = app.extensions["openapi"]
    return made


def _one_kind_of(self: Any, field: Any, **_: Any) -> dict[str, Any]:
    if not isinstance(field, OneKindOf):
        return {}
    return {"oneOf": [self.resolve_nested_schema(kind) for kind in field.kinds]}


class OpenApi:
    """The document of one application, made when it is first asked for."""

    def __init__(self, app: Flask, api: Collector) -> None:
        self._app, self._api, self._lock = app, api, Lock()
        plugin: MarshmallowPlugin = api.ma_plugin
        self._converter: Any = plugin.converter
        self.lacking: list[str] = []
        """Fields of which ``app.documentation.world`` knows no value."""

    @property
    def document(self) -> dict[str, Any]:
        """The whole of it. Not to be changed."""
        with self._lock:
            return self._document

    @property
    def text(self) -> str:
        """The whole of it as JSON."""
        with self._lock:
            return self._text

    @cached_property
    def _text(self) -> str:
        return json.dumps(self._document, ensure_ascii=False, separators=(",", ":"))

    @cached_property
    def _document(self) -> dict[str, Any]:
        collected = self._api.collected()
        told = webhooks(self._reference, self._example)
        paths = {}
        for rule in self._app.url_map.iter_rules():
            if item := collected["paths"].get(FlaskPlugin.flaskpath2openapi(rule.rule)):
                paths[template_of(rule)] = {
                    method: self._completed(method, item[method], rule) for method in METHODS if method in item
                }
        shared = share(paths)
        # References made on the way have added schemas: they are read last.
        schemas = {name: _tidied(schema) for name, schema in self._schemas().items()}
        document = {
            "openapi": "3.1.0",
            "info": INFO | {"version": collected["info"]["version"]},
            "servers": SERVERS,
            "tags": self._tags(),
            "paths": paths,
            "webhooks": told,
            "components": {
                "schemas": schemas,
                "responses": shared,
                "headers": described_headers(),
                "securitySchemes": CREDENTIALS,
            },
        }
        return _without_the_unused(document)

    def _completed(self, method: str, operation: dict[str, Any], rule: Rule) -> dict[str, Any]:
        function, guards = self._view(rule, method), self._guards(rule)
        body = operation.get("requestBody")
        summary, rest = summary_and_rest(operation)
        rest = "\n\n".join(filter(None, [rest, who_may(roles_of(function))]))
        ids = [path_id(name) for name in _VARIABLE.findall(rule.rule)]
        credentials = credentials_of(function) or next(filter(None, map(credentials_of, guards)), ())
        declared: list[Refusal] = [*refusals_of(function), *(said for guard in guards for said in refusals_of(guard))]
        if ids and not any(isinstance(error, NotFound) for error, _ in declared):
            declared.append((NotFound(f"no such {ids[0].thing}"), None))
        cached = method == "get" and self._is_cached(rule)
        tagged = cached or "ETag" in operation["responses"].get("200", {}).get("headers", {})
        parameters = [one.documented() for one in ids]
        parameters += [query_documented(parameter) for parameter in operation.get("parameters", ())]
        parameters += [IF_NONE_MATCH] if tagged else []
        return {
            "operationId": _operation_id(method, rule),
            "summary": summary,
            **({"description": rest} if rest else {}),
            "tags": [self._tag(rule)],
            "security": [{name: []} for name in credentials],
            **({"parameters": parameters} if parameters else {}),
            **({"requestBody": self._asked(body)} if body else {}),
            "responses": {
                **self._successes(operation, cached, tagged, is_private(rule.rule)),
                **error_responses(
                    declared,
                    needed=self._needed(body) if body else None,
                    with_engines=needs_engines(function),
                    with_limits=counts(rule.endpoint),
                    reference=self._reference,
                ),
            },
        }  # fmt: skip

    def _asked(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"required": True, "content": self._shown(body["content"])}

    def _shown(self, content: dict[str, Any]) -> dict[str, Any]:
        shown = {}
        for kind, about in content.items():
            example = {"example": about["example"]} if "example" in about else self._example(about["schema"])
            shown[kind] = {"schema": about["schema"], **example}
        return shown

    def _needed(self, body: dict[str, Any]) -> str:
        """A field that the body must have, to show what is said when it is missing; empty if there is none."""
        schema = next(iter(body["content"].values()))["schema"]
        name = schema["$ref"].rpartition("/")[2]
        described = self._schemas()[name]
        return next((field for field in described["properties"] if field in described.get("required", ())), "")

    def _successes(self, operation: dict[str, Any], cached: bool, tagged: bool, private: bool) -> dict[str, Any]:
        good = {
            str(status): self._success(answer)
            for status, answer in operation["responses"].items()
            if str(status).startswith("2")
        }
        if private:
            for answer in good.values():
                answer["headers"]["Cache-Control"] = cache_headers()["Cache-Control"]
        if cached:
            for answer in good.values():
                answer["headers"] |= cache_headers()
        if tagged:
            good["304"] = unchanged()
        return good

    def _success(self, answer: dict[str, Any]) -> dict[str, Any]:
        return {
            "description": self._meaning(answer),
            "headers": standing_headers() | answer.get("headers", {}),
            "content": self._shown(answer.get("content", {})),
        }

    def _meaning(self, answer: dict[str, Any]) -> str:
        for about in answer.get("content", {}).values():
            name = about["schema"].get("$ref", "").rpartition("/")[2]
            if name:
                return str(self._schemas()[name].get("description", answer["description"]))
        return str(answer["description"])

    def _view(self, rule: Rule, method: str) -> Callable[..., Any]:
        function: Any = self._app.view_functions[rule.endpoint]
        kind = getattr(function, "view_class", None)
        return getattr(kind, method) if kind else function

    def _is_cached(self, rule: Rule) -> bool:
        return freshness(getattr(self._app.view_functions[rule.endpoint], "view_class", None)) is not None

    def _guards(self, rule: Rule) -> list[Callable[..., Any]]:
        name = rule.endpoint.rpartition(".")[0]
        return list(self._app.before_request_funcs.get(name, ()))

    def _tag(self, rule: Rule) -> str:
        blueprint: Any = self._app.blueprints[rule.endpoint.rpartition(".")[0]]
        return str(blueprint.description)

    def _tags(self) -> list[dict[str, str]]:
        names = [getattr(blueprint, "description", "") for blueprint in self._app.blueprints.values()]
        return [{"name": name} for name in dict.fromkeys([*filter(None, names), "Webhooks"])]

    def _schemas(self) -> dict[str, Any]:
        described: dict[str, Any] = self._api.spec.components.schemas
        # What a schema is for stands in its docstring, where whoever changes it reads it.
        for key, name in self._converter.refs.items():
            if "description" not in described[name] and (said := key[0].__doc__):
                described[name] = {"description": plain(said), **described[name]}
        return described

    def _reference(self, schema: type[Schema]) -> dict[str, Any]:
        reference: dict[str, Any] = self._converter.resolve_nested_schema(schema)
        return reference

    def _example(self, schema: dict[str, Any]) -> dict[str, Any]:
        """An example, as it stands beside its schema. One that cannot be made is missed by a test, not by a reader."""
        composer = Composer(self._schemas())
        example = composer.example(schema)
        self.lacking += composer.lacking
        return {} if composer.lacking else {"example": example}


def template_of(rule: Rule) -> str:
    """A route's path as published: `/api/public/rounds/{roundId}`."""
    return _VARIABLE.sub(lambda found: f"{{{path_id(found[1]).name}}}", rule.rule)


def _operation_id(method: str, rule: Rule) -> str:
    """From method and path, which are published; unique because they are."""
    words = [method]
    for segment in template_of(rule).removeprefix("/api").split("/"):
        word = "".join(part[:1].upper() + part[1:] for part in re.split(r"[-._]", segment.strip("{}")))
        words.append(f"By{word}" if segment.startswith("{") else word)
    return "".join(words)


def _tidied(schema: Any) -> Any:
    """The same schema in the words of ECMA-262, without what says nothing."""
    if isinstance(schema, list):
        return [_tidied(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {key: _tidied(value) for key, value in schema.items() if (key, value) != ("minLength", 0)}
    if isinstance(pattern := tidied.get("pattern"), str):
        tidied["pattern"] = pattern.replace(r"\Z", "$").replace(r"\0", r"\u0000")
    if isinstance(tidied.get("format"), str) and tidied["format"] == "url":
        tidied["format"] = "uri"
    return tidied


def _without_the_unused(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out schemas and responses that nothing refers to."""
    used: set[str] = set()
    waiting = [document["paths"], document["webhooks"]]
    while waiting:
        for reference in _references(waiting.pop()):
            if reference not in used:
                used.add(reference)
                _, _, kind, name = reference.split("/")
                waiting.append(document["components"][kind][name])
    for kind in ("schemas", "responses"):
        there = document["components"][kind]
        document["components"][kind] = {
            name: there[name] for name in sorted(there) if f"#/components/{kind}/{name}" in used
        }
    return document


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for value in part.values():
            yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)
