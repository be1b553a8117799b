"""``flask ops archives``: whether what was sealed is still there as it was, putting it back, keeping copies elsewhere.

The one rule kept here: whoever asks whether archives are whole hears it from their bytes, and by the exit code.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from flask.cli import AppGroup

from app.desk import archives as desk
from app.fields import identifier
from app.ops.asking import (
    Checked,
    actor_option,
    confirm,
    dry_run_option,
    json_object_option,
    limit_option,
    must_be_askable,
    offset_option,
    reason_option,
    yes_option,
)
from app.ops.group import Refused
from app.ops.screen import NOTHING, Column, progress, show_json, table
from models.archive_copies import UnusableArchive
from models.session import transaction
from protocol.errors import Unavailable

archives = AppGroup("archives", help="See whether sealed tickets are whole; put them back; make backups.")

ROUND = click.IntRange(1, 2**63 - 1)
STANDING = (
    Column("round\nrows", right=True),
    Column("operator\nsha256"),
    Column("tickets\nbytes", right=True),
    Column("kept in\nlast check"),
)
FOUND = (
    Column("round", right=True),
    Column("operator"),
    Column("tickets", right=True),
    Column("bytes", right=True),
    Column("kept in"),
    Column("it is"),
)
PUT_BACK = (Column("operator\nit was, is from"), Column("its file\nwhat is left of the other"))
COPIED = (Column("operator"), Column("file\nin"))

round_argument = click.argument("round_id", metavar="ROUND", type=ROUND)
operator_option = click.option("--operator", "operator_id", type=Checked(identifier(), "ID"), help="Only this one's.")


@archives.command("list")
@click.option("--round", "round_id", type=ROUND, help="Only those of this round.")
@limit_option
@offset_option
@json_object_option
def list_archives(round_id: int | None, limit: int, offset: int, as_json: bool) -> None:
    """Archives of sealed tickets, those of the newest round first, as they are on record. Reads none of them.

    \b
    rows        there, or gone: then the archive is the only copy
    last check  what it was when it was last read to its end, if ever
    """
    with transaction() as session:
        answer = desk.listed(session, round_id, limit, offset)
    if as_json:
        show_json(answer)
        return
    table(STANDING, (_standing(one) for one in answer["archives"]), "There are no archives.")


@archives.command("check")
@click.argument("round_ids", metavar="[ROUND]...", nargs=-1, type=ROUND)
@click.option("--roots", is_flag=True, help="Hash every ticket to its root too: some 3 s for a million.")
@json_object_option
def check(round_ids: tuple[int, ...], roots: bool, as_json: bool) -> None:
    """Read every archive, or those of some rounds, to its end, and compare length, hash and number of tickets with what
    is on record.

    Ends with 1 if one of them is damaged or missing, and with 3 if a store does not answer. Run it every night. What it
    finds is what the alert ArchiveDamaged goes by.

    \b
    damaged        the file has other bytes than were archived, or cannot be read
    missing        its store does not have it
    not as sealed  the file has its hash, and other tickets than were sealed
    """
    with transaction() as session:
        wanted = desk.wanted(session, round_ids)
    found: list[dict[str, Any]] = []
    stopped: Unavailable | None = None
    with progress("reading archives", len(wanted)) as done:
        for of in wanted:
            try:
                with transaction() as session:
                    found.append(desk.checked(session, *of, roots=roots))
            except Unavailable as error:
                # Of no use to ask it for all the others, nor to keep back what is known of those before.
                stopped = error
                break
            done(1)
    _print_found(found, as_json)
    if stopped:
        click.echo(f"{len(wanted) - len(found):,} were not read: {stopped.message}", err=True)
    _end_by(found)
    if stopped:
        raise stopped


@archives.command("restore")
@round_argument
@click.option(
    "--from",
    "backup",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="A backup, or a folder of backups. [default: the rows, while they are there]",
)
@operator_option
@reason_option
@actor_option
@dry_run_option
@yes_option
@json_object_option
def restore(
    round_id: int,
    backup: Path | None,
    operator_id: str | None,
    reason: str,
    actor: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Put a round's damaged and missing archives back, all of them or none; those that are whole stay as they are.

    \b
    For example:
      flask ops archives restore 7 --reason "disk of …"                      from the rows
      flask ops archives restore 7 --reason "disk of …" --from /mnt/backups  once they were dropped

    What is put back has the hash that is on record, or nothing is. A damaged file is not written over: it stays under
    its key, for whoever looks for the cause, and the archive gets another. It asks first; --dry-run tries everything
    and keeps nothing.
    """
    if not dry_run:
        must_be_askable(yes)
    with _files_named(), transaction() as session:  # of its own: what is found is on record, whatever comes of the rest
        found = desk.faulty(session, round_id, operator_id, backup)
    if found and not dry_run:
        named = ", ".join(f"{one['operatorId']} ({_it_is(one)})" for one in found)
        confirm(f"Put back in round {round_id}: {named}?", yes)
    with _files_named(), transaction() as session:
        answer = desk.restored(session, actor, round_id, reason, operator_id, backup, dry_run=dry_run)
    if as_json:
        show_json(answer)
    elif not answer["restored"]:
        click.echo("Every archive that was looked at is whole. Nothing was changed.")
    else:
        table(PUT_BACK, (_put_back(one, dry_run) for one in answer["restored"]), "")
        if dry_run:
            click.echo("All of this could be put back. Nothing was changed.")


