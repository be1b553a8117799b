"""What a monitor is told of webhooks: what happened is counted, and what waits is there whatever holds it back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text

from models.deliveries import announce
from models.endpoints import pause_endpoint
from models.session import transaction
from models.tallies import BUCKETS_SECONDS, Kind, add, bucket
from protocol.lifecycle import State
from protocol.retry import ERROR_CLASSES
from tests.app.conftest import Caller
from tests.app.ops import Shell
from tests.app.test_metrics import figures
from tests.factories import a_round, an_operator, some_operators, take_part, take_to


def families(caller: Caller) -> dict[str, Metric]:
    """Every family by its name, as Prometheus' own parser reads it."""
    return {family.name: family for family in text_string_to_metric_families(caller.get("/metrics").text)}


def buckets(family: Metric) -> dict[float, float]:
    return {float(one.labels["le"]): one.value for one in family.samples if one.name.endswith("_bucket")}


def count(tallied: Mapping[tuple[Kind, str], int]) -> None:
    with transaction() as session:
        add(session, tallied)


def change(statement: str) -> None:
    with transaction() as session:
        session.execute(text(statement))


def tell(*operator_ids: str) -> None:
    """A webhook to each of them that was due five minutes ago."""
    with transaction() as session:
        announce(session, "round.sealed", operator_ids, None, {})
        session.execute(
            text(
                "UPDATE deliveries SET due_at = now() - interval '5 minutes' WHERE due_at > now() - interval '1 minute'"
            )
        )


def test_every_family_says_what_it_is(anybody: Caller) -> None:
    for name, family in families(anybody).items():
        assert name.startswith("coordinator_")
        assert family.documentation.endswith((".", "1.")), name
        assert family.type in ("gauge", "counter", "histogram"), name
        assert family.samples, name


def test_every_outcome_is_there_before_the_first_attempt(anybody: Caller) -> None:
    found = families(anybody)
    attempts = found["coordinator_webhook_attempts"]
    assert {one.labels["outcome"]: one.value for one in attempts.samples} == dict.fromkeys(
        ["delivered", *ERROR_CLASSES, "ours"], 0
    )
    assert buckets(found["coordinator_webhook_attempt_seconds"]) == dict.fromkeys([*BUCKETS_SECONDS, float("inf")], 0)


def test_attempts_are_counted_by_what_came_of_them(anybody: Caller) -> None:
    for _ in range(2):
        count({(Kind.OUTCOME, "delivered"): 5, (Kind.OUTCOME, "timeout"): 2, (Kind.OUTCOME, "ours"): 1})
    count({(Kind.CONNECTION, "new"): 3, (Kind.CONNECTION, "reused"): 4, (Kind.GIVEN_UP, "dns"): 6})
    found = figures(anybody)
    assert found["webhook_attempts_total/delivered"] == 10
    assert (found["webhook_attempts_total/timeout"], found["webhook_attempts_total/ours"]) == (4, 2)
    assert (found["webhook_connections_total/new"], found["webhook_connections_total/reused"]) == (3, 4)
    assert (found["webhook_given_up_total/dns"], found["webhook_given_up_total/tls"]) == (6, 0)


@pytest.mark.parametrize(
    ("name", "kind", "sum_kind"),
    [("attempt", Kind.SECONDS, Kind.SECONDS_SUM), ("wait", Kind.WAIT, Kind.WAIT_SUM)],
)
def test_a_bucket_holds_everything_up_to_its_bound(anybody: Caller, name: str, kind: Kind, sum_kind: Kind) -> None:
    for seconds in (0.004, 0.01, 0.2, 0.2, 31.0, 600.0):
        count({(kind, bucket(seconds)): 1, (sum_kind, ""): round(seconds * 1_000_000)})
    family = families(anybody)[f"coordinator_webhook_{name}_seconds"]
    assert family.type == "histogram"
    found = buckets(family)
    assert list(found) == sorted(found)
    assert found == {
        **dict.fromkeys((0.01, 0.025, 0.05, 0.1), 2),
        **dict.fromkeys((0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0), 4),
        60.0: 5,
        float("inf"): 6,
    }
    rest = {one.name: one.value for one in family.samples if not one.name.endswith("_bucket")}
    assert rest[f"{family.name}_count"] == 6
    assert rest[f"{family.name}_sum"] == pytest.approx(631.414)


def test_what_is_held_back_still_waits_and_says_why(anybody: Caller, admin: Callable[..., Caller]) -> None:
    tell(*some_operators(4))
    with transaction() as session:
        assert pause_endpoint(session, "op_a", "nina", "a drill")
    change("UPDATE webhook_endpoints SET failures = 5, open_until = now() + interval '30 s' WHERE operator_id = 'op_b'")
    found = figures(anybody)
    assert found["queue_depth/deliveries"] == 4
    assert found["queue_oldest_due_seconds/deliveries"] == pytest.approx(300, abs=60)
    assert (found["queue_deferred/deliveries/paused"], found["queue_deferred/deliveries/breaker"]) == (1, 1)
    admin("oncall").post("/api/admin/queues/deliveries/pause", {"reason": "a drill"})
    found = figures(anybody)
    assert found["queue_depth/deliveries"] == 4
    assert found["queue_oldest_due_seconds/deliveries"] == pytest.approx(300, abs=60)
    assert (found["queue_deferred/deliveries/paused"], found["queue_deferred/deliveries/breaker"]) == (4, 0)


