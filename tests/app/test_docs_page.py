"""The pages for people: they show what the document says, load nothing from elsewhere, run nothing and link to what is
there.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from urllib.parse import urldefrag, urlsplit

import pytest
from flask import Flask

from app.documentation.markdown import anchor, page
from app.documentation.pages import FRESH_SECONDS
from app.openapi import document_of
from models.settings import SettingsError, read_settings, settings
from tests.app.conftest import Caller, assert_error

PAGES = ("/docs", "/docs/guide", "/docs/sdk", "/docs/player", "/docs/protocol")
every_page = pytest.mark.parametrize("path", PAGES)
VOID = {"meta", "link", "br", "hr", "img", "wbr", "use", "input"}


class Seen(HTMLParser):
    """What a browser would see of a page: ids, links, elements, text; tags that do not match are an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        self.tags.append((tag, about))
        if name := about.get("id"):
            self.ids.append(name)
        if address := about.get("href") or about.get("src"):
            self.links.append(address)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        self.words += data


def seen(caller: Caller, path: str) -> Seen:
    answer = caller.get(path)
    assert answer.status_code == 200
    assert answer.content_type == "text/html; charset=utf-8"
    return Seen(answer.text)


@every_page
def test_a_page_runs_nothing_and_its_policy_forbids_it_to(anybody: Caller, path: str) -> None:
    answer = anybody.get(path)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert "script-src" not in policy
    assert not any("unsafe" in sources or "http" in sources or "*" in sources for sources in policy.values())
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for tag, about in seen(anybody, path).tags:
        assert tag not in ("script", "style", "iframe", "object", "form")
        assert not any(name == "style" or name.startswith("on") for name in about)


@every_page
def test_a_page_loads_nothing_from_elsewhere(anybody: Caller, path: str) -> None:
    for tag, about in seen(anybody, path).tags:
        if tag != "a":
            address = urlsplit(about.get("href") or about.get("src") or "")
            assert not address.netloc
            assert not address.scheme


@every_page
def test_what_a_page_links_to_is_there(anybody: Caller, path: str) -> None:
    shown = seen(anybody, path)
    assert len(set(shown.ids)) == len(shown.ids)
    elsewhere = {}
    for link in shown.links:
        if urlsplit(link).netloc:
            continue
        address, part = urldefrag(link)
        if not address:
            assert part in shown.ids, link
        elif address not in elsewhere:
            elsewhere[address] = anybody.get(address)
            assert elsewhere[address].status_code == 200, link
        if address and part and elsewhere[address].mimetype == "text/html":
            assert part in Seen(elsewhere[address].text).ids, link


@every_page
def test_a_page_can_be_read_by_everybody(anybody: Caller, path: str) -> None:
    shown = seen(anybody, path)
    by_tag: dict[str, list[dict[str, str | None]]] = {}
    for tag, about in shown.tags:
        by_tag.setdefault(tag, []).append(about)
    assert by_tag["html"][0]["lang"] == "en"
    assert len(by_tag["h1"]) == len(by_tag["main"]) == 1
    assert all(about.get("aria-label") for about in by_tag["nav"])
    assert any(about.get("name") == "viewport" for about in by_tag["meta"])
    # What scrolls sideways can be scrolled from the keyboard.
    assert all(about.get("tabindex") == "0" for about in by_tag["pre"])
    levels = [int(tag[1]) for tag, _ in shown.tags if re.fullmatch("h[1-6]", tag)]
    assert all(deeper - level <= 1 for level, deeper in pairwise(levels))


