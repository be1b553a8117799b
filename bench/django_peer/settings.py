"""Django, Celery and django-webhook, configured from PEER_DATABASE, PEER_DATABASE_HOST and PEER_REDIS_URL."""

import os

SECRET_KEY = "for benches only"  # noqa: S105 - signs nothing
INSTALLED_APPS = ["bench.django_peer", "django_webhook"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["PEER_DATABASE"],
        "HOST": os.environ["PEER_DATABASE_HOST"],
        "USER": "postgres",
        # By default every task would open a connection of its own.
        "CONN_MAX_AGE": None,
    }
}
# Its own defaults otherwise: attempts are stored, and who wants to hear of a topic is remembered for a minute.
DJANGO_WEBHOOK = {"MODELS": ["django_peer.Drawn"]}

CELERY_BROKER_URL = os.environ["PEER_REDIS_URL"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
