"""A Django project with one model whose every save is a webhook, by `django-webhook` on Celery.

The one rule kept here: everything is as its documentation says and as fast as its settings allow. It runs in an
environment of its own (bench/peers.lock), so nothing here imports anything of ours and nothing of ours imports it.
"""
