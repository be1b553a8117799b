"""Which store is used: the database, unless ``ARCHIVE_URL`` names another.

The one rule kept here: the setting decides about new archives only. Each archive says itself where it is, so that both
stores may be in use at once after a change.
"""

from importlib.util import find_spec

from sqlalchemy.orm import Session

from models.archive_s3 import S3Store
from models.archive_store import ArchiveStore, PostgresStore
from models.settings import SettingsError, settings


def archive_store(session: Session) -> ArchiveStore:
    """Where this installation keeps new archives."""
    return store_called(session, S3Store.name if settings().archive_bucket else PostgresStore.name)


def store_called(session: Session, name: str) -> ArchiveStore:
    """The store that an archive names, whatever is set for new ones.

    :raises SettingsError: it is S3, and no bucket is set.
    """
    if name == PostgresStore.name:
        return PostgresStore(session)
    bucket = settings().archive_bucket
    if bucket is None:
        raise SettingsError("there are archives in S3; ARCHIVE_URL must go on naming where")
    return S3Store(*bucket, settings().archive_s3_endpoint)


def store_fault() -> str | None:
    """Why the store that is set cannot be used by this process, as a short sentence; None when it can."""
    if settings().archive_bucket and find_spec("boto3") is None:
        return "ARCHIVE_URL names S3, which needs boto3: pip install 'lottery-coordinator[s3]'"
    return None
