"""``GET /api/public/rounds…``: the list, one round, its log."""

from typing import Any

from flask.views import MethodView

from app.parsing import Blueprint, path_number
from app.read_cache import cached
from app.resources.paging import paging
from app.resources.rounds import (
    RoundEventListSchema,
    RoundListSchema,
    RoundSchema,
    detail,
    event,
    list_rounds,
)
from models.draws import Draw
from models.participation import participations
from models.rounds import events_of, round_by_id
from models.session import transaction

blueprint = Blueprint("public_rounds", __name__, url_prefix="/api/public/rounds", description="Rounds")


@blueprint.route("")
@cached()
class Rounds(MethodView):
    """All rounds."""

    @blueprint.arguments(paging(50), location="query")
    @blueprint.response(200, RoundListSchema)
    def get(self, query: dict[str, int]) -> dict[str, Any]:
        """A page of rounds, newest first."""
        with transaction() as session:
            rounds = list_rounds(session, **query)
        return {"rounds": rounds, "count": len(rounds)}


@blueprint.route("/<round_id>")
@cached()
class OneRound(MethodView):
    """One round."""

    @blueprint.response(200, RoundSchema)
    def get(self, round_id: str) -> dict[str, Any]:
        """A round in full."""
        with transaction() as session:
            row = round_by_id(session, path_number(round_id))
            return detail(row, session.get(Draw, row.id), participations(session, row.id))


@blueprint.route("/<round_id>/events")
@cached()
class Events(MethodView):
    """The log of a round."""

    @blueprint.response(200, RoundEventListSchema)
    def get(self, round_id: str) -> dict[str, Any]:
        """Everything that was published of a round, oldest first."""
        with transaction() as session:
            row = round_by_id(session, path_number(round_id))
            events = [event(entry) for entry in events_of(session, row.id)]
        return {"events": events, "count": len(events)}
