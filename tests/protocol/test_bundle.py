"""Reading a proof bundle without trust."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from protocol.bundle import parse_bundle
from protocol.errors import Invalid
from tests.protocol.rounds import make_round

BUNDLE = make_round(2, excluded={"opB": "missed_escrow", "opC": "missed_sealing"}).bundle


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    else:
        return [path]
    return [path, *(place for key, child in children for place in _places(child, (*path, key)))]


def _replaced(path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(BUNDLE)
    if not path:
        return value
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


def test_a_bundle_is_read_into_its_parts() -> None:
    bundle = parse_bundle(BUNDLE)
    assert (bundle.round_id, bundle.state, bundle.mode) == (2, "CLOSED", "commit-reveal")
    assert [manifest.operator_id for manifest in bundle.manifests] == ["opA", "opB"]
    assert [manifest.operator_id for manifest in bundle.effective] == ["opA"]
    assert bundle.secret is not None
    assert len(bundle.secret) == 32


@pytest.mark.parametrize("path", _places(BUNDLE), ids=lambda path: ".".join(map(str, path)) or "all of it")
@pytest.mark.parametrize("wrong", [[None], {"x": 1}, 1.5, -1, True, "no hash"], ids=str)
def test_a_value_of_the_wrong_type_is_refused_wherever_it_stands(path: tuple[Any, ...], wrong: Any) -> None:
    """Unless the place takes any text (a string is then a good value, for the checks to judge)."""
    free_text = ("manifestJson", "failureReason")
    if wrong == "no hash" and path and (path[-1] in free_text or path[0] in ("honestLimits", "ledger")):
        return
    if path == ("ledger",) and isinstance(wrong, dict):
        wrong = {"G": 1}
    with pytest.raises(Invalid):
        parse_bundle(_replaced(path, wrong))


@pytest.mark.parametrize(
    "path",
    [path for path in _places(BUNDLE) if path and isinstance(path[-1], str) and path[0] != "ledger"],
    ids=lambda path: ".".join(map(str, path)),
)
def test_a_missing_field_is_refused_and_named(path: tuple[Any, ...]) -> None:
    changed = copy.deepcopy(BUNDLE)
    place = changed
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    with pytest.raises(Invalid) as problem:
        parse_bundle(changed)
    assert str(path[-1]) in problem.value.message


@pytest.mark.parametrize("path", [(), ("seed",), ("rules",), ("numbers",), ("manifests", 0), ("exclusions", 0)])
def test_an_unknown_field_is_refused(path: tuple[Any, ...]) -> None:
    place: Any = BUNDLE
    for key in path:
        place = place[key]
    with pytest.raises(Invalid):
        parse_bundle(_replaced(path, place | {"surprise": 1}))


@pytest.mark.parametrize("name", ["manifests", "exclusions"])
def test_lists_are_in_order_of_operator_and_name_each_once(name: str) -> None:
    rows = BUNDLE[name]
    for wrong in (rows[::-1], [rows[0], *rows]):
        with pytest.raises(Invalid, match=f"{name}: .* is out of order or stands twice"):
            parse_bundle(BUNDLE | {name: wrong})


def test_a_bundle_survives_being_written_and_read_as_json() -> None:
    assert parse_bundle(json.loads(json.dumps(BUNDLE))) == parse_bundle(BUNDLE)