@every_page
def test_a_page_is_kept_until_another_version_is_out(anybody: Caller, path: str) -> None:
    answer = anybody.get(path)
    assert answer.cache_control.max_age == FRESH_SECONDS
    assert anybody.get(path, headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304


@pytest.mark.parametrize("path", [*PAGES, "/openapi.json", "/docs/style.css"])
def test_who_can_unpack_gets_it_packed(anybody: Caller, path: str) -> None:
    plain = anybody.get(path)
    packed = anybody.get(path, headers={"Accept-Encoding": "gzip, br"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert len(packed.data) < len(plain.data) / 2
    assert packed.headers["ETag"] != plain.headers["ETag"]
    assert "Accept-Encoding" in plain.headers["Vary"]
    assert "Accept-Encoding" in packed.headers["Vary"]
    refused = anybody.get(path, headers={"Accept-Encoding": "gzip;q=0"})
    assert refused.data == plain.data


def test_the_reference_shows_all_there_is(application: Flask, anybody: Caller) -> None:
    document = document_of(application).document
    shown = seen(anybody, "/docs")
    described = [*document["paths"].values(), *document["webhooks"].values()]
    for item in described:
        for operation in item.values():
            assert operation["operationId"] in shown.ids
            assert operation["summary"].replace("`", "") in shown.words.replace("`", "")
    for path in document["paths"]:
        assert path in shown.words
    for event in document["webhooks"]:
        assert event in shown.words
    for scheme in document["components"]["securitySchemes"]:
        assert scheme in shown.ids
    for code in codes(document):
        assert code in shown.words, code
    assert "``" not in shown.words


def codes(part: Any) -> set[str]:
    """Every code of an error that the document shows."""
    if isinstance(part, dict):
        own = {part["code"]} if isinstance(part.get("code"), str) and "error" in part else set()
        return own.union(*(codes(value) for value in part.values()))
    return set().union(*(codes(value) for value in part)) if isinstance(part, list) else set()


def test_the_guide_is_shown_with_its_steps_and_its_code(anybody: Caller) -> None:
    shown = seen(anybody, "/docs/guide")
    assert "Operator guide" in shown.words
    assert "/api/public/apply" in shown.words
    assert sum(tag == "pre" for tag, _ in shown.tags) > 20


def test_html_in_a_text_is_shown_not_passed_on() -> None:
    html = page("# A\n\n<script>alert(1)</script> [x](javascript:alert(1))\n\n```sh\n<b>&\n```\n").html
    assert "<script" not in html
    assert 'href="javascript' not in html
    assert "<b>" not in html


def test_links_between_texts_lead_to_the_pages_and_others_are_plain_text() -> None:
    html = page(
        "# A\n\n[p](protocol.md#one) [l](../LICENSE) [w](https://x.example/)", (("protocol.md", "/docs/p"),)
    ).html
    assert '<a href="/docs/p#one">p</a>' in html
    assert "LICENSE" not in html
    assert '<a href="https://x.example/">w</a>' in html


def test_headings_have_the_anchors_that_code_hosts_give_them() -> None:
    assert anchor("13. Errors, limits, retries") == "13-errors-limits-retries"
    shown = page("# T\n\n## `ticketsRoot`\n\n## Twice\n\n## Twice\n")
    assert [heading.anchor for heading in shown.headings] == ["ticketsroot", "twice", "twice-1"]


def test_a_page_that_was_not_installed_is_not_found(anybody: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.documentation import pages

    monkeypatch.setattr(pages, "TEXTS", pages.TEXTS / "nowhere")
    assert_error(anybody.get("/docs/guide"), 404, "not_found")


def test_approved_operators_are_sent_to_the_guide(
    anybody: Caller, admin: Callable[[str], Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.app.test_applications import FORM

    filed = anybody.post("/api/public/apply", FORM).get_json()
    admin("reviewer").post(f"/api/admin/applications/{filed['applicationId']}/approve", {})
    token = {"X-Application-Token": filed["applicationToken"]}

    def docs() -> str:
        status = anybody.get(f"/api/public/application-status/{filed['applicationId']}", headers=token).get_json()
        address: str = status["onboarding"]["sdkDocs"]
        return address

    assert docs() == "http://localhost/docs/guide"
    assert anybody.get(urlsplit(docs()).path).status_code == 200
    monkeypatch.setenv("SDK_DOCS_URL", "https://docs.example/lottery")
    settings.cache_clear()
    assert docs() == "https://docs.example/lottery"


def test_where_operators_are_sent_is_a_whole_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDK_DOCS_URL", "/docs")
    with pytest.raises(SettingsError, match="SDK_DOCS_URL"):
        read_settings()
