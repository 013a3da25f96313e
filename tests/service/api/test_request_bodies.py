"""Bodies: what is read before the key is checked (nothing), how large they are, and who parses."""

import asyncio
import json
import threading

import pytest
from starlette.testclient import TestClient

from counsel.service.api import request_bodies
from counsel.service.api.app import make_app
from counsel.service.api.request_bodies import MANY, MANY_BYTES, MANY_PARTS, SINGLE_BYTES
from counsel.service.db.api_keys import add_key
from counsel.service.db.engine import write_transaction
from tests.support.routes import BODIES, DELETED, MATRIX
from tests.support.services import open_desk

WITH_BODY = [(verb, path) for verb, path, _ in MATRIX if verb == "POST" and path in BODIES]
WITH_BODY += [("PATCH", path) for verb, path, _ in MATRIX if verb == "PATCH"]
WITH_BODY += [("DELETE", path) for path in DELETED]
FILLED = {"adviser": "a", "episode": "e" * 32, "game": "g" * 32, "model": "m"}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bodies")
    with open_desk(f"sqlite:///{folder / 'counsel.db'}") as desk:
        yield make_app(desk)


@pytest.fixture(scope="module")
def client(app):
    with TestClient(app, raise_server_exceptions=False) as found:
        yield found


@pytest.fixture(scope="module")
def key(app):
    with write_transaction(app.state.key_check.desk.engine) as connection:
        return add_key(connection, tenant="local", role="admin", name="ann")


@pytest.fixture
def send(client, key):
    """Send a body as JSON, with a key, and return the status and the sentence of its answer."""

    def send(verb, path, body):
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        answer = client.request(verb, path, content=body, headers=headers)
        return answer.status_code, answer.json().get("detail")

    return send


def filled(path):
    return path.format(**FILLED)


def asked_without_key(app, verb, path):
    """Send a request whose body never comes; return the status of its answer."""
    statuses = []

    async def receive():
        raise AssertionError("the body was read")

    async def answer(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    headers = [(b"host", b"localhost"), (b"content-length", b"9000")]
    headers.append((b"content-type", b"application/json"))
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http"}
    scope |= {"method": verb, "path": filled(path), "raw_path": filled(path).encode()}
    scope |= {"query_string": b"", "root_path": "", "headers": headers}
    scope |= {"client": ("127.0.0.1", 1), "server": ("localhost", 80)}
    asyncio.run(app(scope, receive, answer))
    return statuses


@pytest.mark.parametrize(("verb", "path"), WITH_BODY)
def test_the_key_is_checked_before_the_body_is_read(app, client, verb, path):
    assert asked_without_key(app, verb, path) == [401]


def test_these_are_all_routes_with_a_body(client):
    document = client.get("/v1/openapi.json").json()
    have = {
        (verb.upper(), path)
        for path, verbs in document["paths"].items()
        for verb, route in verbs.items()
        if "application/json" in route.get("requestBody", {}).get("content", {})
    }
    assert have == set(WITH_BODY)


@pytest.mark.parametrize(("verb", "path"), WITH_BODY)
def test_a_body_of_a_single_thing_is_small(send, verb, path):
    most = MANY_BYTES if MANY.fullmatch(filled(path)) else SINGLE_BYTES
    status, detail = send(verb, filled(path), b" " * (most + 1))
    assert (status, detail) == (413, f"the request is larger than {most} bytes")
    status, _ = send(verb, filled(path), b" " * most)
    assert status == 422


def test_many_things_are_settings_outcomes_decisions_and_cds_hooks():
    many = {path for _, path in WITH_BODY if MANY.fullmatch(filled(path))}
    assert many == {
        "/v1/advisers",
        "/v1/advisers/{adviser}",
        "/v1/outcomes",
        "/v1/episodes/{episode}/reported",
        "/cds-services/{adviser}",
        "/cds-services/{adviser}/feedback",
    }


def test_the_largest_settings_that_make_sense_are_taken(send):
    """A thousand states whose names have forty letters."""
    must_say = {f"{number:040d}": "call doctor" for number in range(1000)}
    body = json.dumps({"name": "a", "source": "ward", "budget": 1, "must_say": must_say})
    status, detail = send("POST", "/v1/advisers", body.encode())
    assert (status, "must_say" in detail) == (400, True), detail  # the ward has no such states


@pytest.mark.parametrize("path", ["/v1/outcomes", "/v1/advisers"])
def test_large_bodies_are_parsed_beside_the_loop_and_small_ones_on_it(send, monkeypatch, path):
    parsers, parse = [], request_bodies.parse

    def watched(model, content):
        parsers.append(threading.current_thread().name)
        return parse(model, content)

    monkeypatch.setattr(request_bodies, "parse", watched)
    for size in (SINGLE_BYTES, SINGLE_BYTES + 1):
        assert send("POST", path, b'{"x": 1}'.ljust(size))[0] == 422
    assert not parsers[0].startswith("parsing")
    assert parsers[1].startswith("parsing")


@pytest.mark.parametrize("body", [b"[" + b"[]," * 330_000 + b"[]]", b'{"a":' + b"[" * 990_000])
@pytest.mark.parametrize("path", ["/v1/outcomes", "/v1/advisers", "/cds-services/a"])
def test_a_large_body_of_brackets_is_not_parsed(send, monkeypatch, path, body):
    monkeypatch.setattr(request_bodies, "parse", None)
    status, detail = send("POST", path, body)
    assert status == 413
    assert detail.endswith(f"it may have {MANY_PARTS}: send fewer things at once")


@pytest.mark.parametrize("path", ["/v1/outcomes", "/v1/advisers"])
def test_of_very_many_faults_none_is_looked_for(send, path):
    body = json.dumps({f"k{number}": number for number in range(20_000)}).encode()
    status, detail = send("POST", path, body)
    assert status == 422
    assert "faults; compare it with /v1/openapi.json" in detail


def test_a_body_that_is_missing_or_not_called_json_is_told(client, key):
    headers = {"Authorization": f"Bearer {key}"}
    for kind, name in ((None, "missing"), ("text/plain", "'text/plain'"), ("json", "'json'")):
        own = headers | ({} if kind is None else {"Content-Type": kind})
        answer = client.post("/v1/advisers", content=b"{}", headers=own)
        assert answer.status_code == 422
        assert answer.json()["detail"] == f"Content-Type is {name}; it must be application/json"
    own = headers | {"Content-Type": "application/merge-patch+json; charset=utf-8"}
    assert client.patch("/v1/models/m", content=b"{}", headers=own).status_code == 422
    answer = client.post("/v1/advisers", headers=headers)
    assert answer.json()["detail"] == "the request has no body; send a JSON object"


def test_a_request_is_counted_once(app, client, send, monkeypatch):
    """The key is checked before the body, and not again by FastAPI."""
    admitted = []
    monkeypatch.setattr(app.state.key_check.rates, "admit", admitted.append)
    send("POST", "/v1/advisers/a/episodes", b'{"person": "ann"}')
    assert admitted == [1]
