"""Errors: always JSON with a sentence and a code, with the right status, before anything is stored."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from flask import Flask

from tests.app.conftest import Caller, assert_error
from tests.factories import rows

APPLY = "/api/public/apply"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nothing",
        b'{"companyName": NaN}',
        b'{"companyName": Infinity}',
        b'{"companyName": "a", "companyName": "b"}',
        b'{"companyName": "\xff"}',
        b"\xef\xbb\xbf{}",
        b"[" * 100_000,
        b'{"a":' * 5_000,
    ],
)
def test_what_is_not_strict_json_is_refused(anybody: Caller, body: bytes) -> None:
    answer = anybody.post(APPLY, data=body, content_type="application/json")
    assert_error(answer, 400, "bad_request")
    assert rows("SELECT count(*) FROM applications") == [(0,)]


@pytest.mark.parametrize("body", [b"[]", b"1", b'"x"', b"null", b"true"])
def test_json_that_is_no_object_is_refused(anybody: Caller, body: bytes) -> None:
    assert_error(anybody.post(APPLY, data=body, content_type="application/json"), 422)


def test_a_body_must_say_that_it_is_json(anybody: Caller) -> None:
    assert_error(anybody.post(APPLY, data="{}", content_type="text/plain"), 415, "unsupported_media_type")
    assert_error(anybody.post(APPLY), 415)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/vnd.api+json",
        "text/json",
        "application/json; charset=latin-1",
        "application/json; charset=utf-16",
        "multipart/form-data; boundary=x",
    ],
)
def test_what_is_not_labelled_json_in_utf_8_is_refused(
    operator: Callable[[], Caller], anybody: Caller, content_type: str
) -> None:
    for caller, path in ((anybody, APPLY), (operator(), "/api/operator/tickets")):
        answer = caller.post(path, data="{}", content_type=content_type)
        assert_error(answer, 415, "unsupported_media_type")


def test_the_charset_may_be_named(anybody: Caller) -> None:
    for charset in ("utf-8", "UTF-8", '"utf-8"', "utf8"):
        assert_error(anybody.post(APPLY, data="{}", content_type=f"application/json; charset={charset}"), 422)


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "nonsense"])
def test_a_small_body_may_not_be_packed(anybody: Caller, encoding: str) -> None:
    answer = anybody.post(APPLY, {}, headers={"Content-Encoding": encoding})
    assert_error(answer, 415, "unsupported_media_type")
    assert_error(anybody.post(APPLY, {}, headers={"Content-Encoding": "identity"}), 422)


def test_a_large_body_is_refused(anybody: Caller) -> None:
    assert_error(anybody.post(APPLY, {"companyName": "a" * 1_100_000}), 413, "too_large")


def test_each_field_that_is_wrong_is_named(anybody: Caller) -> None:
    form = {
        "companyName": "  ",
        "jurisdiction": 7,
        "gamingLicenseNumber": "a\0b",
        "contactEmail": "nobody",
        "contactName": None,
        "ethereumAddress": "0x12",
        "website": "javascript:alert(1)",
        "owner": "me",
    }
    body = assert_error(anybody.post(APPLY, form), 422, "invalid")
    assert set(body["details"]) == set(form)
    assert rows("SELECT count(*) FROM applications") == [(0,)]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=-1", "limit=1.5", "limit=x", "offset=-1", "page=2", "limit="]
)
def test_a_query_is_read_strictly(anybody: Caller, query: str) -> None:
    body = assert_error(anybody.get(f"/api/public/rounds?{query}"), 422)
    assert list(body["details"]) == [query.partition("=")[0]]


@pytest.mark.parametrize("query", ["limit=1&limit=2", "limit=1&limit=1", "limit=1&offset=0&limit=2"])
def test_a_parameter_is_given_once(anybody: Caller, query: str) -> None:
    body = assert_error(anybody.get(f"/api/public/rounds?{query}"), 422)
    assert body["details"] == {"limit": ["Given more than once."]}


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/api/public/rounds/1",
        "/api/public/rounds/0",
        "/api/public/rounds/-1",
        "/api/public/rounds/1.0",
        "/api/public/rounds/%00",
        "/api/public/rounds/99999999999999999999999",
        "/api/public/rounds/1/events",
        "/api/public/rounds/1/proof",
        "/api/public/rounds/x/tickets/%00",
        "/api/public/draw/draw_1",
        "/api/public/draw/draw_%C3%A9",
        "/api/public/draw/1/winners",
    ],
)
def test_what_is_not_there_is_not_found(anybody: Caller, path: str) -> None:
    assert_error(anybody.get(path), 404, "not_found")


def test_a_method_that_a_path_does_not_take_is_named(anybody: Caller) -> None:
    answer = anybody.post("/api/public/rounds", {})
    assert_error(answer, 405, "method_not_allowed")
    assert "GET" in answer.headers["Allow"]


def test_a_database_that_is_away_is_said_to_be(anybody: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    from models import session, settings

    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody:hunter2@127.0.0.1:1/none")
    settings.settings.cache_clear()
    session.engine().dispose()
    session.engine.cache_clear()
    answer = anybody.get("/api/public/rounds")
    assert_error(answer, 503, "unavailable")
    assert "hunter2" not in answer.text
    body = assert_error(anybody.get("/health/ready"), 503)
    assert "cannot be reached" in body["details"]["database"]
    assert anybody.get("/health").status_code == 200


def test_what_nobody_expected_is_a_plain_500(
    application: Flask, anybody: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    application.add_url_rule("/boom", view_func=lambda: 1 // 0)
    answer = anybody.get("/boom")
    assert assert_error(answer, 500, "internal")["error"] == "something went wrong on our side"
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("path", "status"),
    [("/api/operator/tickets", 401), ("/api/auth/refresh", 413), ("/api/public/jackpot", 405), ("/nothing", 404)],
)
def test_a_refusal_waits_for_the_whole_body(anybody: Caller, path: str, status: int) -> None:
    body = io.BytesIO(b" " * 3_000_000)
    answer = anybody.post(path, input_stream=body, content_type="application/json", content_length=3_000_000)
    assert_error(answer, status)
    assert body.tell() == 3_000_000


def test_a_body_beyond_all_measure_is_not_waited_for(anybody: Caller) -> None:
    body = io.BytesIO(b" " * 17_000_000)
    answer = anybody.post("/nothing", input_stream=body, content_type="application/json", content_length=17_000_000)
    assert_error(answer, 404)
    assert body.tell() == 0
