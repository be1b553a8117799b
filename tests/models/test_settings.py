"""A wrong setting stops a process with one line that says what would be right and repeats nothing secret."""

from __future__ import annotations

import pytest

from models.settings import SettingsError, read_settings

GOOD = {
    "DATABASE_URL": "postgres://us:s3cret@db/lottery",
    "REDIS_URL": "redis://cache",
    "ENCRYPTION_KEYS": "A" * 43 + "=",
    "JWT_KEYS": "k1:" + "s" * 32,
}


@pytest.fixture(autouse=True)
def good(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GOOD.items():
        monkeypatch.setenv(name, value)
    read_settings()


def test_everything_that_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in GOOD:
        monkeypatch.delenv(name)
    with pytest.raises(SettingsError, match="not set: DATABASE_URL, REDIS_URL, ENCRYPTION_KEYS, JWT_KEYS"):
        read_settings()


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("DATABASE_URL", "mysql://us:s3cret@db", "postgres://"),
        ("REDIS_URL", "http://:s3cret@cache", "rediss://"),
        ("ENCRYPTION_KEYS", "s3cret", "Fernet"),
        ("JWT_KEYS", "k1:s3cret", "32 characters"),
        ("LOG_LEVEL", "s3cret", "DEBUG, INFO"),
        ("CLAIM_DAYS", "s3cret", "integer"),
        ("CLAIM_DAYS", "0", "equal to 1"),
        ("SANDBOX", "s3cret", "boolean"),
        ("RATE_LIMIT_PUBLIC", "s3cret", "60/minute"),
    ],
)
def test_a_wrong_one_is_named_with_what_would_be_right(
    name: str, value: str, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as refused:
        read_settings()
    told = refused.value.message
    assert told.startswith(name)
    assert right in told
    assert "s3cret" not in told
    assert "\n" not in told
