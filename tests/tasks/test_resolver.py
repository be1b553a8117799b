"""Names against a real DNS server on loopback: truthful, lying, broken, slow and dead."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import dns.message
import dns.rcode
import pytest

from models.settings import SettingsError, read_settings, settings
from tasks import resolver
from tasks.addresses import Destination, RefusedAddress, ResolverDown, UnknownHost, destination
from tasks.resolver import Resolver, check_destination
from tests.dns_server import Names, naming, reply

PUBLIC, PUBLIC_V6, OTHER = "93.184.215.14", "2606:2800:21f:cb07::1", "93.184.215.15"
PRIVATE = ["10.0.0.1", "127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "fd00::1", "::ffff:93.184.215.14"]  # noqa: S104
SHOP = "shop.example."


@pytest.fixture(scope="module")
def running() -> Iterator[Names]:
    with naming() as server:
        yield server


@pytest.fixture
def names(running: Names, monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    """The server, knowing nothing yet, asked outside of the sandbox."""
    running.zones.clear()
    running.asked.clear()
    running.dead = False
    monkeypatch.setenv("DNS_SERVERS", running.address)
    monkeypatch.setenv("SANDBOX", "0")
    settings.cache_clear()
    yield running
    settings.cache_clear()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is believed soon. Only for tests in which nobody answers: others would hang on a busy machine's pace."""
    for name in ("TRY_SECONDS", "ALIVE_SECONDS"):
        monkeypatch.setattr(resolver, name, 0.1)


def look_up(name: str = SHOP, seconds: float = 10.0) -> list[str]:
    return asyncio.run(Resolver(seconds).addresses(of(name)))


def of(name: str) -> Destination:
    return destination(f"https://{name}/")


def test_a_name_has_all_its_addresses_version_4_first(names: Names) -> None:
    names.has(SHOP, PUBLIC_V6, PUBLIC, OTHER)
    assert sorted(look_up()[:2]) == [PUBLIC, OTHER]
    assert look_up()[2:] == [PUBLIC_V6]


@pytest.mark.parametrize("address", [PUBLIC, PUBLIC_V6])
def test_one_kind_of_address_is_enough(names: Names, address: str) -> None:
    names.has(SHOP, address)
    assert look_up() == [address]


@pytest.mark.parametrize("hidden", PRIVATE)
def test_one_address_that_is_not_public_refuses_the_name(names: Names, hidden: str) -> None:
    names.has(SHOP, PUBLIC, PUBLIC_V6, hidden)
    with pytest.raises(RefusedAddress):
        look_up()
    with pytest.raises(RefusedAddress):
        check_destination("https://shop.example/hook")


def test_another_name_is_followed_to_where_it_leads(names: Names) -> None:
    names.leads(SHOP, "cdn.example.", PUBLIC)
    assert look_up() == [PUBLIC]
    names.leads(SHOP, "inside.example.", PUBLIC, "192.168.0.1")
    with pytest.raises(RefusedAddress):
        look_up()


def test_a_name_that_changes_its_mind_is_looked_at_each_time(names: Names) -> None:
    turns = iter([PUBLIC, "127.0.0.1", PUBLIC])
    at_turn = {"address": ""}

    def rebind(question: dns.message.Message, tcp: bool) -> bytes:
        return reply(question, [(SHOP, 0, (at_turn["address"],))])

    names.zones[SHOP] = rebind

    async def three_times() -> list[str]:
        one, seen = Resolver(10), []
        for at_turn["address"] in turns:
            try:
                seen += await one.addresses(of(SHOP))
            except RefusedAddress:
                seen.append("refused")
        return seen

    assert asyncio.run(three_times()) == [PUBLIC, "refused", PUBLIC]


