"""Connecting to the addresses that a name was resolved to.

The one rule kept here: we connect to exactly the addresses we are given, in turn, and never to a name: what was checked
is what is called.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from collections.abc import Callable, Sequence

from tasks.wires import Failed, Wire, reason

ADDRESS_SECONDS = 5.0
"""An address that does not answer has this long before the next one is tried; the last has all that is left."""

# We have no sockets, memory or network left: every receiver would look dead now.
_OURS = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ENETDOWN}
# No port or route left if it happens to IPv4. For IPv6 it may only mean that we have none of it, for ever, so a
# receiver that has nothing else would be called without end.
_OURS_ON_IPV4 = {errno.EADDRNOTAVAIL, errno.ENETUNREACH}


async def dial(addresses: Sequence[str], port: int, deadline: float, trying: Callable[[str], None]) -> Wire:
    """A plain wire to the first of these addresses that takes it, tried in turn; ``trying`` is told each.

    ``deadline`` (on the loop's clock) is what the addresses share; cutting there is the caller's part.

    :raises Failed: ``connect``, when none took it.
    """
    loop = asyncio.get_running_loop()
    failure = Failed("dns", "the name has no address")
    for index, address in enumerate(addresses):
        trying(address)
        remaining = len(addresses) - index
        share = min(ADDRESS_SECONDS, (deadline - loop.time()) / remaining) if remaining > 1 else None
        try:
            async with asyncio.timeout(share) as limit:
                return await _connect(address, port)
        except OSError as error:
            slow = limit.expired()
            found = Failed("connect", "no answer to connecting" if slow else reason(error), ours=ours(error, address))
        # What the receiver did tells more than what we could not do.
        if index == 0 or failure.ours or not found.ours:
            failure = found
    raise failure


async def _connect(address: str, port: int) -> Wire:
    # asyncio would look up a name, or an address with a zone.
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        raise Failed("refused_address", "what the name resolved to is not an address") from None
    if getattr(ip, "scope_id", None):
        raise Failed("refused_address", "an address with a zone is not public")
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    loop = asyncio.get_running_loop()
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(sock, (str(ip), port))
        _, wire = await loop.create_connection(lambda: Wire(address), sock=sock)
    except BaseException:
        sock.close()
        raise
    return wire


def ours(error: OSError, address: str | None) -> bool:
    """Whether a failure of the network says nothing about the receiver at this address."""
    return error.errno in _OURS or (error.errno in _OURS_ON_IPV4 and ":" not in (address or ""))
