"""Managing over HTTP: edits, archives, models, and everything on record of an episode."""

import numpy as np
import pytest
from starlette.testclient import TestClient

import counsel
from counsel.service.api.app import make_app
from counsel.service.core.desk import Desk
from counsel.service.core.problem_sources import ProblemSources
from counsel.service.db.api_keys import tenant_of
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.playground.rules import PROBLEMS_BY_PREFIX
from counsel.service.settings import ServiceSettings
from counsel.worlds import make

NEW = {"name": "alerts", "source": "ward", "budget": 2, "hard": True, "knows_habit": True}


@pytest.fixture
def client(url):
    engine = open_engine(url)
    settings = ServiceSettings(model_bytes=100_000, models=3)
    sources = ProblemSources(engine, PROBLEMS_BY_PREFIX)
    desk = Desk(engine, sources, np.random.default_rng(0), settings=settings)
    with write_transaction(engine) as connection:
        tenant = tenant_of(connection, "local")
    app = make_app(desk, tenant=tenant)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as found:
        yield found
    desk.close()
    engine.dispose()


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.npz"
    counsel.save(make("ward"), path)
    return path.read_bytes()


def created(client, **changes):
    answer = client.post("/v1/advisers", json=NEW | changes)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def started(client, adviser, person="ann"):
    answer = client.post(f"/v1/advisers/{adviser}/episodes", json={"person": person})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def pages(client, path, limit):
    rows = []
    path = f"{path}{'&' if '?' in path else '?'}limit={limit}"
    while path:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()) <= limit
        rows += answer.json()
        path = answer.links.get("next", {}).get("url")
    return rows


def test_settings_are_changed_one_by_one_and_refused_in_a_sentence(client):
    adviser = created(client)
    path = f"/v1/advisers/{adviser}"
    answer = client.patch(path, json={"budget": 1, "must_say": {"critical": "call doctor"}})
    assert answer.status_code == 200, answer.text
    settings = answer.json()["settings"]
    assert (settings["budget"], settings["hard"], settings["mode"]) == (1, True, "live")
    assert client.get(path).json()["settings"] == settings
    removed = {"budget": None, "hard": False, "penalty": 0.2}
    assert client.patch(path, json=removed).json()["settings"]["budget"] is None
    assert client.patch(path, json={}).json() == client.get(path).json()
    for body, status, what in (
        ({"source": "ward"}, 422, "source"),
        ({"name": "other"}, 422, "name"),
        ({"mode": None}, 422, "mode"),
        ({"budget": 1}, 400, "penalty"),
        ({"explore": 0.5}, 400, "explore needs a schedule"),
    ):
        refused = client.patch(path, json=body)
        assert (refused.status_code, what in refused.json()["detail"]) == (status, True), body
    assert client.get(path).json()["settings"]["penalty"] == 0.2


def test_the_document_has_no_defaults_for_a_change(client):
    """A generated client would send them, and reset all other settings."""
    schemas = client.get("/v1/openapi.json").json()["components"]["schemas"]
    change, new = schemas["AdviserChange"], schemas["NewAdviser"]
    assert set(change["properties"]) == set(new["properties"]) - {"source", "name"}
    assert "required" not in change
    assert not [name for name, field in change["properties"].items() if "default" in field]
    assert new["properties"]["mode"]["default"] == "live"


def test_archived_advisers_are_listed_only_on_request(client):
    first, second = created(client), created(client)
    archived = client.post(f"/v1/advisers/{first}/archive").json()
    assert archived["archived"] > 0
    assert [one["id"] for one in client.get("/v1/advisers").json()] == [second]
    both = client.get("/v1/advisers?archived=true").json()
    assert [(one["id"], one["archived"] is None) for one in both] == [
        (first, False),
        (second, True),
    ]
    assert client.get(f"/v1/advisers/{first}").json()["archived"] == archived["archived"]
    refused = client.post(f"/v1/advisers/{first}/episodes", json={"person": "ann"})
    assert (refused.status_code, "is archived" in refused.json()["detail"]) == (409, True)
    assert client.post(f"/v1/advisers/{first}/restore").json()["archived"] is None
    started(client, first)