def test_only_what_could_be_sent_now_is_overdue(anybody: Caller) -> None:
    assert figures(anybody)["webhook_oldest_ready_seconds"] == 0
    tell(an_operator("a"))
    assert figures(anybody)["webhook_oldest_ready_seconds"] == pytest.approx(300, abs=60)
    change("UPDATE webhook_endpoints SET failures = 5, open_until = now() + interval '30 s'")
    assert figures(anybody)["webhook_oldest_ready_seconds"] == 0
    # A probe may be made since then, however long it has been due.
    change("UPDATE webhook_endpoints SET open_until = now() - interval '2 minutes'")
    assert figures(anybody)["webhook_oldest_ready_seconds"] == pytest.approx(120, abs=60)
    change("UPDATE webhook_endpoints SET paused_at = now()")
    assert figures(anybody)["webhook_oldest_ready_seconds"] == 0


def test_what_somebody_is_at_waits_no_more(anybody: Caller) -> None:
    tell(*some_operators(2))
    change("""UPDATE deliveries SET lease_ends_at = now() + interval '45 s', due_at = now() + interval '45 s'
        WHERE operator_id = 'op_a'""")
    found = figures(anybody)
    assert (found["queue_depth/deliveries"], found["queue_in_flight/deliveries"]) == (1, 1)
    change("UPDATE deliveries SET lease_ends_at = now(), due_at = now() WHERE operator_id = 'op_a'")
    found = figures(anybody)
    assert (found["queue_depth/deliveries"], found["queue_in_flight/deliveries"]) == (2, 0)


def test_endpoints_are_counted_by_how_they_do_as_they_are_listed(anybody: Caller, shell: Shell) -> None:
    some_operators(6)
    change("UPDATE operators SET webhook_url = 'https://example.com/' WHERE id <> 'op_f'")
    change("UPDATE webhook_endpoints SET failures = 2 WHERE operator_id = 'op_b'")
    change("UPDATE webhook_endpoints SET failures = 5, open_until = now() WHERE operator_id IN ('op_c', 'op_d')")
    change("UPDATE webhook_endpoints SET paused_at = now() WHERE operator_id = 'op_d'")
    found = figures(anybody)
    states = {state: found[f"webhook_endpoints/{state}"] for state in ("healthy", "failing", "open", "paused")}
    # An operator that has registered no address is not counted; of op_c the next probe is due, and none has succeeded.
    assert states == {"healthy": 2, "failing": 1, "open": 1, "paused": 1}
    listed = {state: shell.json("endpoints", "list", "--state", state)["endpoints"] for state in states}
    assert {state: [one["operatorId"] for one in listed[state]] for state in ("failing", "open", "paused")} == {
        "failing": ["op_b"],
        "open": ["op_c"],
        "paused": ["op_d"],
    }


def test_bulk_requeues_that_are_under_way_are_seen(anybody: Caller) -> None:
    change("""INSERT INTO requeue_jobs (actor, reason, filters, failed_by, matched, requeued, due_at) VALUES
        ('nina', 'their outage', '{}', now(), 500, 120, now()), ('nina', 'another', '{}', now(), 7, 7, NULL)""")
    found = figures(anybody)
    assert (found["requeue_jobs"], found["requeue_remaining_deliveries"]) == (1, 380)


def test_a_scheduler_that_rings_for_nothing_is_seen(anybody: Caller, admin: Callable[..., Caller]) -> None:
    played = a_round(some_operators(1))
    assert figures(anybody)["scheduler_behind_seconds"] == 0
    change(
        f"UPDATE rounds SET due_at = now() - interval '2 minutes', ring_at = now() - interval '1 h' WHERE id = {played}"
    )
    assert figures(anybody)["scheduler_behind_seconds"] == pytest.approx(120, abs=60)
    change("UPDATE rounds SET ring_at = now() + interval '1 minute'")
    assert figures(anybody)["scheduler_behind_seconds"] == 0
    change("UPDATE rounds SET ring_at = now() - interval '5 minutes'")
    admin("oncall").post("/api/admin/queues/rounds/pause", {"reason": "a drill"})
    assert figures(anybody)["scheduler_behind_seconds"] == 0


def test_a_round_is_overdue_unless_it_waits_for_the_one_before_it(anybody: Caller) -> None:
    operators = some_operators(1)
    first, second = a_round(operators), a_round(operators)
    for played in (first, second):
        take_part(played, operators)
    assert figures(anybody)["round_overdue_seconds"] == 0
    take_to(second, State.SEALING)
    change(f"UPDATE rounds SET due_at = now() - interval '10 minutes' WHERE id = {second}")
    assert figures(anybody)["round_overdue_seconds"] == 0
    change(f"UPDATE rounds SET due_at = now() - interval '5 minutes' WHERE id = {first}")
    assert figures(anybody)["round_overdue_seconds"] == pytest.approx(300, abs=60)
    take_to(first, State.SETTLED)
    assert figures(anybody)["round_overdue_seconds"] == pytest.approx(600, abs=60)
