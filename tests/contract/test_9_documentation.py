"""What the service says of itself: every endpoint of interface section 4 stands in its own description."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.contract.shapes import each
from tests.contract.webhooks import EVENTS
from tests.contract.world import World, form

ENDPOINTS = (
    "GET /api/public/rounds",
    "GET /api/public/rounds/:",
    "GET /api/public/rounds/:/events",
    "GET /api/public/draw/:",
    "GET /api/public/draw/:/winners",
    "GET /api/public/sub-prizes/:",
    "GET /api/public/history",
    "GET /api/public/jackpot",
    "GET /api/public/jackpot-counter",
    "GET /api/public/odds",
    "GET /api/public/stats",
    "GET /api/public/operators",
    "GET /api/public/operators/:",
    "POST /api/public/apply",
    "GET /api/public/application-status/:",
    "GET /health",
    "POST /api/operator/tickets",
    "POST /api/operator/manifest",
    "POST /api/operator/check-tickets",
    "POST /api/operator/heartbeat",
    "PUT /api/operator/webhook",
    "GET /api/operator/rounds",
    "GET /api/operator/me",
    "POST /api/operator/test-webhook",
    "POST /api/operator/test-webhook/all",
    "GET /api/operator/webhook-logs",
    "POST /api/auth/operator/login",
    "POST /api/auth/refresh",
    "POST /api/auth/logout",
)


@pytest.fixture(scope="session")
def description(world: World) -> dict[str, Any]:
    """The OpenAPI document."""
    found: dict[str, Any] = world.read("/openapi.json")
    return found


@each("endpoint", ENDPOINTS)
def test_9_documented_endpoint(description: dict[str, Any], endpoint: str) -> None:
    method, path = endpoint.split()
    described = {re.sub(r"\{\w+\}", ":", shown): operations for shown, operations in description["paths"].items()}
    assert method.lower() in described[path]


@each("event", EVENTS)
def test_9_documented_webhook(description: dict[str, Any], event: str) -> None:
    assert event in description["webhooks"]


def test_9_documentation__openapi_json_is_OpenAPI_3_1_of_the_version_that_health_names(
    world: World, description: dict[str, Any]
) -> None:
    assert description["openapi"].startswith("3.1.")
    assert description["info"]["version"] == world.read("/health")["version"]


def test_9_documentation__docs_is_a_page_for_people(world: World) -> None:
    answer = world.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


def test_9_documentation__sdkDocs_of_the_onboarding_leads_to_a_page(world: World, company: str) -> None:
    filed = world.send("/api/public/apply", form(company), status=201)
    path = f"/api/admin/applications/{filed['applicationId']}/approve"
    world.send(path, {"reviewNote": "welcome"}, world.admin)
    token = {"X-Application-Token": filed["applicationToken"]}
    shown = world.read(f"/api/public/application-status/{filed['applicationId']}", token)
    address = shown["onboarding"]["sdkDocs"]
    assert address.startswith(world.url)
    assert world.get(urlsplit(address).path).status_code == 200
