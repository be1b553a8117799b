"""Families of metrics as Prometheus' text format has them, made from plain figures.

The one rule kept here: every family has the coordinator's name before its own, a line of help, and its unit at the end
of its name (seconds, never milliseconds; counters end in ``_total``).
"""

from collections.abc import Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

PREFIX = "coordinator_"


def gauge(name: str, about: str, figure: float) -> Metric:
    """One figure that goes up and down."""
    return GaugeMetricFamily(PREFIX + name, about, value=figure)


def gauges(name: str, about: str, figures: Mapping[str, float], label: str) -> Metric:
    """The same for each value of a label."""
    family = GaugeMetricFamily(PREFIX + name, about, labels=[label])
    for value, figure in figures.items():
        family.add_metric([value], figure)
    return family


def counters(name: str, about: str, counts: Mapping[str, int], label: str) -> Metric:
    """For each value of a label how often it came up since the first time; ``_total`` comes after the name."""
    family = CounterMetricFamily(PREFIX + name, about, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family


def histogram(
    name: str, about: str, bounds: tuple[float, ...], counts: Mapping[str, int], sum_seconds: float
) -> Metric:
    """How many were in each bucket, as ``counts`` has them by upper bound: each one in its own bucket only.

    Prometheus wants each bucket with everything below it, the last one (``+Inf``) with everything there is.
    """
    buckets, so_far = [], 0
    for bound in (*map(str, bounds), "+Inf"):
        so_far += counts.get(bound, 0)
        buckets.append((bound, so_far))
    return HistogramMetricFamily(PREFIX + name, about, buckets=buckets, sum_value=sum_seconds)
