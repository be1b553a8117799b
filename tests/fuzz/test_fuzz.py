"""The published document and the running service agree, whatever is sent. `make fuzz` runs a longer campaign.

One rule: the seed is fixed, so that this test is about the change it runs with.
"""

from __future__ import annotations

import os

import pytest

from tests.fuzz.campaign import campaign

SECONDS = 15.0
SEED = int(os.environ.get("SEED") or "20260131")


@pytest.mark.timeout(300)
def test_every_answer_is_one_that_the_document_allows() -> None:
    outcome = campaign(SECONDS, SEED)
    assert outcome.requests > 100
    assert not outcome.findings, "\n".join(map(str, [*outcome.findings, outcome]))
