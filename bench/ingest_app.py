"""What `bench.ingest` serves: the coordinator, and beside it the way that one would write first.

The one rule kept here: the plain way is given every ease. It authenticates nobody, locks nothing, counts nothing and
compares nothing with what is on record; it validates by our documented schema and stores by SQLAlchemy's own bulk path.
"""

from functools import lru_cache
from threading import Lock
from typing import Any

from flask import Flask, request
from sqlalchemy import insert
from sqlalchemy.orm import DeclarativeBase, Session
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from app import create_app
from app.resources.ticket_shapes import TicketSchema
from models.session import engine
from models.tickets import COLUMNS, partition, tickets

plain = Flask("plain")
_schema = TicketSchema(many=True)
_COLUMN_OF = dict(zip(_schema.fields, COLUMNS, strict=True))
_making = Lock()


class _Base(DeclarativeBase):
    pass


@lru_cache
def _ticket_class(round_id: int) -> Any:
    """Tickets of a round as objects. Its partition is written to directly, as the guard demands."""
    table = tickets.to_metadata(_Base.metadata, name=partition(round_id))
    mapping = {"primary_key": [table.c.operator_id, table.c.ticket_id]}
    return type(f"Ticket{round_id}", (_Base,), {"__table__": table, "__mapper_args__": mapping})


@plain.post("/<operator_id>/tickets")
def submit(operator_id: str) -> dict[str, int]:
    """A batch, the plain way."""
    body = request.get_json()
    loaded = _schema.load(body["tickets"])
    own = {"round_id": body["roundId"], "operator_id": operator_id}
    rows = [own | {_COLUMN_OF[field]: value for field, value in ticket.items()} for ticket in loaded]
    with Session(engine()) as session, session.begin():
        with _making:
            kind = _ticket_class(body["roundId"])
        session.execute(insert(kind), rows)
    return {"ticketsAccepted": len(rows)}


application = DispatcherMiddleware(create_app(), {"/plain": plain})
