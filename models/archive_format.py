"""What an archive looks like inside: one Parquet file, sorted by ticket id by bytes.

The one rule kept here: the writer and the reader of archives agree on this page and on nothing else. Any program that
reads Parquet can read them too.
"""

from typing import Final

import pyarrow as pa

from models.tickets import COLUMNS
from protocol.merkle import CHUNK

ROW_GROUP: Final = 4 * CHUNK
"""Rows read at once at the least. A multiple of a chunk, so that a chunk lies in one group."""

SCHEMA: Final = pa.schema(
    [
        pa.field(name, kind, nullable=False)
        for name, kind in zip(COLUMNS, (pa.string(), pa.int64(), *[pa.int32()] * 5, pa.bool_()), strict=True)
    ]
)
"""The columns: a ticket's id, its six numbers in tier order, and whether a computer chose them."""

NUMBERS: Final = COLUMNS[1:7]
"""The columns that matching reads. They lie side by side."""

WRITING: Final = {
    "compression": "zstd",
    # Numbers drawn at random: packed to the bits they need. A dictionary of them would be larger and slower to read.
    "use_dictionary": False,
    "column_encoding": dict.fromkeys(NUMBERS, "DELTA_BINARY_PACKED"),
    # Of ids only: they say in which group a ticket is.
    "write_statistics": [COLUMNS[0]],
}
"""How it is written."""