def test_an_adviser_is_deleted_by_its_name_only(client):
    adviser = created(client)
    path = f"/v1/advisers/{adviser}"
    confirmed = {"confirm": "alerts"}
    assert client.request("DELETE", path, json=confirmed).status_code == 409
    client.post(f"{path}/archive")
    assert client.delete(path).status_code == 422
    assert client.request("DELETE", path, json={"confirm": "x"}).status_code == 400
    answer = client.request("DELETE", path, json=confirmed)
    assert (answer.status_code, answer.json()) == (200, {"remains": []})
    for verb, part in (("GET", ""), ("POST", "/archive"), ("POST", "/restore")):
        assert client.request(verb, path + part).status_code == 404
    assert client.request("DELETE", path, json=confirmed).status_code == 404
    assert client.get("/v1/advisers?archived=true").json() == []


def test_models_are_listed_shown_downloaded_renamed_and_deleted(client, content):
    models = [
        client.post(f"/v1/models?name=model {i}", content=content).json()["id"] for i in range(3)
    ]
    full = client.post("/v1/models", content=content)
    assert (full.status_code, "raise COUNSEL_MODELS" in full.json()["detail"]) == (409, True)
    adviser = created(client, source=models[0])
    created(client, source=models[0])
    rows = pages(client, "/v1/models", 2)
    assert [row["id"] for row in rows] == models
    assert [row["advisers"] for row in rows] == [2, 0, 0]
    assert {row["bytes"] for row in rows} == {len(content)}
    shape = client.get(f"/v1/models/{models[1]}").json()
    assert (shape["horizon"], shape["actions"][1], len(shape["states"])) == (
        make("ward").horizon,
        "assess",
        5,
    )
    answer = client.get(f"/v1/models/{models[1]}/file")
    assert answer.content == content
    assert "attachment" in answer.headers["content-disposition"]
    named = client.patch(f"/v1/models/{models[1]}", json={"name": "ward 3"}).json()
    assert (named["name"], named["advisers"]) == ("ward 3", 0)
    refused = client.delete(f"/v1/models/{models[0]}")
    assert (refused.status_code, "of 2 advisers" in refused.json()["detail"]) == (409, True)
    assert client.delete(f"/v1/models/{models[1]}").status_code == 204
    for part in ("", "/file"):
        assert client.get(f"/v1/models/{models[1]}{part}").status_code == 404
    assert client.post("/v1/models", content=content).status_code == 201, "there is room again"
    assert client.get(f"/v1/advisers/{adviser}").status_code == 200


def test_a_model_that_is_too_large_is_refused_with_the_variable(client):
    answer = client.post("/v1/models", content=b"x" * 100_001)
    assert answer.status_code == 413
    assert answer.json()["detail"] == (
        "the model is larger than 100000 bytes; raise COUNSEL_MODEL_BYTES"
    )


def test_episodes_are_listed_newest_first_and_by_person(client):
    adviser, other = created(client), created(client)
    begun = [started(client, adviser, f"person {i % 3}") for i in range(7)]
    started(client, other)
    client.post(f"/v1/episodes/{begun[0]}/end", json={"terminated": False})
    path = f"/v1/advisers/{adviser}/episodes"
    rows = pages(client, path, 3)
    assert [row["id"] for row in rows] == begun[::-1]
    assert rows[-1]["ended"] >= rows[-1]["started"]
    assert (rows[-1]["terminated"], rows[0]["terminated"], rows[0]["spent"]) == (False, None, 0)
    by_person = pages(client, f"{path}?person=person 1", 1)
    assert [row["id"] for row in by_person] == [begun[4], begun[1]]
    assert {row["person"] for row in by_person} == {"person 1"}
    for query, status in (("?person=nobody", 404), ("?after=nothing", 400), ("?limit=0", 422)):
        assert client.get(path + query).status_code == status, query
    assert client.get("/v1/advisers/none/episodes").status_code == 404


