"""``GET /metrics``: the state of the service in figures, as Prometheus reads them.

The one rule kept here: every figure is read from the rows it is about, at the moment of asking. It is the same
whichever web process answers, and no process that dies takes any of it along.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from flask import Response
from flask.views import MethodView
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from sqlalchemy.orm import Session

from app.parsing import Blueprint
from app.version import VERSION
from models.ledger import POOL, RESERVE, balance
from models.queues import pauses
from models.requeue import failed_deliveries
from models.session import transaction
from models.statistics import operator_counts, rounds_by_state
from protocol.lifecycle import State
from tasks.backlog import backlogs

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

blueprint = Blueprint("metrics", __name__, description="Is the service up")


class _Collector:
    """What Prometheus is told; reads all of it in one transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def collect(self) -> Iterator[Metric]:
        yield _gauge("build_info", "The version that runs; always 1.", {(VERSION,): 1}, "version")
        yield from self._queues()
        failed = failed_deliveries(self._session)
        yield _gauge("deliveries_failed", "Webhook deliveries that have failed and wait for somebody.", {(): failed})
        rounds = rounds_by_state(self._session)
        by_state = {(state.value,): rounds.get(state, 0) for state in State}
        yield _gauge("rounds", "Rounds in each state.", by_state, "state")
        everybody, active = operator_counts(self._session)
        by_activity = {("true",): active, ("false",): everybody - active}
        yield _gauge("operators", "Operators, suspended ones apart.", by_activity, "active")
        money = {(account,): balance(self._session, account) for account in (POOL, RESERVE)}
        yield _gauge("balance_micro_usdc", "What the jackpot's pool and the reserve hold.", money, "account")

    def _queues(self) -> Iterator[Metric]:
        found, paused = backlogs(self._session), pauses(self._session)
        for name, about, figures in (
            ("depth", "Rows that are due and nobody is at.", {q: b.depth for q, b in found.items()}),
            (
                "oldest_due_seconds",
                "For how long the oldest of those has been due; 0 if there is none.",
                {q: b.oldest_due_seconds or 0 for q, b in found.items()},
            ),
            ("in_flight", "Rows that a worker is at.", {q: b.in_flight for q, b in found.items()}),
            ("paused", "1 while somebody has paused the queue.", {q: int(q in paused) for q in found}),
        ):
            yield _gauge(f"queue_{name}", about, {(queue,): figure for queue, figure in figures.items()}, "queue")


def _gauge(name: str, about: str, figures: Mapping[Any, float], *labels: str) -> Metric:
    """One figure for each tuple of its labels' values."""
    family = GaugeMetricFamily(f"coordinator_{name}", about, labels=labels)
    for values, figure in figures.items():
        family.add_metric(values, figure)
    return family


@blueprint.route("/metrics")
class Metrics(MethodView):
    """Figures."""

    @blueprint.response(
        200,
        {"type": "string", "description": "Prometheus' text format, version 0.0.4."},
        content_type="text/plain",
        example="# HELP coordinator_queue_depth Rows that are due and nobody is at.\n"
        "# TYPE coordinator_queue_depth gauge\n"
        'coordinator_queue_depth{queue="deliveries"} 3.0\n',
    )
    def get(self) -> Response:
        """What waits and for how long, what has failed, what is on: for a monitor, not for the public network."""
        registry = CollectorRegistry()
        with transaction() as session:
            registry.register(_Collector(session))
            return Response(generate_latest(registry), content_type=CONTENT_TYPE)
