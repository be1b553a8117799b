"""From a webhook's host to the addresses it may be called at, with a deadline and without stopping anybody else.

The one rule kept here: whoever connects, connects to an address that came out of here, and nothing comes out of here
that was not checked. A name is asked once, every one of its addresses is looked at, and one that is not public
refuses the name whole.

Whose fault a silence is decides whether it costs an attempt. Where our resolver says that there is nothing, or that
it could not find out (SERVFAIL), that is the receiver's zone: ``UnknownHost``. Where no resolver answers anything,
it is ours: ``ResolverDown``.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass

import dns.asyncbackend
import dns.asyncresolver
import dns.exception
import dns.message
import dns.name
import dns.nameserver
import dns.rcode
import dns.rdatatype
import dns.resolver

from models.settings import settings
from tasks.addresses import (
    Destination,
    RefusedAddress,
    ResolverDown,
    UnknownHost,
    callable_address,
    destination,
    is_address,
    is_localhost,
)

TRY_SECONDS = 1.5
"""How long one server may take over one question before the next is asked, or the same again."""

NAME_SECONDS = 4.0
"""How long a name is asked for."""

ALIVE_SECONDS = 0.8
"""How long a resolver that did not answer about a name may take to show that it answers at all."""

REGISTRATION_SECONDS = 5.0
"""How long whoever registers an address waits for its name; longer than the two above together."""

LONGEST_KEPT_SECONDS = 60.0
"""How long an answer is kept at most; never longer than its own time to live."""

MOST_KEPT = 4_096
"""How many names are kept; the one not used for longest goes first."""

_LOOPBACK = ["127.0.0.1", "::1"]


@dataclass(frozen=True)
class _Answer:
    """What one question came to: addresses, or none and whether anybody said so."""

    addresses: tuple[str, ...] = ()
    answered: bool = True
    seconds: float = LONGEST_KEPT_SECONDS


class Resolver:
    """Looks names up for one event loop.

    :param seconds: how long a name is asked for; the caller's own deadline may cut that short at any time.
    """

    def __init__(self, seconds: float = NAME_SECONDS) -> None:
        self._seconds = seconds
        self._backend = dns.asyncbackend.get_backend("asyncio")
        self._servers: dns.asyncresolver.Resolver | None = None
        self._kept: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()
        self._asking: dict[str, asyncio.Task[tuple[str, ...] | None]] = {}

    async def addresses(self, to: Destination) -> list[str]:
        """The addresses a destination may be called at now, IPv4 first, each checked.

        :raises RefusedAddress: one of them is none that we call.
        :raises UnknownHost: the name has no address, or its zone does not say.
        :raises ResolverDown: no resolver of ours answers.
        """
        if is_address(to.host):
            found = [to.host]
        elif is_localhost(to.host):
            found = _LOOPBACK
        else:
            found = list(await self._look_up(to.host))
        # Every time anew, also what was kept: a check that is cheap is not worth remembering.
        if not all(callable_address(address) for address in found):
            raise RefusedAddress("the webhook URL leads to an address that is not public")
        return list(found)

    async def _look_up(self, name: str) -> tuple[str, ...]:
        # Never exists, and is asked of nobody (RFC 6761, section 6.4).
        if name.rpartition(".")[2] == "invalid":
            raise _unknown()
        until, found = self._kept.get(name, (0.0, ()))
        if _now() < until:
            self._kept.move_to_end(name)
            return found
        if (task := self._asking.get(name)) is None:
            task = self._asking[name] = asyncio.create_task(self._ask(name))
            task.add_done_callback(lambda _: self._asking.pop(name, None))
        # Shielded: who gives up waiting does not take the answer from the others. The task has its own deadline.
        answer = await asyncio.shield(task)
        if answer is None:
            raise ResolverDown("no DNS server answers")
        if not answer:
            raise _unknown()
        return answer

    async def _ask(self, name: str) -> tuple[str, ...] | None:
        """The addresses of a name, none if there are none, None if nobody answers. Never raises what nobody reads."""
        try:
            servers = self._servers = self._servers or _configured()
        except (dns.exception.DNSException, OSError, ValueError):
            return None
        both = await asyncio.gather(
            self._question(servers, name, dns.rdatatype.A), self._question(servers, name, dns.rdatatype.AAAA)
        )
        found = tuple(address for answer in both for address in answer.addresses)
        if found:
            self._keep(name, found, min(answer.seconds for answer in both))
        elif not any(answer.answered for answer in both) and not await self._alive(servers):
            self._servers = None  # the next one reads /etc/resolv.conf anew
            return None
        return found

    async def _question(self, servers: dns.asyncresolver.Resolver, name: str, kind: dns.rdatatype.RdataType) -> _Answer:
        try:
            # Absolute, so that no search domain of this machine is put behind it.
            whole = dns.name.from_text(name, dns.name.root)
            # dnspython counts by the wall clock; the outer limit holds when that is set back.
            async with asyncio.timeout(self._seconds + 0.1):
                answer = await servers.resolve(whole, kind, search=False, lifetime=self._seconds, backend=self._backend)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer, dns.resolver.YXDOMAIN):
            return _Answer()
        except (dns.resolver.NoNameservers, dns.resolver.LifetimeTimeout) as error:
            return _Answer(answered=_failed_over_the_name(error))
        except (dns.exception.DNSException, OSError):
            return _Answer(answered=False)
        addresses = tuple(record.address for record in answer)
        return _Answer(addresses, seconds=max(0.0, answer.expiration - time.time()))

    async def _alive(self, servers: dns.asyncresolver.Resolver) -> bool:
        """Whether any server answers anything. One that is stuck on a dead zone does: it knows where the root is."""
        try:
            await servers.resolve(
                dns.name.root, dns.rdatatype.NS, search=False, lifetime=ALIVE_SECONDS, backend=self._backend
            )
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return True
        except (dns.exception.DNSException, OSError):
            return False
        return True

    def _keep(self, name: str, found: tuple[str, ...], seconds: float) -> None:
        if seconds <= 0:
            return
        self._kept[name] = (_now() + min(seconds, LONGEST_KEPT_SECONDS), found)
        self._kept.move_to_end(name)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


def check_destination(url: str) -> None:
    """Check an address, and everything its host resolves to now: what whoever registers one waits for.

    Not for code that runs in an event loop.

    :raises RefusedAddress: any of it is an address we do not call.
    :raises UnknownHost: the host does not resolve.
    :raises ResolverDown: no resolver of ours answers within ``REGISTRATION_SECONDS``.
    """
    to = destination(url)

    async def check() -> None:
        try:
            async with asyncio.timeout(REGISTRATION_SECONDS):
                await Resolver().addresses(to)
        except TimeoutError:
            raise ResolverDown("no DNS server answers in time") from None

    asyncio.run(check())


def _configured() -> dns.asyncresolver.Resolver:
    chosen = settings().dns_servers
    servers = dns.asyncresolver.Resolver(configure=not chosen)
    if chosen:
        servers.nameservers = [dns.nameserver.Do53Nameserver(address, port) for address, port in chosen]
    servers.timeout = TRY_SECONDS
    return servers


def _failed_over_the_name(error: dns.resolver.NoNameservers | dns.resolver.LifetimeTimeout) -> bool:
    """Whether a server answered that it cannot find out. One that refuses us (REFUSED) is our own fault."""
    responses = (response for *_, response in error.kwargs["errors"] if response is not None)
    return any(response.rcode() in (dns.rcode.SERVFAIL, dns.rcode.NOERROR) for response in responses)


def _unknown() -> UnknownHost:
    return UnknownHost("the webhook URL's host does not resolve")


def _now() -> float:
    return time.monotonic()
