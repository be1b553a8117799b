"""A player's own tickets: listing them, what they won, and proving that one was in the draw."""

from __future__ import annotations

from flask.testing import FlaskClient
from sqlalchemy import select, update

from player.models.rounds import Round
from player.models.session import transaction
from player.models.tickets import Ticket
from protocol.merkle import Tree, leaf_hash, read_path, verify_inclusion
from protocol.tickets import Ticket as ProtocolTicket
from tests.player.factories import TICKET_PRICE, a_player, a_prize, a_sold_ticket, an_open_round, close_sales

URL = "/api/player/tickets"


def test_a_players_tickets_are_listed_newest_first_and_nobody_elses(client: FlaskClient) -> None:
    an_open_round(7)
    an_open_round(8)
    ana, eva = a_player(balance=9 * TICKET_PRICE), a_player(balance=TICKET_PRICE)
    mine = [a_sold_ticket(ana, 7), a_sold_ticket(ana, 7), a_sold_ticket(ana, 8)]
    hers = a_sold_ticket(eva, 7)
    with transaction() as session:
        session.execute(update(Ticket).where(Ticket.id == mine[0]).values(status="lost"))

    def ids(query: str) -> list[int]:
        answer = client.get(f"{URL}{query}", headers=ana.headers).json
        assert answer["count"] == len(answer["tickets"])
        return [ticket["id"] for ticket in answer["tickets"]]

    assert ids("") == mine[::-1]
    assert ids("?status=lost") == mine[:1]
    assert ids("?roundId=8") == mine[2:]
    assert ids("?limit=1&offset=1") == [mine[1]]
    assert ids("?status=refunded") == []
    for query in ("?status=open", "?limit=201", "?page=2", "?roundId=x"):
        assert client.get(f"{URL}{query}", headers=ana.headers).status_code == 422
    for path in (f"{URL}/{hers}", f"{URL}/{hers}/proof", f"{URL}/{2**70}", f"{URL}/x"):
        assert client.get(path, headers=ana.headers).json["code"] == "not_found"
    assert client.get(URL).status_code == 401


def test_a_ticket_shows_its_prizes_once_they_are_certain(client: FlaskClient) -> None:
    an_open_round()
    ana = a_player(balance=9 * TICKET_PRICE)
    certain, open_ = a_prize(ana, 5_000_000), a_prize(ana, None)
    first, second = client.get(URL, headers=ana.headers).json["tickets"][::-1]
    prizes = client.get(f"{URL}/{first['id']}", headers=ana.headers).json["prizes"]
    assert [(prize["id"], prize["amount"], prize["ticketId"]) for prize in prizes] == [
        (certain, "5000000", first["ticketId"])
    ]
    assert client.get(f"{URL}/{second['id']}", headers=ana.headers).json["prizes"] == []
    assert client.get(f"/api/player/prizes/{open_}", headers=ana.headers).status_code == 404


def test_a_sealed_ticket_is_proved_by_the_published_check(client: FlaskClient) -> None:
    an_open_round()
    ana = a_player(balance=9 * TICKET_PRICE)
    ids = [a_sold_ticket(ana, bonus5=number) for number in range(1, 6)]
    refused = client.get(f"{URL}/{ids[2]}/proof", headers=ana.headers)
    assert (refused.status_code, refused.json["code"]) == (409, "not_sealed")

    close_sales()
    manifest = '{"operatorId":"op-1","roundId":7}'
    with transaction() as session:
        rows = sorted(session.scalars(select(Ticket)).all(), key=lambda row: row.ticket_id)
        tree = Tree(leaf_hash(_line(row)) for row in rows)
        for index, row in enumerate(rows):
            row.leaf_index, row.proof = index, b"".join(tree.inclusion_proof(index))
        values = {"manifest": manifest, "tickets_root": tree.root.hex(), "ticket_count": len(rows)}
        session.execute(update(Round).values(**values))
    shown = client.get(f"{URL}/{ids[2]}/proof", headers=ana.headers).json
    assert set(shown) == {
        "roundId", "operatorId", "ticketId", "line", "leafHash", "leafIndex", "treeSize", "auditPath", "ticketsRoot",
        "fullManifestHash", "proofBundleUrl",
    }  # fmt: skip
    proof = read_path(shown["auditPath"])
    leaf = leaf_hash(shown["line"].encode())
    assert leaf.hex() == shown["leafHash"]
    assert '"bonus5":3' in shown["line"]
    root = bytes.fromhex(shown["ticketsRoot"])
    assert verify_inclusion(leaf, shown["leafIndex"], shown["treeSize"], proof, root)
    assert shown["proofBundleUrl"] == "http://127.0.0.1:9/api/public/rounds/7/proof"


def _line(row: Ticket) -> bytes:
    numbers = (row.jackpot_number, row.bonus1, row.bonus2, row.bonus3, row.bonus4, row.bonus5)
    return ProtocolTicket(row.ticket_id, numbers, row.is_quick_pick).line(7, "op-1")
