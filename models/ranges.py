"""A file that lives elsewhere and is read in parts.

The one rule kept here: nothing is fetched that was not asked for, and what lies in the window is fetched once.
"""

import io
from collections.abc import Callable


class RangeFile(io.RawIOBase):
    """A readable, seekable file of ``size`` bytes over ``fetch(start, end)``, which gives the bytes from start up to,
    but not including, end.
    """

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self.size = size
        self._fetch = fetch
        self._at = 0
        self._window_start = 0
        self._window = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset from the beginning, from here or from the end; a place past the end reads nothing."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        if origin + offset < 0:
            raise ValueError(f"no place {origin + offset} in a file")
        self._at = origin + offset
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """So many bytes, fewer only at the end; all of the rest without a number."""
        end = self.size if size is None or size < 0 else min(self._at + size, self.size)
        if end <= self._at:
            return b""
        content = self._between(self._at, end)
        self._at = end
        return content

    def readall(self) -> bytes:
        """All of the rest."""
        return self.read()

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Fill a buffer as far as the file goes; returns how many bytes."""
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def hold(self, start: int, end: int) -> None:
        """Fetch a stretch at once; reads that lie within it are then answered from memory, until the next hold."""
        self._window_start, self._window = start, self._fetch(start, end) if start < end else b""

    def _between(self, start: int, end: int) -> bytes:
        offset = start - self._window_start
        if offset >= 0 and end <= self._window_start + len(self._window):
            return self._window[offset : offset + end - start]
        content = self._fetch(start, end)
        if len(content) != end - start:
            raise OSError(f"{len(content)} bytes instead of {end - start}")
        return content
