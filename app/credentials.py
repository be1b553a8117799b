"""Who asks: operators by API key or access token, admins by key and role.

The one rule kept here: a blueprint is guarded as a whole (``before_request``), before anything of the request's body
is read; nobody can forget it for one endpoint.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import ParamSpec, TypeVar

from flask import current_app, g, request

from app.documentation.declared import for_roles, reads_credential, refuses
from app.tokens import operator_of_access_token
from models.credentials import AdminKey, AdminRole, admin_of_key, key_in_force, operator_of_api_key
from models.operators import Operator
from models.session import transaction
from protocol.errors import Forbidden, LotteryError, Unauthenticated

P = ParamSpec("P")
T = TypeVar("T")

_GUARDS: set[Callable[[], None]] = set()


def guard(check: Callable[[], None]) -> Callable[[], None]:
    """A guard that makes up its mind once a request.

    It is asked twice: by ``ask_guards``, so that the request is counted against the right key (``app.limits``), and at
    the blueprint's door, where a refusal ends the request. ``check`` notes a genuine key in ``g.verified_key`` before
    it looks at what the key may do: a suspended operator's requests are still counted as that key's.
    """

    @wraps(check)
    def once() -> None:
        verdicts: dict[Callable[[], None], LotteryError | None] = g.setdefault("verdicts", {})
        if once not in verdicts:
            try:
                check()
                verdicts[once] = None
            except LotteryError as refusal:
                verdicts[once] = refusal
        verdict = verdicts[once]
        if verdict is not None:
            raise verdict

    _GUARDS.add(once)
    return once


def ask_guards() -> None:
    """Let the guards of the request's blueprint find out who asks; whom they refuse is refused at the door."""
    for name in request.blueprints:
        for before in current_app.before_request_funcs.get(name, ()):
            if before in _GUARDS:
                with suppress(LotteryError):
                    before()


@guard
@reads_credential("operatorKey", "accessToken")
@refuses(
    Unauthenticated("unknown or expired API key"),
    Unauthenticated("the access token is invalid or expired", code="invalid_token"),
    Forbidden("the operator is suspended", code="suspended"),
)
def require_operator() -> None:
    """Guard of an operator blueprint: lets an active operator in, as ``current_operator_id()``.

    :raises Unauthenticated: no credential or one that is not ours.
    :raises Forbidden: the operator is suspended.
    """
    key = request.headers.get("X-Service-Key")
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    with transaction() as session:
        if key is not None:
            operator_id, key_id = operator_of_api_key(session, key)
        elif scheme.lower() == "bearer" and token:
            operator_id, key_id = operator_of_access_token(token.strip())
            if not key_in_force(session, operator_id, key_id):
                raise Unauthenticated("the API key behind this access token has ended", code="invalid_token")
        else:
            raise Unauthenticated("send an API key (X-Service-Key) or an access token (Authorization: Bearer)")
        g.verified_key = f"key:{key_id}"
        row = session.get(Operator, operator_id)
        if row is None:
            raise Unauthenticated("unknown operator")
        if not row.active:
            raise Forbidden("the operator is suspended", code="suspended")
    g.operator_id = operator_id


def current_operator_id() -> str:
    """The operator that ``require_operator`` let in."""
    return str(g.operator_id)


@guard
@reads_credential("adminKey")
@refuses(Unauthenticated("unknown or revoked admin key"))
def require_admin() -> None:
    """Guard of an admin blueprint: lets any admin in; ``role_required`` says which endpoints it may use.

    :raises Unauthenticated: no key or one that is not ours.
    """
    key = request.headers.get("X-Service-Admin-Key")
    if key is None:
        raise Unauthenticated("send an admin key (X-Service-Admin-Key)")
    with transaction() as session:
        g.admin = admin_of_key(session, key)
    g.verified_key = f"admin:{g.admin.id}"


def role_required(*roles: AdminRole) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let admins of these roles through, and ``root``.

    :raises Forbidden: the key has another role.
    """
    allowed = {*roles, AdminRole.ROOT}
    needed = " or ".join(sorted(role.value for role in allowed))
    refusal = Forbidden(f"this needs an admin key with the role {needed}", code="wrong_role")

    def decorate(view: Callable[P, T]) -> Callable[P, T]:
        @for_roles(*(role.value for role in allowed))
        @refuses(refusal)
        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
            admin: AdminKey = g.admin
            if admin.role not in allowed:
                raise Forbidden(refusal.message, code=refusal.code)
            return view(*args, **kwargs)

        return guarded

    return decorate


def admin_actor() -> str:
    """How the audit log names the admin that asks."""
    admin: AdminKey = g.admin
    return f"{admin.name} ({admin.id})"
