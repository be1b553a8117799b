"""The OpenAPI document arranged for a page: sections of operations, each with what a caller needs to see.

The one rule kept here: everything on the page comes from the document, so the page is right when the document is.
"""

import json
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from app.documentation.markdown import code, prose
from app.documentation.shapes import Row, kind_of, rows_of, rules_of

Document = dict[str, Any]

_SECTIONS = (
    ("/api/public/", "public", "Public", "For everybody, without a credential."),
    ("/api/auth/", "tokens", "Tokens", "From an API key to short-lived tokens and back."),
    ("/api/operator/", "operator", "Operators", "For licensed operators."),
    ("/api/admin/", "admin", "Administration", "For the people who run the coordinator."),
    ("/", "service", "Service", "For those who watch over it."),
)
_STANDING = {"bad_request", "too_large", "unsupported_media_type", "invalid", "internal", "unavailable"}
_CURL = {
    "operatorKey": '-H "X-Service-Key: $API_KEY"',
    "accessToken": '-H "Authorization: Bearer $ACCESS_TOKEN"',
    "adminKey": '-H "X-Service-Admin-Key: $ADMIN_KEY"',
    "applicationToken": '-H "X-Application-Token: $APPLICATION_TOKEN"',
}


@dataclass(frozen=True)
class Failure:
    """An error an answer may have: its status, its code, and what it says."""

    status: str
    code: str
    message: str


@dataclass(frozen=True)
class Parameter:
    """A parameter in a path, a query or a header."""

    name: str
    place: str
    kind: str
    required: bool
    rules: tuple[str, ...]
    meaning: Markup


@dataclass(frozen=True)
class Answer:
    """A successful answer."""

    status: str
    meaning: Markup
    media_type: str
    rows: tuple[Row, ...]
    headers: tuple[tuple[str, str], ...]
    example: Markup


@dataclass(frozen=True)
class Operation:
    """Everything the page says about an operation."""

    name: str
    method: str
    path: str
    short: str
    summary: str
    description: Markup
    credentials: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    asked: tuple[Row, ...]
    request: Markup
    answers: tuple[Answer, ...]
    failures: tuple[Failure, ...]
    standing: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """Operations for one kind of caller."""

    anchor: str
    title: str
    words: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Event:
    """A webhook."""

    anchor: str
    name: str
    meaning: str
    rows: tuple[Row, ...]
    example: Markup


@dataclass(frozen=True)
class Reference:
    """The whole page."""

    title: str
    version: str
    introduction: Markup
    credentials: tuple[tuple[str, str, Markup], ...]
    headers: tuple[tuple[str, str], ...]
    failures: tuple[tuple[str, str, str], ...]
    sections: tuple[Section, ...]
    deliveries: Markup
    delivery_headers: tuple[Parameter, ...]
    events: tuple[Event, ...]


