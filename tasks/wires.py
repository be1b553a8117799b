"""A wire: bytes to and from one checked address, plain or through TLS, for the HTTP client of the webhooks.

The one rule kept here: what a receiver sends costs us a bounded amount of memory: beyond READ_AHEAD it waits in the
kernel until somebody reads.

TLS is spoken through memory buffers instead of asyncio's own TLS transport, which keeps 256 KiB for every connection,
waits for a graceful end that a hostile receiver never grants, and cannot say when our bytes are out.
"""

from __future__ import annotations

import asyncio
import os
import ssl

import certifi

READ_AHEAD = 64 * 1024
SLICE = 16 * 1024
TLS_TALK = 256 * 1024
"""What TLS may send, or make us reply, that is none of an answer: tickets and new keys could go on without end."""


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
    """One connection: ``dial`` makes it, ``secure`` puts TLS on it, and whoever holds it calls ``abort`` in the end."""

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
        self._talk = self._replied = 0

    async def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Put TLS on the wire: the receiver must prove that it is ``host`` (a name, or an address).

        :raises Failed, ssl.SSLError: it does not, or not in TLS.
        """
        try:
            self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host.removesuffix("."))
        except ValueError:
            raise Failed("tls", "no certificate can be for this host name") from None
        self._incoming.write(bytes(self._received))
        self._received.clear()
        self._advance()
        while not self._shaken:
            if isinstance(self._failure, ssl.SSLError | Failed):
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
            before = len(self._received)
            self._incoming.write(data)
            self._advance()
            self._talk = self._talk + len(data) if len(self._received) == before else 0
            if max(self._talk, self._replied) > TLS_TALK:
                self._fail(Failed("tls", "TLS goes on without an answer"))
                self.abort()
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
        reply = self._outgoing.read()
        self._replied += len(reply)
        self._push(reply)
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
