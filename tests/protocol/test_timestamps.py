"""One way to write an instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Invalid
from protocol.timestamps import format_timestamp, parse_timestamp


def test_an_instant_is_written_in_utc_with_milliseconds() -> None:
    east = timezone(timedelta(hours=5, minutes=30))
    assert format_timestamp(datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)) == "2026-01-02T03:04:05.678Z"
    assert format_timestamp(datetime(2026, 1, 2, 8, 34, 5, 678_999, east)) == "2026-01-02T03:04:05.678Z"
    assert format_timestamp(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00.000Z"


def test_an_instant_without_a_zone_is_a_programmers_mistake() -> None:
    with pytest.raises(ValueError, match="time zone"):
        format_timestamp(datetime(2026, 1, 2))  # noqa: DTZ001  # the mistake under test


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.678+00:00",
        "2026-02-30T00:00:00.000Z",
        "2026-01-02 03:04:05.678Z",
        "2026-01-02T03:04:05.678Z\n",
        "٢026-01-02T03:04:05.678Z",
        "",
    ],
)
def test_another_way_to_write_it_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_timestamp(text)


@given(st.datetimes(timezones=st.timezones()).filter(lambda instant: 2 <= instant.year <= 9998))
def test_what_is_written_is_read_back_to_the_millisecond(instant: datetime) -> None:
    text = format_timestamp(instant)
    assert len(text) == 24
    assert timedelta(0) <= instant - parse_timestamp(text) < timedelta(milliseconds=1)
