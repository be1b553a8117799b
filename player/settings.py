"""What may differ between two nodes, read from the environment once and checked.

The one rule kept here: every setting of a node has its name, default, unit and check on this page; nothing else in
``player`` reads the environment. The table in docs/player.md is made from it by hand.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from environs import Env, EnvError, EnvValidationError
from marshmallow.validate import OneOf, Range, Regexp

from protocol.errors import LotteryError

_NEEDED = (
    *("DATABASE_URL", "REDIS_URL", "COORDINATOR_URL", "OPERATOR_API_KEY"),
    *("PUBLIC_URL", "JWT_KEYS", "PAYMENT_SECRET"),
)
_SANDBOX_PORT = "player.payments.sandbox:SandboxPayments"
_NO_PORT = "player.payments.port:NoPayments"


class SettingsError(LotteryError):
    """A setting is missing or cannot be used. The message names it and never shows a secret."""

    code = "settings"


@dataclass(frozen=True)
class Settings:
    """Everything configurable. Secrets are kept out of ``repr``."""

    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    database_pool_size: int
    sandbox: bool
    log_level: str
    coordinator_url: str
    operator_api_key: str = field(repr=False)
    operator_api_key_previous: str | None = field(repr=False)
    public_url: str
    webhook_url: str | None
    webhook_tolerance_seconds: float
    jwt_keys: tuple[tuple[str, str], ...] = field(repr=False)
    payment_secret: str = field(repr=False)
    payment_port: str
    withdrawal_kyc_usdc: int
    smtp_url: str | None = field(repr=False)
    mail_from: str
    sales_lead_seconds: float
    poll_seconds: float
    heartbeat_seconds: float
    submit_every_seconds: float
    rate_limits: bool
    trusted_hops: int


def sqlalchemy_url(url: str) -> str:
    """The address SQLAlchemy wants: ``postgres://`` and ``postgresql://`` name our driver.

    :raises SettingsError: not an address of a PostgreSQL database.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("postgres", "postgresql", "postgresql+psycopg2"):
        raise SettingsError("DATABASE_URL must begin with postgres:// or postgresql://")
    return f"postgresql+psycopg2://{rest}"


def read_settings() -> Settings:
    """Read and check every setting.

    :raises SettingsError: naming all that are missing, or the first one that is wrong.
    """
    env = Env()
    missing = [name for name in _NEEDED if not env.str(name, "").strip()]
    if missing:
        raise SettingsError(f"not set: {', '.join(missing)} (docs/player.md says what they are, under Settings)")
    try:
        return _read(env)
    except EnvError as error:
        raise SettingsError(_told(error)) from None


def _told(error: EnvError) -> str:
    # What is wrong, in the words of the check: they never repeat the value, which may be a secret.
    name = re.search(r'"([A-Z_0-9]+)"', str(error))
    why = error.error_messages if isinstance(error, EnvValidationError) else ()
    return f"{name[1] if name else 'a setting'} cannot be used: {' '.join(map(str, why)) or 'it is missing'}"


def _read(env: Env) -> Settings:
    sandbox = env.bool("SANDBOX", False)
    positive = Range(min=0, min_inclusive=False)
    address = Regexp(r"^https?://[^\s/]+[^\s]*\Z", error="Must be a whole address, from https:// on.")
    redis = Regexp(r"^(rediss?|unix)://", error="Must begin with redis://, rediss:// or unix://.")
    class_path = Regexp(r"^[\w.]+:\w+\Z", error="Must be package.module:Class.")
    levels = OneOf(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
    return Settings(
        database_url=sqlalchemy_url(env.str("DATABASE_URL")),
        redis_url=env.str("REDIS_URL", validate=redis),
        database_pool_size=env.int("DATABASE_POOL_SIZE", 10, validate=Range(min=1)),
        sandbox=sandbox,
        log_level=env.str("LOG_LEVEL", "INFO", validate=lambda given: levels(given.upper())).upper(),
        coordinator_url=env.str("COORDINATOR_URL", validate=address).rstrip("/"),
        operator_api_key=env.str("OPERATOR_API_KEY"),
        # While a key is being replaced, webhooks that are on their way are still signed with the one before.
        operator_api_key_previous=env.str("OPERATOR_API_KEY_PREVIOUS", "") or None,
        public_url=env.str("PUBLIC_URL", validate=address).rstrip("/"),
        webhook_url=_webhook_url(env.str("WEBHOOK_URL", "on").strip()),
        webhook_tolerance_seconds=env.float("WEBHOOK_TOLERANCE_SECONDS", 300.0, validate=positive),
        jwt_keys=_jwt_keys(env.list("JWT_KEYS", subcast=str)),
        payment_secret=_secret("PAYMENT_SECRET", env.str("PAYMENT_SECRET")),
        payment_port=env.str("PAYMENT_PORT", _SANDBOX_PORT if sandbox else _NO_PORT, validate=class_path),
        # micro-USDC that may be withdrawn in all by players nothing is known of. Anti-money-laundering rules set it.
        withdrawal_kyc_usdc=env.int("WITHDRAWAL_KYC_USDC", 2_000_000_000, validate=Range(min=0)),
        smtp_url=_smtp_url(env.str("SMTP_URL", ""), sandbox),
        mail_from=env.str("MAIL_FROM", "lottery@localhost"),
        # The lead is what the last tickets, their count and the manifest need before sales must be over.
        sales_lead_seconds=env.float("SALES_LEAD_SECONDS", 2.0 if sandbox else 300.0, validate=positive),
        poll_seconds=env.float("POLL_SECONDS", 1.0 if sandbox else 30.0, validate=positive),
        heartbeat_seconds=env.float("HEARTBEAT_SECONDS", 60.0, validate=positive),
        submit_every_seconds=env.float("SUBMIT_EVERY_SECONDS", 1.0 if sandbox else 10.0, validate=positive),
        rate_limits=env.str("RATE_LIMITS", "on", validate=OneOf(["on", "off"])) == "on",
        trusted_hops=env.int("TRUSTED_HOPS", 0, validate=Range(min=0)),
    )


def _webhook_url(text: str) -> str | None:
    """Where the coordinator is told to send events: an address, ``on`` for ours below PUBLIC_URL, ``off`` for nowhere.

    :raises SettingsError: something else.
    """
    if text == "off":
        return None
    if text != "on" and not text.startswith(("https://", "http://")):
        raise SettingsError("WEBHOOK_URL must be on, off or a whole address, from https:// on")
    return text


def _smtp_url(text: str, sandbox: bool) -> str | None:
    """Where mails go. A player who cannot get a new password by mail is locked out, so only a sandbox may lack it.

    :raises SettingsError: missing outside of a sandbox, or not the address of a mail server.
    """
    if not text and sandbox:
        return None
    if not re.fullmatch(r"smtps?://([^\s/@]+@)?(\[[0-9a-f:]+\]|[^\s/@:]+)(:[0-9]{1,5})?/?", text):
        raise SettingsError("SMTP_URL must be smtp://USER:PASSWORD@HOST:PORT or smtps://…; only a sandbox needs none")
    return text


def _jwt_keys(values: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = [value.partition(":") for value in values]
    if not all(kid and colon and len(secret) >= 32 for kid, colon, secret in pairs):
        raise SettingsError("JWT_KEYS must hold kid:secret pairs, newest first, each secret of 32 characters or more")
    return tuple((kid, secret) for kid, _, secret in pairs)


def _secret(name: str, value: str) -> str:
    if len(value) < 32:
        raise SettingsError(f"{name} must have 32 characters or more")
    return value


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this process, read at first use."""
    return read_settings()
