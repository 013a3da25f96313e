"""A shared limit over HTTP: settings, reasons, the summary and bad input."""

import pytest
from fastapi.testclient import TestClient

from counsel.service.api.app import make_app
from tests.support.services import open_desk

LIMIT = {"pieces": 2, "per": "week"}


@pytest.fixture
def client(tmp_path):
    with open_desk(str(tmp_path / "counsel.db")) as desk:
        app = make_app(desk, tenant=1)
        with TestClient(app, base_url="http://localhost") as client:
            yield client


def created(client, **settings):
    new = {"name": "phone", "source": "ward", "knows_habit": True} | settings
    return client.post("/v1/advisers", json=new)


def asked(client, adviser, steps):
    path = f"/v1/advisers/{adviser}/episodes"
    episode = client.post(path, json={"person": "ann"}).json()["id"]
    body = {"state": "deteriorating"}
    return [
        client.post(f"/v1/episodes/{episode}/advice", json=body | {"step": step}).json()
        for step in range(steps)
    ], episode


def test_the_limit_is_a_setting_like_others(client):
    adviser = created(client, shared_limit=LIMIT).json()
    assert adviser["settings"]["shared_limit"] == LIMIT
    path = f"/v1/advisers/{adviser['id']}"
    changed = client.patch(path, json={"shared_limit": {"pieces": 2.5, "per": 90}}).json()
    assert changed["settings"]["shared_limit"] == {"pieces": 2.5, "per": 90}
    unchanged = client.patch(path, json={"penalty": 0.01}).json()
    assert unchanged["settings"]["shared_limit"] == {"pieces": 2.5, "per": 90}
    assert (
        client.patch(path, json={"shared_limit": None}).json()["settings"]["shared_limit"] is None
    )
    actions = [row["details"] for row in client.get("/v1/audit").json()][1:]
    assert actions[0] == {"shared_limit": {"pieces": 2.5, "per": 90}}
    assert actions[-1] == {"shared_limit": None}


def test_answers_and_the_summary_show_price_and_use(client):
    adviser = created(client, shared_limit=LIMIT).json()["id"]
    answers, episode = asked(client, adviser, 3)
    assert [answer["advice"] is not None for answer in answers] == [True, True, False]
    assert [answer["reason"]["shared_left"] for answer in answers] == [1, 0, 0]
    assert answers[0]["reason"]["shared_price"] == 0.0
    assert answers[2]["reason"]["shared_price"] > 0.0
    assert answers[2]["reason"]["why"].startswith("the shared limit is used up until ")
    recorded = client.get(f"/v1/episodes/{episode}").json()["decisions"]
    assert [one["reason"]["shared_left"] for one in recorded] == [1, 0, 0]
    summary = client.get(f"/v1/advisers/{adviser}/summary").json()
    use = summary["shared_limit"]
    assert (use["pieces"], use["per"], use["spent"], use["left"]) == (2, "week", 2, 0)
    assert use["price"] == answers[2]["reason"]["shared_price"]
    (stretch,) = use["stretches"]
    assert stretch["spent"] == 2
    assert stretch["offered"] == 3
    assert stretch["to"] - stretch["from"] == 7 * 86_400
    assert summary["recent"][0]["reason"]["shared_left"] == 0


def test_without_a_limit_nothing_is_said_of_it(client):
    adviser = created(client).json()["id"]
    answers, _ = asked(client, adviser, 1)
    assert not [name for name in answers[0]["reason"] if name.startswith("shared")]
    assert "shared_limit" not in client.get(f"/v1/advisers/{adviser}/summary").json()


@pytest.mark.parametrize(
    ("settings", "status", "sentence"),
    [
        ({"shared_limit": {"pieces": 0, "per": "day"}}, 422, "greater than 0"),
        ({"shared_limit": {"pieces": 1, "per": "month"}}, 422, "it must be second, minute, hour"),
        ({"shared_limit": {"pieces": 1, "per": 1e9}}, 422, "from 1 to 31536000"),
        ({"shared_limit": {"per": "day"}}, 422, "shared_limit.pieces is missing; give it"),
        ({"shared_limit": "10 per day"}, 422, "shared_limit is '10 per day'; it must be an object"),
        ({"shared_limit": LIMIT, "always": True}, 400, "always advising pays no price"),
        ({"shared_limit": LIMIT, "budget": 1.5}, 400, "would be owed to the budget"),
    ],
)
def test_a_bad_limit_is_refused_in_one_sentence(client, settings, status, sentence):
    answer = created(client, **settings)
    assert answer.status_code == status
    assert sentence in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]
    assert client.get("/v1/advisers").json() == []
