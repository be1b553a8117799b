"""Every operation of a node's API, as its own published document lists them.

One rule: no operation is named here. Whatever is registered is looked at, so what is added tomorrow is as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flask import Flask

UNKNOWN_UUID = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class Operation:
    """One method of one path, and what the document says of it."""

    method: str
    path: str
    told: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def credential(self) -> str | None:
        """The kind of credential it asks for."""
        (names,) = self.told["security"] or [{}]
        return next(iter(names), None)

    def url(self) -> str:
        """Its path, with an id of nothing in each of its places."""
        uuids = {one["name"] for one in self.told.get("parameters", []) if one["schema"].get("format") == "uuid"}
        return re.sub(r"{(\w+)}", lambda found: UNKNOWN_UUID if found[1] in uuids else "999999", self.path)


def document(application: Flask) -> dict[str, Any]:
    """The OpenAPI document of an application."""
    found: dict[str, Any] = application.test_client().get("/openapi.json").json
    return found


def operations(application: Flask) -> Iterator[Operation]:
    """All of them, in the document's order."""
    for path, item in document(application)["paths"].items():
        for method, told in item.items():
            if method != "parameters":
                shared = item.get("parameters", [])
                yield Operation(method.upper(), path, {**told, "parameters": [*told.get("parameters", []), *shared]})
