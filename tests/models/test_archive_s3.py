"""Archives in an object store: over real HTTP, against a server of our own that speaks S3."""

from __future__ import annotations

import io
import random
import socket
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from app.desk.archives import restored
from models.archive_reader import open_archive, open_copy
from models.archive_s3 import S3Store, _client
from models.archive_store import PostgresStore
from models.archive_stores import archive_store, store_called, store_fault
from models.schema import exit_unless_usable
from models.session import transaction
from models.settings import SettingsError, read_settings, settings
from protocol.errors import Conflict, NotFound, Unavailable
from protocol.lifecycle import State
from tests.factories import a_played_round, rows, some_operators, some_tickets

KEY = "r1/op_a/content.parquet"
CONTENT = random.Random(1).randbytes(3_000_000)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    started = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    yield f"http://{host}:{port}"
    started.stop()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty bucket that the settings name."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "ARCHIVE_URL": "s3://sealed/of/ours/",
        "ARCHIVE_S3_ENDPOINT": server,
    }.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    _client.cache_clear()
    made = boto3.resource("s3", endpoint_url=server).Bucket("sealed")
    made.create()
    yield made
    made.objects.all().delete()
    made.delete()
    settings.cache_clear()
    _client.cache_clear()


@pytest.fixture
def store(bucket: Any, server: str) -> S3Store:
    return S3Store("sealed", "of/ours", server)


def test_what_was_put_is_read_as_a_whole_and_in_parts(store: S3Store, bucket: Any) -> None:
    store.put(KEY, io.BytesIO(CONTENT))
    assert [each.key for each in bucket.objects.all()] == [f"of/ours/{KEY}"]
    file = store.open(KEY)
    assert file.size == len(CONTENT)
    assert file.read() == CONTENT
    file.seek(1_234_567)
    assert file.read(1_000) == CONTENT[1_234_567:1_235_567]
    file.seek(-7, io.SEEK_END)
    assert file.read(100) == CONTENT[-7:]


def test_the_same_content_again_changes_nothing(store: S3Store, bucket: Any) -> None:
    store.put(KEY, io.BytesIO(CONTENT))
    before = [(each.key, each.last_modified) for each in bucket.objects.all()]
    store.put(KEY, io.BytesIO(CONTENT))
    assert [(each.key, each.last_modified) for each in bucket.objects.all()] == before


@pytest.mark.parametrize("other", [b"", CONTENT[:-1], CONTENT + b"x", CONTENT[:-1] + b"x"])
def test_other_content_under_the_same_key_is_refused(store: S3Store, other: bytes) -> None:
    store.put(KEY, io.BytesIO(CONTENT))
    with pytest.raises(Conflict, match="other content"):
        store.put(KEY, io.BytesIO(other))
    assert store.open(KEY).read() == CONTENT


def test_what_is_not_there_is_not_found(store: S3Store) -> None:
    with pytest.raises(NotFound, match="not in its store"):
        store.open(KEY)
    store.put(KEY, io.BytesIO(CONTENT))
    store.delete(KEY)
    store.delete(KEY)
    with pytest.raises(NotFound):
        store.open(KEY)


def test_a_store_that_does_not_answer_or_refuses_is_unavailable(bucket: Any, server: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unavailable, match="does not answer"):
            S3Store("sealed", "", nobody).open(KEY)
    with pytest.raises(Unavailable, match="NoSuchBucket"):
        S3Store("another", "", server).put(KEY, io.BytesIO(CONTENT))


@pytest.mark.usefixtures("bucket", "house")
def test_a_round_is_archived_where_the_setting_says_and_read_from_there() -> None:
    operators = some_operators(2)
    round_id = a_played_round(operators, State.ESCROWED)
    assert set(rows("SELECT store FROM ticket_archives")) == {("s3",)}
    assert rows("SELECT * FROM archive_files") == []
    with transaction() as session, open_copy(session, round_id, "op_b") as copy:
        for reader in (open_archive(session, round_id, "op_b"), copy):
            assert list(reader.tickets()) == sorted(some_tickets(30, 1))


@pytest.mark.usefixtures("house")
def test_a_damaged_object_is_not_written_over_and_a_lost_one_is_put_where_it_was(bucket: Any) -> None:
    a_played_round(some_operators(1), State.ESCROWED)
    [(first,)] = rows("SELECT key FROM ticket_archives")
    damaged = bucket.Object(f"of/ours/{first}")
    content = damaged.get()["Body"].read()
    damaged.put(Body=content[:-9] + b"x" + content[-8:])
    second = first.replace(".parquet", ".2.parquet")
    for _ in range(2):
        with transaction() as session:
            [one] = restored(session, "nina", 1, "a disk")["restored"]
        assert rows("SELECT key FROM ticket_archives") == [(one["key"],)] == [(second,)]
        assert bucket.Object(f"of/ours/{second}").get()["Body"].read() == content
        bucket.Object(f"of/ours/{second}").delete()
    assert damaged.get()["Body"].read() != content


@pytest.mark.usefixtures("bucket", "house")
def test_after_a_change_of_stores_each_archive_is_where_it_was_put(monkeypatch: pytest.MonkeyPatch) -> None:
    with transaction() as session:
        assert isinstance(archive_store(session), S3Store)
        assert isinstance(store_called(session, "postgres"), PostgresStore)
    monkeypatch.setenv("ARCHIVE_URL", "")
    settings.cache_clear()
    with transaction() as session:
        assert isinstance(archive_store(session), PostgresStore)
        with pytest.raises(SettingsError, match="ARCHIVE_URL must go on naming"):
            store_called(session, "s3")


@pytest.mark.parametrize(
    ("url", "bucket_and_prefix"),
    [
        ("", None),
        ("s3://sealed", ("sealed", "")),
        ("s3://sealed/", ("sealed", "")),
        ("s3://my.own-bucket/a/b/", ("my.own-bucket", "a/b")),
    ],
)
@pytest.mark.usefixtures("house")
def test_the_setting_names_bucket_and_prefix(
    monkeypatch: pytest.MonkeyPatch, url: str, bucket_and_prefix: tuple[str, str] | None
) -> None:
    monkeypatch.setenv("ARCHIVE_URL", url)
    assert read_settings().archive_bucket == bucket_and_prefix


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ARCHIVE_URL", "https://sealed.s3.amazonaws.com"),
        ("ARCHIVE_URL", "s3://"),
        ("ARCHIVE_URL", "s3://Sealed"),
        ("ARCHIVE_URL", "s3://sealed/a b"),
        ("ARCHIVE_S3_ENDPOINT", "127.0.0.1:9000"),
    ],
)
@pytest.mark.usefixtures("house")
def test_a_setting_that_names_no_place_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=name):
        read_settings()


@pytest.mark.usefixtures("bucket", "house")
def test_without_boto3_a_process_says_so_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert store_fault() is None
    monkeypatch.setattr("models.archive_stores.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"worker: ARCHIVE_URL names S3, which needs boto3: pip install"):
        exit_unless_usable("worker")
