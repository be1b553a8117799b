"""What a webhook says and how it is signed, held against signatures worked out with openssl."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Invalid
from protocol.webhook import (
    EVENTS,
    envelope,
    headers,
    sign,
    standard_secret,
    standard_signature,
    verify,
)

KEY = "sk_test_0123456789"
BODY = (
    b'{"event":"round.settled","roundId":7,"timestamp":"2026-01-02T03:04:05.678Z",'
    b'"data":{"roundId":7,"note":"caf\xc3\xa9"}}'
)


def test_there_are_fourteen_events() -> None:
    assert len(EVENTS) == len(set(EVENTS)) == 14
    assert {name.partition(".")[0] for name in EVENTS} == {"round", "operator"}


def test_the_envelope_is_compact_utf_8_json_in_a_fixed_order() -> None:
    data = {"roundId": 7, "note": "café"}
    assert envelope("round.settled", 7, "2026-01-02T03:04:05.678Z", data) == BODY


def test_an_event_of_no_round_says_null() -> None:
    body = envelope("operator.heartbeat_missed", None, "2026-01-02T03:04:05.678Z", {"operatorId": "opA"})
    assert json.loads(body)["roundId"] is None


@pytest.mark.parametrize(
    ("event", "data"),
    [("round.exploded", {}), ("round.opened", {"x": float("nan")}), ("round.opened", {"x": object()}),
     ("round.opened", {"x": "\ud800"})],
)  # fmt: skip
def test_an_unknown_event_or_data_json_cannot_carry_is_refused(event: str, data: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        envelope(event, 7, "2026-01-02T03:04:05.678Z", data)


def test_the_golden_vector_of_the_service_signature() -> None:
    # openssl dgst -sha256 -hmac 'sk_test_0123456789' body      (body being the 112 bytes of BODY)
    assert sign(BODY, KEY) == "cdb1d6a1dbac25ae9aff369c313c630be36799440733430653bd3ba5753003fa"


def test_the_golden_vector_of_the_standard_webhooks_signature() -> None:
    # (printf 'dlv_1.1767323045.'; cat body) |
    #     openssl dgst -sha256 -hmac 'sk_test_0123456789' -binary | base64
    expected = "v1,UZIlEIUwY0SInXzDxMeynCklAmM5UsUjRmF5zPJSBdc="
    assert standard_signature("dlv_1", 1767323045, BODY, KEY) == expected
    # printf 'sk_test_0123456789' | base64
    assert standard_secret(KEY) == "whsec_c2tfdGVzdF8wMTIzNDU2Nzg5"


def test_a_stock_standard_webhooks_receiver_accepts_what_we_send() -> None:
    """The receiver's side as the specification describes it, written apart from ours."""
    sent = headers("round.settled", "dlv_1", 1767323045, BODY, KEY)
    secret = base64.b64decode(standard_secret(KEY).removeprefix("whsec_"))
    content = f"{sent['webhook-id']}.{sent['webhook-timestamp']}.{BODY.decode()}"
    digest = hmac.new(secret, content.encode(), hashlib.sha256).digest()
    version, _, signature = sent["webhook-signature"].partition(",")
    assert version == "v1"
    assert base64.b64decode(signature) == digest


def test_a_delivery_carries_every_header() -> None:
    sent = headers("round.settled", "dlv_1", 1767323045, BODY, KEY)
    assert sent == {
        "Content-Type": "application/json",
        "User-Agent": "lottery-coordinator-webhook/2",
        "X-Service-Event": "round.settled",
        "X-Service-Delivery": "dlv_1",
        "X-Service-Signature": "cdb1d6a1dbac25ae9aff369c313c630be36799440733430653bd3ba5753003fa",
        "webhook-id": "dlv_1",
        "webhook-timestamp": "1767323045",
        "webhook-signature": "v1,UZIlEIUwY0SInXzDxMeynCklAmM5UsUjRmF5zPJSBdc=",
    }


@pytest.mark.parametrize("signature", ["", "00" * 32, "é", "\ud800", sign(BODY, KEY).upper(), sign(BODY, KEY)[:-1]])
def test_a_wrong_signature_is_not_accepted_and_raises_nothing(signature: str) -> None:
    assert not verify(BODY, KEY, signature)


@given(
    st.binary(max_size=200),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.integers(0, 10**4),
)
def test_a_signature_holds_for_its_body_and_key_only(body: bytes, key: str, place: int) -> None:
    signature = sign(body, key)
    assert verify(body, key, signature)
    assert not verify(body, key + "x", signature)
    changed = bytearray(body or b"x")
    changed[place % len(changed)] ^= 1
    assert not verify(bytes(changed), key, signature)
