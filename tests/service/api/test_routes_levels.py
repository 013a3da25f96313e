"""People who tire, over HTTP: models with a memory, what answers show of it, and CDS Hooks."""

import numpy as np
import pytest
from starlette.testclient import TestClient

from counsel import AdviceProblem, CounselError, Human, Memory
from counsel.model.files import save
from counsel.service.api.app import make_app
from counsel.service.core.problem_sources import check_model
from counsel.service.db.api_keys import add_key
from tests.support import services
from tests.support.each import each
from tests.support.tiring_people import MEMORIES, RANDOM, tiring_problem


@pytest.fixture
def client(tmp_path):
    """A client of a service, with the key of an administrator."""
    with services.open_desk(str(tmp_path / "counsel.db")) as desk:
        with desk.engine.begin() as connection:
            key = add_key(connection, tenant="local", role="admin", name="all")
        with TestClient(make_app(desk)) as found:
            found.headers["Authorization"] = f"Bearer {key}"
            yield found


def packed(problem, tmp_path):
    path = tmp_path / "model.npz"
    save(problem, path)
    return path.read_bytes()


def upload(client, problem, tmp_path):
    answer = client.post("/v1/models", content=packed(problem, tmp_path))
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def create(client, source, **settings):
    body = {"name": "alerts", "source": source, "always": True} | settings
    return client.post("/v1/advisers", json=body)


def test_a_model_with_a_memory_is_uploaded_and_every_answer_shows_the_level(client, tmp_path):
    memory, fading = MEMORIES["refusals"]
    model = upload(client, tiring_problem(memory, fading), tmp_path)
    assert client.get(f"/v1/models/{model}").json()["levels"] == list(memory.labels)
    adviser = create(client, model, memory_across="person").json()
    assert adviser["memory"] == {
        "name": "refusals=2",
        "levels": list(memory.labels),
        "start": "no refusal in a row",
        "rested": [1.0, 0.5, 0.1],
    }
    id_ = adviser["id"]
    episode = client.post(f"/v1/advisers/{id_}/episodes", json={"person": "ann"}).json()["id"]
    for step, level in enumerate(memory.labels):
        at = {"step": step, "state": "0"}
        said = client.post(f"/v1/episodes/{episode}/advice", json=at).json()
        reason = said["reason"]
        assert (reason["level"], reason["rested"]) == (level, fading[step])
        assert isinstance(reason["burden"], float)
        refusal = str((int(said["advice"]) + 1) % 3)
        client.post("/v1/outcomes", json={"outcomes": [
            {"advice_id": said["id"], "action": refusal}
        ]})  # fmt: skip
    shown = client.get(f"/v1/episodes/{episode}").json()
    assert [one["level"] for one in shown["decisions"]] == list(memory.labels)
    assert (shown["level"], shown["rested"]) == ("2 or more refusals in a row", 0.1)
    [belief] = client.get("/v1/people/ann").json()["advisers"]
    assert belief["level"] == "2 or more refusals in a row"
    summary = client.get(f"/v1/advisers/{id_}/summary").json()
    assert [(row["level"], row["pieces"]) for row in summary["by_level"]] == [
        (level, 1) for level in memory.labels
    ]


def test_without_a_memory_answers_are_as_before(client):
    adviser = create(client, "ward").json()
    assert adviser["memory"] is None
    assert adviser["settings"]["memory_across"] == "episode"
    path = f"/v1/advisers/{adviser['id']}"
    episode = client.post(f"{path}/episodes", json={"person": "ann"}).json()["id"]
    at = {"step": 0, "state": "stable"}
    reason = client.post(f"/v1/episodes/{episode}/advice", json=at).json()["reason"]
    assert not {"level", "rested", "burden"} & set(reason)
    assert "by_level" not in client.get(f"{path}/summary").json()
    assert client.get(f"/v1/episodes/{episode}").json()["level"] is None


def test_advisers_that_make_no_sense_are_refused_in_one_sentence(client, tmp_path):
    uneven = Human(np.full((2, 3), 1 / 3), lift=np.array([[0.1], [0.5], [0.5]]) ** np.arange(3),
                   memory=RANDOM)  # fmt: skip
    model = upload(client, AdviceProblem(tiring_problem(None, None).mdp, uneven), tmp_path)
    for source, settings, what in (
        (model, {}, "the lifts of this model differ from level to level of its memory (custom)"),
        ("ward", {"memory_across": "person"}, "the person of this model has no memory"),
        ("ward", {"memory_across": "year"}, "memory_across"),
    ):
        answer = create(client, source, **settings)
        assert answer.status_code in (400, 422)
        assert what in answer.json()["detail"]


@each(
    ("memory", "what"),
    [
        (Memory(np.eye(1), np.eye(1), labels=["x" * 201]), "labels have 1 to 200 characters"),
        (Memory(np.eye(1), np.eye(1), labels=["\x00"]), "labels have 1 to 200 characters"),
        (Memory.pieces(300), "steps × states × actions × levels of memory; 20,000,000 are"),
    ],
)
def test_memories_that_are_too_large_or_have_bad_labels_are_refused(memory, what, tmp_path):
    problem = tiring_problem(memory, np.ones(memory.n_levels), horizon=20_000)
    with pytest.raises(CounselError, match=what):
        check_model(packed(problem, tmp_path), 10**9)


def test_a_card_is_for_the_tired_too_and_an_override_tires(client):
    """CDS Hooks knows nothing of levels: cards stay as they are, and feedback moves the level."""
    adviser = create(client, "ward/tiring", must_say={"critical": "call doctor"}).json()["id"]
    call = {
        "hook": "patient-view",
        "hookInstance": "d1577c69-dfbe-44ad-ba6d-3e05e953b2ea",
        "context": {"userId": "Practitioner/ann", "encounterId": "17"},
        "extension": {"counsel": {"state": "critical"}},
    }
    for step in range(3):
        answer = client.post(f"/cds-services/{adviser}", json=call).json()
        [card] = answer["cards"]
        assert card["summary"] == "Advice: call doctor"
        assert card["indicator"] == "critical"
        feedback = {
            "card": card["uuid"],
            "outcome": "overridden",
            "outcomeTimestamp": "2027-01-31T10:05:31Z",
            "extension": {"counsel": {"action": "carry on"}},
        }
        told = client.post(f"/cds-services/{adviser}/feedback", json={"feedback": [feedback]})
        assert told.status_code == 200
        episode = answer["extension"]["counsel"]["episode"]
        shown = client.get(f"/v1/episodes/{episode}").json()
        assert shown["level"] == f"{step + 1} piece{'s' if step else ''} so far"
