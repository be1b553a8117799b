"""Keys and tokens: recognised, never stored to be read, fallen together when stolen."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import update

from models import encryption
from models.credentials import (
    AdminRole,
    OperatorApiKey,
    RefreshToken,
    admin_of_key,
    issue_admin_key,
    issue_api_key,
    issue_refresh_token,
    key_in_force,
    operator_of_api_key,
    signing_key,
    spend_refresh_token,
)
from models.session import database_now, transaction
from models.settings import SettingsError, settings
from protocol.errors import Unauthenticated
from tests.factories import an_operator, rows

pytestmark = pytest.mark.usefixtures("house")


def a_key(operator_id: str = "op_a") -> str:
    with transaction() as session:
        return issue_api_key(session, operator_id)


def owner_of(key: str) -> str:
    with transaction() as session:
        return operator_of_api_key(session, key)[0]


def test_a_key_is_recognised_and_nothing_like_it() -> None:
    key = a_key(an_operator("a"))
    assert owner_of(key) == "op_a"
    prefix, key_id, secret = key.split("_")
    for wrong in (
        "",
        "sk_",
        key[:-1],
        key + "0",
        key.upper(),
        f"ak_{key_id}_{secret}",
        f"sk_{'0' * 16}_{secret}",
        f"{prefix}_{key_id}_",
        f"sk_\0_{secret}",
        "sk_é_x",
    ):
        with pytest.raises(Unauthenticated):
            owner_of(wrong)


def test_an_expired_key_is_not_recognised() -> None:
    key = a_key(an_operator("a"))
    with transaction() as session:
        session.execute(update(OperatorApiKey).values(expires_at=database_now(session)))
    with pytest.raises(Unauthenticated):
        owner_of(key)


def test_the_newest_key_signs() -> None:
    an_operator("a")
    a_key()
    newest = a_key()
    with transaction() as session:
        assert signing_key(session, "op_a") == newest
        assert signing_key(session, "op_b") is None


def test_no_secret_stands_in_the_tables() -> None:
    key = a_key(an_operator("a"))
    with transaction() as session:
        _, admin_key = issue_admin_key(session, "me", AdminRole.ROOT)
        token = issue_refresh_token(session, "op_a", key.split("_")[1])
    stored = str(rows("SELECT * FROM operator_api_keys")) + str(rows("SELECT * FROM admin_keys"))
    stored += str(rows("SELECT * FROM refresh_tokens"))
    for secret in (key.split("_")[2], admin_key.split("_")[2], token):
        assert secret not in stored


def test_a_secret_is_read_with_an_older_key_and_not_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    token = encryption.encrypt(b"round secret")
    newer = Fernet.generate_key().decode()

    def use(keys: str) -> None:
        monkeypatch.setenv("ENCRYPTION_KEYS", keys)
        settings.cache_clear()
        encryption._fernet.cache_clear()

    use(f"{newer},{settings().encryption_keys[0]}")
    assert encryption.decrypt(token) == b"round secret"
    use(newer)
    with pytest.raises(SettingsError, match="older key"):
        encryption.decrypt(token)


def test_a_revoked_or_wrong_admin_key_is_not_recognised() -> None:
    with transaction() as session:
        row, key = issue_admin_key(session, "me", AdminRole.ONCALL)
    with transaction() as session:
        assert admin_of_key(session, key).role == "oncall"
        with pytest.raises(Unauthenticated):
            admin_of_key(session, key[:-1])
        session.get_one(type(row), row.id).revoked_at = database_now(session)
    with transaction() as session, pytest.raises(Unauthenticated):
        admin_of_key(session, key)


def a_refresh_token() -> str:
    key = a_key(an_operator("a"))
    with transaction() as session:
        return issue_refresh_token(session, "op_a", key.split("_")[1])


def spend(token: str) -> RefreshToken | None:
    with transaction() as session:
        return spend_refresh_token(session, token)


def test_a_refresh_token_is_spent_once_and_a_second_use_fells_its_family() -> None:
    first = a_refresh_token()
    spent = spend(first)
    assert spent is not None
    with transaction() as session:
        second = issue_refresh_token(session, "op_a", spent.key_id, spent.family)
    assert spend(first) is None
    assert spend(second) is None


def test_an_expired_refresh_token_cannot_be_spent() -> None:
    token = a_refresh_token()
    with transaction() as session:
        session.execute(update(RefreshToken).values(expires_at=database_now(session) - timedelta(seconds=1)))
    assert spend(token) is None


def test_a_refresh_token_falls_with_the_key_it_was_obtained_with() -> None:
    token = a_refresh_token()
    with transaction() as session:
        session.execute(update(OperatorApiKey).values(expires_at=database_now(session)))
    assert spend(token) is None
    with transaction() as session:
        session.execute(update(OperatorApiKey).values(expires_at=None))
    assert spend(token) is None


def test_a_key_is_in_force_for_its_own_operator_until_it_expires() -> None:
    key_id = a_key(an_operator("a")).split("_")[1]
    an_operator("b")
    with transaction() as session:
        assert key_in_force(session, "op_a", key_id)
        for operator_id, other_id in (("op_b", key_id), ("op_a", "0" * 16)):
            assert not key_in_force(session, operator_id, other_id)
        session.execute(update(OperatorApiKey).values(expires_at=database_now(session)))
    with transaction() as session:
        assert not key_in_force(session, "op_a", key_id)


def test_of_simultaneous_uses_one_gets_through() -> None:
    token = a_refresh_token()
    together = threading.Barrier(8)

    def attempt(_: int) -> bool:
        together.wait()
        return spend(token) is not None

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1
