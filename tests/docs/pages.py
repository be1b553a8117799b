"""Reading a page as its reader does: the blocks to be typed in, and what they are said to answer.

The one rule kept here: a block is taken exactly as it stands on the page; only the mark of a quotation around it goes.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

_FENCE = re.compile(r"^(> ?|)```(\w*)$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page on which it begins."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Step:
    """Something to type into the shell, and the JSON that the page says it ends with, if any."""

    typed: Block
    answer: Any = None

    @property
    def is_refused(self) -> bool:
        """Whether the page shows this as an error."""
        return isinstance(self.answer, dict) and "error" in self.answer


def blocks(page: str) -> list[Block]:
    """Every fenced block of a page, in order."""
    found: list[Block] = []
    inside: tuple[str, str, int] | None = None
    text: list[str] = []
    for number, line in enumerate(page.splitlines(), start=1):
        fence = _FENCE.match(line)
        if inside is None:
            if fence:
                inside, text = (fence[1], fence[2], number), []
        elif fence and fence[2] == "":
            found.append(Block(inside[1], "\n".join(text) + "\n", inside[2]))
            inside = None
        else:
            text.append(line.removeprefix(inside[0].strip()).removeprefix(" ") if inside[0] else line)
    assert inside is None, f"the block that begins on line {inside[2]} does not end"
    return found


def steps(found: list[Block]) -> list[Step]:
    """Every shell block with the JSON block that follows it at once."""
    made = []
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.language == "sh":
            answer = json.loads(after.text) if after is not None and after.language == "json" else None
            made.append(Step(block, answer))
    return made


def differences(shown: Any, got: Any, where: str = "answer") -> list[str]:
    """What the page shows and an answer lacks: keys that are missing, values of another kind, no for yes.

    Nulls go with everything, since they stand for what is not known yet. Each thing in a list is held against the
    first that is shown.
    """
    if shown is None or got is None:
        return []
    if type(shown) is not type(got):
        return [f"{where} is {got!r}, not something like {shown!r}"]
    if isinstance(shown, bool) and shown is not got:
        return [f"{where} is {got!r}, not {shown!r}"]
    if isinstance(shown, dict):
        missing = [f"{where} has no {key}" for key in shown.keys() - got.keys()]
        both = sorted(shown.keys() & got.keys())
        return missing + [fault for key in both for fault in differences(shown[key], got[key], f"{where}.{key}")]
    if isinstance(shown, list) and shown:
        if not got:
            return [f"{where} is empty"]
        return [fault for place, one in enumerate(got) for fault in differences(shown[0], one, f"{where}[{place}]")]
    return []
