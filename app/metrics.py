"""``GET /metrics``: the state of the service in figures, as Prometheus reads them.

The one rule kept here: every figure is read from the rows it is about, at the moment of asking. It is the same
whichever web process answers, and no process that dies takes any of it along.
"""

from collections.abc import Iterator

from flask import Response
from flask.views import MethodView
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from sqlalchemy.orm import Session

from app.families import PREFIX, gauge, gauges
from app.parsing import Blueprint
from app.version import VERSION
from app.webhook_metrics import webhook_metrics
from models.archive_checks import damaged_archives
from models.ledger import POOL, RESERVE, balance
from models.queues import pauses
from models.session import transaction
from models.statistics import longest_overdue_seconds, operator_counts, rounds_by_state
from models.tabulations import disagreeing_rounds
from models.webhook_figures import Deferral
from protocol.lifecycle import State
from tasks.backlog import backlogs

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

blueprint = Blueprint("metrics", __name__, description="Is the service up")


class _Collector:
    """What Prometheus is told; reads all of it in one transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def collect(self) -> Iterator[Metric]:
        yield gauges("build_info", "The version that runs; always 1.", {VERSION: 1}, "version")
        yield from self._queues()
        yield from webhook_metrics(self._session)
        rounds = rounds_by_state(self._session)
        yield gauges("rounds", "Rounds in each state.", {state: rounds.get(state, 0) for state in State}, "state")
        yield gauge(
            "round_overdue_seconds",
            "For how long a step of a round has been due, of the round that is furthest behind; 0 if none is. A round "
            "that waits for the one before it does not count.",
            longest_overdue_seconds(self._session),
        )
        yield gauge(
            "rounds_disagreeing",
            "Drawn rounds that are not settled because the two tabulations of their winners disagree.",
            disagreeing_rounds(self._session),
        )
        yield gauge(
            "archives_damaged",
            "Archives of sealed tickets that were damaged or missing when they were last read to their end.",
            damaged_archives(self._session),
        )
        everybody, active = operator_counts(self._session)
        by_activity = {"true": active, "false": everybody - active}
        yield gauges("operators", "Operators, suspended ones apart.", by_activity, "active")
        money = {account: balance(self._session, account) for account in (POOL, RESERVE)}
        yield gauges("balance_micro_usdc", "What the jackpot's pool and the reserve hold.", money, "account")

    def _queues(self) -> Iterator[Metric]:
        found, paused = backlogs(self._session), pauses(self._session)
        depths = {queue: backlog.depth for queue, backlog in found.items()}
        yield gauges(
            "queue_depth", "Rows due that nobody is at, held back or not; of many an estimate.", depths, "queue"
        )
        yield gauges(
            "queue_oldest_due_seconds",
            "For how long the oldest of those has been due; 0 if there is none.",
            {queue: backlog.oldest_due_seconds or 0 for queue, backlog in found.items()},
            "queue",
        )
        deferred = GaugeMetricFamily(
            f"{PREFIX}queue_deferred",
            "How many of those are held back: paused (their queue or endpoint is) or breaker (the endpoint's is open).",
            labels=["queue", "reason"],
        )
        for queue, backlog in found.items():
            counts = {Deferral.PAUSED: backlog.depth} if queue in paused else backlog.deferred
            for reason in Deferral:
                deferred.add_metric([queue, reason.value], counts.get(reason, 0))
        yield deferred
        in_flight = {queue: backlog.in_flight for queue, backlog in found.items()}
        yield gauges("queue_in_flight", "Rows that a worker is at.", in_flight, "queue")
        held = {queue: int(queue in paused) for queue in found}
        yield gauges("queue_paused", "1 while somebody has paused the queue.", held, "queue")
        yield gauge(
            "scheduler_behind_seconds",
            "For how long something due has not been rung for; some tenths of a second while a scheduler runs.",
            max(0.0 if queue in paused else backlog.unrung_seconds for queue, backlog in found.items()),
        )


@blueprint.route("/metrics")
class Metrics(MethodView):
    """Figures."""

    @blueprint.response(
        200,
        {"type": "string", "description": "Prometheus' text format, version 0.0.4."},
        content_type="text/plain",
        example="# HELP coordinator_queue_depth Rows due that nobody is at, held back or not; of many an estimate.\n"
        "# TYPE coordinator_queue_depth gauge\n"
        'coordinator_queue_depth{queue="deliveries"} 3.0\n',
    )
    def get(self) -> Response:
        """What waits and for how long, what has failed, what is on: for a monitor, not for the public network."""
        registry = CollectorRegistry()
        with transaction() as session:
            registry.register(_Collector(session))
            return Response(generate_latest(registry), content_type=CONTENT_TYPE)
