"""Requests that arrive while the planner is compiled."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from counsel.service.api.app import make_app
from counsel.service.warm_up import WarmUp
from tests.support.services import open_desk
from tests.support.short_deadlines import within
from tests.support.waiting import until

NEW = {"name": "alerts", "source": "ward", "budget": 1}


@pytest.fixture
def compiles():
    """Set once the planner is compiled."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def serve(tmp_path, compiles):
    """Return a function that serves with this deadline of requests."""
    with open_desk(f"sqlite:///{tmp_path / 'counsel.db'}") as desk:

        def clients(seconds):
            desk.settings = within(seconds, reading_seconds=seconds)
            warm_up = WarmUp(prepare=compiles.wait)
            warm_up.start()
            return TestClient(make_app(desk, tenant=1, warm_up=warm_up), "http://localhost")

        yield clients


def test_a_service_that_compiles_is_alive_and_says_why_it_is_not_ready(serve, compiles):
    with serve(300.0) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/").status_code == 200
        assert client.get("/metrics").status_code == 200
        assert client.get("/v1/openapi.json").status_code == 200
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["planner"] == "compiling the planner"
        assert answer.json()["database"] == "ok"
        compiles.set()
        until(lambda: client.get("/readyz").status_code == 200)
        assert client.get("/readyz").json()["planner"] == "ok"


@pytest.mark.parametrize("path", ["/v1/advisers", "/v1/outcomes", "/cds-services/x", "/v1/play"])
def test_a_request_that_cannot_wait_any_longer_is_answered_with_503(serve, path):
    with serve(0.05) as client:
        answer = client.post(path, json=NEW)
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["content-type"] == "application/problem+json"
        assert "is compiling the planner; try again" in answer.json()["detail"]


def test_a_request_waits_until_the_planner_is_compiled(serve, compiles):
    with serve(300.0) as client, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.post, "/v1/advisers", json=NEW)
        assert client.get("/readyz").status_code == 503
        assert not asked.done()
        compiles.set()
        assert asked.result().status_code == 201