@pytest.mark.parametrize("host", ["localhost", "shop.localhost"])
def test_this_machine_by_name_is_asked_of_nobody(names: Names, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    names.has(f"{host}.", PUBLIC)
    with pytest.raises(RefusedAddress):
        asyncio.run(Resolver().addresses(Destination("https", host, 443, "/")))
    monkeypatch.setenv("SANDBOX", "1")
    settings.cache_clear()
    assert look_up(host) == ["127.0.0.1", "::1"]
    assert not names.asked


def test_a_name_that_never_exists_is_asked_of_nobody(names: Names) -> None:
    names.has("nowhere.invalid.", PUBLIC)
    with pytest.raises(UnknownHost):
        look_up("nowhere.invalid.")
    assert not names.asked


def test_an_address_is_asked_of_nobody(names: Names) -> None:
    names.dead = True
    assert look_up(PUBLIC) == [PUBLIC]
    assert look_up(f"[{PUBLIC_V6}]") == [PUBLIC_V6]
    assert not names.asked


def test_search_domains_are_not_tried(names: Names) -> None:
    with pytest.raises(UnknownHost):
        look_up("shop")
    assert {name for name, _ in names.asked} == {"shop."}


def test_what_does_not_exist_is_unknown(names: Names) -> None:
    with pytest.raises(UnknownHost):
        look_up()


def test_what_has_no_address_is_unknown(names: Names) -> None:
    names.has(SHOP)
    with pytest.raises(UnknownHost):
        look_up()


def test_what_our_resolver_cannot_find_out_is_unknown(names: Names) -> None:
    names.fails(SHOP, dns.rcode.SERVFAIL)
    with pytest.raises(UnknownHost):
        look_up()


def test_a_resolver_that_turns_us_away_is_our_own_fault(names: Names) -> None:
    names.fails(SHOP, dns.rcode.REFUSED)
    names.fails(".", dns.rcode.REFUSED)
    with pytest.raises(ResolverDown):
        look_up()


def test_a_zone_that_is_broken_for_one_kind_is_called_at_the_other(names: Names) -> None:
    def half(question: dns.message.Message, tcp: bool) -> bytes:
        if question.question[0].rdtype == dns.rdatatype.AAAA:
            return reply(question, rcode=dns.rcode.SERVFAIL)
        return reply(question, [(SHOP, 0, (PUBLIC,))])

    names.zones[SHOP] = half
    assert look_up() == [PUBLIC]


def test_a_name_that_nobody_answers_for_is_unknown_as_long_as_the_resolver_lives(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "ALIVE_SECONDS", 20.0)
    names.ignores(SHOP)
    with pytest.raises(UnknownHost):
        look_up(seconds=0.2)
    assert names.asked[".", "NS"] >= 1


@pytest.mark.usefixtures("impatient")
def test_a_resolver_that_answers_nothing_is_down(names: Names) -> None:
    names.dead = True
    with pytest.raises(ResolverDown):
        look_up(seconds=0.2)
    assert names.asked[".", "NS"] >= 1


@pytest.mark.usefixtures("impatient")
def test_a_resolver_that_talks_nonsense_is_down(names: Names) -> None:
    for name in (SHOP, "."):
        names.zones[name] = lambda question, _: question.to_wire()[:2] + b"\xff" * 40
    with pytest.raises(ResolverDown):
        look_up(seconds=0.2)


@pytest.mark.usefixtures("impatient")
def test_an_answer_to_another_question_is_no_answer(names: Names) -> None:
    def forged(question: dns.message.Message, tcp: bool) -> bytes:
        other = dns.message.from_wire(question.to_wire())
        other.id ^= 1
        return reply(other, [(SHOP, 60, (PUBLIC,))])

    names.zones[SHOP] = names.zones["."] = forged
    with pytest.raises(ResolverDown):
        look_up(seconds=0.2)


@pytest.mark.usefixtures("impatient")
def test_a_port_where_nobody_listens_is_a_resolver_that_is_down(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    with naming() as gone:
        pass
    monkeypatch.setenv("DNS_SERVERS", gone.address)
    settings.cache_clear()
    with pytest.raises(ResolverDown):
        look_up(seconds=0.2)


def test_without_anybody_to_ask_the_resolver_is_down(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DNS_SERVERS")
    monkeypatch.setattr("dns.resolver.BaseResolver.read_resolv_conf", _no_file)
    settings.cache_clear()
    with pytest.raises(ResolverDown):
        look_up()


def _no_file(self: object, file: str) -> None:
    raise resolver.dns.resolver.NoResolverConfiguration


def test_when_one_server_is_dead_the_next_is_asked(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "TRY_SECONDS", 0.2)
    names.has(SHOP, PUBLIC)
    with naming() as dead:
        dead.dead = True
        monkeypatch.setenv("DNS_SERVERS", f"{dead.address}, {names.address}")
        settings.cache_clear()
        assert look_up() == [PUBLIC]
        assert dead.asked


def test_an_answer_that_is_too_long_for_a_datagram_is_asked_for_again_over_tcp(names: Names) -> None:
    many = tuple(f"93.184.{number // 200}.{number % 200 + 1}" for number in range(400))

    def cut(question: dns.message.Message, tcp: bool) -> bytes:
        return reply(question, [(SHOP, 0, many)]) if tcp else reply(question, [(SHOP, 0, many[:1])], cut=True)

    names.zones[SHOP] = cut
    assert sorted(look_up()) == sorted(many)


def test_an_address_that_shows_only_over_tcp_refuses_the_name(names: Names) -> None:
    def cut(question: dns.message.Message, tcp: bool) -> bytes:
        return reply(question, [(SHOP, 0, (PUBLIC, "10.0.0.1") if tcp else (PUBLIC,))], cut=not tcp)

    names.zones[SHOP] = cut
    with pytest.raises(RefusedAddress):
        look_up()


def test_an_answer_is_kept_as_long_as_it_says_and_a_minute_at_most(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = {"seconds": 0.0}
    monkeypatch.setattr(resolver, "_now", lambda: time.monotonic() + passed["seconds"])
    names.has("short.example.", PUBLIC, ttl=20)
    names.has("long.example.", PUBLIC, ttl=86_400)
    names.has("never.example.", PUBLIC, ttl=0)

    async def in_time() -> list[tuple[int, int, int]]:
        one, seen = Resolver(10), []
        for passed["seconds"] in (0, 0, 30, 90):
            for name in ("short.example.", "long.example.", "never.example."):
                assert await one.addresses(of(name)) == [PUBLIC]
            seen.append(tuple(names.asked[f"{name}.example.", "A"] for name in ("short", "long", "never")))
        return seen

    assert asyncio.run(in_time()) == [(1, 1, 1), (1, 1, 2), (2, 1, 3), (3, 2, 4)]


def test_what_is_kept_is_bounded_and_the_last_one_used_stays(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "MOST_KEPT", 2)
    for letter in "abc":
        names.has(f"{letter}.example.", PUBLIC, ttl=60)

    async def in_turn() -> None:
        one = Resolver(10)
        for letter in "abacab":
            await one.addresses(of(f"{letter}.example"))

    asyncio.run(in_turn())
    assert [names.asked[f"{letter}.example.", "A"] for letter in "abc"] == [1, 2, 1]


def test_that_there_is_nothing_is_not_kept(names: Names) -> None:
    async def twice() -> list[str]:
        one = Resolver(10)
        with pytest.raises(UnknownHost):
            await one.addresses(of(SHOP))
        names.has(SHOP, PUBLIC)
        return await one.addresses(of(SHOP))

    assert asyncio.run(twice()) == [PUBLIC]


def test_what_was_kept_in_the_sandbox_is_checked_again_outside_of_it(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    names.has(SHOP, "127.0.0.1", ttl=60)

    async def both_ways() -> None:
        one = Resolver(10)
        monkeypatch.setenv("SANDBOX", "1")
        settings.cache_clear()
        assert await one.addresses(of(SHOP)) == ["127.0.0.1"]
        monkeypatch.setenv("SANDBOX", "0")
        settings.cache_clear()
        with pytest.raises(RefusedAddress):
            await one.addresses(of(SHOP))

    asyncio.run(both_ways())


def holding(names: Names) -> Callable[[], None]:
    """Let questions for the shop wait until what is returned is called."""
    gate = threading.Event()

    def slow(question: dns.message.Message, tcp: bool) -> bytes:
        gate.wait(30)
        return reply(question, [(SHOP, 0, (PUBLIC,))])

    names.zones[SHOP] = slow
    return gate.set


def test_who_asks_at_the_same_time_shares_one_question(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "TRY_SECONDS", 20.0)  # nothing is asked twice on a busy machine
    release = holding(names)

    async def together() -> list[list[str]]:
        one = Resolver(20)
        waiting = [asyncio.create_task(one.addresses(of(SHOP))) for _ in range(50)]
        while not names.asked[SHOP, "A"]:
            await asyncio.sleep(0.01)
        release()
        return await asyncio.gather(*waiting)

    assert asyncio.run(together()) == [[PUBLIC]] * 50
    assert names.asked[SHOP, "A"] == 1


def test_a_slow_name_stops_nobody_and_is_given_up_on_when_its_caller_does(names: Names) -> None:
    release = holding(names)
    names.has("other.example.", OTHER)

    async def side_by_side() -> None:
        one = Resolver(20)
        slow = asyncio.create_task(one.addresses(of(SHOP)))
        patient = asyncio.create_task(one.addresses(of(SHOP)))
        assert await one.addresses(of("other.example")) == [OTHER]
        assert not slow.done()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        release()
        assert await patient == [PUBLIC]

    asyncio.run(side_by_side())


@pytest.mark.usefixtures("impatient")
def test_who_registers_an_address_does_not_wait_for_ever(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "REGISTRATION_SECONDS", 0.3)
    names.dead = True
    with pytest.raises(ResolverDown):
        check_destination("https://shop.example/")


@pytest.mark.parametrize(
    ("written", "servers"),
    [
        ("", ()),
        ("9.9.9.9", (("9.9.9.9", 53),)),
        ("9.9.9.9:5353, 127.0.0.1", (("9.9.9.9", 5_353), ("127.0.0.1", 53))),
        ("2620:fe::fe,[::1],[0::1]:54", (("2620:fe::fe", 53), ("::1", 53), ("::1", 54))),
    ],
)
def test_who_is_asked_is_a_setting(
    monkeypatch: pytest.MonkeyPatch, written: str, servers: tuple[tuple[str, int], ...]
) -> None:
    monkeypatch.setenv("DNS_SERVERS", written)
    assert read_settings().dns_servers == servers


@pytest.mark.parametrize(
    "written", ["dns.example", "9.9.9", "9.9.9.9:0", "9.9.9.9:65536", "9.9.9.9:", "[9.9.9.9", ":53"]
)
def test_who_cannot_be_asked_stops_the_process(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("DNS_SERVERS", written)
    with pytest.raises(SettingsError, match="DNS_SERVERS"):
        read_settings()
