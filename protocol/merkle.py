"""Merkle trees as RFC 6962 defines them, over SHA-256.

The rule: a leaf is hashed behind a 0x00 byte and a node behind a 0x01 byte, so no leaf can be passed off as a
node; a lone node at the end of a level moves up unchanged, which is RFC 6962's split at the largest power of
two.

Implements docs/protocol.md, section 5 (Merkle trees).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import islice

from protocol.errors import Invalid

EMPTY_ROOT = sha256(b"").digest()
"""Root of a tree without leaves: SHA-256 of nothing."""

CHUNK = 1 << 12
"""Leaves under the root of one chunk. A power of two, so that chunks are subtrees: what holds of the leaves under one
root holds of the chunks' roots as well."""


def leaf_hash(data: bytes) -> bytes:
    """SHA-256(0x00 ‖ data), 32 bytes."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01 ‖ left ‖ right), 32 bytes."""
    return sha256(b"\x01" + left + right).digest()


def root(leaves: Iterable[bytes]) -> bytes:
    """The root over leaf hashes, 32 bytes (docs/protocol.md, section 5). Reads them once, keeping one hash for every
    CHUNK of them.
    """
    remaining = iter(leaves)
    roots = [_reduce(chunk) for chunk in iter(lambda: list(islice(remaining, CHUNK)), [])]
    return _reduce(roots) if roots else EMPTY_ROOT


def ancestors(leaves: Sequence[bytes], height: int) -> list[bytes]:
    """The nodes that stand `height` levels above these leaves: each is the root over 2 ** `height` of them, the last
    over those that are left. The root over the nodes is the root over the leaves.
    """
    level = list(leaves)
    for _ in range(height):
        level = _parents(level)
    return level


class Tree:
    """A whole tree kept in memory, for inclusion proofs: 32 bytes and a bit of bookkeeping per node."""

    def __init__(self, leaves: Iterable[bytes]) -> None:
        self.levels: list[list[bytes]] = [list(leaves)]
        while len(self.levels[-1]) > 1:
            self.levels.append(_parents(self.levels[-1]))

    def __len__(self) -> int:
        return len(self.levels[0])

    @property
    def root(self) -> bytes:
        """The root, 32 bytes; EMPTY_ROOT without leaves."""
        return self.levels[-1][0] if self.levels[-1] else EMPTY_ROOT

    def inclusion_proof(self, index: int) -> list[bytes]:
        """The sibling hashes from leaf `index` (from 0) up to the root. Raises IndexError when there is no
        such leaf.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"no leaf {index} among {len(self)}")
        proof = []
        for level in self.levels[:-1]:
            sibling = index ^ 1
            if sibling < len(level):
                proof.append(level[sibling])
            index //= 2
        return proof


def chunked_inclusion_proof(chunk: Sequence[bytes], index: int, roots: Sequence[bytes]) -> list[bytes]:
    """What `Tree.inclusion_proof` gives for leaf `index` (from 0, of all leaves), from no more than the leaves of its
    own chunk and the root of every chunk in order.

    Raises IndexError when there is no such chunk or leaf.
    """
    return Tree(chunk).inclusion_proof(index % CHUNK) + Tree(roots).inclusion_proof(index // CHUNK)


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether `proof` shows that leaf hash `leaf` stands at `index` (from 0) of the `size` leaves under
    `root`.

    Never raises for a wrong proof; it answers False (docs/protocol.md, section 5).
    """
    if not 0 <= index < size:
        return False
    siblings = iter(proof)
    top, last = leaf, size - 1
    while last:
        if index % 2 or index < last:
            sibling = next(siblings, None)
            if sibling is None:
                return False
            top = node_hash(sibling, top) if index % 2 else node_hash(top, sibling)
        index //= 2
        last //= 2
    return next(siblings, None) is None and top == root


def write_path(siblings: Iterable[bytes]) -> str:
    """An audit path as it is published: the sibling hashes from the leaf upwards, one after the other, in base64 (RFC
    4648, section 4). Empty without siblings.
    """
    return base64.b64encode(b"".join(siblings)).decode("ascii")


def read_path(text: str) -> list[bytes]:
    """The sibling hashes of a published audit path, 32 bytes each. Raises Invalid for anything that `write_path` does
    not write.
    """
    try:
        path = base64.b64decode(text, validate=True)
    except ValueError:
        raise Invalid("an audit path is base64") from None
    siblings = [path[start : start + 32] for start in range(0, len(path), 32)]
    if len(path) % 32 or write_path(siblings) != text:
        raise Invalid("an audit path is base64 of hashes of 32 bytes each, and of nothing else")
    return siblings


def _parents(level: list[bytes]) -> list[bytes]:
    parents = [sha256(b"\x01" + left + right).digest() for left, right in zip(level[::2], level[1::2], strict=False)]
    if len(level) % 2:
        parents.append(level[-1])
    return parents


def _reduce(level: list[bytes]) -> bytes:
    while len(level) > 1:
        level = _parents(level)
    return level[0]
