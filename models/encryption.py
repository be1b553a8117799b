"""Secrets at rest: encrypted with the newest of ``ENCRYPTION_KEYS``, readable with any of them.

The one rule kept here: what we must be able to read again (webhook signing keys, round secrets) is encrypted; what
we only have to recognise is stored as a digest (``models.credentials``).
"""

from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from models.settings import SettingsError, settings


@lru_cache(maxsize=1)
def _fernet() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings().encryption_keys])


def encrypt(secret: bytes) -> bytes:
    """Encrypt with the newest key."""
    return _fernet().encrypt(secret)


def decrypt(token: bytes) -> bytes:
    """Undo ``encrypt``.

    :raises SettingsError: none of the keys fits, so ENCRYPTION_KEYS lost one that is still needed.
    """
    try:
        return _fernet().decrypt(token)
    except InvalidToken:
        raise SettingsError("a stored secret fits none of ENCRYPTION_KEYS; is an older key missing from it?") from None


def reencrypted(token: bytes) -> bytes | None:
    """The same secret encrypted with the newest key; None when it is already.

    :raises SettingsError: none of the keys fits.
    """
    try:
        Fernet(settings().encryption_keys[0]).decrypt(token)
    except InvalidToken:
        return encrypt(decrypt(token))
    return None
