"""Cross-origin reads: web pages anywhere may read ``/api/public/*`` and the API's description, and nothing else."""

from flask import Flask, Response, request

_PUBLIC = ("/api/public/", "/openapi.json")
_EXPOSED = "ETag, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"
"""Without this a page sees the answer and not how often it may ask again."""


def register(app: Flask) -> None:
    """Say so on every answer under the public paths."""

    @app.after_request
    def allow_reading(response: Response) -> Response:
        if request.path.startswith(_PUBLIC) and request.method in ("GET", "HEAD", "OPTIONS"):
            response.headers["Access-Control-Allow-Origin"] = "*"
            response.headers["Access-Control-Expose-Headers"] = _EXPOSED
        return response
