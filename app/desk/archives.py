"""Looking after archives: which there are, whether they are whole, putting back those that are not, backups.

The one rule kept here: an archive is put back as it was sealed, byte for byte, or left as it is; of a round all that
are asked for, or none.
"""

from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.resources.archives import finding_view, standing_view
from models.archive_backups import hash_of, write_backup
from models.archive_checks import check_archive
from models.archive_contents import check_contents
from models.archive_reader import archive_named
from models.archive_restoring import held_archives, put_back, right_copy
from models.archive_search import archived, standings
from models.archives import TicketArchive
from models.audit import record
from models.rounds import round_by_id
from protocol.errors import Conflict, NotFound


def listed(session: Session, round_id: int | None, limit: int, offset: int) -> dict[str, Any]:
    """A page of archives as they are on record, those of the newest round first; of one round, or of all.

    :raises NotFound: no such round.
    """
    if round_id is not None:
        round_by_id(session, round_id)
    rows = [standing_view(one) for one in standings(session, round_id, limit, offset)]
    return {"archives": rows, "count": len(rows)}


def wanted(session: Session, round_ids: tuple[int, ...]) -> list[tuple[int, str]]:
    """Round and operator of every archive of these rounds; of all rounds when none is named.

    :raises NotFound: no such round, or one that has no archives.
    """
    found = archived(session, round_ids)
    for round_id in sorted(set(round_ids) - {have for have, _ in found}):
        raise _without_archives(session, round_id)
    return found


def checked(session: Session, round_id: int, operator_id: str, *, roots: bool) -> dict[str, Any]:
    """Read one archive to its end and say what it is; ``roots`` hashes every ticket in it too."""
    archive = archive_named(session, round_id, operator_id)
    return finding_view(archive, check_contents(session, round_id, operator_id, roots=roots))


def exported(session: Session, round_id: int, operator_id: str, folder: Path) -> dict[str, Any]:
    """Write a backup of one archive into a folder, unless it is there.

    :raises UnusableArchive: the archive is damaged or missing.
    """
    path, written = write_backup(session, archive_named(session, round_id, operator_id), folder)
    return {"roundId": round_id, "operatorId": operator_id, "file": str(path), "written": written}


def faulty(session: Session, round_id: int, operator_id: str | None, backup: Path | None) -> list[dict[str, Any]]:
    """Which of a round's archives would be put back: those that are damaged or missing, of one operator or of all; of
    a backup that is one file, those that it is a copy of.

    :raises NotFound: no such round, or no such archives.
    :raises Conflict: the backup is a file that is no archive of this round.
    """
    return [finding_view(archive, found) for archive, found in _faulty(session, round_id, operator_id, backup)]


def restored(
    session: Session,
    actor: str,
    round_id: int,
    reason: str,
    operator_id: str | None = None,
    backup: Path | None = None,
    *,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Put those back, from backups (a file, or a folder of them) or, without any, from the rows.

    :raises NotFound, Conflict: as above; or one of them cannot be put back as it was. Nothing is changed.
    """
    rows = []
    for archive, found in _faulty(session, round_id, operator_id, backup):
        damaged = archive.key
        with right_copy(session, archive, backup) as copy:
            if not dry_run:
                put_back(session, archive, copy)
        source = "rows" if backup is None else "backup"
        moved = {"damagedKey": damaged if archive.key != damaged else None, "from": source}
        rows.append(finding_view(archive, found) | moved)
    if rows and not dry_run:
        told = {row["operatorId"]: {name: row[name] for name in ("fault", "from", "key", "damagedKey")} for row in rows}
        record(session, actor, "archive.restore", f"round {round_id}", reason, archives=told)
    return {"roundId": round_id, "dryRun": dry_run, "restored": rows, "count": len(rows)}


def _faulty(session: Session, round_id: int, operator_id: str | None, backup: Path | None) -> list[Any]:
    held = held_archives(session, round_id)
    if not held:
        raise _without_archives(session, round_id)
    if operator_id is not None:
        held = [archive for archive in held if archive.operator_id == operator_id]
        if not held:
            raise NotFound(f"{operator_id} has no archive in round {round_id}")
    if backup is not None and not backup.is_dir():
        held = _copied_in(backup, held)
    found = [(archive, check_archive(session, archive.round_id, archive.operator_id)) for archive in held]
    return [(archive, checked) for archive, checked in found if not checked.intact]


def _copied_in(backup: Path, archives: list[TicketArchive]) -> list[TicketArchive]:
    sha256 = hash_of(backup)
    found = [archive for archive in archives if archive.sha256 == sha256]
    if not found:
        wrong = f"{backup} is no archive of round {archives[0].round_id}: its SHA-256 is\n  {sha256}\non record:"
        on_record = "".join(f"\n  {archive.sha256}  {archive.operator_id}" for archive in archives)
        raise Conflict(wrong + on_record, code="archive_differs")
    return found


def _without_archives(session: Session, round_id: int) -> NotFound:
    state = round_by_id(session, round_id).state.value
    return NotFound(f"round {round_id} is {state} and has no archives")
