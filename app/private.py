"""What is for one reader stays with that reader: keys, tokens, profiles and everything an admin sees.

The one rule kept here: no cache between us and a client keeps an answer that depended on who asked, or that shows a
secret. Our keys travel in headers of our own, of which a shared cache knows nothing.
"""

from flask import Flask, Response, request

_PRIVATE = (
    "/api/operator/",
    "/api/admin/",
    "/api/auth/",
    "/api/public/apply",
    "/api/public/application-status/",
)


def is_private(path: str) -> bool:
    """Whether answers under this path are for whoever asked alone."""
    return path.startswith(_PRIVATE)


def register(app: Flask) -> None:
    """Say so on every answer, refusals included, under the private paths."""

    @app.after_request
    def keep_to_yourself(response: Response) -> Response:
        if is_private(request.path):
            response.headers["Cache-Control"] = "no-store"
        return response
