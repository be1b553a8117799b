"""Every actor there is: the module that a worker loads.

The one rule kept here: an actor that is not imported on this page is rung for and never answers (a test looks).
"""

from models import tables
from models.settings import settings
from tasks import chores, deliveries, heartbeats, logs, opening, pieces, requeueing, rounds
from tasks.broker import broker

__all__ = ["broker", "chores", "deliveries", "heartbeats", "opening", "pieces", "requeueing", "rounds", "tables"]

logs.configure(settings().log_level)
