"""The model whose news is sent."""

import time

from django.db import models
from django.db.models.signals import post_save

committed_at = 0.0
"""When the last row was there for everybody to see (Unix time)."""


class Drawn(models.Model):
    """A round that was drawn, with what the webhook tells of it."""

    round_id = models.IntegerField()
    data = models.JSONField()


def _note(**_: object) -> None:
    global committed_at
    committed_at = time.time()


# Connected at import, which is before django-webhook connects the sending: the row is committed then, and nothing sent.
post_save.connect(_note, sender=Drawn)
