"""The rules of a round, hashed and read back."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.errors import Invalid
from protocol.rules import Rules, parse_amount

DEFAULT = {
    "v": "svc-lottery/v2/rules",
    "ticketPriceUsdc": "3000000",
    "oddsRange": 10_000_000,
    "feeBps": 500,
    "commissionBps": 1000,
    "reserveBps": 400,
    "winnerBonusBps": 1000,
    "prizes": ["25000000000", "1000000000", "100000000", "10000000", "5000000"],
    "ranges": [1_000_000, 100_000, 10_000, 1_000, 100],
}


def test_the_default_rules_are_the_published_ones() -> None:
    assert Rules().as_hashed() == DEFAULT
    assert Rules().number_ranges == (10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100)


def test_the_hash_of_the_default_rules_is_the_published_vector() -> None:
    # Computed apart: the canonical JSON, typed by hand in order of its keys, into `openssl dgst -sha256`.
    assert Rules().hash == "7e3eff8ea3a4625934609512f226ad349552bf0ee80ff6336a678e20f868a071"


def test_rules_are_read_back_as_they_were_written() -> None:
    odd = Rules(1, 7, 1, 2, 3, 4, (0, 1, 2, 3, 4), (1, 2, 3, 4, 5))
    assert Rules.from_hashed(odd.as_hashed()) == odd
    assert Rules.from_hashed(DEFAULT) == Rules()


@pytest.mark.parametrize(
    "change",
    [
        {"v": "svc-lottery/v1/rules"},
        {"ticketPriceUsdc": 3_000_000},
        {"ticketPriceUsdc": "03000000"},
        {"ticketPriceUsdc": "0"},
        {"ticketPriceUsdc": "-1"},
        {"ticketPriceUsdc": "٣"},
        {"oddsRange": 0},
        {"oddsRange": "10000000"},
        {"oddsRange": True},
        {"oddsRange": 1.5},
        {"feeBps": -1},
        {"feeBps": 10_001},
        {"feeBps": 9_000},
        {"winnerBonusBps": 10_001},
        {"prizes": ["1"] * 4},
        {"prizes": ["1", "1", "1", "1", 1]},
        {"prizes": "11111"},
        {"ranges": [1, 1, 1, 1, 0]},
        {"ranges": [1] * 6},
        {"extra": 1},
    ],
)
def test_rules_that_cannot_be_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        Rules.from_hashed(DEFAULT | change)


@pytest.mark.parametrize("key", DEFAULT)
def test_rules_with_a_key_missing_are_refused(key: str) -> None:
    with pytest.raises(Invalid):
        Rules.from_hashed({name: value for name, value in DEFAULT.items() if name != key})


def test_an_amount_is_a_plain_decimal_string() -> None:
    assert parse_amount("0") == 0
    assert parse_amount("25000000000") == 25_000_000_000
    for other in ("", "+1", "1.0", " 1", "1\n", "0x1", "1_000", 5, None, "1" * 31):
        with pytest.raises(Invalid):
            parse_amount(other)
