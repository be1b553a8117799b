"""What a webhook says and how it is signed, held against openssl and the ``standardwebhooks`` package."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Self
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

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


@dataclass(frozen=True)
class Vector:
    """What goes out, and both signatures as openssl makes them, with the body in a file and the rest in variables:

    openssl dgst -sha256 -hmac "$key" body
    (printf '%s.%s.' "$id" "$timestamp"; cat body) | openssl dgst -sha256 -hmac "$key" -binary | base64
    """

    key: str
    id: str
    timestamp: int
    body: bytes
    service: str
    standard: str

    @property
    def event(self) -> str:
        return str(json.loads(self.body)["event"])

    def sent(self) -> dict[str, str]:
        """The headers that we send."""
        return headers(self.event, self.id, self.timestamp, self.body, self.key)


OUR_KEY = "sk_2c70e12b7a0646f9_00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
DRAWN = b'{"event":"round.drawn","roundId":7,"timestamp":"2026-01-31T20:00:03.498Z","data":{"roundId":7}}'
DELIVERY = "3f1b0a52-6c0e-4f4e-9a53-2d6f6f0c8f11"
VECTORS = {
    "a short key": Vector(
        KEY, "dlv_1", 1767323045, BODY,
        "cdb1d6a1dbac25ae9aff369c313c630be36799440733430653bd3ba5753003fa",
        "UZIlEIUwY0SInXzDxMeynCklAmM5UsUjRmF5zPJSBdc=",
    ),
    "the first attempt": Vector(
        OUR_KEY, DELIVERY, 1769889603, DRAWN,
        "e1b796b9920a959bc4b87d38d3d008579600d83201739432f71491bd726c1219",
        "S80LdapSEN5KXDxLpB6lQLGJ1cxabEXOroBfHs2ux4U=",
    ),
    "the second attempt, half a minute later": Vector(
        OUR_KEY, DELIVERY, 1769889633, DRAWN,
        "e1b796b9920a959bc4b87d38d3d008579600d83201739432f71491bd726c1219",
        "h0P4kFzOMMkEI3SOEzzGmLduQinKqHym5yu5O+ojonY=",
    ),
    "the first second there was": Vector(
        OUR_KEY, "00000000-0000-0000-0000-000000000000", 0,
        b'{"event":"operator.heartbeat_missed","roundId":null,"timestamp":"1970-01-01T00:00:00.000Z","data":{}}',
        "4bf8d9a34d7d6ef5f4101e12f4fdc1879682de6744e0d27a6107d6949eef0ce2",
        "zpC8Z7YIsnEBGZwc9tGrw3BV3tDF2xPm1hBQp7iPBPk=",
    ),
    "after 32 bits of seconds, in letters of many bytes": Vector(
        "sk_ffffffffffffffff_" + "f" * 64, "ffffffff-ffff-ffff-ffff-ffffffffffff", 4294967296,
        b'{"event":"operator.won","roundId":9007199254740991,"timestamp":"2106-02-07T06:28:16.000Z","data":{"name":'
        b'"\xe5\xae\x9d\xe3\x81\x8f\xe3\x81\x98 \xf0\x9f\x8e\x9f\\n\\u0000"}}',
        "e0600dffa71251c11429e3969e34e5929dca078c200eb7ef6f5a5afd76445084",
        "a7eh2h+xg+Y7Z9PzUy7CpztUn8S25xZERb5mTHY683s=",
    ),
}  # fmt: skip
every_vector = pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS)


@every_vector
def test_both_signatures_are_those_of_openssl(vector: Vector) -> None:
    assert sign(vector.body, vector.key) == vector.service
    assert standard_signature(vector.id, vector.timestamp, vector.body, vector.key) == f"v1,{vector.standard}"
    sent = vector.sent()
    assert sent["X-Service-Signature"] == vector.service
    assert sent["webhook-signature"] == f"v1,{vector.standard}"
    assert sent["X-Service-Delivery"] == sent["webhook-id"] == vector.id


def test_the_secret_for_a_stock_library_is_the_key_in_base64() -> None:
    # printf 'sk_test_0123456789' | base64
    assert standard_secret(KEY) == "whsec_c2tfdGVzdF8wMTIzNDU2Nzg5"


@contextmanager
def receiving_at(moment: int) -> Iterator[None]:
    """The package's clock at this Unix time: it refuses what is five minutes old."""

    class Then(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(moment, tz)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("standardwebhooks.webhooks.datetime", Then)
        yield


def received(vector: Vector, sent: Mapping[str, str], body: bytes) -> Any:
    """What a receiver makes of this with the stock package and the secret that it was given."""
    with receiving_at(vector.timestamp):
        return Webhook(standard_secret(vector.key)).verify(body, dict(sent))


@every_vector
def test_the_standardwebhooks_package_accepts_what_we_send(vector: Vector) -> None:
    assert received(vector, vector.sent(), vector.body) == json.loads(vector.body)


CHANGES: dict[str, Callable[[dict[str, str], bytes], tuple[dict[str, str], bytes]]] = {
    "a byte of the body": lambda sent, body: (sent, body.replace(b"roundId", b"roundid", 1)),
    "a byte more": lambda sent, body: (sent, body + b" "),
    "the id": lambda sent, body: (sent | {"webhook-id": sent["webhook-id"][:-1] + "x"}, body),
    "the timestamp": lambda sent, body: (sent | {"webhook-timestamp": str(int(sent["webhook-timestamp"]) + 1)}, body),
    "the signature": lambda sent, body: (sent | {"webhook-signature": "v1," + "A" * 43 + "="}, body),
    "the signature's version": lambda sent, body: (
        sent | {"webhook-signature": sent["webhook-signature"].replace("v1,", "v2,")}, body,
    ),
    "no signature": lambda sent, body: ({name: sent[name] for name in sent if name != "webhook-signature"}, body),
}  # fmt: skip


@every_vector
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_standardwebhooks_package_refuses_whatever_was_changed(
    vector: Vector, change: Callable[[dict[str, str], bytes], tuple[dict[str, str], bytes]]
) -> None:
    sent, body = change(vector.sent(), vector.body)
    assert (sent, body) != (vector.sent(), vector.body)
    with pytest.raises(WebhookVerificationError):
        received(vector, sent, body)


@every_vector
def test_the_standardwebhooks_package_refuses_another_operators_key_and_an_old_message(vector: Vector) -> None:
    with receiving_at(vector.timestamp), pytest.raises(WebhookVerificationError, match="signature"):
        Webhook(standard_secret(vector.key + "0")).verify(vector.body, vector.sent())
    with receiving_at(vector.timestamp + 301), pytest.raises(WebhookVerificationError, match="too old"):
        Webhook(standard_secret(vector.key)).verify(vector.body, vector.sent())


@given(
    st.text("0123456789abcdef", min_size=8, max_size=64),
    st.uuids(),
    st.sampled_from(EVENTS),
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), st.text('aé💥\\"\0\n'), max_size=4),
    st.integers(-300, 300),
)
def test_whatever_we_send_the_standardwebhooks_package_accepts(
    secret: str, delivery: UUID, event: str, data: dict[str, str], late: int
) -> None:
    body = envelope(event, 7, "2026-01-02T03:04:05.678Z", data)
    moment = 1769889603
    sent = headers(event, str(delivery), moment, body, f"sk_{secret}")
    with receiving_at(moment + late):
        assert Webhook(standard_secret(f"sk_{secret}")).verify(body, sent)["data"] == data


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
