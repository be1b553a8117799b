"""A small SMTP server on loopback: takes mails, or refuses them as it is told; with or without TLS."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class MailServer:
    """What it heard, and what it says: ``to_recipients`` is its answer to RCPT TO."""

    port: int = 0
    mails: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    to_recipients: str = "250 fine"


@contextlib.contextmanager
def mail_server(starttls: ssl.SSLContext | None = None, tls: ssl.SSLContext | None = None) -> Iterator[MailServer]:
    """A server while the context lasts: offering STARTTLS, speaking TLS from the first byte, or neither."""
    state = MailServer()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                if tls is not None:
                    self.encrypt(tls, b"220 hello")
                else:
                    self.talk(self.request, b"220 hello", "STARTTLS" if starttls is not None else "OK")

        def encrypt(self, context: ssl.SSLContext, greeting: bytes = b"") -> None:
            # Not with a handshake at once: who fails there leaves a socket that nobody closes.
            with context.wrap_socket(self.request, server_side=True, do_handshake_on_connect=False) as line:
                line.do_handshake()
                self.talk(line, greeting, "OK")

        def talk(self, line: socket.socket, greeting: bytes, offer: str) -> None:
            if greeting:
                line.sendall(greeting + b"\r\n")
            with line.makefile("rb") as lines:
                while command := lines.readline().decode().strip():
                    state.heard.append(command)
                    verb = command.split()[0].upper()
                    if verb == "STARTTLS" and starttls is not None:
                        line.sendall(b"220 go\r\n")
                        self.encrypt(starttls)
                        return
                    answers = {
                        "EHLO": f"250-hello\r\n250-AUTH PLAIN\r\n250 {offer}",
                        "AUTH": "235 in",
                        "RCPT": state.to_recipients,
                        "DATA": "354 go on",
                        "QUIT": "221 bye",
                    }
                    line.sendall(f"{answers.get(verb, '250 fine')}\r\n".encode())
                    if verb == "DATA":
                        state.mails.append(b"".join(iter(lines.readline, b".\r\n")).decode())
                        line.sendall(b"250 taken\r\n")

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    state.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
