"""What may differ between two installations, read from the environment once and checked.

The one rule kept here: every setting of the coordinator has its name, default, unit and check on this page (the
README's table is made from it by hand); nothing else reads the environment.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address

from cryptography.fernet import Fernet
from environs import Env, EnvError, EnvValidationError
from marshmallow.validate import OneOf, Range, Regexp

from protocol.errors import LotteryError

_NEEDED = ("DATABASE_URL", "REDIS_URL", "ENCRYPTION_KEYS", "JWT_KEYS")
_ENCRYPTION_KEYS_HELP = (
    "ENCRYPTION_KEYS must hold one or more Fernet keys, newest first; make one with: "
    'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
)


class SettingsError(LotteryError):
    """A setting is missing or cannot be used. The message names it and never shows a secret."""

    code = "settings"


@dataclass(frozen=True)
class RoundTiming:
    """How long the stages of a scheduled round last, seconds."""

    sales: float
    sealing: float
    escrow: float
    draw: float
    settle: float
    close: float


@dataclass(frozen=True)
class Settings:
    """Everything configurable. Secrets are kept out of ``repr``."""

    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    database_pool_size: int
    sandbox: bool
    encryption_keys: tuple[str, ...] = field(repr=False)
    jwt_keys: tuple[tuple[str, str], ...] = field(repr=False)
    log_level: str
    sdk_docs_url: str | None
    fee_bps: int
    commission_bps: int
    reserve_bps: int
    winner_bonus_bps: int
    ticket_price_usdc: int
    claim_days: int
    settle_after_seconds: float
    close_after_seconds: float
    heartbeat_timeout_seconds: float
    round_schedule: str | None
    round_timing: RoundTiming
    round_retention_days: int | None
    webhook_timeout_seconds: float
    webhook_base_seconds: float
    webhook_attempts: int
    webhook_breaker_seconds: float
    webhook_concurrency: int
    webhook_endpoint_concurrency: int
    webhook_ca_file: str | None
    webhook_retention_days: int
    requeue_per_second: int
    dns_servers: tuple[tuple[str, int], ...]
    rate_limit_public: str
    rate_limit_authenticated: str
    rate_limit_reset: str
    trusted_hops: int
    archive_bucket: tuple[str, str] | None
    archive_s3_endpoint: str | None


def sqlalchemy_url(url: str) -> str:
    """The address SQLAlchemy wants: ``postgres://`` and ``postgresql://`` name our driver.

    :raises SettingsError: not an address of a PostgreSQL database.
    """
    match = re.match(r"^(?:postgres|postgresql|postgresql\+psycopg2)://", url)
    if match is None:
        raise SettingsError("DATABASE_URL must begin with postgres:// or postgresql://")
    return "postgresql+psycopg2://" + url[match.end() :]


def _encryption_keys(values: list[str]) -> tuple[str, ...]:
    keys = tuple(key.strip() for key in values if key.strip())
    try:
        for key in keys:
            Fernet(key)
    except ValueError:
        keys = ()
    if not keys:
        raise SettingsError(_ENCRYPTION_KEYS_HELP)
    return keys


def _jwt_keys(values: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = [value.partition(":") for value in values]
    for kid, colon, secret in pairs:
        if not kid or not colon or len(secret) < 32:
            raise SettingsError(
                "JWT_KEYS must hold kid:secret pairs, newest first, each secret of 32 characters or more"
            )
    return tuple((kid, secret) for kid, _, secret in pairs)


def _dns_servers(values: list[str]) -> tuple[tuple[str, int], ...]:
    servers = []
    for value in filter(None, map(str.strip, values)):
        match = re.fullmatch(
            r"(?P<host>[0-9.]+|\[[0-9a-fA-F:.]+\])(?::(?P<port>[0-9]{1,5}))?|(?P<v6>[0-9a-fA-F:.]+)", value
        )
        try:
            address = str(ip_address((match["v6"] or match["host"].strip("[]")) if match else ""))
            port = int((match and match["port"]) or 53)
            if not 1 <= port <= 65_535:
                raise ValueError
        except ValueError:
            raise SettingsError(
                "DNS_SERVERS must hold addresses, each with :port or without; an IPv6 address with a port in [brackets]"
            ) from None
        servers.append((address, port))
    return tuple(servers)


def _archive_bucket(url: str) -> tuple[str, str] | None:
    """Bucket and prefix; None when archives are kept in the database."""
    if not url:
        return None
    match = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([A-Za-z0-9._/-]*?)/*)?", url)
    if match is None:
        raise SettingsError("ARCHIVE_URL must be s3://bucket or s3://bucket/prefix, or not be set")
    return match[1], match[2] or ""


def read_settings() -> Settings:
    """Read and check every setting.

    :raises SettingsError: naming all that are missing, or the first one that is wrong.
    """
    env = Env()
    missing = [name for name in _NEEDED if not env.str(name, "").strip()]
    if missing:
        raise SettingsError(f"not set: {', '.join(missing)} (README.md says what they are, under Settings)")
    try:
        settings = _read(env)
    except EnvError as error:
        raise SettingsError(_told(error)) from None
    if settings.fee_bps + settings.commission_bps + settings.reserve_bps > 10_000:
        raise SettingsError("FEE_BPS, COMMISSION_BPS and RESERVE_BPS add up to more than 10000")
    if settings.sdk_docs_url and not settings.sdk_docs_url.startswith(("https://", "http://")):
        raise SettingsError("SDK_DOCS_URL must be a whole address, from https:// on")
    if settings.archive_s3_endpoint and not settings.archive_s3_endpoint.startswith(("https://", "http://")):
        raise SettingsError("ARCHIVE_S3_ENDPOINT must be a whole address, from https:// on")
    return settings


def _told(error: EnvError) -> str:
    # What is wrong, in the words of the check: they never repeat the value, which may be a secret.
    name = re.search(r'"([A-Z_0-9]+)"', str(error))
    why = error.error_messages if isinstance(error, EnvValidationError) else ()
    return f"{name[1] if name else 'a setting'} cannot be used: {' '.join(map(str, why)) or 'it is missing'}"


def _read(env: Env) -> Settings:
    sandbox = env.bool("SANDBOX", False)
    bps = Range(min=0, max=10_000)
    positive = Range(min=0, min_inclusive=False)
    not_negative = Range(min=0)
    requests_per_time = Regexp(
        r"^[1-9][0-9]{0,8}/(second|minute|hour|day)\Z", error="Must be like 60/minute: /second, /minute, /hour or /day."
    )
    redis = Regexp(r"^(rediss?|unix)://", error="Must begin with redis://, rediss:// or unix://.")
    levels = OneOf(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
    return Settings(
        database_url=sqlalchemy_url(env.str("DATABASE_URL")),
        redis_url=env.str("REDIS_URL", validate=redis),
        database_pool_size=env.int("DATABASE_POOL_SIZE", 10, validate=Range(min=1)),
        sandbox=sandbox,
        encryption_keys=_encryption_keys(env.list("ENCRYPTION_KEYS", subcast=str)),
        jwt_keys=_jwt_keys(env.list("JWT_KEYS", subcast=str)),
        log_level=env.str("LOG_LEVEL", "INFO", validate=lambda given: levels(given.upper())).upper(),
        sdk_docs_url=env.str("SDK_DOCS_URL", "").strip() or None,
        fee_bps=env.int("FEE_BPS", 500, validate=bps),
        commission_bps=env.int("COMMISSION_BPS", 1_000, validate=bps),
        reserve_bps=env.int("RESERVE_BPS", 400, validate=bps),
        winner_bonus_bps=env.int("WINNER_BONUS_BPS", 1_000, validate=bps),
        ticket_price_usdc=env.int("TICKET_PRICE_USDC", 3_000_000, validate=Range(min=1)),
        claim_days=env.int("CLAIM_DAYS", 90, validate=Range(min=1)),
        settle_after_seconds=env.float("SETTLE_AFTER_SECONDS", 3_600.0, validate=not_negative),
        close_after_seconds=env.float("CLOSE_AFTER_SECONDS", 86_400.0, validate=not_negative),
        heartbeat_timeout_seconds=env.float("HEARTBEAT_TIMEOUT_SECONDS", 300.0, validate=positive),
        round_schedule=env.str("ROUND_SCHEDULE", "").strip() or None,
        round_timing=RoundTiming(
            sales=env.float("ROUND_SALES_SECONDS", 72_000.0, validate=positive),
            sealing=env.float("ROUND_SEALING_SECONDS", 1_800.0, validate=not_negative),
            escrow=env.float("ROUND_ESCROW_SECONDS", 3_600.0, validate=not_negative),
            draw=env.float("ROUND_DRAW_SECONDS", 600.0, validate=not_negative),
            settle=env.float("ROUND_SETTLE_SECONDS", 3_600.0, validate=not_negative),
            close=env.float("ROUND_CLOSE_SECONDS", 86_400.0, validate=not_negative),
        ),
        round_retention_days=env.int("ROUND_RETENTION", 0, validate=not_negative) or None,
        webhook_timeout_seconds=env.float("WEBHOOK_TIMEOUT_SECONDS", 30.0, validate=positive),
        webhook_base_seconds=env.float("WEBHOOK_BASE_SECONDS", 0.1 if sandbox else 30.0, validate=positive),
        webhook_attempts=env.int("WEBHOOK_ATTEMPTS", 3, validate=Range(min=1)),
        webhook_breaker_seconds=env.float("WEBHOOK_BREAKER_SECONDS", 0.1 if sandbox else 30.0, validate=positive),
        webhook_concurrency=env.int("WEBHOOK_CONCURRENCY", 1_000, validate=Range(min=2)),
        webhook_endpoint_concurrency=env.int("WEBHOOK_ENDPOINT_CONCURRENCY", 4, validate=Range(min=2)),
        webhook_ca_file=env.str("WEBHOOK_CA_FILE", "").strip() or None,
        webhook_retention_days=env.int("WEBHOOK_RETENTION_DAYS", 90, validate=Range(min=90)),
        requeue_per_second=env.int("REQUEUE_PER_SECOND", 100, validate=Range(min=1, max=1_000)),
        dns_servers=_dns_servers(env.list("DNS_SERVERS", [], subcast=str)),
        rate_limit_public=env.str("RATE_LIMIT_PUBLIC", "60/minute", validate=requests_per_time),
        rate_limit_authenticated=env.str("RATE_LIMIT_AUTHENTICATED", "120/minute", validate=requests_per_time),
        rate_limit_reset=env.str("RATE_LIMIT_RESET", "unix", validate=OneOf(["unix", "seconds"])),
        trusted_hops=env.int("TRUSTED_HOPS", 0, validate=not_negative),
        archive_bucket=_archive_bucket(env.str("ARCHIVE_URL", "").strip()),
        archive_s3_endpoint=env.str("ARCHIVE_S3_ENDPOINT", "").strip() or None,
    )


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this process, read at first use."""
    return read_settings()