def _rest(client, first):
    """Return what follows a page of one row."""
    return client.get(first.links["next"]["url"].replace("limit=1", "limit=9")).json()


def test_lists_go_on_where_the_last_row_of_a_page_was_deleted(client, content):
    """It is the first of three: the second page has the others."""
    advisers = [created(client, name=f"adviser {i}") for i in range(3)]
    models = [client.post("/v1/models", content=content).json()["id"] for _ in range(3)]
    begun = [started(client, advisers[1], f"person {i}") for i in range(3)]
    first = client.get("/v1/advisers?limit=1")
    client.post(f"/v1/advisers/{advisers[0]}/archive")
    deletion = {"confirm": "adviser 0"}
    assert client.request("DELETE", f"/v1/advisers/{advisers[0]}", json=deletion).status_code == 200
    assert [row["id"] for row in _rest(client, first)] == advisers[1:]
    first = client.get("/v1/models?limit=1")
    assert client.delete(f"/v1/models/{models[0]}").status_code == 204
    assert [row["id"] for row in _rest(client, first)] == models[1:]
    first = client.get(f"/v1/advisers/{advisers[1]}/episodes?limit=1")
    assert client.delete("/v1/people/person 2").status_code == 200
    assert [row["id"] for row in _rest(client, first)] == begun[1::-1]
    first = client.get("/v1/people?limit=1")
    assert client.delete("/v1/people/person 0").status_code == 200
    assert [row["name"] for row in _rest(client, first)] == ["person 1"]


@pytest.mark.parametrize(
    "after", ["nonsense", "", "@", "x@", "@1.0", "x@nan", "x@inf", "x@1e400", "x@y", f"x@{2**70}"]
)
def test_a_page_after_nonsense_is_refused(client, after):
    adviser = created(client)
    started(client, adviser, "ann")
    for path in ("/v1/advisers", "/v1/models", f"/v1/advisers/{adviser}/episodes"):
        answer = client.get(path, params={"after": after})
        assert (answer.status_code, "from the Link header" in answer.text) == (400, True), path
    assert client.get("/v1/advisers", params={"after": adviser}).json() == [], "an id is enough"
    answer = client.get("/v1/models", params={"after": adviser})
    assert answer.status_code == 400, "it is none of a model"


def test_everything_on_record_of_an_episode_can_be_read_back(client):
    adviser = created(client, mode="shadow")
    episode = started(client, adviser, "ann / ⚕")
    ids = []
    for step in range(3):
        at = {"step": step, "state": "deteriorating"}
        ids.append(client.post(f"/v1/episodes/{episode}/advice", json=at).json()["id"])

    def report(**outcome):
        answer = client.post("/v1/outcomes", json={"outcomes": [outcome]})
        assert answer.status_code == 200, answer.text

    report(advice_id=ids[0], action="assess", reward=0.5, next_state="watch", reason_code="busy")
    report(advice_id=ids[1], action="assess", seen=False, comment="first")
    report(advice_id=ids[1], action="call doctor", comment="<b>second</b>")
    record = client.get(f"/v1/episodes/{episode}").json()
    assert (record["person"], record["adviser"], record["mode"]) == ("ann / ⚕", adviser, "shadow")
    first, second, third = record["decisions"]
    assert [one["id"] for one in record["decisions"]] == ids
    assert (first["state"], first["shown"], first["earlier"]) == ("deteriorating", False, [])
    assert first["advice"] in ("assess", "call doctor")
    assert first["reason"]["considered"] == first["advice"]
    outcome = first["outcome"]
    assert (outcome["reason_code"], outcome["comment"], outcome["version"]) == ("busy", None, 1)
    assert (outcome["reward"], outcome["next_state"]) == (0.5, "watch")
    last, [earlier] = second["outcome"], second["earlier"]
    assert (last["version"], last["action"], last["comment"]) == (2, "call doctor", "<b>second</b>")
    assert (earlier["version"], earlier["seen"], earlier["comment"]) == (1, False, "first")
    assert (third["outcome"], third["earlier"]) == (None, [])
    assert client.get("/v1/episodes/none").status_code == 404
