"""The HTTP API: whole episodes, who may do what, and what is refused how."""

import io
import json
import signal
import socket
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager

import httpx2
import numpy as np
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

import counsel
from counsel.service.api import failed_logins
from counsel.service.api.app import make_app
from counsel.service.api.record_schemas import Summary
from counsel.service.api.request_bodies import MANY_BYTES
from counsel.service.core.desk import Desk
from counsel.service.core.problem_sources import ProblemSources
from counsel.service.core.summary import summarise
from counsel.service.db.api_keys import add_key, revoke_key, tenant_of
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.db.tables import advisers
from counsel.service.playground.rules import PROBLEMS_BY_PREFIX
from counsel.worlds.ward import ward_log
from tests.support.later import Later
from tests.support.processes import started
from tests.support.routes import BODIES, DELETED, MATRIX

pd = Later("pandas")


@contextmanager
def open_desk(folder):
    engine = open_engine(str(folder / "counsel.db"))
    found = Desk(engine, ProblemSources(engine, PROBLEMS_BY_PREFIX), np.random.default_rng(0))
    yield found
    found.close()
    found.engine.dispose()


def add_keys(desk):
    """Add one key for each role, and a stranger's."""
    with desk.engine.begin() as connection:
        made = {
            role: add_key(connection, tenant="clinic", role=role, name=role)
            for role in ("read", "advise", "admin")
        }
        made["stranger"] = add_key(connection, tenant="school", role="admin", name="stranger")
    return made


@pytest.fixture
def desk(tmp_path):
    with open_desk(tmp_path) as found:
        yield found


