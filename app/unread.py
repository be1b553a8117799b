"""Bodies that nobody read: a refusal often comes before the body was looked at.

The one rule kept here: an answer is sent when the request has arrived. Gunicorn closes a connection on which more than
64 KiB are still coming, and the client (or an nginx before us) sees a broken connection instead of its 401, 413 or 429.
"""

from contextlib import suppress

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from app.resources.tickets import LARGEST_BODY

_CHUNK_BYTES = 64 * 1024


def register(app: Flask) -> None:
    """Let every answer wait for the rest of its request, if that is no more than the largest body there may be."""

    @app.after_request
    def read_to_the_end(response: Response) -> Response:
        request.max_content_length = LARGEST_BODY
        with suppress(HTTPException, OSError):
            while request.stream.read(_CHUNK_BYTES):
                pass
        return response
