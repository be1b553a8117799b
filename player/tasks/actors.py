"""Every actor there is: the module that a worker loads.

The one rule kept here: an actor that is not on this page is called and never answers (a test looks).
"""

from player import logs
from player.models import tables
from player.settings import settings
from player.tasks import mails
from player.tasks.broker import broker

__all__ = ["broker", "mails", "tables"]

logs.configure(settings().log_level)
