"""Who asks: operators by API key or access token, admins by key and role.

The one rule kept here: a blueprint is guarded as a whole (``before_request``), before anything of the request's body
is read; nobody can forget it for one endpoint.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from flask import g, request

from app.documentation.declared import for_roles, reads_credential, refuses
from app.tokens import operator_of_access_token
from models.credentials import AdminKey, AdminRole, admin_of_key, key_in_force, operator_of_api_key
from models.operators import Operator
from models.session import transaction
from protocol.errors import Forbidden, Unauthenticated

P = ParamSpec("P")
T = TypeVar("T")


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
            operator_id, _ = operator_of_api_key(session, key)
        elif scheme.lower() == "bearer" and token:
            operator_id, key_id = operator_of_access_token(token.strip())
            if not key_in_force(session, operator_id, key_id):
                raise Unauthenticated("the API key behind this access token has ended", code="invalid_token")
        else:
            raise Unauthenticated("send an API key (X-Service-Key) or an access token (Authorization: Bearer)")
        row = session.get(Operator, operator_id)
        if row is None:
            raise Unauthenticated("unknown operator")
        if not row.active:
            raise Forbidden("the operator is suspended", code="suspended")
    g.operator_id = operator_id


def current_operator_id() -> str:
    """The operator that ``require_operator`` let in."""
    return str(g.operator_id)


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
