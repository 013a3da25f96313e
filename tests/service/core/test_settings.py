"""No data silences an adviser: settings of another version of Counsel, or damaged ones."""

import json

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from counsel.model.files import save
from counsel.service.api.app import make_app
from counsel.service.core import follower
from counsel.service.db.tables import advisers
from counsel.worlds import make
from tests.support.services import open_desk
from tests.support.waiting import until

MUST_SAY = {"critical": "call doctor", "watch": "assess"}


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'counsel.db'}"


def packed(folder):
    save(make("ward"), folder / "model.npz")
    return (folder / "model.npz").read_bytes()


def client_of(desk):
    return TestClient(make_app(desk, tenant=1), base_url="http://localhost")


def created(client):
    new = {"name": "alerts", "source": "ward", "must_say": MUST_SAY}
    return client.post("/v1/advisers", json=new).json()["id"]


def stored(desk, adviser):
    with desk.engine.connect() as connection:
        return connection.scalar(sa.select(advisers.c.settings).where(advisers.c.id == adviser))


def rewrite(desk, adviser, change):
    """Change the settings in the database, as another version of Counsel would."""
    text = change(json.loads(stored(desk, adviser)))
    with desk.engine.begin() as connection:
        row = sa.update(advisers).where(advisers.c.id == adviser)
        connection.execute(row.values(settings=text))


def said(client, adviser):
    """Return what is said when critical, on watch and in a stable state, in a new episode."""
    started = client.post(f"/v1/advisers/{adviser}/episodes", json={"person": "ann"})
    assert started.status_code == 201, started.text
    path = f"/v1/episodes/{started.json()['id']}/advice"
    states = ("critical", "watch", "deteriorating")
    answers = [
        client.post(path, json={"step": i, "state": state}) for i, state in enumerate(states)
    ]
    return [answer.json()["advice"] for answer in answers]


def labels_of_another_world(settings):
    settings["must_say"] |= {"gone": "assess", "watch": "gone"}
    return settings


@pytest.mark.parametrize(
    ("change", "place", "expected"),
    [
        (lambda s: s | {"tone": "calm"}, "tone", ["call doctor", "assess", None]),
        (lambda s: s | {"algorithm": "new"}, "algorithm", ["call doctor", "assess", None]),
        (lambda s: s | {"must_say": s["must_say"] | {"watch": 5}}, "must_say",
         ["call doctor", None, None]),
        (labels_of_another_world, "must_say has", ["call doctor", None, None]),
    ],
    ids=["unknown", "wrong", "one-must-say", "labels"],
)  # fmt: skip
def test_settings_that_cannot_be_read_leave_what_must_be_said(url, change, place, expected):
    # Every route of the adviser failed after a restart, alarms included, and so did the list of all
    # advisers of the tenant.
    with open_desk(url) as desk, client_of(desk) as client:
        adviser, other = created(client), created(client)
        rewrite(desk, adviser, lambda settings: json.dumps(change(settings)))
    with open_desk(url) as desk, client_of(desk) as client:
        assert said(client, adviser) == expected
        assert said(client, other)[0] == "call doctor"
        assert [row["id"] for row in client.get("/v1/advisers").json()] == [adviser, other]
        assert place in client.get(f"/v1/advisers/{adviser}").json()["fault"]
        assert client.get(f"/v1/advisers/{other}").json()["fault"] is None
        assert client.get(f"/v1/advisers/{adviser}/log").status_code == 200
        desk.plans.settle()
        assert client.get("/readyz").json()["plans_failing"] == 1
        before = json.loads(stored(desk, adviser))
        off = client.patch(f"/v1/advisers/{adviser}", json={"mode": "off"})
        assert (off.status_code, off.json()["settings"]["mode"]) == (200, "off")
        assert json.loads(stored(desk, adviser)) == before | {"mode": "off"}, "nothing is lost"
        assert said(client, adviser) == [None] * 3
        edited = client.patch(f"/v1/advisers/{adviser}", json={"penalty": 0.5})
        assert edited.status_code in (400, 409)
        assert json.loads(stored(desk, adviser)) == before | {"mode": "off"}


@pytest.mark.parametrize("text", ['{"penalty": nul', "null", "[]", "{}"])
def test_settings_without_a_source_silence_no_other_adviser(url, tmp_path, text):
    with open_desk(url) as desk, client_of(desk) as client:
        adviser, other = created(client), created(client)
        whole = stored(desk, adviser)
        rewrite(desk, adviser, lambda _: text)
    with open_desk(url) as desk, client_of(desk) as client:
        rows = client.get("/v1/advisers").json()
        assert [row["fault"] is None for row in rows] == [False, True]
        assert said(client, other)[0] == "call doctor"
        model = client.post("/v1/models", content=packed(tmp_path)).json()["id"]
        assert [row["advisers"] for row in client.get("/v1/models").json()] == [0]
        assert client.delete(f"/v1/models/{model}").status_code == 204
        answer = client.post(f"/v1/advisers/{adviser}/episodes", json={"person": "ann"})
        assert answer.status_code == 503, "a client with a fallback says what must be said"
        assert "restore them from a backup" in answer.json()["detail"]
        assert client.patch(f"/v1/advisers/{adviser}", json={"mode": "off"}).status_code in (
            409,
            503,
        )
        assert client.get("/readyz").json()["plans_failing"] == 1
        with desk.engine.begin() as connection:
            mine = sa.update(advisers).where(advisers.c.id == adviser)
            connection.execute(mine.values(settings=whole))
        assert said(client, adviser)[0] == "call doctor"
        assert client.get("/readyz").json()["plans_failing"] == 0
        assert client.post(f"/v1/advisers/{adviser}/archive").status_code == 200


def test_a_service_in_use_follows_settings_of_a_newer_one(url, monkeypatch, caplog):
    # It kept its own settings, so that it did not follow the switch, and said so every second.
    monkeypatch.setattr(follower, "POLL_SECONDS", 0.02)
    with open_desk(url) as desk, client_of(desk) as client:
        adviser = created(client)
        whole = stored(desk, adviser)
        rewrite(desk, adviser, lambda s: json.dumps(s | {"tone": "calm", "mode": "off"}))
        until(lambda: desk.live(1, adviser).settings.mode == "off")
        rewrite(desk, adviser, lambda s: json.dumps(s | {"mode": "live"}))
        until(lambda: said(client, adviser) == ["call doctor", "assess", None])
        rewrite(desk, adviser, lambda _: whole)
        until(lambda: desk.live(1, adviser).fault is None)
        rewrite(desk, adviser, lambda _: "null")
        until(lambda: "keeps its settings" in caplog.text)
        assert said(client, adviser)[0] == "call doctor"
        until(lambda: desk.live(1, adviser).stored == "null")
    assert caplog.text.count("keeps its settings") == 1
