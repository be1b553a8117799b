"""Servers the environment names: used when they answer, refused in one line without the password if not."""

from __future__ import annotations

import os

import pytest

from deploy.engines import EngineError, engines


def message(environ: dict[str, str]) -> str:
    with pytest.raises(EngineError) as caught, engines(environ=environ):
        pass
    text = str(caught.value)
    assert "\n" not in text
    assert "hunter2" not in text
    return text


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "postgresql://app:hunter2@127.0.0.1:1/lottery",
            "DATABASE_URL: cannot use postgresql://app:***@127.0.0.1:1",
        ),
        ("postgres://app:hunter2%40x@nowhere.invalid/lottery", "could not translate host name"),
        ("postgresql://app:hunter2@127.0.0.1:http/lottery", "DATABASE_URL is not a URL"),
        ("hunter2", "DATABASE_URL is not a URL"),
        ("mysql://app:hunter2@localhost/lottery", "DATABASE_URL is for mysql"),
        ("postgresql+asyncpg://app:hunter2@localhost/lottery", "DATABASE_URL is for postgresql+asyncpg"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_clear_line(url: str, said: str) -> None:
    assert said in message({"DATABASE_URL": url})


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://:hunter2@127.0.0.1:1/0", "REDIS_URL: cannot use 127.0.0.1:1"),
        ("redis://app:hunter2@nowhere.invalid:6379/0", "REDIS_URL: cannot use nowhere.invalid:6379"),
        ("unix:///nowhere/redis.sock", "REDIS_URL: cannot use /nowhere/redis.sock"),
        ("http://:hunter2@localhost", "REDIS_URL is not a URL"),
        ("redis://:hunter2@localhost:port", "REDIS_URL is not a URL"),
    ],
)
def test_a_redis_that_cannot_be_used_is_one_clear_line(url: str, said: str) -> None:
    assert said in message({"DATABASE_URL": os.environ["DATABASE_URL"], "REDIS_URL": url})


def test_each_url_is_respected_by_itself() -> None:
    with engines(environ={"DATABASE_URL": os.environ["DATABASE_URL"]}) as servers:
        assert servers.database_url == os.environ["DATABASE_URL"]
        assert servers.postgres is None
        assert servers.redis is not None
        with engines(environ={"REDIS_URL": servers.redis_url}) as others:
            assert others.redis_url == servers.redis_url
            assert others.redis is None
            assert others.postgres is not None
