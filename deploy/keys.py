"""The secrets of a program that nobody gave any: made once, kept in its data folder.

One rule: a secret is made once. Losing ENCRYPTION_KEYS loses every operator's webhook key, so what was
written stays, and a damaged file stops the start instead of being replaced.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet

from deploy.data_folder import DataFolder
from deploy.failure import StartFailure

Makers = Mapping[str, Callable[[], str]]
"""Names of settings that are secrets, and how a fresh one is made."""


def _jwt_keys() -> str:
    return f"k1:{secrets.token_urlsafe(48)}"


OF_A_COORDINATOR: Makers = {"ENCRYPTION_KEYS": lambda: Fernet.generate_key().decode(), "JWT_KEYS": _jwt_keys}
OF_A_NODE: Makers = {"JWT_KEYS": _jwt_keys, "PAYMENT_SECRET": lambda: secrets.token_urlsafe(48)}


def keys(folder: DataFolder, environ: Mapping[str, str], makers: Makers = OF_A_COORDINATOR) -> dict[str, str]:
    """These secrets: from `environ` where set, else from the folder, else fresh (and kept)."""
    file = folder.path / "secrets.json"
    kept = _read(file, makers)
    result = {name: environ.get(name) or kept.get(name) or make() for name, make in makers.items()}
    fresh = {name: key for name, key in result.items() if not environ.get(name) and name not in kept}
    if fresh:
        write_private(file, kept | fresh)
    return result


def write_private(file: Path, content: Any) -> None:
    """Replace `file` by `content` as JSON, at once and readable by us alone."""
    replace_private(file, json.dumps(content, indent=2) + "\n")


def replace_private(file: Path, text: str, mode: int = 0o600) -> None:
    """Replace `file` by `text`, for us alone. A reader sees the old or the new."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    unfinished.replace(file)


def _read(file: Path, makers: Makers) -> dict[str, str]:
    try:
        kept = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        kept = None
    if not isinstance(kept, dict) or not all(isinstance(key, str) and key for key in kept.values()):
        raise StartFailure(f"{file} is damaged: restore it, or set {' and '.join(makers)}")
    return kept
