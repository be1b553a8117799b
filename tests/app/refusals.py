"""What the tests of bad requests share: which odd values are tried, and what a refusal looks like.

One rule: a refusal is JSON with a sentence and a code, is short whatever was sent, and stores nothing.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import Any

from sqlalchemy import text

from tests.app.endpoints import BODIES, Endpoint, World, endpoints

BULK = "POST /api/operator/tickets"


def some(values: Iterable[Any], *about: object) -> list[Any]:
    """A third of these, other ones for everything they are about; HYPOTHESIS_SEED says which (every run prints it)."""
    everything = list(values)
    chance = random.Random(f"{os.environ['HYPOTHESIS_SEED']} {about}")
    return chance.sample(everything, -(-len(everything) // 3))


def taking_a_body(world: World) -> list[Endpoint]:
    return [endpoint for endpoint in endpoints(world.application) if str(endpoint) in BODIES]


def refused(answer: Any, status: int, *context: Any) -> None:
    """This status, JSON with a sentence and a code, and not the whole of what was sent back again."""
    about = " | ".join(str(each)[:200] for each in context)
    assert answer.status_code == status, f"{about}: {answer.status_code} {answer.text[:300]}"
    assert answer.content_type == "application/json", about
    body = answer.get_json()
    assert set(body) <= {"error", "code", "details"}, about
    assert isinstance(body["error"], str), about
    assert isinstance(body["code"], str), about
    assert body["error"], about
    assert body["code"], about
    assert len(answer.data) < 20_000, f"{about}: an answer of {len(answer.data)} bytes"


class nothing_stored:
    """Within this block no row of any table was written, changed or deleted."""

    def __enter__(self) -> None:
        self._before = fingerprint()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            assert fingerprint() == self._before


def fingerprint() -> list[tuple[Any, ...]]:
    """Of every table how many rows it has and which transaction was the last to write one that is still there."""
    from models.session import engine

    with engine().connect() as connection:
        names = connection.scalars(
            text(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"
            )
        ).all()
        one_each = " UNION ALL ".join(
            f"SELECT '{name}', count(*), sum(xmin::text::bigint), max(xmin::text::bigint) FROM {name}" for name in names
        )
        return [tuple(row) for row in connection.execute(text(one_each))]
