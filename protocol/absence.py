"""Showing that a ticket id is not among those an operator sealed, by the two tickets between which it would stand.

The rule: the ids are read from the very lines that are hashed, so nobody can claim a neighbour that is not there; and
the neighbours stand side by side, so nothing is between them. Size and root are the caller's, from the proof bundle.

That the sealed tickets are in order is what `protocol.verify` checks of all of them; with one that was hashed out of
order the whole round is not verified.

Implements docs/protocol.md, section 5 (Merkle trees).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from protocol.errors import Invalid
from protocol.merkle import EMPTY_ROOT, leaf_hash, verify_inclusion
from protocol.tickets import line_ticket_id


@dataclass(frozen=True)
class Neighbour:
    """A sealed ticket beside the gap: its line (canonical JSON, no line end), its leaf's index from 0 and its inclusion
    proof.
    """

    line: bytes
    index: int
    proof: Sequence[bytes]


def verify_absence(
    round_id: int,
    operator_id: str,
    ticket_id: str,
    before: Neighbour | None,
    after: Neighbour | None,
    size: int,
    root: bytes,
) -> bool:
    """Whether these neighbours show that the operator sealed no ticket of this id in this round.

    `before` is None when the id would come first, `after` when it would come last, both when nothing was sealed. `size`
    (`ticketCount`) and `root` (`ticketsRoot`, 32 bytes) must be those of the proof bundle. Never raises for a wrong
    proof; it answers False (docs/protocol.md, section 5).
    """
    if before is None and after is None:
        return size == 0 and root == EMPTY_ROOT
    # Where the gap is: after the neighbour on its left, at the very beginning without one.
    gap = 0 if before is None else before.index + 1
    if gap != (size if after is None else after.index):
        return False
    for neighbour in (before, after):
        if neighbour is None:
            continue
        try:
            found = line_ticket_id(round_id, operator_id, neighbour.line)
        except Invalid:
            return False
        in_order = found < ticket_id if neighbour is before else found > ticket_id
        leaf = leaf_hash(neighbour.line)
        if not in_order or not verify_inclusion(leaf, neighbour.index, size, neighbour.proof, root):
            return False
    return True
