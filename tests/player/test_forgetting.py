"""What a node forgets: rows that prove nothing any more, in small batches, and never what is still of use."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import text

from tests.player.factories import a_player

pytestmark = pytest.mark.usefixtures("node")

TABLES = ("idempotency_keys", "password_resets", "refresh_tokens", "player_sessions", "mails", "webhooks")


def test_what_is_of_no_use_any_more_goes_and_the_rest_stays() -> None:
    player_id = a_player().id
    session_of_today = counted()["player_sessions"]
    for days in (1, 29, 400):
        remember(player_id, days)
    before = counted()

    forget()
    assert before - counted() == dict.fromkeys(TABLES, 1), "one old row of each table"
    assert counted()["player_sessions"] == session_of_today + 2
    forget()
    assert before - counted() == dict.fromkeys(TABLES, 1), "and nothing more the second time"


def test_what_is_still_to_be_done_is_not_forgotten_however_old_it_is() -> None:
    player_id = a_player().id
    remember(player_id, 400, due="now()")
    run("UPDATE refresh_tokens SET expires_at = now()")

    before = counted()
    forget()
    # The session stays for its token's sake.
    assert before - counted() == {"idempotency_keys": 1, "password_resets": 1}


def test_one_turn_takes_several_batches_and_leaves_what_somebody_else_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    from player.models import forgetting
    from player.models.session import transaction
    from player.tasks import chores

    monkeypatch.setattr(forgetting, "BATCH", 2)
    monkeypatch.setattr(chores, "BATCH", 2)
    player_id = a_player().id
    for _ in range(6):
        remember(player_id, 400)
    with transaction() as other:
        other.execute(text("SELECT FROM mails WHERE id = (SELECT min(id) FROM mails) FOR UPDATE"))
        forget()
        assert counted()["mails"] == 1
    forget()
    assert +counted() == {"player_sessions": 1}, "hers, of today"


def forget() -> None:
    """The chore's turn, whenever the last one was."""
    from player.tasks.chores import do_chore

    run("UPDATE chores SET due_at = now()")
    do_chore("forget")


def remember(player_id: int, days: int, due: str = "NULL") -> None:
    """One row of each table that was of use the last time so many days ago."""
    then = f"now() - interval '{days} days'"
    run(f"""
        WITH login AS (
            INSERT INTO player_sessions (id, player_id, created_at, last_used_at)
            VALUES (gen_random_uuid(), {player_id}, {then}, {then}) RETURNING id
        ), token AS (
            INSERT INTO refresh_tokens (digest, session_id, expires_at)
            SELECT uuid_send(gen_random_uuid()), id, {then} + interval '7 days' FROM login
        ), reset AS (
            INSERT INTO password_resets (digest, player_id, expires_at)
            VALUES (uuid_send(gen_random_uuid()), {player_id}, {then} + interval '1 hour')
        ), mail AS (
            INSERT INTO mails (player_id, address, subject, created_at, due_at)
            VALUES ({player_id}, 'ana@example.com', 'hello', {then}, {due})
        ), webhook AS (
            INSERT INTO webhooks (delivery_id, event, body, received_at, due_at)
            VALUES (gen_random_uuid()::text, 'round.opened', '{{}}', {then}, {due})
        )
        INSERT INTO idempotency_keys (player_id, key, request_digest, created_at)
        VALUES ({player_id}, gen_random_uuid()::text, '', {then} + interval '23 days')
        """)


def counted() -> Counter[str]:
    """How many rows each of TABLES has."""
    from player.models.session import transaction

    with transaction() as session:
        return Counter({table: session.scalar(text(f"SELECT count(*) FROM {table}")) or 0 for table in TABLES})


def run(statement: str) -> None:
    from player.models.session import transaction

    with transaction() as session:
        session.execute(text(statement))
