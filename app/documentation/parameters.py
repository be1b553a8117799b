"""What the ids in paths are: their published names, shapes and meanings.

The one rule kept here: every variable of every route is in this table, under the name the route gives it; a test fails
for one that is not.
"""

from dataclasses import dataclass
from typing import Any

from app.documentation.world import WORLD
from app.fields import LARGEST_SAFE
from protocol.identifiers import IDENTIFIER_PATTERN
from tasks.bell import QUEUES

_NUMBER = {"type": "integer", "minimum": 1, "maximum": LARGEST_SAFE}
_IDENTIFIER = {"type": "string", "minLength": 1, "maxLength": 64, "pattern": f"^{IDENTIFIER_PATTERN}$"}


@dataclass(frozen=True)
class PathId:
    """An id in a path: ``name`` as published, and what there is no such of when it is unknown."""

    name: str
    thing: str
    meaning: str
    schema: dict[str, Any]
    example: str = ""

    def documented(self) -> dict[str, Any]:
        """The parameter as OpenAPI writes it."""
        return {
            "name": self.name,
            "in": "path",
            "required": True,
            "description": self.meaning,
            "schema": self.schema,
            **({"example": shown} if (shown := self.example or WORLD.get(self.name)) else {}),
        }


PATH_IDS = {
    "round_id": PathId("roundId", "round", "A round's id.", _NUMBER),
    "any_id": PathId(
        "drawId",
        "draw",
        "A draw's id (`draw_7`) or its round's id (`7`).",
        {"type": "string", "pattern": "^(draw_)?[1-9][0-9]{0,17}$"},
    ),
    "operator_id": PathId("operatorId", "operator", "An operator's id.", _IDENTIFIER),
    "ticket_id": PathId("ticketId", "ticket", "A ticket's id, as its operator submitted it.", _IDENTIFIER),
    "delivery_id": PathId("deliveryId", "delivery", "A delivery's id.", {"type": "string", "format": "uuid"}),
    "name": PathId("name", "queue", "A queue's name.", {"type": "string", "enum": list(QUEUES)}, "deliveries"),
    "job_id": PathId("jobId", "re-queue", "A bulk re-queue's id.", _NUMBER),
    "application_id": PathId("applicationId", "application", "An application's id.", _IDENTIFIER),
}


def path_id(variable: str) -> PathId:
    """The id that a route's variable stands for; one that is not in the table has no meaning, which a test finds."""
    if variable in PATH_IDS:
        return PATH_IDS[variable]
    first, *rest = variable.split("_")
    return PathId(first + "".join(word.title() for word in rest), "thing", "", {"type": "string"})


def query_documented(parameter: dict[str, Any]) -> dict[str, Any]:
    """A query parameter as a reader understands it: null cannot be written in a query, and each has its meaning."""
    schema = dict(parameter["schema"])
    if isinstance(schema.get("type"), list):
        schema["type"] = next(kind for kind in schema["type"] if kind != "null")
    if schema.get("default", 0) is None:
        del schema["default"]
    if "enum" in schema:
        schema["enum"] = [value for value in schema["enum"] if value is not None]
    description = schema.pop("description", None) or _QUERY.get(parameter["name"], "")
    return {**parameter, "description": description, "schema": schema}


IF_NONE_MATCH: dict[str, Any] = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The `ETag` of an earlier answer; 304 if there is nothing newer.",
    "schema": {"type": "string"},
}

_QUERY = {
    "limit": "How many to show.",
    "cursor": "`nextCursor` of the page before; the first page unless given.",
    "operatorId": "Only those of this operator.",
    "roundId": "Only those of this round.",
    "event": "Only those of this event.",
    "errorClass": "Only those whose last attempt failed like this.",
    "account": "Only those that touch this account.",
    "kind": "Only those of this kind.",
    "action": "Only those of this action.",
    "subject": "Only those on this subject.",
    "actor": "Only those by an actor whose name begins so.",
    "since": "Only those written from this moment on.",
    "until": "Only those written before this moment.",
    "offset": "How many to leave out at the beginning.",
    "tier": "Only this sub-prize tier; all five unless given.",
    "status": "Only those in this state; all unless given.",
    "state": "Only those that are doing so; all unless given.",
}
