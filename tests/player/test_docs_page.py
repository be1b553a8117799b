"""docs/player.md says what is so: every setting, every endpoint and every stage is on it, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

from flask.testing import FlaskClient

from player.models.rounds import Stage
from tests.player.operations import operations

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs" / "player.md").read_text()


def test_every_setting_is_in_the_table() -> None:
    read = set(re.findall(r'env\.\w+\("([A-Z_]+)"', (TOP / "player" / "settings.py").read_text()))
    others = "".join((TOP / "player" / each).read_text() for each in ("gunicorn.conf.py", "tasks/worker.py"))
    assert read <= settings_told()
    assert settings_told() - read <= set(re.findall(r"environ\.get\([\"']([A-Z_]+)", others))


def settings_told() -> set[str]:
    table = PAGE.partition("## Settings")[2].partition("\n## ")[0]
    return {
        name for row in re.findall(r"^\| (`[A-Z].*?) \|", table, re.MULTILINE) for name in re.findall("[A-Z_]+", row)
    }


def test_every_endpoint_is_in_a_table(client: FlaskClient) -> None:
    told = {
        (method, re.sub(":[a-z_]+", ":", path))
        for method, path in re.findall(r"^\| ([A-Z]+) \| `(.+?)` \|", PAGE, re.M)
    }
    served = {(each.method, re.sub("{[a-z_]+}", ":", each.path)) for each in operations(client.application)}
    assert sorted(served ^ told) == []


def test_every_stage_of_a_round_is_told() -> None:
    assert re.findall(r"^\| `([a-z]+)` \|", PAGE.partition("## A round")[2].partition("\n## ")[0], re.M) == list(Stage)


def test_the_page_is_served_without_any_script(client: FlaskClient) -> None:
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert "<h1" in answer.text
    assert "<table>" in answer.text
    assert "<script" not in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    links = set(re.findall(r'href="(.*?)"', answer.text))
    assert all(link.startswith("#") and f'id="{link[1:]}"' in answer.text for link in links)
