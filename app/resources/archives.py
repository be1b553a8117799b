"""An archive as it is shown to the people who look after it.

The one rule kept here: only what is on record or was found is shown, nothing of what is inside.
"""

from typing import Any

from models.archive_checks import Checked
from models.archive_search import Standing
from models.archives import TicketArchive
from protocol.timestamps import format_timestamp


def standing_view(one: Standing) -> dict[str, Any]:
    """An archive, whether its rows are still there, and what the last check found (null: nobody checked)."""
    return _archive_view(one.archive) | {
        "rowsDroppedAt": one.dropped_at and format_timestamp(one.dropped_at),
        "intact": one.intact,
        "checkedAt": one.checked_at and format_timestamp(one.checked_at),
    }


def finding_view(archive: TicketArchive, found: Checked) -> dict[str, Any]:
    """An archive and what a check found just now; ``fault`` is null when it is intact."""
    return _archive_view(archive) | {"intact": found.intact, "fault": found.fault}


def _archive_view(archive: TicketArchive) -> dict[str, Any]:
    return {
        "roundId": archive.round_id,
        "operatorId": archive.operator_id,
        "tickets": archive.tickets,
        "bytes": archive.bytes,
        "sha256": archive.sha256,
        "store": archive.store,
        "key": archive.key,
    }
