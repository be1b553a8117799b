"""Cross-origin reads: web pages anywhere may read ``/api/public/*`` and the API's description, and nothing else."""

from flask import Flask, Response, request

_PUBLIC = ("/api/public/", "/openapi.json")


def register(app: Flask) -> None:
    """Add the one header to every answer under the public paths."""

    @app.after_request
    def allow_reading(response: Response) -> Response:
        if request.path.startswith(_PUBLIC) and request.method in ("GET", "HEAD", "OPTIONS"):
            response.headers["Access-Control-Allow-Origin"] = "*"
        return response
