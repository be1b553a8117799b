"""The version that GET /health reports."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tomllib import loads


def _read() -> str:
    try:
        return version("lottery-coordinator")
    except PackageNotFoundError:
        # Run from a checkout, as the Procfile does: the page that names the version is beside us.
        page = Path(__file__).parent.parent / "pyproject.toml"
        return str(loads(page.read_text())["project"]["version"])


VERSION = _read()