@archives.command("export")
@round_argument
@click.argument("folder", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path))
@operator_option
@json_object_option
def export(round_id: int, folder: Path, operator_id: str | None, as_json: bool) -> None:
    """Copy a round's archives into a folder, each as a file of its own, from which "restore" takes them.

    Nothing is written but what was read whole. Files are called as in an S3 store, rROUND/OPERATOR/SHA256.parquet, and
    appear whole or not at all; one that is there already is left as it is. Any program that reads Parquet reads them.
    """
    with transaction() as session:
        wanted = [of for of in desk.wanted(session, (round_id,)) if operator_id in (None, of[1])]
    if not wanted:
        raise Refused(f"{operator_id} has no archive in round {round_id}")
    files, damaged = [], []
    with _files_named(), progress("copying archives", len(wanted)) as done:
        for of in wanted:
            try:
                with transaction() as session:
                    files.append(desk.exported(session, *of, folder))
            except UnusableArchive as error:
                damaged.append(error.message)
            done(1)
    if as_json:
        show_json({"files": files, "count": len(files)})
    else:
        table(COPIED, (_copied(one) for one in files), "")
    if damaged:
        raise Refused("not all of them: " + "; ".join(damaged))


def _print_found(found: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        show_json({"archives": found, "count": len(found), "faulty": len(_faults(found))})
        return
    table(FOUND, (_found(one) for one in found), "There are no archives.")
    if found and not _faults(found):
        click.echo(f"Read to the last byte and whole: {len(found):,}.")


def _end_by(found: list[dict[str, Any]]) -> None:
    faults = _faults(found)
    if faults:
        rounds = dict.fromkeys(one["roundId"] for one in faults)
        ways = "".join(f'\n  flask ops archives restore {round_id} --reason "…"' for round_id in rounds)
        raise Refused(f"{len(faults):,} of {len(found):,} not as sealed. Find out why; then put back:{ways}")


def _faults(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in found if not one["intact"]]


def _standing(one: dict[str, Any]) -> list[object]:
    last = {None: NOTHING, True: "intact", False: "damaged"}[one["intact"]]
    return [
        f"{one['roundId']}\n{'gone' if one['rowsDroppedAt'] else 'there'}",
        f"{one['operatorId']}\n{one['sha256']}",
        f"{one['tickets']:,}\n{one['bytes']:,}",
        f"{one['store']}\n{last}",
    ]


def _found(one: dict[str, Any]) -> list[object]:
    amounts = f"{one['tickets']:,}", f"{one['bytes']:,}"
    return [one["roundId"], one["operatorId"], *amounts, one["store"], _it_is(one)]


def _it_is(one: dict[str, Any]) -> str:
    return str(one["fault"] or "intact").removeprefix("archive_").replace("_", " ")


def _put_back(one: dict[str, Any], dry_run: bool) -> list[object]:
    now = NOTHING if dry_run else Path(one["key"]).name
    left = f"\n{Path(one['damagedKey']).name}" if one["damagedKey"] else ""
    return [f"{one['operatorId']}\n{_it_is(one)}, {one['from']}", f"{now}{left}"]


def _copied(one: dict[str, Any]) -> list[object]:
    path = Path(one["file"])
    return [f"{one['operatorId']}\n{'written' if one['written'] else 'was there'}", f"{path.name}\n{path.parent}"]


@contextmanager
def _files_named() -> Iterator[None]:
    """Say which file or folder cannot be used."""
    try:
        yield
    except OSError as error:
        raise Refused(f"{error.filename or 'a temporary file'}: {error.strerror}") from None
