"""Where a webhook may go: https to a public address; in the sandbox also plain http, and this machine itself.

The one rule kept here: an address is taken apart once, by one strict reader, and what is not in its one plain form is
refused. Two readers that disagree about a URL are how a request ends up where nobody checked. Nothing here asks
anybody: what a name resolves to is ``tasks.resolver``'s business, and every address it finds comes back to
``callable_address``.

The ranges are those of the IANA special-purpose registries, written down here because Python's own list changes with
its patch version. What is special is refused whole, also where the registry calls a corner of it reachable: nobody's
receiver lives there.
"""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import quote

from models.settings import settings
from protocol.errors import Invalid

LONGEST_URL = 2_048
LONGEST_HOST = 253

_OCTET = re.compile(r"0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5]")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_PORTS = {"https": 443, "http": 80}

SPECIAL_V4 = tuple(
    ipaddress.IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by a provider's customers
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's metadata service: in no registry, and the same in every network of theirs
        "169.254.0.0/16",  # link-local: the clouds' metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments, with DS-Lite, PCP and NAT64 discovery
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT relays
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and the broadcast address
    )
)

# Only this part of IPv6 is given out as global unicast. Loopback, v4-mapped, v4-compatible, NAT64 (64:ff9b::/96 and
# 64:ff9b:1::/48), discard, segment routing, unique local, link-local and multicast all lie outside.
GLOBAL_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")

LOOPBACK_V4 = ipaddress.IPv4Network("127.0.0.0/8")
LOOPBACK_V6 = ipaddress.IPv6Address("::1")

SPECIAL_V6 = tuple(
    ipaddress.IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, AMT, AS112, ORCHID, DRIP
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: any IPv4 address in disguise
        "2620:4f:8000::/48",  # AS112
        "3ffe::/16",  # the 6bone, handed back
        "3fff::/20",  # documentation
    )
)


class RefusedAddress(Invalid):
    """We do not call this address."""

    code = "refused_address"


class UnknownHost(Invalid):
    """The name does not resolve (now)."""

    code = "unknown_host"


class ResolverDown(Exception):
    """Our own DNS did not answer: that says nothing about the receiver."""


@dataclass(frozen=True)
class Destination:
    """A webhook address taken apart: what is connected to, named in SNI and Host, and asked for.

    ``host`` is lower-case ASCII or a canonical address (IPv6 without brackets); ``target`` is path and query.
    """

    scheme: str
    host: str
    port: int
    target: str


def destination(url: str) -> Destination:
    """Take a webhook address apart. Asks nobody; a host that is an address is checked here already.

    :raises RefusedAddress: not the plain form of an https address (in the sandbox: http too) that we would call.
    """
    if len(url) > LONGEST_URL or re.fullmatch(r"[!-~]+", url) is None:
        raise RefusedAddress(f"a webhook URL is at most {LONGEST_URL} printable ASCII characters")
    scheme, colon, rest = url.partition("://")
    scheme = scheme.lower()
    schemes = ("https", "http") if settings().sandbox else ("https",)
    authority = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    if not colon or scheme not in schemes or not authority:
        raise RefusedAddress(
            f"a webhook URL begins with {' or '.join(f'{scheme}://' for scheme in schemes)} and a host"
        )
    if "@" in authority or "#" in rest:
        raise RefusedAddress("a webhook URL has no user name, password or fragment")
    if "\\" in rest:
        raise RefusedAddress("a webhook URL has no backslash")
    host, port = _host_and_port(authority)
    host = _plain_host(host)
    if is_localhost(host) and not settings().sandbox:
        raise RefusedAddress("the webhook URL leads to this machine itself")
    if is_address(host) and not callable_address(host):
        raise RefusedAddress("the webhook URL leads to an address that is not public")
    # Signs that no URL may carry bare are written the way every client writes them.
    target = quote(rest[len(authority) :], safe="%/?:@!$&'()*+,;=-._~[]")
    return Destination(scheme, host, port or _PORTS[scheme], target if target.startswith("/") else "/" + target)


def callable_address(address: str) -> bool:
    """Whether we connect to this IP address: a public one; in the sandbox also this machine's loopback.

    What is no canonical address (a zone, a short or octal form) is not called either.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return (settings().sandbox and ip in LOOPBACK_V4) or not any(ip in block for block in SPECIAL_V4)
    if ip.scope_id is not None:
        return False
    if ip == LOOPBACK_V6:
        return settings().sandbox
    # ISATAP: the last 64 bits are [02]00:5efe and an IPv4 address, in whatever network.
    embedded = (int(ip) >> 32) & 0xFDFF_FFFF == 0x5EFE
    return ip in GLOBAL_UNICAST_V6 and not embedded and not any(ip in block for block in SPECIAL_V6)


def is_address(host: str) -> bool:
    """Whether the host of a destination is an address and not a name."""
    return ":" in host or host.rpartition(".")[2].isdigit()


def is_localhost(host: str) -> bool:
    """Whether a name means this machine by definition (RFC 6761, section 6.3)."""
    return host == "localhost" or host.endswith(".localhost")


def _host_and_port(authority: str) -> tuple[str, int | None]:
    host, colon, port = authority.partition(":")
    if authority.startswith("["):
        literal, bracket, after = authority.partition("]")
        host, (before, colon, port) = literal + bracket, after.partition(":")
        if before or not bracket:
            raise RefusedAddress("the host of a webhook URL is a DNS name in ASCII or an address")
    if not colon:
        return host, None
    if re.fullmatch(r"[1-9][0-9]{0,4}", port) is None or int(port) > 65_535:
        raise RefusedAddress("the port of a webhook URL is a number from 1 to 65535; an IPv6 address is in [brackets]")
    return host, int(port)


def _plain_host(host: str) -> str:
    if host.startswith("["):
        return _plain_v6(host[1:-1])
    # One trailing dot says that the name is whole, which every name here is taken to be.
    written, host = host, host.lower().removesuffix(".")
    labels = host.split(".")
    # What ends in a number is an IPv4 address to somebody: 2130706433, 0x7f.1, 017700000001, 127.1.
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]):
        if len(labels) != 4 or written != host or any(_OCTET.fullmatch(label) is None for label in labels):
            raise RefusedAddress("an IPv4 address in a webhook URL is four decimal numbers from 0 to 255")
        return host
    # Underscores are in no host name by the book, but in names that people do use.
    if len(host) > LONGEST_HOST or any(_LABEL.fullmatch(label) is None for label in labels):
        raise RefusedAddress("the host of a webhook URL is a DNS name in ASCII or an address")
    return host


def _plain_v6(literal: str) -> str:
    try:
        if "%" in literal:
            raise ValueError
        return ipaddress.IPv6Address(literal).compressed
    except ValueError:
        raise RefusedAddress("the address in the brackets of a webhook URL is not an IPv6 address") from None
