"""`celery -A bench.django_peer.worker worker`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bench.django_peer.settings")
app = Celery("django_peer")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
