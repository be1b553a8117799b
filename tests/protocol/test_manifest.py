"""An operator's manifest: its exact text, and what that text claims."""

from __future__ import annotations

from hashlib import sha256

import pytest

from protocol.errors import Invalid
from protocol.manifest import contradictions, manifest_hash, read_manifest


def test_the_manifest_is_hashed_as_the_exact_text() -> None:
    text = '{ "b": 1,\n  "a": "café" }'
    assert manifest_hash(text) == sha256(text.encode()).hexdigest()
    assert manifest_hash(text) != manifest_hash('{"a":"café","b":1}')


def test_known_claims_are_read_and_everything_else_is_the_operators_business() -> None:
    claims = read_manifest('{"roundId":7,"ticketCount":2,"shop":"Rome"}')
    assert claims == {"roundId": 7, "ticketCount": 2}


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '{"a":1,"a":1}', '{"nonceCommit":"00"}', '{"nonceCommit":null}', '{"a":NaN}']
)
def test_a_manifest_that_is_not_a_strict_json_object_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        read_manifest(text)


def test_claims_that_differ_from_the_facts_are_named() -> None:
    facts = {"roundId": 7, "operatorId": "opA", "ticketCount": 1}
    assert contradictions({"roundId": 7, "ticketCount": 1}, facts) == []
    assert contradictions({"operatorId": "opB", "roundId": 8}, facts) == ["roundId", "operatorId"]
    assert contradictions({"ticketCount": True}, facts) == ["ticketCount"], "true is not 1"
    assert contradictions({"ticketCount": 1.0}, facts) == ["ticketCount"], "1.0 is not 1"
    assert contradictions({"ticketsRoot": "x"}, facts) == [], "what is not known yet is not compared"
