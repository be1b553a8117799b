"""Makes the tables, registers webhooks, and saves a row whenever it is told to.

python -m bench.django_peer.announcer     reads lines of JSON: first all addresses, then the data of each row;
                                          answers each with when the row was committed and all was enqueued
"""

import json
import os
import sys
import time

import django
from django.core.management import call_command

# As its documentation has it, before Django is set up: the sending's task belongs to the app that is there by then.
from bench.django_peer import worker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bench.django_peer.settings")


def main() -> None:
    """Serve until the lines end."""
    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)
    assert worker.app
    from bench.django_peer import models  # Only now can it be imported.

    for line in sys.stdin:
        [told] = json.loads(line)
        if isinstance(told, list):
            _register(told)
            answer: object = None
        else:
            models.Drawn.objects.create(round_id=1, data=told)
            answer = [models.committed_at, time.time()]
        print(json.dumps(answer), flush=True)


def _register(urls: list[str]) -> None:
    from django_webhook.models import Webhook, WebhookSecret, WebhookTopic, populate_topics_from_settings

    populate_topics_from_settings()  # At start it could not: there was no table.
    topic = WebhookTopic.objects.get(name="django_peer.Drawn/create")
    webhooks = Webhook.objects.bulk_create([Webhook(url=url) for url in urls])
    WebhookSecret.objects.bulk_create(
        [WebhookSecret(webhook=webhook, token="for benches " * 5) for webhook in webhooks]
    )
    topic.webhooks.set(webhooks)


if __name__ == "__main__":
    main()
