"""The alert rules and the dashboard, held against what /metrics really says.

The one rule kept here: every metric, label and value that an expression names is looked for in an answer of the
application, so that neither file can speak of something that is not there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from deploy.procfile import TOP

RULES = yaml.safe_load((TOP / "deploy" / "alerts.yml").read_text(encoding="utf-8"))
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
CASES = yaml.safe_load((TOP / "tests" / "deploy" / "alerts.test.yml").read_text(encoding="utf-8"))
DASHBOARD = json.loads((TOP / "deploy" / "dashboard.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

PROMETHEUS_OWN = {"up": {"job": {"coordinator"}}}
"""What Prometheus itself writes of every target."""
SELECTOR = re.compile(r"\b(coordinator_\w+|up)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=|!=|=~|!~)"([^"]*)"')
UNITS = {"s", "ops", "none", "percentunit", "currencyUSD"}

Known = dict[str, dict[str, set[str]]]


@pytest.fixture
def known(house: None) -> Known:
    """Every sample that /metrics has: its name, and its labels with their values."""
    from app import create_app

    found: Known = dict(PROMETHEUS_OWN)
    answer = create_app().test_client().get("/metrics")
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            labels = found.setdefault(sample.name, {"job": {"coordinator"}})
            for label, value in sample.labels.items():
                labels.setdefault(label, set()).add(value)
    return found


def unknown(expression: str, known: Known) -> Iterator[str]:
    """What an expression names and /metrics does not have."""
    named = SELECTOR.findall(expression)
    assert named, expression
    for name, matchers in named:
        if name not in known:
            yield name
            continue
        for label, how, value in MATCHER.findall(matchers):
            values = known[name].get(label, set())
            wanted = set(value.split("|")) if "~" in how else {value}
            if not values or (not value.startswith("$") and not wanted <= values):
                yield f"{name}{{{label}{how}{value}}}"


def test_alerts_name_metrics_that_are_there(known: Known) -> None:
    assert {rule["alert"]: list(unknown(rule["expr"], known)) for rule in ALERTS} == {
        rule["alert"]: [] for rule in ALERTS
    }


def test_an_expression_that_names_what_is_not_there_is_found(known: Known) -> None:
    for wrong in (
        "coordinator_queue_width",
        'coordinator_queue_depth{queue="lunch"}',
        'coordinator_queue_depth{x="1"}',
    ):
        assert list(unknown(f"max({wrong}) > 0", known))


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_says_how_urgent_it_is_what_it_saw_and_where_to_read_on(rule: dict[str, Any]) -> None:
    assert re.fullmatch(r"[0-9]+[mh]", rule["for"])
    assert rule["labels"]["severity"] in ("page", "ticket")
    notes = rule["annotations"]
    assert set(notes) == {"summary", "description", "runbook"}
    assert notes["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"
    assert len(notes["summary"]) < 80
    # Where the value says more than that there is one.
    assert "{{ $value" in notes["description"] or "== " in rule["expr"]


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    # Prometheus' own tool decides whether it does: promtool test rules tests/deploy/alerts.test.yml
    fires: dict[str, set[bool]] = {}
    for case in CASES["tests"]:
        for asked in case["alert_rule_test"]:
            fires.setdefault(asked["alertname"], set()).add(bool(asked.get("exp_alerts")))
    assert fires == {rule["alert"]: {True, False} for rule in ALERTS}


def test_the_dashboard_names_metrics_that_are_there(known: Known) -> None:
    asked = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
    assert [(title, fault) for title, expression in asked for fault in unknown(expression, known)] == []
    named = {name for _, expression in asked for name, _ in SELECTOR.findall(expression)}
    # Whatever is worth measuring is worth looking at.
    assert {name for name in known if not name.endswith(("_sum", "_count"))} <= named


def test_the_dashboard_works_with_any_prometheus() -> None:
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    sources = [panel["datasource"] for panel in PANELS]
    sources += [target["datasource"] for panel in PANELS for target in panel["targets"]]
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)
    assert all('job=~"$job"' in target["expr"] for panel in PANELS for target in panel["targets"])


def test_the_dashboard_has_a_place_an_explanation_and_a_unit_for_every_panel() -> None:
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(numbers) == len(set(numbers))
    for panel in PANELS:
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        letters = [target["refId"] for target in panel["targets"]]
        assert len(letters) == len(set(letters))
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= 24
    overlaps = [
        (one["title"], other["title"])
        for one, other in combinations(DASHBOARD["panels"], 2)
        if overlap(one["gridPos"], other["gridPos"])
    ]
    assert overlaps == []


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return (
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )
