"""What the tests that walk the URL map know of each endpoint: whom it lets in, a body it takes, ids that exist.

One rule: everything else comes from the URL map, so an endpoint that is new and not written down here fails a test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Flask
from werkzeug.test import TestResponse

from tests.app.conftest import Caller

A_HASH = "5f" * 32

A_TICKET = {
    "ticketId": "t-100",
    "jackpotNumber": 1,
    "bonus1": 1,
    "bonus2": 1,
    "bonus3": 1,
    "bonus4": 1,
    "bonus5": 1,
    "isQuickPick": True,
}
AN_APPLICATION = {
    "companyName": "Lotto Ltd",
    "jurisdiction": "Malta",
    "gamingLicenseNumber": "MGA/1",
    "contactEmail": "office@lotto.example",
    "contactName": "Ann",
    "ethereumAddress": f"0x{'ab' * 20}",
    "website": "https://lotto.example/",
    "description": "Since 1999",
}
A_ROUND = {
    "operatorIds": ["op_a"],
    "sealAt": "2100-01-01T00:00:00Z",
    "sealingDeadline": "2100-01-01T01:00:00Z",
    "escrowDeadline": "2100-01-01T02:00:00Z",
    "scheduledDrawTime": "2100-01-01T03:00:00Z",
    "settleAt": "2100-01-01T04:00:00Z",
    "closeAt": "2100-01-01T05:00:00Z",
}

A_FILTER = {
    "roundId": 1,
    "event": "round.opened",
    "errorClass": "timeout",
    "since": "2100-01-01T00:00:00Z",
    "until": "2100-01-01T00:00:00Z",
}

BODIES: Mapping[str, Mapping[str, Any]] = {
    "POST /api/public/apply": AN_APPLICATION,
    "POST /api/auth/operator/login": {"apiKey": "sk_1_2"},
    "POST /api/auth/refresh": {"refreshToken": "of nobody"},
    "POST /api/auth/logout": {"refreshToken": "of nobody"},
    "POST /api/operator/tickets": {"roundId": 1, "tickets": [A_TICKET]},
    "POST /api/operator/manifest": {
        "roundId": 1,
        "manifestJson": "{}",
        "manifestHash": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "ticketCount": 4,
    },
    "POST /api/operator/nonce": {"roundId": 1, "nonce": A_HASH},
    "POST /api/operator/check-tickets": {"roundId": 1},
    "POST /api/operator/test-webhook": {"eventType": "round.opened"},
    "POST /api/operator/payouts": {"roundId": 1, "payouts": [{"ticketId": "t-1", "tier": 1}]},
    "PUT /api/operator/webhook": {"url": "http://127.0.0.1:9/"},
    "POST /api/admin/applications/<application_id>/approve": {"reviewNote": "Welcome"},
    "POST /api/admin/applications/<application_id>/reject": {"reviewNote": "Sorry"},
    "POST /api/admin/operators/<operator_id>/deposits": {"amountUsdc": "1000000", "reference": "wire 1"},
    "PATCH /api/admin/operators/<operator_id>": {"active": True, "reason": "A drill"},
    "POST /api/admin/operators/<operator_id>/rotate-key": {"overlapSeconds": 60},
    "POST /api/admin/deliveries/<delivery_id>/requeue": {"reason": "A drill"},
    "POST /api/admin/deliveries/requeue": {"status": "failed", "operatorId": "op_a", "reason": "A drill"} | A_FILTER,
    "POST /api/admin/requeues/<job_id>/cancel": {"reason": "A drill"},
    "POST /api/admin/endpoints/<operator_id>/pause": {"reason": "A drill"},
    "POST /api/admin/endpoints/<operator_id>/resume": {"reason": "A drill"},
    "POST /api/admin/queues/<name>/pause": {"reason": "A drill"},
    "POST /api/admin/queues/<name>/resume": {"reason": "A drill"},
    "POST /api/admin/rounds": A_ROUND,
    "POST /api/admin/rounds/<round_id>/fail": {"reason": "A drill"},
    "POST /api/admin/rounds/<round_id>/retabulate": {"reason": "A drill"},
}
"""A body that each endpoint with one takes, if they are sent in this order."""

WITHOUT_BODY = {"POST /api/operator/heartbeat", "POST /api/operator/test-webhook/all"}
"""Endpoints that change something and read no body."""

FREE_TEXT = frozenset(
    {
        *("companyName", "jurisdiction", "gamingLicenseNumber", "contactName", "description"),
        *("reviewNote", "reason", "reference", "apiKey", "refreshToken"),
    }
)
"""Fields that hold any text there is."""
MAY_BE_NULL = frozenset({"website", "description", "reviewNote", "operatorIds", "settleAt", "closeAt"})
FILTERS: Mapping[str, frozenset[str]] = {
    "POST /api/admin/deliveries/requeue": frozenset({"status", "operatorId", *A_FILTER}),
}
"""Fields that may be left out and be null, where others of their name may not."""
BOOLEANS = frozenset({"isQuickPick", "active"})

PARAMETER = re.compile(r"<(\w+)>")


@dataclass(frozen=True)
class Endpoint:
    """One method of one path of the URL map."""

    method: str
    rule: str

    def __str__(self) -> str:
        return f"{self.method} {self.rule}"

    @property
    def optional(self) -> frozenset[str]:
        """The fields of its body that may be left out or be null."""
        return MAY_BE_NULL | FILTERS.get(str(self), frozenset())

    @property
    def parameters(self) -> list[str]:
        """The ids in its path."""
        return PARAMETER.findall(self.rule)

    def path(self, **ids: str) -> str:
        """Its path with these ids, and ids that exist where none are given; quoting them is the caller's part."""
        known = IDS | UNSOLD if self.rule.endswith("/absence") else IDS
        return PARAMETER.sub(lambda match: ids.get(match[1]) or known[match[1]], self.rule)


IDS: dict[str, str] = {
    "round_id": "1",
    "any_id": "draw_1",
    "operator_id": "op_a",
    "ticket_id": "t-1",
    "application_id": "app_1",
    "delivery_id": "00000000-0000-4000-8000-000000000001",
    "job_id": "1",
    "name": "deliveries",
}
"""An id of each kind that exists in ``a_small_world``."""
UNSOLD = {"ticket_id": "t-1x"}
"""An id of a ticket that nobody sold."""


def endpoints(application: Flask) -> Iterator[Endpoint]:
    """Every method of every path of the API, in the order of the URL map. Its documentation is about it, not in it."""
    for rule in application.url_map.iter_rules():
        if rule.endpoint.startswith("documentation."):
            continue
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            yield Endpoint(method, str(rule))


@dataclass
class World:
    """An application with a little in it, and somebody with each kind of credential."""

    application: Flask
    anybody: Caller
    operator: Caller
    admin: Caller

    def caller(self, endpoint: Endpoint) -> Caller:
        """Who may use the endpoint."""
        if endpoint.rule.startswith("/api/operator/"):
            return self.operator
        return self.admin if endpoint.rule.startswith("/api/admin/") else self.anybody

    def send(self, endpoint: Endpoint, path: str | None = None, **kwargs: Any) -> TestResponse:
        """Ask as somebody who may; ``kwargs`` are the client's."""
        caller = self.caller(endpoint)
        headers = caller.headers | kwargs.pop("headers", {})
        return caller.client.open(path or endpoint.path(), method=endpoint.method, headers=headers, **kwargs)

    def send_json(self, endpoint: Endpoint, body: str | bytes, **kwargs: Any) -> TestResponse:
        """Send a body labelled as JSON, whatever it is."""
        return self.send(endpoint, data=body, content_type="application/json", **kwargs)


def a_small_world(application: Flask) -> World:
    """op_a with three tickets in round 1, which is OPEN; application app_1, which is pending; a root admin."""
    from models.applications import Application
    from models.credentials import AdminRole, digest, issue_admin_key, issue_api_key
    from models.deliveries import Delivery, DeliveryStatus
    from models.delivery_search import Wanted
    from models.requeue_jobs import start_job
    from models.session import database_now, transaction
    from tests.factories import a_round, an_operator, some_tickets, submit

    operator_id = an_operator("a")
    submit(a_round([operator_id]), operator_id, some_tickets(3))
    with transaction() as session:
        key = issue_api_key(session, operator_id)
        _, admin_key = issue_admin_key(session, "root", AdminRole.ROOT)
        failed = {"operator_id": operator_id, "status": DeliveryStatus.FAILED, "error_class": "timeout"}
        session.add(Delivery(id=UUID(IDS["delivery_id"]), event="round.opened", body=b"{}", **failed))
        start_job(session, "root", "A drill", Wanted(operator_id=operator_id), 1, database_now(session))
        form = {"company_name": "Other", "jurisdiction": "Malta", "gaming_license_number": "2", "contact_name": "Bo"}
        session.add(
            Application(
                id="app_1",
                token_digest=digest("a token"),
                contact_email="other@lotto.example",
                ethereum_address=f"0x{'cd' * 20}",
                **form,
            )
        )
    return World(
        application,
        Caller(application.test_client(), {"X-Application-Token": "a token"}),
        Caller(application.test_client(), {"X-Service-Key": key}, operator_id),
        Caller(application.test_client(), {"X-Service-Admin-Key": admin_key}),
    )
