"""Requests while a plan takes long: what must be said is said, and the rest waits."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from counsel.service.api.app import make_app
from counsel.service.settings import ServiceSettings
from tests.support.services import open_desk
from tests.support.waiting import Release, until

NEW = {"name": "alerts", "source": "ward", "budget": 1, "hard": True}


@pytest.fixture
def release():
    held = Release()
    yield held
    held.close()


@pytest.fixture
def desk(tmp_path, release):
    patient = ServiceSettings(request_seconds=120.0)  # however busy the machine is
    with open_desk(f"sqlite:///{tmp_path / 'counsel.db'}", patient) as found:
        yield found
        release.set()


@pytest.fixture
def client(desk):
    with TestClient(make_app(desk, tenant=1), base_url="http://localhost") as found:
        yield found


def test_what_must_be_said_is_said_while_the_plan_is_made(client, desk, release, monkeypatch):
    # Found by an audit: a large model kept its adviser's alarms waiting, and those of others.
    new = NEW | {"must_say": {"critical": "call doctor"}}
    adviser = client.post("/v1/advisers", json=new).json()["id"]
    begun, plain = [], desk.plans._make

    def slow(key):
        begun.append(key)
        release.hold()
        return plain(key)

    monkeypatch.setattr(desk.plans, "_make", slow)
    started = client.post(f"/v1/advisers/{adviser}/episodes", json={"person": "ann"})
    assert started.status_code == 201
    path = f"/v1/episodes/{started.json()['id']}/advice"
    said = client.post(path, json={"step": 0, "state": "critical"}).json()
    assert said["advice"] == "call doctor"
    assert said["reason"]["why"] == "this must be said"
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(client.post, path, json={"step": 1, "state": "watch"})
        until(lambda: len(begun) == 1)
        assert not other.done()
        release.set()
        assert other.result(60).status_code == 200
    assert "no plan" not in other.result().json()["reason"]["why"]


def test_a_caller_who_gives_up_does_not_stop_the_plan_that_others_wait_for(
    client, desk, release, monkeypatch
):
    adviser = client.post("/v1/advisers", json=NEW).json()["id"]
    plain = desk.plans._make
    monkeypatch.setattr(desk.plans, "_make", lambda key: release.hold() or plain(key))
    episode = client.post(f"/v1/advisers/{adviser}/episodes", json={"person": "ann"}).json()["id"]
    with TestClient(make_app(desk, tenant=1), base_url="http://localhost") as other:
        other.app.edge.deadlines._prompt = 0.01
        late = other.post(f"/v1/episodes/{episode}/advice", json={"step": 0, "state": "watch"})
        assert late.status_code == 503
    release.set()
    answer = client.post(f"/v1/episodes/{episode}/advice", json={"step": 0, "state": "watch"})
    assert "no plan" not in answer.json()["reason"]["why"]
