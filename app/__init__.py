"""The door of the coordinator: the HTTP API and the ``flask ops`` command line.

It accepts writes and serves reads; it never changes a round's state. From the request the way is short: a blueprint
checks who asks (``credentials``) and what (``resources``), a query or conditional update of ``models`` does it in one
transaction, and the answer is what ``resources`` say it looks like.
"""

from models.settings import SettingsError

try:
    from app.factory import create_app
except SettingsError as error:
    # Importing this package is the start of a process (gunicorn, flask): one line, not a traceback.
    raise SystemExit(f"coordinator: {error}") from None

__all__ = ["create_app"]
