"""Liveness and readiness: what keeps a service from its work is named, and asking costs little."""

import asyncio
import threading
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from counsel.service.api import health
from counsel.service.api.app import make_app
from tests.support.services import open_desk
from tests.support.waiting import until


@pytest.fixture
def desk(tmp_path):
    with open_desk(f"sqlite:///{tmp_path / 'counsel.db'}") as found:
        yield found


def client_of(desk):
    return TestClient(make_app(desk, tenant=1), base_url="http://localhost")


def test_a_service_that_can_work_is_ready(desk):
    with client_of(desk) as client:
        answer = client.get("/readyz")
        assert answer.status_code == 200
        assert {answer.json()[name] for name in ("planner", "database", "writer", "disk")} == {"ok"}
        assert client.get("/healthz").json()["status"] == "ok"
        for path in ("/healthz", "/readyz"):  # as some load balancers ask
            head = client.head(path)
            assert (head.status_code, head.content) == (200, b"")


def test_a_disk_that_is_nearly_full_is_named(desk):
    desk.settings = replace(desk.settings, disk_bytes=10**18)
    with client_of(desk) as client:
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["disk"].endswith("1000000000000 MB are needed")
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_database_file_that_was_deleted_or_replaced_is_named(desk, tmp_path, is_replaced):
    # The service went on to acknowledge what nobody would find after a restart, and was ready.
    file = tmp_path / "counsel.db"
    with client_of(desk) as client:
        assert client.get("/readyz").status_code == 200
        content = file.read_bytes()
        file.rename(tmp_path / "moved.db")
        if is_replaced:
            file.write_bytes(content)
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert "was deleted or replaced" in answer.json()["database"]
        file.unlink(missing_ok=True)
        (tmp_path / "moved.db").rename(file)
        assert client.get("/readyz").status_code == 200


def test_who_asks_at_the_same_time_shares_one_row(desk):
    # Every request wrote a row of its own before the decisions that waited, and needed no key.
    held, let_go = threading.Event(), threading.Event()

    def hold(_):
        held.set()
        let_go.wait(30)

    desk.committer.submit(hold)
    held.wait(30)
    write = health._SharedWrite(desk)

    async def ask():
        asking = [asyncio.ensure_future(write.fault()) for _ in range(20)]
        while desk.committer.waiting == 0:
            await asyncio.sleep(0.001)
        waiting = desk.committer.waiting
        asking[0].cancel()
        let_go.set()
        return waiting, await asyncio.gather(*asking[1:])

    assert asyncio.run(ask()) == (1, [None] * 19)
    assert asyncio.run(write.fault()) is None, "later another row is written"


def test_a_transaction_that_does_not_end_is_named(desk):
    desk.settings = replace(
        desk.settings, transaction_seconds=0.01, lock_seconds=0.02, statement_seconds=0.03,
        request_seconds=0.04,
    )  # fmt: skip
    let_go = threading.Event()
    desk.committer.submit(lambda _: let_go.wait(30))
    until(lambda: desk.committer.writing_for > 0.1)
    with client_of(desk) as client:
        answer = client.get("/readyz")
        let_go.set()
        assert answer.status_code == 503
        assert answer.json()["database"] == "no row was written within 0.02 s"
        assert answer.json()["writer"].startswith("a transaction has lasted for")


def test_the_document_is_written_once(desk, monkeypatch):
    # Four callers without a key who asked for it all the time kept advice waiting for 400 ms.
    app = make_app(desk, tenant=1)
    with TestClient(app, base_url="http://localhost") as client:
        first = client.get("/v1/openapi.json")
        monkeypatch.setattr(app, "openapi", None)
        assert client.get("/v1/openapi.json").content == first.content
    assert first.headers["content-type"] == "application/json"
    assert first.json()["info"]["title"] == "Counsel"
