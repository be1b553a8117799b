"""Where a webhook may go: https to a public address; in the sandbox also plain http, and this machine itself.

The one rule kept here: an address is checked when it is registered and again at every attempt, because what a name
resolves to can change in between.
"""

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from models.settings import settings
from protocol.errors import Invalid

LONGEST_URL = 2_048


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


def check_url(url: str) -> None:
    """Check a webhook address without resolving it.

    :raises RefusedAddress: not an absolute http(s) address we would ever call.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise RefusedAddress("the webhook URL cannot be read") from None
    schemes = ("https", "http") if settings().sandbox else ("https",)
    if len(url) > LONGEST_URL or not url.isascii() or any(char <= " " for char in url):
        raise RefusedAddress(f"a webhook URL is at most {LONGEST_URL} printable ASCII characters")
    if parts.scheme not in schemes or not host or port == 0:
        raise RefusedAddress(
            f"a webhook URL begins with {' or '.join(f'{scheme}://' for scheme in schemes)} and a host"
        )
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise RefusedAddress("a webhook URL has no user name, password or fragment")


def check_destination(url: str) -> None:
    """Check an address and everything its host resolves to now.

    :raises RefusedAddress: any of it is an address we do not call.
    :raises UnknownHost: the host does not resolve.
    """
    check_url(url)
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UnknownHost("the webhook URL's host does not resolve") from None
    for *_, sockaddr in found:
        if not _callable(str(sockaddr[0])):
            raise RefusedAddress("the webhook URL leads to an address that is not public")


def _callable(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return (ip.is_global and not ip.is_multicast) or (settings().sandbox and ip.is_loopback)
