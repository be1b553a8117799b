"""What the tests of the tasks share."""

from __future__ import annotations

import pytest

from tests.authorities import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Signs the certificates of receivers under test."""
    return Authority(tmp_path_factory.mktemp("authority"))
