"""Large models are written in pieces: nobody waits for all of one, and nobody sees half of one."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from counsel.model.files import save
from counsel.service.api.app import make_app
from counsel.service.core import model_uploads
from counsel.service.core.model_uploads import ABANDONED, remove_abandoned
from counsel.service.db.model_queries import add_piece
from counsel.service.db.tables import model_pieces
from counsel.service.settings import ServiceSettings
from counsel.worlds import make
from tests.support.services import open_desk
from tests.support.waiting import until

PIECE = 1000


@pytest.fixture
def desk(url, monkeypatch):
    monkeypatch.setattr(model_uploads, "PIECE", PIECE)
    with open_desk(url, ServiceSettings(models=3)) as found:
        yield found


@pytest.fixture
def client(desk):
    app = make_app(desk, tenant=1)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as found:
        yield found


@pytest.fixture
def content(tmp_path):
    save(make("ward"), tmp_path / "model.npz")
    found = (tmp_path / "model.npz").read_bytes()
    assert len(found) > 3 * PIECE
    return found


def kept(desk):
    """The models that have pieces."""
    with desk.engine.connect() as connection:
        return set(connection.scalars(sa.select(model_pieces.c.model)))


def test_no_transaction_writes_more_than_a_piece(client, desk, content, monkeypatch):
    # Found by an audit: two callers who uploaded 19 MB again and again stalled everybody's advice,
    # because each file was written in one transaction.
    written = []

    def spy(connection, *, piece, **values):
        written.append((desk.committer.transactions, len(piece)))
        add_piece(connection, piece=piece, **values)

    monkeypatch.setattr(model_uploads, "add_piece", spy)
    with ThreadPoolExecutor(2) as pool:
        path = "/v1/models?name=ward"
        both = [pool.submit(client.post, path, content=content) for _ in range(2)]
        assert [each.result(120).status_code for each in both] == [201, 201]
    assert len({transaction for transaction, _ in written}) == len(written)
    assert max(size for _, size in written) == PIECE
    assert sum(size for _, size in written) == 2 * len(content)


def test_a_model_in_pieces_is_like_any_other(client, desk, content):
    model = client.post("/v1/models?name=ward", content=content).json()["id"]
    assert kept(desk) == {model}
    (row,) = client.get("/v1/models").json()
    assert (row["id"], row["bytes"]) == (model, len(content))
    assert client.get(f"/v1/models/{model}").json()["bytes"] == len(content)
    assert client.get(f"/v1/models/{model}/file").content == content
    (noted,) = client.get("/v1/audit").json()
    assert noted["details"]["bytes"] == len(content)
    new = {"name": "alerts", "source": model, "penalty": 0.1}
    adviser = client.post("/v1/advisers", json=new)
    assert adviser.json()["states"] == list(make("ward").mdp.state_labels)


def test_nothing_is_left_of_a_model_that_is_deleted(client, desk, content):
    model, other = (
        client.post("/v1/models?name=ward", content=content).json()["id"] for _ in range(2)
    )
    assert client.delete(f"/v1/models/{model}").status_code == 204
    assert kept(desk) == {other}


def test_an_upload_that_fails_is_not_seen_and_leaves_nothing(client, desk, content, monkeypatch):
    def fail(connection, *, number, **values):
        add_piece(connection, number=number, **values)
        if number == 2:
            assert client.get("/v1/models").json() == []
            raise OSError

    monkeypatch.setattr(model_uploads, "add_piece", fail)
    assert client.post("/v1/models?name=ward", content=content).status_code == 500
    assert client.get("/v1/models").json() == []
    until(lambda: kept(desk) == set())


def test_a_model_of_which_a_piece_was_lost_is_refused(client, desk, content, monkeypatch):
    def lose(connection, *, number, **values):
        if number != 1:
            add_piece(connection, number=number, **values)

    monkeypatch.setattr(model_uploads, "add_piece", lose)
    answer = client.post("/v1/models?name=ward", content=content)
    assert answer.status_code == 503
    assert "send it again" in answer.json()["detail"]
    until(lambda: kept(desk) == set())


def test_a_tenant_with_all_its_models_writes_no_pieces(client, desk, content, monkeypatch):
    for _ in range(3):
        assert client.post("/v1/models?name=ward", content=content).status_code == 201
    monkeypatch.setattr(model_uploads, "add_piece", None)
    assert client.post("/v1/models?name=ward", content=content).status_code == 409


def test_the_next_start_removes_what_a_crash_has_left_of_uploads(client, desk, content):
    model, now = client.post("/v1/models?name=ward", content=content).json()["id"], time.time()
    ages = {"old": ABANDONED + 1.0, "crashed": 1.0, "under way": -1.0}
    for name, age in ages.items():
        for number in range(3):
            with desk.engine.begin() as connection:
                add_piece(connection, name, number, b"piece", now - age)
    remove_abandoned(desk, started=now)
    # Another service on the same PostgreSQL database may write what is not old.
    of_others = {"crashed"} if desk.engine.dialect.name == "postgresql" else set()
    assert kept(desk) == {model, "under way"} | of_others
