"""Where webhooks never go: every trick by which an address has been made to look like another one, and none works.

What is refused is refused at registration and again at the connection; both ask the same two functions, and so does
every test here.
"""

import asyncio
import ipaddress
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.settings import settings
from tasks.addresses import (
    SPECIAL_V4,
    SPECIAL_V6,
    Destination,
    RefusedAddress,
    callable_address,
    destination,
)
from tasks.resolver import Resolver, check_destination
from tests.webhook_addresses import ACCEPTED, REFUSED, SANDBOX_ONLY, TRICKS

# What the sandbox opens: plain http, and this machine by its plain names.
OPENED = {"https://127.0.0.0/", "https://127.255.255.255/", "https://[::1]/"}


@pytest.fixture(autouse=True)
def outside_of_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SANDBOX", "0")
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOX", "1")
    settings.cache_clear()


def registered(url: str) -> bool:
    """Whether the address is taken at registration."""
    try:
        check_destination(url)
    except RefusedAddress:
        return False
    return True


def connected(url: str) -> bool:
    """Whether the address is let through to a connection, as it was registered or as somebody wrote it into the row."""
    try:
        asyncio.run(Resolver().addresses(destination(url)))
    except RefusedAddress:
        return False
    return True


@pytest.mark.parametrize(("trick", "url"), REFUSED, ids=lambda value: ascii(value)[:60])
def test_it_is_refused(trick: str, url: str) -> None:
    with pytest.raises(RefusedAddress) as refused:
        destination(url)
    assert "webhook URL" in refused.value.message
    assert not registered(url)
    assert not connected(url)


def test_of_all_these_none_gets_through() -> None:
    vectors = {url for _, url in REFUSED}
    through = [url for url in vectors if registered(url) or connected(url)]
    print(f"{len(vectors)} vectors, {len(through)} through")
    assert (len(vectors) >= 150, through) == (True, [])


def test_the_sandbox_opens_http_and_this_machine_and_nothing_else(sandbox: None) -> None:
    by_name = set(TRICKS["this machine by name"]) | {"https://localhost./"}
    plain_http = {url for url in TRICKS["schemes"] if url.lower().startswith("http://")}
    for url in {url for _, url in REFUSED} - OPENED - by_name - plain_http:
        with pytest.raises(RefusedAddress):
            destination(url)
    for url, parts in SANDBOX_ONLY.items():
        assert destination(url) == parts
    for url in OPENED | by_name:
        check_destination(url)
    for inside in ("http://10.0.0.1/", "http://[::ffff:127.0.0.1]/", "http://169.254.169.254/", "http://0.0.0.0/"):
        with pytest.raises(RefusedAddress):
            destination(inside)


@pytest.mark.parametrize("url", SANDBOX_ONLY)
def test_what_the_sandbox_opens_is_closed_outside_of_it(url: str) -> None:
    with pytest.raises(RefusedAddress):
        destination(url)


@pytest.mark.parametrize("url", ACCEPTED, ids=lambda value: value[:60])
def test_it_is_accepted_and_taken_apart(url: str) -> None:
    assert destination(url) == ACCEPTED[url]


def test_enough_is_accepted() -> None:
    assert len(ACCEPTED) >= 30


@pytest.mark.parametrize(
    "written", ["127.1", "0x7f.1", "2130706433", "010.1.1.1", "1.2.3.4 ", "::1%lo", "fe80::1%1", "", "name", "[::1]"]
)
def test_what_is_no_plain_address_is_not_called(written: str, sandbox: None) -> None:
    assert not callable_address(written)


def test_a_destination_made_by_hand_is_checked_at_the_connection() -> None:
    for host in ("127.0.0.1", "::1", "::ffff:93.184.215.14", "10.0.0.1", "127.1", "localhost", "2130706433"):
        with pytest.raises(RefusedAddress):
            asyncio.run(Resolver().addresses(Destination("https", host, 443, "/")))


# Half of the examples from next to the blocks' edges, where a wrong prefix length shows.
_EDGES = [int(edge) for block in SPECIAL_V4 for edge in (block[0], block[-1])]
_V4 = st.integers(0, 2**32 - 1) | st.sampled_from(_EDGES).flatmap(lambda edge: st.integers(edge - 2, edge + 2))
_EDGES_V6 = [int(edge) for block in SPECIAL_V6 for edge in (block[0], block[-1])]
_V6 = st.integers(2**125, 2**126 - 1) | st.sampled_from(_EDGES_V6).flatmap(lambda edge: st.integers(edge - 2, edge + 2))


@given(_V4.filter(lambda number: 0 <= number < 2**32).map(ipaddress.IPv4Address) | _V6.map(ipaddress.IPv6Address))
def test_what_is_called_is_public_to_python_too(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if callable_address(str(ip)):
        assert ip.is_global
        assert not ip.is_multicast


@given(st.text(st.sampled_from("htps:/@[]%.\\#?0123456789abcdefx-_lo AZ\t\x00①"), max_size=40).map("https://".__add__))
def test_what_is_taken_apart_is_plain(url: str) -> None:
    try:
        parts = destination(url)
    except RefusedAddress:
        return
    assert parts.host == parts.host.lower().strip(".")
    assert parts.target.startswith("/")
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    assert destination(f"{parts.scheme}://{host}:{parts.port}{parts.target}") == parts
