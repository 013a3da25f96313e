"""No data silences an adviser: with a damaged model what must be said is said, the rest is not."""

import numpy as np
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

import counsel
from counsel import CounselError
from counsel.model.files import save
from counsel.model.memory import Memory
from counsel.service.api.app import make_app
from counsel.service.core.model_outlines import (
    add_missing_outlines,
    outline_of,
    problem_of,
)
from counsel.service.db.tables import models, outlines
from counsel.worlds import make
from tests.support.each import each
from tests.support.services import open_desk

NEW = {"name": "alerts", "budget": 1, "hard": True, "must_say": {"critical": "call doctor"}}


def packed(problem, tmp_path):
    save(problem, tmp_path / "model.npz")
    return (tmp_path / "model.npz").read_bytes()


def client_of(desk):
    return TestClient(make_app(desk, tenant=1), base_url="http://localhost")


def asked(client, episode, step, state):
    path = f"/v1/episodes/{episode}/advice"
    answer = client.post(path, json={"step": step, "state": state})
    assert answer.status_code == 200, answer.text
    return answer.json()


def told(client, advice, action):
    outcome = {"advice_id": advice["id"], "action": action, "reward": 1.0}
    answer = client.post("/v1/outcomes", json={"outcomes": [outcome]})
    assert answer.status_code == 200, answer.text


def damage(desk, **values):
    with desk.engine.begin() as connection:
        connection.execute(sa.update(models).values(**values))


class Ward:
    """An adviser on an uploaded model, with an episode, whose model is then damaged."""

    def __init__(self, url, tmp_path, problem=None, **settings):
        with open_desk(url) as desk, client_of(desk) as client:
            content = packed(problem or make("ward"), tmp_path)
            model = client.post("/v1/models?name=ward", content=content).json()["id"]
            made = client.post("/v1/advisers", json=NEW | {"source": model} | settings)
            assert made.status_code == 201, made.text
            self.adviser = made.json()["id"]
            self.path = f"/v1/advisers/{self.adviser}"
            self.episode = self.start(client)
            told(client, asked(client, self.episode, 0, "watch"), "assess")
            damage(desk, content=b"rot")

    def start(self, client):
        answer = client.post(f"{self.path}/episodes", json={"person": "ann"})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'counsel.db'}"


@each("world", ["ward", "ward/tiring"])
def test_with_a_damaged_model_what_must_be_said_is_said_and_recorded(url, tmp_path, world):
    # Found by an audit: every request for the adviser was answered with 400, alarms included.
    ward = Ward(url, tmp_path, make(world))
    with open_desk(url) as desk, client_of(desk) as client:
        for episode, step in ((ward.episode, 1), (ward.start(client), 0)):
            said = asked(client, episode, step, "critical")
            assert said["advice"] == "call doctor"
            assert said["reason"]["why"] == "this must be said"
            told(client, said, "call doctor")
            quiet = asked(client, episode, step + 1, "watch")
            assert quiet["advice"] is None
            assert "only what must be said is said" in quiet["reason"]["why"]
        ended = client.post(f"/v1/episodes/{ward.episode}/end", json={"terminated": True})
        assert ended.status_code == 204


def test_the_record_of_an_adviser_with_a_damaged_model_can_be_read(url, tmp_path):
    ward = Ward(url, tmp_path)
    with open_desk(url) as desk, client_of(desk) as client:
        told(client, asked(client, ward.episode, 1, "critical"), "call doctor")
        rows = client.get(f"{ward.path}/log").text.splitlines()
        assert len(rows) == 3
        assert "call doctor" in rows[2]
        record = client.get(f"/v1/episodes/{ward.episode}").json()
        assert [each["state"] for each in record["decisions"]] == ["watch", "critical"]
        assert record["decisions"][0]["outcome"]["action"] == "assess"
        (belief,) = client.get("/v1/people/ann").json()["advisers"]
        assert (belief["id"], belief["listening"]) == (ward.adviser, [])
        assert client.get(ward.path).json()["states"] == list(make("ward").mdp.state_labels)
        assert len(client.get("/v1/advisers").json()) == 1
        assert client.get(f"{ward.path}/summary").status_code == 503


def test_an_adviser_with_a_damaged_model_can_be_switched_off(url, tmp_path):
    # Found by an audit: the answer was 400, though the adviser was switched off.
    ward = Ward(url, tmp_path)
    with open_desk(url) as desk, client_of(desk) as client:
        answer = client.patch(ward.path, json={"mode": "off"})
        assert answer.status_code == 200
        assert answer.json()["settings"]["mode"] == "off"
        assert asked(client, ward.episode, 1, "critical")["advice"] is None
        assert client.post(f"{ward.path}/archive").status_code == 200


def test_a_damaged_model_is_counted_and_in_the_log(url, tmp_path, caplog):
    ward = Ward(url, tmp_path)
    with open_desk(url) as desk, client_of(desk) as client:
        client.get(ward.path)
        desk.plans.settle()
        assert client.get("/readyz").json()["plans_failing"] == 1
    assert f"no plan can be made for adviser {ward.adviser}" in caplog.text
    assert "cannot be read" in caplog.text


def test_limits_that_made_sense_with_the_model_silence_nobody_without_it(url, tmp_path):
    ward = make("ward")
    cheap = counsel.AdviceProblem(ward.mdp, ward.human, 0.25)
    limits = {"shared_limit": {"pieces": 0.5, "per": "day"}, "budget": None, "hard": False}
    adviser = Ward(url, tmp_path, cheap, penalty=0.1, **limits)
    with open_desk(url) as desk, client_of(desk) as client:
        assert asked(client, adviser.episode, 1, "critical")["advice"] == "call doctor"
        refused = client.patch(adviser.path, json={"penalty": 0.2})
        assert refused.status_code == 400
        assert "cannot be read" in refused.json()["detail"]


def test_a_model_without_an_outline_gets_one_when_the_service_starts(url, tmp_path):
    Ward(url, tmp_path)
    with open_desk(url) as desk:
        content = packed(make("ward"), tmp_path)
        with desk.engine.begin() as connection:
            connection.execute(sa.delete(outlines))
        add_missing_outlines(desk)  # of one that is damaged there is none
        with desk.engine.connect() as connection:
            assert connection.scalar(sa.select(outlines.c.content)) is None
        damage(desk, content=content)
        add_missing_outlines(desk)
        with desk.engine.connect() as connection:
            assert connection.scalar(sa.select(outlines.c.content)) == outline_of(make("ward"))


@each("name", ["ward", "ward/tiring", "flappy-bird/safe"])
def test_an_outline_has_all_names_and_the_memory(name):
    world = make(name)
    problem = problem_of(outline_of(world))
    assert problem.horizon == world.horizon
    assert (problem.n_states, problem.n_actions) == (world.n_states, world.n_actions)
    assert problem.mdp.state_labels == world.mdp.state_labels
    assert problem.mdp.action_labels == world.mdp.action_labels
    assert (problem.memory is None) == (world.memory is None)
    if world.memory is not None:
        assert isinstance(problem.memory, Memory)
        assert problem.memory.labels == world.memory.labels
        assert (problem.memory.after == world.memory.after).all()
        assert problem.memory.start == world.memory.start
        assert problem.memory.newcomer == world.memory.newcomer
        assert (problem.human.fading == world.human.fading).all()
    assert outline_of(problem) == outline_of(world)
    with pytest.raises(CounselError):
        outline_of(counsel.make("machine-repair"))
    assert np.all(problem.human.level_lift == 0.0)