@pytest.fixture
def keys(desk):
    return add_keys(desk)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A service that all routes are tried on, and its keys."""
    with open_desk(tmp_path_factory.mktemp("shared")) as found:
        keys = add_keys(found)
        with TestClient(make_app(found), raise_server_exceptions=False) as client:
            yield client, keys


@pytest.fixture
def client(desk):
    with TestClient(make_app(desk), raise_server_exceptions=False) as found:
        yield found


def bearing(key):
    return {"Authorization": f"Bearer {key}"}


def an_adviser(client, keys, **changes):
    told = {"name": "alerts", "source": "ward", "budget": 2, "hard": True, "knows_habit": True}
    made = client.post("/v1/advisers", json=told | changes, headers=bearing(keys["admin"]))
    assert made.status_code == 201, made.text
    return made.json()


def an_episode(client, keys, adviser, person="ann"):
    path = f"/v1/advisers/{adviser['id']}/episodes"
    made = client.post(path, json={"person": person}, headers=bearing(keys["advise"]))
    assert made.status_code == 201, made.text
    return made.json()["id"]


def a_game(client, keys, **changes):
    told = {"map": "budget", "adviser": "aware", "budget": 1, "player": "me"} | changes
    made = client.post("/v1/play/games", json=told, headers=bearing(keys["advise"]))
    assert made.status_code == 201, made.text
    return made.json()


def test_a_whole_episode_over_http(client, keys):
    adviser = an_adviser(client, keys)
    assert adviser["actions"] == ["carry on", "assess", "call doctor"]
    episode = an_episode(client, keys, adviser)
    spoken = []
    for step in range(6):
        told = client.post(
            f"/v1/episodes/{episode}/advice",
            json={"step": step, "state": "deteriorating"},
            headers=bearing(keys["advise"]),
        ).json()
        spoken.append(told["advice"])
        assert told["reason"]["why"]
        assert told["reason"]["lift"] is not None
        outcome = {"advice_id": told["id"], "action": "assess", "reward": 0.5}
        taken = client.post(
            "/v1/outcomes", json={"outcomes": [outcome] * 2}, headers=bearing(keys["advise"])
        )
        assert taken.json() == {"taken": 2, "corrected": 0}
    assert sum(one is not None for one in spoken) == 2
    done = client.post(f"/v1/episodes/{episode}/end", json={}, headers=bearing(keys["advise"]))
    assert done.status_code == 204
    late = client.post(
        f"/v1/episodes/{episode}/advice",
        json={"step": 0, "state": "stable"},
        headers=bearing(keys["advise"]),
    )
    assert late.status_code == 409
    told = client.get("/metrics").text
    assert 'counsel_advice_total{kind="advice"} 2.0' in told


@pytest.fixture(scope="module")
def a_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.npz"
    counsel.fit(ward_log(shifts=300, rng=np.random.default_rng(0))).save(path)
    return path.read_bytes()


def test_every_route_is_in_the_matrix(client):
    paths = client.app.openapi()["paths"]
    routes = {(verb.upper(), path) for path, verbs in paths.items() for verb in verbs}
    assert routes == {(verb, path) for verb, path, _ in MATRIX}


@pytest.mark.parametrize(("verb", "path", "role"), MATRIX)
def test_who_may_do_what(shared, verb, path, role, a_model, monkeypatch):
    monkeypatch.setattr(failed_logins, "FREE", 1000)  # nobody is slowed
    client, keys = shared
    adviser = an_adviser(client, keys)
    episode = an_episode(client, keys, adviser)
    game = a_game(client, keys)
    admin = bearing(keys["admin"])
    model = client.post("/v1/models", content=a_model, headers=admin).json()["id"]
    names = {"adviser": adviser["id"], "episode": episode, "model": model, "game": game["id"]}
    url = path.format(**names, person="ann", player="me")
    if verb == "DELETE" and path in DELETED:
        assert client.post(f"{url}/archive", headers=admin).status_code == 200

    def asked(headers):
        if (verb, path) == ("POST", "/v1/models"):
            return client.post(url, content=a_model, headers=headers)
        bodies = {"POST": BODIES, "PATCH": BODIES, "DELETE": DELETED}.get(verb, {})
        return client.request(verb, url, json=bodies.get(path), headers=headers)

    roles = ("read", "advise", "admin")
    for holder in roles:
        enough = roles.index(holder) >= roles.index(role)
        status = asked(bearing(keys[holder])).status_code
        assert (status < 300) if enough else (status == 403), (holder, status)
    for nobody in ({}, bearing("counsel_wrong"), {"Authorization": keys["admin"]}, bearing("")):
        refused = asked(nobody)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
    if "{" in path:
        assert asked(bearing(keys["stranger"])).status_code == 404


def test_the_summary_is_sent_as_it_was_computed(client, keys, desk):
    adviser = an_adviser(client, keys, holdout=0.5)
    played(client, keys, adviser, np.random.default_rng(1), episodes=4)
    with desk.engine.begin() as connection:
        tenant = tenant_of(connection, "clinic")
    summarise(desk, tenant, adviser["id"])  # has the plan for everybody made again
    desk.plans.settle()
    path = f"/v1/advisers/{adviser['id']}/summary"
    summary = client.get(path, headers=bearing(keys["read"])).json()
    assert summary == json.loads(json.dumps(summarise(desk, tenant, adviser["id"])))
    assert Summary.model_validate(summary).episodes == 4


def test_settings_are_stored_and_shown_as_they_were_given(client, keys, desk):
    adviser = an_adviser(client, keys, mode="shadow", must_say={"critical": "call doctor"})
    with desk.engine.begin() as connection:
        stored = connection.scalar(sa.select(advisers.c.settings))
    assert json.loads(stored) == adviser["settings"]
    assert adviser["settings"]["must_say"] == {"critical": "call doctor"}


def test_a_stranger_sees_nothing(client, keys):
    an_adviser(client, keys)
    assert len(client.get("/v1/advisers", headers=bearing(keys["read"])).json()) == 1
    assert client.get("/v1/advisers", headers=bearing(keys["stranger"])).json() == []


def test_a_revoked_key_works_no_longer(client, keys, desk, monkeypatch):
    monkeypatch.setattr("counsel.service.api.auth.TRUSTED_SECONDS", 0.0)
    assert client.get("/v1/advisers", headers=bearing(keys["read"])).status_code == 200
    with desk.engine.begin() as connection:
        revoke_key(connection, tenant="clinic", name="read")
    assert client.get("/v1/advisers", headers=bearing(keys["read"])).status_code == 401


def test_without_keys_everybody_is_the_one_tenant(desk):
    with desk.engine.begin() as connection:
        tenant = tenant_of(connection, "local")
    with TestClient(make_app(desk, tenant=tenant), base_url="http://localhost") as client:
        assert client.get("/v1/advisers").json() == []


@pytest.mark.parametrize(
    ("path", "body", "status", "what"),
    [
        ("/v1/advisers", {"name": "a", "source": "atlantis"}, 400, "the id of an uploaded model"),
        ("/v1/advisers", {"name": "a", "source": "ward", "loud": 1}, 422, "loud"),
        ("/v1/advisers", {"name": "", "source": "ward"}, 422, "name"),
        ("/v1/advisers", {"name": "a", "source": "ward", "budget": -1}, 422, "budget"),
        (
            "/v1/advisers",
            {"name": "a", "source": "ward", "budget": 1, "penalty": 1},
            400,
            "not both",
        ),
        ("/v1/advisers", {"name": "a", "source": "ward", "must_say": {"x": "y"}}, 400, "must_say"),
        ("/v1/advisers/none/episodes", {"person": "ann"}, 404, "there is no adviser 'none'"),
        ("/v1/advisers/{a}/episodes", {"person": "x" * 201}, 422, "person"),
        ("/v1/episodes/none/advice", {"step": 0, "state": "stable"}, 404, "no episode"),
        ("/v1/episodes/{e}/advice", {"step": 6, "state": "stable"}, 400, "step is 6"),
        ("/v1/episodes/{e}/advice", {"step": 0, "state": "<b>"}, 400, "state is '<b>'"),
        ("/v1/episodes/{e}/advice", {"step": "x", "state": "stable"}, 422, "step"),
        ("/v1/outcomes", {"outcomes": [{"advice_id": "none", "action": "a"}]}, 404, "no decision"),
        ("/v1/nowhere", {}, 404, "Not Found"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(shared, path, body, status, what):
    client, keys = shared
    adviser = an_adviser(client, keys)
    url = path.format(a=adviser["id"], e=an_episode(client, keys, adviser))
    told = client.post(url, json=body, headers=bearing(keys["admin"]))
    assert told.status_code == status, told.text
    assert told.headers["content-type"] == "application/problem+json"
    problem = told.json()
    assert problem["status"] == status
    assert what in problem["detail"]
    assert "\n" not in problem["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b"[" * 5000,
        b'{"outcomes": [' + b"[" * 5000,
        b'{"outcomes": [{"advice_id": "x", "action": "assess", "reward": NaN}]}',
        b'{"outcomes": [{"advice_id": "x", "action": "assess", "reward": 1e999}]}',
        b"null",
    ],
)
def test_hostile_bodies_are_refused(shared, body):
    client, keys = shared
    headers = bearing(keys["advise"]) | {"Content-Type": "application/json"}
    told = client.post("/v1/outcomes", content=body, headers=headers)
    assert told.status_code in (400, 422), told.text
    assert told.headers["content-type"] == "application/problem+json"


def test_what_is_too_large_is_refused_before_it_is_read(client, keys):
    headers = bearing(keys["advise"]) | {"Content-Type": "application/json"}
    large = b" " * (MANY_BYTES + 1)
    assert client.post("/v1/outcomes", content=large, headers=headers).status_code == 413

    def pieces():
        for _ in range(20):
            yield b" " * (MANY_BYTES // 10)

    assert client.post("/v1/outcomes", content=pieces(), headers=headers).status_code == 413


def test_answers_carry_careful_headers(client, keys):
    for path in ("/healthz", "/v1/advisers", "/nowhere"):
        told = client.get(path, headers=bearing(keys["read"]))
        assert told.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in told.headers["content-security-policy"]
        assert told.headers["cache-control"] == "no-store"


def test_the_service_says_that_it_is_well(client):
    assert client.get("/healthz").json()["status"] == "ok"


def test_in_shadow_what_would_be_said_is_told_apart(client, keys):
    adviser = an_adviser(client, keys, mode="shadow")
    episode = an_episode(client, keys, adviser)
    told = client.post(
        f"/v1/episodes/{episode}/advice",
        json={"step": 0, "state": "deteriorating"},
        headers=bearing(keys["advise"]),
    ).json()
    assert told["advice"] is None
    assert told["shadow"] is not None


def test_labels_from_outside_are_text_whatever_they_hold(client, keys):
    adviser = an_adviser(client, keys)
    for person in ("Robert'); DROP TABLE people;--", "<script>alert(1)</script>", "⚕ Ann 🏥"):
        episode = an_episode(client, keys, adviser, person)
        told = client.post(
            f"/v1/episodes/{episode}/advice",
            json={"step": 0, "state": "stable"},
            headers=bearing(keys["advise"]),
        )
        assert told.status_code == 200


def test_an_uploaded_model_advises(client, keys, a_model):
    made = client.post("/v1/models?name=ward", content=a_model, headers=bearing(keys["admin"]))
    assert made.status_code == 201
    adviser = an_adviser(client, keys, source=made.json()["id"])
    assert adviser["states"][:4] == ["critical", "deteriorating", "stable", "watch"]
    episode = an_episode(client, keys, adviser)
    told = client.post(
        f"/v1/episodes/{episode}/advice",
        json={"step": 0, "state": "deteriorating"},
        headers=bearing(keys["advise"]),
    )
    assert told.json()["advice"] is not None
    stolen = {"name": "a", "source": made.json()["id"]}
    refused = client.post("/v1/advisers", json=stolen, headers=bearing(keys["stranger"]))
    assert refused.status_code == 400


def test_an_uploaded_model_with_costs_says_what_advice_costs(client, keys, tmp_path):
    ward = counsel.make("ward")
    costs = counsel.AdviceProblem(ward.mdp, ward.human, cost=[1.0, 2.0, 3.0])
    counsel.save(costs, tmp_path / "ward.npz")
    content, admin = (tmp_path / "ward.npz").read_bytes(), bearing(keys["admin"])
    source = client.post("/v1/models", content=content, headers=admin).json()["id"]
    spent, reasons = 0, []
    adviser = an_adviser(client, keys, source=source, budget=4, hard=True, knows_habit=True)
    episode = an_episode(client, keys, adviser)
    for step in range(6):
        answer = client.post(
            f"/v1/episodes/{episode}/advice",
            json={"step": step, "state": "deteriorating"},
            headers=bearing(keys["advise"]),
        ).json()
        reason = answer["reason"]
        assert reason["spent"] == spent
        if answer["advice"] is not None:
            assert reason.get("cost", 1) == {"assess": 2, "call doctor": 3}.get(answer["advice"], 1)
            spent += reason.get("cost", 1)
            assert reason["left"] == 4 - spent
        reasons.append(reason)
    assert 0 < spent <= 4
    assert any("cost" in reason for reason in reasons)
    summary = client.get(f"/v1/advisers/{adviser['id']}/summary", headers=admin).json()
    assert summary["spending"]["per_episode"] == spent
    assert summary["spending"]["unit"] == "cost"
    told = [row["reason"] for row in summary["recent"] if row["episode"] == episode][::-1]
    assert [reason.get("cost") for reason in told] == [reason.get("cost") for reason in reasons]
    other = an_adviser(client, keys, source="ward")
    plain = client.get(f"/v1/advisers/{other['id']}/summary", headers=admin).json()
    assert "unit" not in plain["spending"]


@pytest.mark.slow
def test_files_that_are_no_models_are_refused(client, keys, a_model):
    whole = a_model
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.npy", b"0" * 200_000_000)
    pickled = io.BytesIO()
    np.savez(pickled, header=np.array([{"a": 1}], dtype=object))
    for content, what in (
        (b"", "not a Counsel file"),
        (whole[: len(whole) // 2], "not a Counsel file"),
        (bomb.getvalue(), "when unpacked"),
        (pickled.getvalue(), "not a Counsel file"),
    ):
        told = client.post("/v1/models", content=content, headers=bearing(keys["admin"]))
        assert told.status_code == 400
        assert what in told.json()["detail"]


def played(client, keys, adviser, rng, episodes=30):
    """Play some episodes over HTTP and return what was reported."""
    states, actions = adviser["states"][:4], adviser["actions"]
    for i in range(episodes):
        episode = an_episode(client, keys, adviser, f"nurse {i % 3}")
        for step in range(3):
            told = client.post(
                f"/v1/episodes/{episode}/advice",
                json={"step": step, "state": str(rng.choice(states))},
                headers=bearing(keys["advise"]),
            ).json()
            outcome = {
                "advice_id": told["id"],
                "action": told["advice"] or str(rng.choice(actions)),
                "reward": float(rng.random()),
                "seen": bool(rng.random() < 0.9),
            }
            client.post(
                "/v1/outcomes", json={"outcomes": [outcome]}, headers=bearing(keys["advise"])
            )
        client.post(f"/v1/episodes/{episode}/end", json={}, headers=bearing(keys["advise"]))


@pytest.mark.slow
def test_the_log_can_be_fitted(client, keys, tmp_path, few_draws):
    adviser = an_adviser(client, keys, holdout=0.3)
    played(client, keys, adviser, np.random.default_rng(0))
    tables = {}
    for kind in ("csv", "parquet"):
        told = client.get(
            f"/v1/advisers/{adviser['id']}/log?format={kind}", headers=bearing(keys["read"])
        )
        assert told.status_code == 200
        path = tmp_path / f"log.{kind}"
        path.write_bytes(told.content)
        tables[kind] = counsel.fit(path)
    assert tables["csv"].check == tables["parquet"].check
    assert tables["csv"].check.rows == 90
    rows = pd.read_csv(tmp_path / "log.csv", keep_default_na=False)
    assert rows.groupby("episode").terminated.sum().eq(1).all()
    assert (rows[rows.advice == ""].seen == "").all()
    wrong = client.get(
        f"/v1/advisers/{adviser['id']}/log?format=xls", headers=bearing(keys["read"])
    )
    assert wrong.status_code == 422


@pytest.mark.slow
def test_the_commands_make_a_key_and_serve(command, tmp_path):
    made = command("keys", "add", "--role", "admin", "--name", "mine", cwd=tmp_path)
    key = made.stdout.strip()
    assert made.returncode == 0
    assert key.startswith("counsel_")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = [sys.executable, "-c", "from counsel.cli import main; main()", "serve"]
    with started(
        [*serve, "--port", str(port)], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                health = httpx2.get(f"{url}/healthz")
                break
            except httpx2.ConnectError:
                time.sleep(0.1)
        assert health.json()["status"] == "ok"
        assert httpx2.get(f"{url}/v1/advisers").status_code == 401
        new = {"name": "alerts", "source": "ward", "budget": 1}
        made = httpx2.post(f"{url}/v1/advisers", json=new, headers=bearing(key))
        assert made.status_code == 201
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
    listed = command("keys", "list", "--json", cwd=tmp_path)
    assert [one["name"] for one in json.loads(listed.stdout)["keys"]] == ["mine"]
    assert key not in listed.stdout
    assert command("keys", "revoke", "--name", "mine", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("serve", "--no-auth", "--host", "0.0.0.0"), "--no-auth is for this machine only"),
        (("serve", "--db", "/nowhere/at/all.db"), "cannot be opened"),
        (("keys", "add", "--role", "root"), "role is 'root'"),
        (("keys", "revoke", "--name", "none"), "there is no database counsel.db"),
        (("keys", "list"), "there is no database counsel.db"),
        (("serve", "--workers", "2"), "several workers need PostgreSQL"),
        (("serve", "--demo", "--host", "0.0.0.0"), "--demo is for this machine only"),
        (("serve", "--host", "nowhere.invalid"), "cannot listen on nowhere.invalid"),
        (
            ("serve", "--wait", "0", "--db", "postgresql://u@127.0.0.1:1/x?password=s3cret"),
            "password=hidden",
        ),
    ],
)
def test_commands_that_make_no_sense_are_refused_in_one_line(command, tmp_path, arguments, what):
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert what in done.stderr
    assert "s3cret" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_port_that_is_taken_is_told_before_anything_is_said(command, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = command("serve", "--no-auth", "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert done.returncode == 2
    assert "address already in use" in done.stderr
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)


def test_a_database_of_a_newer_version_is_told_in_one_line(command, tmp_path):
    engine = open_engine(str(tmp_path / "counsel.db"))
    with write_transaction(engine) as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '9999'")
    engine.dispose()
    done = command("serve", cwd=tmp_path)
    assert done.returncode == 2
    assert "made by another version of Counsel" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Host": ""},
    ],
)
def test_without_keys_no_page_from_elsewhere_may_ask(desk, headers):
    with desk.engine.begin() as connection:
        tenant = tenant_of(connection, "local")
    with TestClient(make_app(desk, tenant=tenant), base_url="http://localhost") as client:
        assert client.get("/v1/advisers", headers=headers).status_code == 403
        own = {"Origin": "http://localhost"}
        assert client.get("/v1/advisers", headers=own).status_code == 200


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_nul_anywhere_is_refused_and_never_a_fault(url):
    """Found by an attack: PostgreSQL keeps no NUL, and fourteen routes answered 500."""
    engine = open_engine(url)
    found = Desk(engine, ProblemSources(engine, PROBLEMS_BY_PREFIX), np.random.default_rng(0))
    with write_transaction(engine) as connection:
        tenant = tenant_of(connection, "local")
    app = make_app(found, tenant=tenant)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        made = client.post("/v1/advisers", json={"name": "a", "source": "ward"}).json()["id"]
        for verb, path, body in (
            ("POST", "/v1/advisers", {"name": "a\0", "source": "ward"}),
            ("POST", "/v1/advisers", {"name": "a", "source": "\0"}),
            ("POST", f"/v1/advisers/{made}/episodes", {"person": "\0"}),
            ("POST", "/v1/outcomes", {"outcomes": [{"advice_id": "\0", "action": "a"}]}),
            ("POST", "/v1/play/games", {"map": "budget", "budget": 1, "player": "\0"}),
            ("POST", "/v1/episodes/%00/end", {}),
            ("GET", "/v1/advisers/%00", None),
            ("GET", "/v1/people/%00", None),
            ("DELETE", "/v1/people/a%00b", None),
            ("GET", "/v1/play/players/%00/log", None),
            ("GET", "/v1/play/games/%00", None),
            ("POST", "/v1/models?name=%00", None),
        ):
            told = client.request(verb, path, json=body)
            assert told.status_code in (400, 422), (path, told.text)
            assert told.headers["content-type"] == "application/problem+json"
    found.close()
    engine.dispose()


def test_a_reward_that_sums_to_no_number_is_refused(client, keys):
    adviser = an_adviser(client, keys)
    episode = an_episode(client, keys, adviser)
    at = {"step": 0, "state": "stable"}
    path = f"/v1/episodes/{episode}/advice"
    said = client.post(path, json=at, headers=bearing(keys["advise"])).json()
    told = {"outcomes": [{"advice_id": said["id"], "action": "assess", "reward": 1.7e308}]}
    answer = client.post("/v1/outcomes", json=told, headers=bearing(keys["advise"]))
    assert answer.status_code == 422


def test_models_that_would_take_for_ever_are_refused(client, keys, a_model):
    def changed(change, extra=0):
        sink = io.BytesIO()
        with np.load(io.BytesIO(a_model)) as packed:
            arrays = dict(packed)
        header = json.loads(bytes(arrays["header"]))
        change(header)
        np.savez(
            sink, **(arrays | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)})
        )
        with zipfile.ZipFile(sink, "a") as packed:
            for i in range(extra):
                packed.writestr(f"x{i}.npy", b"")
        return sink.getvalue()

    for content, what in (
        (changed(lambda header: header.update(horizon=10**9)), "are the most"),
        (changed(lambda header: None, extra=1001), "arrays; at most 1000"),
        (changed(lambda header: header["state_labels"].__setitem__(0, "x" * 201)), "labels have"),
    ):
        told = client.post("/v1/models", content=content, headers=bearing(keys["admin"]))
        assert (told.status_code, what in told.json()["detail"]) == (400, True), told.text
    fine = changed(lambda header: None)
    assert (
        client.post("/v1/models", content=fine, headers=bearing(keys["admin"])).status_code == 201
    )


def test_pages_are_served_with_a_policy_and_nothing_beside_them(client):
    for path, kind in (
        ("/", "text/html"),
        ("/play", "text/html"),
        ("/static/common.js", "text/javascript"),
    ):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["Content-Type"].startswith(kind)
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    for path in ("/static/routes.py", "/static/..%2Froutes.py", "/static/"):
        assert client.get(path).status_code == 404, path
