"""The connections of a process."""

from __future__ import annotations

import pytest

from tests.factories import rows

pytestmark = pytest.mark.usefixtures("house")


def test_the_database_too_soon_notices_that_a_machine_has_vanished() -> None:
    """Its own end of a connection is what holds the row locks. (Over a Unix socket it shows 0, but knows what to reset
    to.)
    """
    asked = dict(rows("SELECT name, reset_val FROM pg_settings WHERE name LIKE 'tcp_keepalives_%'"))  # type: ignore[arg-type]
    assert asked == {"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3"}
