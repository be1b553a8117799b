"""``Idempotency-Key``: a request that may be sent again, because its answer got lost, and is carried out once.

The one rule kept here: only what was done is remembered. A refusal changes nothing, so the same key may be tried again
when the reason for it is gone.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import Response, jsonify, request
from marshmallow import Schema
from sqlalchemy.orm import Session

from player.api.credentials import current_player_id
from player.api.parsing import json_body
from player.models.idempotency import keep_answer, take_key
from player.models.session import transaction
from protocol.canonical import canonical_json
from protocol.errors import Invalid

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"

KEY_PARAMETER = {
    "in": "header",
    "name": HEADER,
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"},
    "description": (
        "A name of your own for this request. Sent again with the same key within 7 days it is not carried out again: "
        f"the first answer is given, with `{REPLAYED}: true`. Another request under the same key is refused (422 "
        "`idempotency_key_reused`)."
    ),
}
"""For ``@blueprint.doc(parameters=[KEY_PARAMETER])`` beside each view that takes a key."""


@dataclass(frozen=True)
class Answer:
    """What a request is answered, now or as it was the first time."""

    status: int
    body: dict[str, Any]
    replayed: bool = False

    def response(self, **more: Any) -> Response:
        """As Flask sends it, with fields that are not kept (``more``) added."""
        response = jsonify({**self.body, **more})
        response.status_code = self.status
        if self.replayed:
            response.headers[REPLAYED] = "true"
        return response


def carry_out_once(status: int, schema: type[Schema], work: Callable[[Session, int], Any]) -> Answer:
    """Do ``work(session, player_id)`` in one transaction, once for each ``Idempotency-Key``; its result as ``schema``
    shows it.

    :raises Invalid: a key that is not 1 to 128 visible ASCII characters, or that was used for another request.
    """
    key, player_id = request.headers.get(HEADER), current_player_id()
    if key is not None and not re.fullmatch("[!-~]{1,128}", key):
        raise Invalid(f"{HEADER} must be 1 to 128 visible ASCII characters", code="bad_idempotency_key")
    with transaction() as session:
        if key is not None:
            stored = take_key(session, player_id, key, _digest())
            if stored is not None:
                return Answer(stored.status, stored.answer, replayed=True)
        body: dict[str, Any] = schema().dump(work(session, player_id))
        if key is not None:
            keep_answer(session, player_id, key, status, body)
    return Answer(status, body)


def _digest() -> bytes:
    """What was asked: method, path and body, whatever way the same body is written in."""
    raw = request.get_data()
    body = canonical_json(json_body(raw)) if raw else b""
    return hashlib.sha256(f"{request.method} {request.path}\n".encode() + body).digest()