def reference_of(document: Document) -> Reference:
    """The document, arranged."""
    operations = [
        _operation(document, path, method, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    sections = []
    for prefix, name, title, words in _SECTIONS:
        here = tuple(one for one in operations if one.path.startswith(prefix))
        operations = [one for one in operations if one not in here]
        sections.append(Section(name, title, words, here))
    told = [item["post"] for item in document["webhooks"].values()]
    return Reference(
        title=document["info"]["title"],
        version=document["info"]["version"],
        introduction=prose(document["info"]["description"]),
        credentials=tuple(
            (name, _header_of(scheme), prose(scheme["description"]))
            for name, scheme in document["components"]["securitySchemes"].items()
        ),
        headers=tuple((name, header["description"]) for name, header in document["components"]["headers"].items()),
        failures=_standing_failures(document),
        sections=tuple(section for section in sections if section.operations),
        deliveries=prose(told[0]["description"]),
        delivery_headers=tuple(_parameter(one, document) for one in told[0]["parameters"]),
        events=tuple(_event(document, name) for name in document["webhooks"]),
    )


def _operation(document: Document, path: str, method: str, operation: dict[str, Any]) -> Operation:
    schemas = document["components"]["schemas"]
    answers = {status: _followed(document, answer) for status, answer in operation["responses"].items()}
    failures = [failure for status, answer in answers.items() if status >= "4" for failure in _failures(status, answer)]
    usual = [failure for failure in failures if failure.code in _STANDING or failure.status == "429"]
    body = operation.get("requestBody")
    asked = rows_of(body["content"]["application/json"]["schema"], schemas) if body else []
    return Operation(
        name=operation["operationId"],
        method=method,
        path=path,
        short=next((path.removeprefix(p[:-1]) for p, *_ in _SECTIONS[:-1] if path.startswith(p)), path),
        summary=operation["summary"],
        description=prose(operation.get("description", "")),
        credentials=tuple(name for one in operation["security"] for name in one),
        parameters=tuple(_parameter(one, document) for one in operation.get("parameters", ())),
        asked=tuple(asked),
        request=code(_curl(path, method, operation), "sh"),
        answers=tuple(_answer(document, status, answer) for status, answer in answers.items() if status < "3"),
        failures=tuple(failure for failure in failures if failure not in usual),
        standing=tuple(dict.fromkeys(failure.status for failure in usual)),
    )


def _answer(document: Document, status: str, answer: dict[str, Any]) -> Answer:
    [(media_type, about)] = answer["content"].items()
    schema, example = about["schema"], about.get("example")
    own = {name: header for name, header in answer["headers"].items() if "$ref" not in header}
    shown = example if isinstance(example, str) else _json(example)
    return Answer(
        status=status,
        meaning=prose(answer["description"]),
        media_type=media_type,
        rows=tuple(rows_of(schema, document["components"]["schemas"])),
        headers=tuple((name, header["description"]) for name, header in own.items()),
        example=code(shown, "json"),
    )


def _failures(status: str, answer: dict[str, Any]) -> list[Failure]:
    examples = answer["content"]["application/json"]["examples"].values()
    return [Failure(status, shown["value"]["code"], shown["value"]["error"]) for shown in examples]


def _standing_failures(document: Document) -> tuple[tuple[str, str, str], ...]:
    """What any operation may answer: status, code, and when."""
    found: dict[str, tuple[str, str, str]] = {}
    for answers in (op["responses"] for item in document["paths"].values() for op in item.values()):
        for status, answer in answers.items():
            described = _followed(document, answer)
            for failure in _failures(status, described) if status >= "4" else ():
                if failure.code in _STANDING or status == "429":
                    found[status] = (status, failure.code, described["description"])
    return tuple(found[status] for status in sorted(found))


def _parameter(one: dict[str, Any], document: Document) -> Parameter:
    return Parameter(
        name=one["name"],
        place=one["in"],
        kind=kind_of(one["schema"], document["components"]["schemas"]),
        required=one.get("required", False),
        rules=rules_of(one["schema"]),
        meaning=prose(one["description"]),
    )


def _event(document: Document, name: str) -> Event:
    told = document["webhooks"][name]["post"]
    about = told["requestBody"]["content"]["application/json"]
    schemas = document["components"]["schemas"]
    envelope = schemas[about["schema"]["$ref"].rpartition("/")[2]]
    rows = rows_of(envelope["properties"]["data"], schemas)
    return Event(told["operationId"], name, told["summary"], tuple(rows), code(_json(about.get("example")), "json"))


def _followed(document: Document, part: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    _, _, kind, name = part["$ref"].split("/")
    found: dict[str, Any] = document["components"][kind][name]
    return found


def _header_of(scheme: dict[str, Any]) -> str:
    return f"{scheme['name']}: …" if scheme["type"] == "apiKey" else "Authorization: Bearer …"


def _curl(path: str, method: str, operation: dict[str, Any]) -> str:
    for one in operation.get("parameters", ()):
        path = path.replace(f"{{{one['name']}}}", str(one.get("example", "")))
    verb = "" if method == "get" else f" -X {method.upper()}"
    lines = [f'curl{verb} "$BASE_URL{path}"']
    lines += [_CURL[name] for one in operation["security"][:1] for name in one]
    if body := operation.get("requestBody"):
        example = json.dumps(body["content"]["application/json"].get("example"), indent=2, ensure_ascii=False)
        lines += ["-H 'Content-Type: application/json'", f"-d '{example}'"]
    if any("Content-Encoding" in _headers(answer) for answer in operation["responses"].values()):
        lines.append("--compressed")
    return " \\\n  ".join(lines)


def _headers(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer.get("headers", {})
    return found


def _json(value: Any) -> str:
    """JSON with short lists and objects kept on one line, so that an answer is seen at a glance."""
    return _written(value, 0)


def _written(value: Any, depth: int) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + 2 * depth <= 72 and not (depth == 0 and isinstance(value, dict)):
        return flat
    inner, end = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict) and value:
        lines = [f"{inner}{json.dumps(key)}: {_written(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{end}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"{inner}{_written(item, depth + 1)}" for item in value) + f"\n{end}]"
    return flat
