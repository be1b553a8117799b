"""Everybody who may knock: people with a credential in force, and strangers with something that only looks like one.

One rule: a stranger differs from somebody who may come in by one thing, and its name says by which.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from sqlalchemy import text

from app.tokens import issue_access_token
from models.credentials import AdminRole, issue_admin_key, issue_api_key, issue_refresh_token
from models.session import transaction
from models.settings import settings
from tests.factories import an_operator

OPERATOR, SUSPENDED, STRANGER = "operator", "suspended operator", "stranger"


@dataclass(frozen=True)
class Visitor:
    """Who knocks, with which headers. ``kind``: one of the three above, or the role of an admin."""

    name: str
    kind: str
    headers: Mapping[str, str]


def everybody() -> list[Visitor]:
    """Every kind of visitor, in every shape that its credential can have. Makes operators op_a to op_d."""
    key, other = _key_of("a"), _key_of("d")
    key_id = key.split("_")[1]
    access = issue_access_token("op_a", key_id, datetime.now(UTC))
    suspended = _key_of("c")
    with transaction() as session:
        session.execute(text("UPDATE operators SET active = false WHERE id = 'op_c'"))
        refresh = issue_refresh_token(session, "op_a", key_id)
        admin_keys = {role.value: issue_admin_key(session, role.value, role)[1] for role in AdminRole}
        gone, revoked = issue_admin_key(session, "left the company", AdminRole.ROOT)
    with transaction() as session:
        session.execute(text("UPDATE admin_keys SET revoked_at = now() WHERE id = :id"), {"id": gone.id})
    root = admin_keys["root"]
    return [
        Visitor("an operator by key", OPERATOR, {"X-Service-Key": key}),
        Visitor("an operator by token", OPERATOR, _bearer(access)),
        Visitor("an operator by token, differently written", OPERATOR, {"Authorization": f"bearer  {access} "}),
        Visitor("an operator by key beside a bad token", OPERATOR, {"X-Service-Key": key, **_bearer("x")}),
        Visitor("a suspended operator by key", SUSPENDED, {"X-Service-Key": suspended}),
        Visitor(
            "a suspended operator by token",
            SUSPENDED,
            _bearer(issue_access_token("op_c", suspended.split("_")[1], datetime.now(UTC))),
        ),
        *(Visitor(f"the {role}", role, {"X-Service-Admin-Key": made}) for role, made in admin_keys.items()),
        *(Visitor(name, STRANGER, headers) for name, headers in _with_a_wrong_key(key, other, root, revoked)),
        *(Visitor(f"{name} for a key", STRANGER, {"X-Service-Key": it}) for name, it in _not_keys(refresh, access)),
        *(Visitor(f"{name} as admin key", STRANGER, {"X-Service-Admin-Key": it}) for name, it in _not_keys(key)),
        *(Visitor(name, STRANGER, _bearer(token)) for name, token in _forged(access)),
        *(Visitor(f"a bearer of {name}", STRANGER, _bearer(it)) for name, it in _not_keys(refresh, key, root)),
        *(Visitor(f"Authorization: {it}", STRANGER, {"Authorization": it}) for it in _other_schemes(access, key)),
        *_whose_key_expired(),
    ]


def _key_of(name: str) -> str:
    operator_id = an_operator(name, 0)
    with transaction() as session:
        return issue_api_key(session, operator_id)


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _with_a_wrong_key(key: str, other: str, root: str, revoked: str) -> Iterator[tuple[str, dict[str, str]]]:
    yield "nobody", {}
    prefix, key_id, secret = key.split("_")
    yield "a key's id with another key's secret", {"X-Service-Key": f"{prefix}_{key_id}_{other.split('_')[2]}"}
    yield "another id with a key's secret", {"X-Service-Key": f"{prefix}_{'0' * 16}_{secret}"}
    yield "a key without its last digit", {"X-Service-Key": key[:-1]}
    yield "a key and one digit more", {"X-Service-Key": key + "0"}
    yield "a key and a blank inside", {"X-Service-Key": key.replace("_", " _")}
    yield "two keys in one header", {"X-Service-Key": f"{key},{key}"}
    yield "a bad key beside a good admin's", {"X-Service-Key": f"sk_{root[3:]}"}
    yield "an admin key where an operator's belongs", {"X-Service-Key": root}
    yield "an operator's key where an admin's belongs", {"X-Service-Admin-Key": key}
    yield "a revoked admin key", {"X-Service-Admin-Key": revoked}
    yield "an admin key's id with another's secret", {"X-Service-Admin-Key": root[:20] + revoked[20:]}
    yield "an admin key in capitals", {"X-Service-Admin-Key": root.upper()}


def _not_keys(*secrets: str) -> Iterator[tuple[str, str]]:
    yield from ((f"another kind of secret ({place})", secret) for place, secret in enumerate(secrets, 1))
    yield from (("nothing", ""), ("one letter", "x"), ("a prefix", "sk_"), ("an admin prefix", "ak__"))
    yield from (("signs", "sk_%00_'\"--"), ("letters beyond ASCII", "sk_é_ÿ"), ("much", "sk_" + "0" * 5_000))


def _other_schemes(access: str, key: str) -> Iterator[str]:
    yield from ("", "Bearer", "Bearer ", access, f"Token {access}", f"Bearer, {access}")
    yield "Basic " + base64.b64encode(f"op_a:{key}".encode()).decode()


def _forged(access: str) -> Iterator[tuple[str, str]]:
    claims = jwt.decode(access, options={"verify_signature": False})
    kid, secret = settings().jwt_keys[0]
    now = datetime.now(UTC)

    def signed(changes: Mapping[str, Any], key: str = secret, algorithm: str = "HS256", kid: Any = kid) -> str:
        kept = {name: value for name, value in {**claims, **changes}.items() if value is not None}
        return jwt.encode(kept, key, algorithm=algorithm, headers={"kid": kid} if kid else None)

    yield "a token that expired", issue_access_token("op_a", claims["key"], now - timedelta(seconds=901))
    yield "a token of tomorrow", issue_access_token("op_a", claims["key"], now + timedelta(days=1))
    yield "a token of an operator that never was", issue_access_token("op_nobody", claims["key"], now)
    yield "a token of a key that never was", issue_access_token("op_a", "0" * 16, now)
    yield "a token signed with another key", signed({}, "another secret of sufficient length")
    yield "a token of an unknown key", signed({}, kid="unknown")
    yield "a token that names no key", signed({}, kid=None)
    yield "a token signed in another way", signed({}, secret * 2, "HS512")
    yield "a token for somebody else", signed({"aud": "others"})
    yield "a token from somebody else", signed({"iss": "others"})
    for name in ("exp", "iat", "iss", "aud", "sub", "key"):
        yield f"a token without {name}", signed({name: None})
    head, body, signature = access.split(".")
    for algorithm in ("none", "None", "nOnE", ""):
        unsigned = _part({"alg": algorithm, "typ": "JWT", "kid": kid})
        yield f"a token of the algorithm {algorithm!r}", f"{unsigned}.{body}."
        yield f"a signed token of the algorithm {algorithm!r}", f"{unsigned}.{body}.{signature}"
    yield "a token of another operator's making", f"{head}.{_part(claims | {'sub': 'op_d'})}.{signature}"
    yield "a token without a signature", f"{head}.{body}."
    yield "two thirds of a token", f"{head}.{body}"
    yield "a token whose head is no object", f"{_part([])}.{body}.{signature}"
    yield "a token whose key id is a list", f"{_part({'alg': 'HS256', 'kid': [kid]})}.{body}.{signature}"
    deep = base64.urlsafe_b64encode(b"[" * 3_000).decode()
    yield "a token of endless depth", f"{deep}.{body}.{signature}"


def _part(what: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(what).encode()).decode().rstrip("=")


def _whose_key_expired() -> Iterator[Visitor]:
    key = _key_of("expired")
    with transaction() as session:
        session.execute(text("UPDATE operator_api_keys SET expires_at = now() WHERE operator_id = 'op_expired'"))
    access = issue_access_token("op_expired", key.split("_")[1], datetime.now(UTC))
    yield Visitor("an expired key", STRANGER, {"X-Service-Key": key})
    yield Visitor("a token obtained with a key that expired", STRANGER, _bearer(access))
