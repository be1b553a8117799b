"""What `bench.reads` serves: the coordinator, and beside it the least that a Flask view can do."""

from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from app import create_app

bare = Flask("bare")


@bare.get("/")
def constant() -> dict[str, str]:
    """As little as an answer can be."""
    return {"jackpot": "1234567.89"}


application = DispatcherMiddleware(create_app(), {"/bare": bare})
