"""A wire: bytes to and from one checked address, plain or through TLS, for the HTTP client of the webhooks.

The one rule kept here: we connect to addresses and never to names, and what a receiver sends costs us a bounded
amount of memory: beyond READ_AHEAD it waits in the kernel until somebody reads.

TLS is spoken through memory buffers instead of asyncio's own TLS transport, which keeps 256 KiB for every connection,
waits for a graceful end that a hostile receiver never grants, and cannot say when our bytes are out.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Sequence

import certifi

READ_AHEAD = 64 * 1024
SLICE = 16 * 1024
ADDRESS_SECONDS = 5.0
"""An address that does not answer has this long before the next one is tried; the last has all that is left."""

# We have no sockets, memory or network left: every receiver would look dead now.
_OURS = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ENETDOWN}
# No port or route left if it happens to IPv4. For IPv6 it may only mean that we have none of it, for ever, so a
# receiver that has nothing else would be called without end.
_OURS_ON_IPV4 = {errno.EADDRNOTAVAIL, errno.ENETUNREACH}


class Failed(Exception):
    """The call cannot go on: ``error_class`` is one of ERROR_CLASSES, ``detail`` one short line without secrets.

    ``ours`` says that the receiver has no part in it.
    """

    def __init__(self, error_class: str, detail: str, *, ours: bool = False) -> None:
        super().__init__(detail)
        self.error_class, self.detail, self.ours = error_class, detail, ours


def trust(ca_file: str | None) -> ssl.SSLContext:
    """Whom we believe: certifi's authorities, or those of a PEM file instead. TLS 1.2 or newer, names checked.

    :raises OSError: the file is missing or holds no certificates.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks certificates and names, and asks no environment
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(cafile=ca_file or certifi.where())
    return context


class Wire(asyncio.Protocol):
    """One connection. ``dial`` makes it, ``secure`` puts TLS on it; whoever holds it calls ``abort`` in the end."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._failure: Exception | None = None
        self._ended = False
        self._unsent = False
        self._resting = False
        self._reading_paused = False
        self._change: asyncio.Future[None] | None = None
        self._tls: ssl.SSLObject | None = None
        self._shaken = False
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()

    async def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Put TLS on the wire: the receiver must prove that it is ``host`` (a name, or an address).

        :raises Failed: ``tls``, with what is wrong.
        """
        try:
            self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host.removesuffix("."))
        except ValueError:
            raise Failed("tls", "no certificate can be for this host name") from None
        self._incoming.write(bytes(self._received))
        self._received.clear()
        self._advance()
        while not self._shaken:
            if isinstance(self._failure, ssl.SSLError):
                raise self._failure
            if self._ended:
                raise Failed("tls", "the receiver hung up in the TLS handshake")
            await self._changed()

    def write(self, data: bytes) -> None:
        """Send; ``sent`` says when it is out."""
        if self._tls is None:
            self._push(data)
            return
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._tls.write(rest) :]
        except ssl.SSLError as error:
            self._fail(error)
        self._push(self._outgoing.read())

    async def sent(self) -> None:
        """Until everything written is with the kernel, or the receiver answers or hangs up before that."""
        while self._unsent and not self._received and not self._ended:
            await self._changed()

    async def read(self, most: int = SLICE) -> bytes:
        """What came, at most so many bytes; nothing when the receiver has ended.

        :raises OSError: the connection broke (ConnectionError, ssl.SSLError among others).
        """
        while not self._received:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return b""
            await self._changed()
        data = bytes(self._received[:most])
        del self._received[:most]
        if self._reading_paused and len(self._received) < READ_AHEAD and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    def rest(self) -> bool:
        """Lie idle, and hang up when anything comes meanwhile; False if the wire is in no state for it."""
        if self._ended or self._received or self._unsent:
            return False
        self._resting = True
        return True

    def wake(self) -> bool:
        """Be used again; False if the receiver hung up or spoke out of turn meanwhile."""
        self._resting = False
        return not self._ended

    @property
    def ended(self) -> bool:
        """Whether one of us has hung up."""
        return self._ended

    def abort(self) -> None:
        """Hang up at once: nobody waits for a graceful end."""
        self._ended = True
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=0)  # paused means: something of ours is not with the kernel yet
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._tls is None:
            self._received += data
        else:
            self._incoming.write(data)
            self._advance()
        if self._resting and self._received:
            self.abort()
        if len(self._received) >= READ_AHEAD and self._transport is not None and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._failure = self._failure or exc
        self._wake()

    def pause_writing(self) -> None:
        self._unsent = True

    def resume_writing(self) -> None:
        self._unsent = False
        self._wake()

    def _advance(self) -> None:
        """Let TLS work on what came."""
        assert self._tls is not None
        try:
            if not self._shaken:
                self._tls.do_handshake()
                self._shaken = True
            while chunk := self._tls.read(SLICE):
                self._received += chunk
            self._ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._ended = True
        except ssl.SSLError as error:
            self._fail(error)
        self._push(self._outgoing.read())
        if self._resting and self._ended:
            self.abort()

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._ended = True

    def _push(self, data: bytes) -> None:
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _wake(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    async def _changed(self) -> None:
        self._change = self._loop.create_future()
        try:
            await self._change
        finally:
            self._change = None


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


def reason(error: BaseException) -> str:
    """What went wrong, in one short line that holds nothing of what either side sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message or "the certificate is not valid"
    if isinstance(error, ssl.SSLError):
        if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
            return "the receiver does not speak TLS on this port"
        return (error.reason or "TLS failed").lower().replace("_", " ")
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return type(error).__name__


def ours(error: OSError, address: str | None) -> bool:
    """Whether a failure of the network says nothing about the receiver at this address."""
    return error.errno in _OURS or (error.errno in _OURS_ON_IPV4 and ":" not in (address or ""))
