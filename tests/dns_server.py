"""A DNS server on loopback, over UDP and TCP, that answers as told: truthfully, evasively, wrongly or not at all."""

import contextlib
import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

Says = Callable[[dns.message.Message, bool], bytes | None]
"""What is said to a question (and whether it came over TCP): the bytes of an answer, or silence."""


@dataclass
class Names:
    """What the server knows: for each name (with its last dot) how questions for it are met.

    A name it was not told of does not exist.
    """

    address: str = ""
    zones: dict[str, Says] = field(default_factory=dict)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    dead: bool = False
    released: threading.Event = field(default_factory=threading.Event)

    def has(self, name: str, *addresses: str, ttl: int = 0) -> None:
        """The name has these addresses."""
        self.zones[name] = lambda question, _: reply(question, [(name, ttl, addresses)])

    def leads(self, name: str, canonical: str, *addresses: str) -> None:
        """The name is another name for one that has these addresses."""
        alias = dns.rrset.from_text(name, 0, "IN", "CNAME", canonical)
        self.zones[name] = lambda question, _: reply(question, [(canonical, 0, addresses)], alias)

    def fails(self, name: str, rcode: dns.rcode.Rcode) -> None:
        """Questions for the name are answered with an error."""
        self.zones[name] = lambda question, _: reply(question, rcode=rcode)

    def ignores(self, name: str) -> None:
        """Questions for the name are not answered, others are."""
        self.zones[name] = lambda question, _: None

    def says(self, question: dns.message.Message, tcp: bool) -> bytes | None:
        """What is answered to this question."""
        name, kind = str(question.question[0].name), dns.rdatatype.to_text(question.question[0].rdtype)
        self.asked[name, kind] += 1
        if self.dead:
            return None
        if name in self.zones:
            return self.zones[name](question, tcp)
        return reply(question) if name == "." else reply(question, rcode=dns.rcode.NXDOMAIN)


def reply(
    question: dns.message.Message,
    known: list[tuple[str, int, tuple[str, ...]]] | None = None,
    *before: dns.rrset.RRset,
    rcode: dns.rcode.Rcode = dns.rcode.NOERROR,
    cut: bool = False,
) -> bytes:
    """An answer with those of the known addresses (name, TTL, addresses) that are of the kind asked for."""
    answer = dns.message.make_response(question, recursion_available=True)
    answer.set_rcode(rcode)
    answer.answer.extend(before)
    kind = question.question[0].rdtype
    for name, ttl, addresses in known or ():
        fitting = [one for one in addresses if (":" in one) == (kind == dns.rdatatype.AAAA)]
        if fitting and kind in (dns.rdatatype.A, dns.rdatatype.AAAA):
            answer.answer.append(dns.rrset.from_text(name, ttl, "IN", dns.rdatatype.to_text(kind), *fitting))
    if cut:
        answer.flags |= dns.flags.TC
    return answer.to_wire()


@contextlib.contextmanager
def naming() -> Iterator[Names]:
    """A DNS server while the context lasts; ``address`` is what DNS_SERVERS wants."""
    names = Names()

    class Datagram(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            data, sock = self.request
            said = _said(names, data, tcp=False)
            if said is not None:
                # Whoever asked may have stopped listening.
                with contextlib.suppress(OSError):
                    sock.sendto(said, self.client_address)

    class Stream(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            said = _said(names, self.rfile.read(int.from_bytes(self.rfile.read(2))), tcp=True)
            if said is not None:
                with contextlib.suppress(OSError):
                    self.wfile.write(len(said).to_bytes(2) + said)

    # A port that is free for both; another process may take the second one between.
    while True:
        over_udp = _Datagrams(("127.0.0.1", 0), Datagram)
        try:
            over_tcp = _Streams(over_udp.server_address, Stream)
            break
        except OSError:
            over_udp.server_close()
    names.address = f"127.0.0.1:{over_udp.server_address[1]}"
    threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in (over_udp, over_tcp)]
    for thread in threads:
        thread.start()
    try:
        yield names
    finally:
        names.released.set()
        for server, thread in zip((over_udp, over_tcp), threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()


def _said(names: Names, data: bytes, *, tcp: bool) -> bytes | None:
    try:
        question = dns.message.from_wire(data)
    except dns.exception.DNSException:
        return None
    return names.says(question, tcp) if question.question else None


class _Datagrams(socketserver.ThreadingUDPServer):
    daemon_threads = True


class _Streams(socketserver.ThreadingTCPServer):
    daemon_threads = True
    address_family = socket.AF_INET
    # Of the one at the same port over UDP nobody knows.
    allow_reuse_address = True
