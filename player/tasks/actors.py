"""Every actor there is: the module that a worker loads.

The one rule kept here: an actor that is not on this page is called and never answers (a test looks).
"""

from player import logs
from player.models import tables
from player.settings import settings
from player.tasks.broker import broker
from player.tasks.chores import do_chore
from player.tasks.heard import handle_webhook
from player.tasks.mails import send_mail
from player.tasks.payments import tell_provider
from player.tasks.rounds import advance_round

__all__ = ["advance_round", "broker", "do_chore", "handle_webhook", "send_mail", "tables", "tell_provider"]

logs.configure(settings().log_level)
