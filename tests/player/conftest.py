"""Coordinators for the operator's side to talk to: the real one, served over HTTP, and one that misbehaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from werkzeug.serving import make_server

from tests.player.stubborn import Stubborn, stubborn_coordinator


@pytest.fixture
def coordinator_url(house: None) -> Iterator[str]:
    """The address of the real application, on this test's own database, in a thread of this process."""
    from app import create_app

    server = make_server("127.0.0.1", 0, create_app(), threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def stubborn() -> Iterator[Stubborn]:
    """A coordinator that misbehaves on demand."""
    with stubborn_coordinator() as state:
        yield state
