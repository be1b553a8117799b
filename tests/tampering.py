"""What somebody with the database's password and all triggers off could do to a drawn round, round 1, between the two
tabulations; and what the second one calls it. It is always op_b that suffers.
"""

from __future__ import annotations

from sqlalchemy import text

from models.session import transaction

UNGUARDED = "SET LOCAL session_replication_role = replica"

_MISSING_WINS = """
    FROM tickets_r1 t, generate_series(0, 5) other(tier) WHERE t.operator_id = 'op_b' AND NOT EXISTS (
        SELECT FROM winners w WHERE (w.operator_id, w.ticket_id, w.tier) = (t.operator_id, t.ticket_id, other.tier))
"""
_A_WIN = "ctid = (SELECT min(ctid) FROM winners WHERE operator_id = 'op_b')"
_A_TICKET = "operator_id = 'op_b' AND ticket_id = 't-7'"
_PIECES = "UPDATE archive_pieces SET content = {} WHERE key LIKE '%/op\\_b/%'"

A_FLIPPED_BYTE = (
    "UPDATE archive_pieces SET content = set_byte(content, 99, get_byte(content, 99) # 1) WHERE key LIKE '{}'"
)
"""Of the files whose keys are like this; underlines in keys want a backslash."""

CHANGED_ROW = {"rows_not_as_archived"}
OTHER_WINNERS = {"winners_differ"}

PLANTED: dict[str, tuple[str, set[str]]] = {
    "a winner added": (
        f"INSERT INTO winners (round_id, tier, operator_id, ticket_id, prize_usdc) "
        f"SELECT 1, other.tier, 'op_b', t.ticket_id, 1 {_MISSING_WINS} LIMIT 1",
        OTHER_WINNERS,
    ),
    "a winner that never bought a ticket": (
        "INSERT INTO winners (round_id, tier, operator_id, ticket_id) VALUES (1, 0, 'op_b', 'nobody')",
        OTHER_WINNERS,
    ),
    "a winner removed": (f"DELETE FROM winners WHERE {_A_WIN}", OTHER_WINNERS),
    "the tier of a win changed": (
        "UPDATE winners SET tier = free.tier FROM (SELECT t.ticket_id, other.tier "
        f"{_MISSING_WINS} AND (t.operator_id, t.ticket_id) IN (SELECT operator_id, ticket_id FROM winners) "
        "ORDER BY 1, 2 LIMIT 1) free WHERE ctid = "
        "(SELECT min(ctid) FROM winners w WHERE w.operator_id = 'op_b' AND w.ticket_id = free.ticket_id)",
        OTHER_WINNERS,
    ),
    "a win given to another ticket": (
        f"UPDATE winners SET ticket_id = loser.ticket_id FROM (SELECT t.ticket_id {_MISSING_WINS} AND other.tier = "
        f"(SELECT tier FROM winners WHERE {_A_WIN}) LIMIT 1) loser WHERE {_A_WIN}",
        OTHER_WINNERS,
    ),
    "a number of a ticket changed": (f"UPDATE tickets_r1 SET bonus1 = bonus1 % 4 + 1 WHERE {_A_TICKET}", CHANGED_ROW),
    "who picked a ticket changed": (
        f"UPDATE tickets_r1 SET is_quick_pick = NOT is_quick_pick WHERE {_A_TICKET}",
        CHANGED_ROW,
    ),
    "a ticket renamed": (f"UPDATE tickets_r1 SET ticket_id = 't-7a' WHERE {_A_TICKET}", CHANGED_ROW),
    "a ticket removed": (f"DELETE FROM tickets_r1 WHERE {_A_TICKET}", CHANGED_ROW),
    "the last ticket removed": (
        "DELETE FROM tickets_r1 WHERE operator_id = 'op_b' AND ticket_id = (SELECT max(ticket_id) FROM tickets_r1)",
        CHANGED_ROW,
    ),
    "all tickets removed": ("DELETE FROM tickets_r1 WHERE operator_id = 'op_b'", CHANGED_ROW),
    "a ticket added": ("INSERT INTO tickets_r1 SELECT 1, 'op_b', 'zzz', 1, 1, 1, 1, 1, 1, true", CHANGED_ROW),
    "a bit of the archive flipped": (
        _PIECES.format("set_byte(content, 40, get_byte(content, 40) # 1)"),
        {"archive_damaged"},
    ),
    "the archive cut short": (_PIECES.format("substring(content, 1, 100)"), {"archive_damaged"}),
    "the archive's pieces gone": ("DELETE FROM archive_pieces WHERE key LIKE '%/op\\_b/%'", {"archive_damaged"}),
    "the archive's file gone": ("DELETE FROM archive_files WHERE key LIKE '%/op\\_b/%'", {"archive_missing"}),
    "the archive's row gone": ("DELETE FROM ticket_archives WHERE operator_id = 'op_b'", {"archive_missing"}),
    "the archive and its hash replaced by no archive at all": (
        "WITH changed AS (UPDATE archive_pieces SET content = convert_to(repeat('x', octet_length(content)), 'UTF8') "
        "WHERE key LIKE '%/op\\_b/%' RETURNING content) "
        "UPDATE ticket_archives SET sha256 = encode(sha256(content), 'hex') FROM changed WHERE operator_id = 'op_b'",
        {"archive_damaged"},
    ),
    "the archive and its hash replaced by another operator's": (
        "UPDATE ticket_archives b SET sha256 = a.sha256, bytes = a.bytes, tickets = a.tickets, key = a.key "
        "FROM ticket_archives a WHERE a.operator_id = 'op_a' AND b.operator_id = 'op_b'",
        {"archive_not_as_sealed", "rows_not_as_archived", "winners_differ"},
    ),
    "the sealed root changed": (
        "UPDATE manifests SET counted_root = repeat('0', 64) WHERE operator_id = 'op_b'",
        {"archive_not_as_sealed"},
    ),
}
"""Each is a statement that changes at least a row, and the faults that have to be found."""


def tampered(*statements: str) -> None:
    """Run these with every trigger off, and make sure that each did something."""
    with transaction() as session:
        session.execute(text(UNGUARDED))
        for statement in statements:
            if "key = a.key" in statement:  # two archives with one key, which nobody gets past the constraint
                session.execute(text("ALTER TABLE ticket_archives DROP CONSTRAINT uq_ticket_archives_store_key"))
            assert session.execute(text(statement)).rowcount, statement  # type: ignore[attr-defined]
