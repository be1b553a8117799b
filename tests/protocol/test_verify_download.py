"""The verifier over HTTP, against a tiny server on the loopback."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from protocol.verify import main, verify
from protocol.verify_sources import LONGEST_WAIT_SECONDS, TRIES, Coordinator
from tests.protocol.rounds import Round, make_failed_round, make_round

Answer = tuple[int, dict[str, str], bytes]


class Service:
    """Answers a path with what it was given for it: the answers in turn, the last one for ever."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.asked.append(self.path)
                waiting = service.answers.get(self.path, [(404, {}, b'{"error":"not found"}')])
                status, headers, body = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def publish(self, *rounds: Round) -> None:
        for made in rounds:
            base = f"/api/public/rounds/{made.bundle['roundId']}"
            self.answers[f"{base}/proof"] = [(200, {}, json.dumps(made.bundle).encode())]
            for operator_id, lines in made.lines.items():
                body = gzip.compress(b"".join(line + b"\n" for line in lines))
                headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
                self.answers[f"{base}/tickets/{operator_id}"] = [(200, headers, body)]


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    thread = threading.Thread(target=service.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        service.server.shutdown()
        service.server.server_close()
        thread.join()


def _run(url: str, round_id: int) -> tuple[int, list[str], str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([url, "--round", str(round_id)])
    return code, out.getvalue().splitlines(), err.getvalue()


def test_a_round_is_downloaded_and_verified(service: Service) -> None:
    service.publish(make_round())
    code, lines, err = _run(service.url + "/", 1)
    assert (code, lines[-1], err) == (0, "verified", "")


def test_operator_ids_are_escaped_in_the_address(service: Service) -> None:
    made = make_round(tickets={"op:A.1": 3}, nonces=())
    service.publish(made)
    service.answers["/api/public/rounds/1/tickets/op%3AA.1"] = service.answers.pop(
        "/api/public/rounds/1/tickets/op:A.1"
    )
    assert _run(service.url, 1)[0] == 0


def test_it_walks_back_over_failed_rounds_to_the_last_settled_one(service: Service) -> None:
    one = make_round(1)
    two = make_round(2, previous=one)
    three = make_failed_round(3, two)
    four = make_round(4, previous=Round(three.bundle | {"ledger": two.bundle["ledger"]}))
    service.publish(one, two, three, four)
    code, lines, _ = _run(service.url, 4)
    behind = "– round 2, before round 3 that failed unsealed: taken as stated"
    assert (code, lines[-4:]) == (0, [behind, "✓ previousRoundHash", "✓ pool0 and reserve0", "verified"])
    proofs = [path for path in service.asked if path.endswith("/proof")]
    assert proofs == [f"/api/public/rounds/{round_id}/proof" for round_id in (4, 3, 2)]


def test_a_credit_is_checked_against_the_claims_page_by_page(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protocol.verify_sources.CLAIMS_PAGE", 2)
    one = next(made for made in (make_round(1, salt=salt) for salt in range(60)) if made.bundle["winnerCounts"][5] == 4)
    amount = int(one.bundle["ledger"]["subPaid"])
    two = make_round(2, previous=one, expired={1: amount})
    service.publish(one, two)
    counts = one.bundle["winnerCounts"][1:]

    def prize(place: int, claimed: bool) -> dict[str, Any]:
        return {"operatorId": "opA", "ticketId": f"t-{place:06}", "claimed": claimed}

    def page(offset: int, claimed: int = 0) -> Answer:
        left = [max(0, min(2, count - offset)) for count in counts]
        tiers = [
            {"tier": tier, "winners": [prize(offset + place, place < claimed) for place in range(shown)]}
            for tier, shown in enumerate(left, start=1)
        ]
        return (200, {}, json.dumps({"tiers": tiers}).encode())

    def address(offset: int) -> str:
        return f"/api/public/sub-prizes/1?limit=2&offset={offset}"

    service.answers |= {address(offset): [page(offset)] for offset in range(0, max(counts) + 2, 2)}
    code, lines, _ = _run(service.url, 2)
    assert (code, lines[-2:]) == (0, ["✓ credit of round 1 to the reserve", "verified"])
    assert address(4) in service.asked
    service.answers[address(0)] = [page(0, claimed=1)]
    code, lines, _ = _run(service.url, 2)
    assert (code, lines[-1].startswith("not verified: credit of round 1: expected")) == (1, True)
    service.answers |= {address(0): [page(0)], address(2): [page(0)]}
    code, lines, _ = _run(service.url, 2)
    assert (code, lines[-1]) == (1, "not verified: sub-prizes of round 1: 't-000000' stands twice or astray")
    service.answers[address(0)] = [(200, {}, b'{"tiers": "none"}')]
    code, lines, _ = _run(service.url, 2)
    assert (code, lines[-1]) == (1, "not verified: sub-prizes: not a list of five tiers")


def test_an_earlier_round_that_was_changed_or_taken_away_is_found(service: Service) -> None:
    one = make_round(1)
    service.publish(one, make_round(2, previous=one))
    service.publish(make_round(1, salt=1))
    code, lines, _ = _run(service.url, 2)
    assert (code, lines[-1][:38]) == (1, "not verified: previousRoundHash: expec")
    del service.answers["/api/public/rounds/1/proof"]
    assert _run(service.url, 2)[1][-1] == "not verified: round 1: its proof is not published"


def test_the_proof_of_another_round_is_found(service: Service) -> None:
    service.publish(make_round(2))
    service.answers["/api/public/rounds/1/proof"] = service.answers["/api/public/rounds/2/proof"]
    assert _run(service.url, 1)[:2] == (1, ["not verified: roundId: expected 1, found 2"])


def test_tickets_not_published_are_found(service: Service) -> None:
    service.publish(make_round())
    del service.answers["/api/public/rounds/1/tickets/opB"]
    code, lines, _ = _run(service.url, 1)
    assert code == 1
    assert lines[-1].startswith("not verified: tickets of opB: ")
    assert lines[-1].endswith("answers 404 (not found)")


def test_a_download_that_ends_early_is_found(service: Service) -> None:
    service.publish(make_round())
    path = "/api/public/rounds/1/tickets/opA"
    _, headers, body = service.answers[path][0]
    service.answers[path] = [(200, headers, body[:-20])]
    code, lines, _ = _run(service.url, 1)
    assert code == 1
    assert "tickets of opA: the compressed data is damaged or ends early" in lines[-1]


@pytest.mark.parametrize("body", [b"<html>hello</html>", b'{"v":1,"v":1}', b"\xff"])
def test_an_answer_that_is_no_bundle_is_not_verified(service: Service, body: bytes) -> None:
    service.answers["/api/public/rounds/1/proof"] = [(200, {}, body)]
    code, lines, _ = _run(service.url, 1)
    assert code == 1
    assert lines[-1].startswith("not verified: bundle of round 1: ")


def test_a_round_that_is_not_there_is_said_in_one_line(service: Service) -> None:
    code, lines, err = _run(service.url, 1)
    assert (code, lines) == (2, [])
    assert err == f"{service.url}/api/public/rounds/1/proof answers 404 (not found)\n"


@pytest.mark.parametrize("status", [401, 500])
def test_a_service_that_refuses_is_said_in_one_line(service: Service, status: int) -> None:
    service.answers["/api/public/rounds/1/proof"] = [(status, {}, b"{}")]
    code, lines, err = _run(service.url, 1)
    assert (code, lines, err.count("\n")) == (2, [], 1)
    assert err.endswith(f"answers {status}\n")


def test_nobody_answering_is_said_in_one_line() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        code, lines, err = _run(url, 1)
    assert (code, lines, err.count("\n")) == (2, [], 1)
    assert err.startswith(f"cannot read {url}/api/public/rounds/1/proof: ")


@pytest.mark.parametrize("url", ["http://", "http://[", "http://a b", "http://127.0.0.1:99999"])
def test_an_address_that_is_none_is_said_in_one_line(url: str) -> None:
    code, lines, err = _run(url, 1)
    assert (code, lines, err.count("\n")) == (2, [], 1)


def _verify(service: Service, waits: list[float]) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    code = verify(Coordinator(service.url, 1, sleep=waits.append), out, err)
    return code, err.getvalue()


def test_it_waits_as_long_as_the_service_asks_and_goes_on(service: Service) -> None:
    service.publish(make_round())
    path = "/api/public/rounds/1/proof"
    busy: list[Answer] = [
        (429, {"Retry-After": "7"}, b"{}"),
        (503, {}, b"{}"),
        (503, {"Retry-After": "999999"}, b"{}"),
        (429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, b"{}"),
        (429, {"Retry-After": "9" * 5_000}, b"{}"),
    ]
    service.answers[path] = [*busy, *service.answers[path]]
    waits: list[float] = []
    assert _verify(service, waits) == (0, "")
    assert waits == [7, 4, LONGEST_WAIT_SECONDS, 16, LONGEST_WAIT_SECONDS]


def test_it_does_not_wait_for_ever(service: Service) -> None:
    service.answers["/api/public/rounds/1/proof"] = [(429, {"Retry-After": "1"}, b"{}")]
    waits: list[float] = []
    code, err = _verify(service, waits)
    assert code == 2
    assert err.endswith("answers 429\n")
    assert len(waits) == TRIES - 1
    assert len(service.asked) == TRIES
