"""Archives in an object store that speaks S3.

The one rule kept here: nothing that is kept is overwritten. An object is put on the condition that there is none of its
key, and is there before the transaction that names it: what a failed one leaves behind is found again by its hash.

Credentials and region are boto3's own business: its environment variables, files, or the machine's role.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, BinaryIO, ClassVar

from models.archive_store import differs, missing, same_content
from models.ranges import RangeFile
from protocol.errors import Unavailable


class S3Store:
    """Files as objects ``prefix/key`` in a bucket. Not part of any transaction.

    S3 takes at most 5 GiB in one request: an archive of some 250 million tickets of one operator.
    """

    name: ClassVar[str] = "s3"

    def __init__(self, bucket: str, prefix: str, endpoint: str | None) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._client = _client(endpoint)

    def put(self, key: str, file: BinaryIO) -> None:
        """See ``ArchiveStore.put``."""
        file.seek(0)
        try:
            self._ask("put_object", key, Body=file, IfNoneMatch="*", ChecksumAlgorithm="SHA256")
        except _TakenError:
            if not same_content(self.open(key), file):
                raise differs(key) from None

    def open(self, key: str) -> RangeFile:
        """See ``ArchiveStore.open``."""
        size: int = self._ask("head_object", key)["ContentLength"]
        return RangeFile(size, partial(self._fetch, key))

    def delete(self, key: str) -> None:
        """See ``ArchiveStore.delete``. Whether an archive names the object is for the caller to know."""
        self._ask("delete_object", key)

    def _fetch(self, key: str, start: int, end: int) -> bytes:
        answer = self._ask("get_object", key, Range=f"bytes={start}-{end - 1}")
        with _refusals_named(key):
            content: bytes = answer["Body"].read()
        return content

    def _ask(self, operation: str, key: str, **parameters: Any) -> Any:
        path = f"{self._prefix}/{key}" if self._prefix else key
        with _refusals_named(key):
            return getattr(self._client, operation)(Bucket=self._bucket, Key=path, **parameters)


class _TakenError(Exception):
    """There is an object of this key."""


@contextmanager
def _refusals_named(key: str) -> Iterator[None]:
    """Say what an answer of the store means to us."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in ("404", "NoSuchKey"):
            raise missing(key) from None
        if code == "PreconditionFailed":
            raise _TakenError from None
        # 409 among them: somebody is putting it at this moment. Who comes back later finds it there.
        raise Unavailable(f"the archive's store refuses: {code}") from error
    except BotoCoreError as error:
        raise Unavailable("the archive's store does not answer") from error


@lru_cache(maxsize=4)
def _client(endpoint: str | None) -> Any:
    """One client a process: it keeps connections, and any number of threads may use it."""
    # Here, since only installations that chose S3 have it.
    import boto3
    from botocore.config import Config

    patience = Config(connect_timeout=5, read_timeout=60, retries={"mode": "standard", "max_attempts": 3})
    return boto3.client("s3", endpoint_url=endpoint, config=patience)
