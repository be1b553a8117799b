"""Markdown as our pages show it: headings that can be linked to, coloured code, links that stay within the pages.

The one rule kept here: HTML in the source is shown as text, never passed on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

_FORMATTER = HtmlFormatter(nowrap=True)
_SHELL = {"sh": "bash", "shell": "bash", "console": "bash"}


@dataclass(frozen=True)
class Heading:
    """A heading that can be linked to."""

    level: int
    anchor: str
    text: str


@dataclass(frozen=True)
class Page:
    """A rendered text: its title, its headings below that, and its HTML."""

    title: str
    headings: tuple[Heading, ...]
    html: Markup


def code(text: str, language: str) -> Markup:
    """A block of code, coloured."""
    try:
        coloured = highlight(text, get_lexer_by_name(_SHELL.get(language, language)), _FORMATTER)
    except ClassNotFound:
        coloured = str(escape(text))
    # tabindex: what scrolls sideways must be within reach of the keyboard. Pygments escapes what it colours.
    return Markup(f'<pre class="code" tabindex="0"><code>{coloured.rstrip()}</code></pre>')  # noqa: S704


def prose(text: str) -> Markup:
    """A few paragraphs."""
    return Markup(_markdown().render(text))  # noqa: S704  (HTML in the text is escaped)


@lru_cache(maxsize=16)
def page(text: str, places: tuple[tuple[str, str], ...] = ()) -> Page:
    """A whole text. ``places`` says where files that it links to are served; a link to any other file is plain text."""
    markdown = _markdown()
    tokens = markdown.parse(text)
    headings = _anchored(tokens)
    for token in tokens:
        if token.children:
            token.children = _within(token.children, dict(places))
    html = Markup(markdown.renderer.render(tokens, markdown.options, {}))  # noqa: S704  (as above)
    title = next((heading.text for heading in headings if heading.level == 1), "")
    return Page(title, tuple(heading for heading in headings if heading.level > 1), html)


def anchor(text: str) -> str:
    """The anchor of a heading, as code hosts make it, so that a link works there and here."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    markdown.add_render_rule("fence", _fence)
    markdown.add_render_rule("code_block", _fence)
    markdown.add_render_rule("table_open", _table_open)
    markdown.add_render_rule("table_close", _table_close)
    return markdown


def _fence(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return str(code(tokens[index].content, tokens[index].info.strip() or "text"))


def _table_open(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return '<div class="wide" tabindex="0"><table>\n'


def _table_close(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return "</table></div>\n"


def _anchored(tokens: Sequence[Token]) -> list[Heading]:
    found: list[Heading] = []
    taken: dict[str, int] = {}
    for token, inside in pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = "".join(child.content for child in inside.children or ())
        name = anchor(text)
        again = taken.get(name, 0)
        taken[name] = again + 1
        name = f"{name}-{again}" if again else name
        token.attrSet("id", name)
        found.append(Heading(int(token.tag[1:]), name, text))
    return found


def _within(children: Sequence[Token], places: dict[str, str]) -> list[Token]:
    kept: list[Token] = []
    dropping = 0
    for token in children:
        if token.type == "link_open":
            file, mark, part = str(token.attrGet("href")).partition("#")
            if file and "://" not in file and not file.startswith("/"):
                if file not in places:
                    dropping += 1
                    continue
                token.attrSet("href", f"{places[file]}{mark}{part}")
        elif token.type == "link_close" and dropping:
            dropping -= 1
            continue
        kept.append(token)
    return kept
