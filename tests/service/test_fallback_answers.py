"""Somebody answers, and not with advice: what must be said is said, whatever the answer is."""

import http.server
import json
import threading
from http import HTTPStatus

import pytest

from counsel.service.client import Client, NoAnswerError, ServiceError
from counsel.service.fallback import FallbackClient

ADVISER = {
    "id": "alerts",
    "settings": {"mode": "live", "must_say": {"critical": "call doctor"}},
    "states": ["stable", "critical"],
    "actions": ["carry on", "call doctor"],
    "horizon": 6,
}
DECISION = {"id": "e-0", "advice": None, "shadow": None, "probability": 1.0, "reason": {"why": "x"}}
OF_PROXIES = (301, 302, 307, 400, 401, 403, 404, 405, 407, 408, 410, 413, 421, 429, 431, 451)
OF_PROXIES = (*OF_PROXIES, 500, 501, 502, 503, 504, 505, 507, 511, 520, 522)
LATER = (401, 403, 408, 429, 500, 503)
REFUSALS = (400, 404, 409, 413, 422)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet per answer: two would wait for each other

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, kind, content = self.server.answer or _of_service(self.path)
        self.send_response(status, "Whatever")
        self.send_header("Content-Type", kind)
        self.send_header("Location", "https://login.example.org/")
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_DELETE = do_GET


def _of_service(path):
    """Return what the service answers."""
    if path.endswith("/end"):
        return 204, "", b""
    if path.endswith("/episodes"):
        return 201, "application/json", json.dumps({"id": "e"}).encode()
    answer = DECISION if path.endswith("/advice") else ADVISER
    return 200, "application/json", json.dumps(answer).encode()


def page(status):
    """Return the answer of a proxy."""
    return status, "text/html", b"" if status == 204 else b"<html>proxy</html>"


def problem(status):
    """Return an answer of the service that is no success."""
    content = json.dumps({"status": status, "detail": "there is no such thing"}).encode()
    return status, "application/problem+json", content


@pytest.fixture(scope="module")
def _server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def network(_server):
    """What answers: its ``answer``, or the service where that is None."""
    _server.answer = None
    return _server


@pytest.fixture
def ward(network, tmp_path):
    """A client of the ward that has stored what must be said."""
    with _ward(network, tmp_path) as client:
        yield client


def _ward(network, folder):
    address = f"http://127.0.0.1:{network.server_port}"
    return FallbackClient(address, "alerts", folder, retry=1e-9, background=False)


def _of_portals():
    """Answers that are none of a service, with what they are called."""
    pages = [pytest.param(page(status), id=f"page {status}") for status in OF_PROXIES]
    later = [pytest.param(problem(status), id=f"later {status}") for status in LATER]
    contents = (b"", b"<html>", b"null", b"[]", b"{}", b'"x"', b'{"id": 7}', b"[" * 100_000)
    others = [
        pytest.param((200, "application/json", content), id=f"200 {content[:8].decode()}")
        for content in contents
    ]
    return [*pages, *later, *others, pytest.param(page(204), id="page 204")]


@pytest.mark.parametrize("answer", _of_portals())
def test_what_a_proxy_answers_in_place_of_the_service_refuses_nothing(
    ward, network, tmp_path, answer
):
    episode = ward.start("ann")
    network.answer = answer
    said = ward.advise(episode, 0, "critical")
    assert (said["advice"], said["fallback"]) == ("call doctor", True)
    silent = ward.advise(episode, 1, "stable")
    assert (silent["advice"], silent["fallback"]) == (None, True)
    assert ward.start("bob").startswith("offline-")
    ward.report(said["id"], "call doctor")
    assert ward.pending == 4
    assert ward.deliver() == 4, "nothing is taken for delivered, or for refused"
    with _ward(network, tmp_path) as rebooted:
        assert rebooted.advise(episode, 2, "critical")["advice"] == "call doctor"


@pytest.mark.parametrize("status", REFUSALS)
def test_what_must_be_said_is_said_though_the_service_refuses(ward, network, tmp_path, status):
    """It may have lost the episode when a backup was restored."""
    episode = ward.start("ann")
    network.answer = problem(status)
    said = ward.advise(episode, 0, "critical")
    assert (said["advice"], said["fallback"]) == ("call doctor", True)
    assert said["reason"]["why"].endswith("the service refuses to decide: there is no such thing")
    for step, state in ((1, "stable"), (6, "critical"), (1, "fine"), ("x", "critical")):
        with pytest.raises(ServiceError, match="there is no such thing"):
            ward.advise(episode, step, state)
    with _ward(network, tmp_path) as rebooted:
        assert rebooted.advise(episode, 2, "critical")["advice"] == "call doctor"
        assert rebooted.fault == "there is no such thing"
    assert ward.deliver() == 0
    refused = (tmp_path / "alerts" / "refused.jsonl").read_text().splitlines()
    assert [json.loads(line)["entry"]["step"] for line in refused] == [0, 2]


@pytest.mark.parametrize("status", REFUSALS)
def test_what_must_be_said_is_said_though_the_service_refuses_the_start(
    ward, network, tmp_path, status
):
    """E.g. with 409 where the quota of people is reached: nobody new heard an alarm."""
    network.answer = problem(status)
    episode = ward.start("ann")
    assert ward.advise(episode, 0, "critical")["advice"] == "call doctor"
    quiet = ward.advise(episode, 1, "stable")
    assert quiet["advice"] is None
    assert quiet["reason"]["why"].endswith("when last asked, there is no such thing")
    assert ward.deliver() == 0
    refused = (tmp_path / "alerts" / "refused.jsonl").read_text().splitlines()
    assert [json.loads(line)["entry"]["kind"] for line in refused] == ["start"] + ["decision"] * 2
    network.answer = None
    assert ward.start("bob") == "e"
    silent = ADVISER | {"settings": {"mode": "live", "must_say": {}}}
    network.answer = 200, "application/json", json.dumps(silent).encode()
    ward.refresh()
    network.answer = problem(status)
    with pytest.raises(ServiceError, match="there is no such thing"):
        ward.start("carl")


def test_a_refusal_is_raised_where_nothing_is_stored(network, tmp_path):
    network.answer = problem(404)
    with pytest.raises(ServiceError, match="there is no such thing"):
        _ward(network, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"states": "critical"},
        {"actions": [1]},
        {"horizon": "6"},
        {"settings": {"mode": "live", "must_say": [["critical", "call doctor"]]}},
        {"settings": {"mode": None, "must_say": {}}},
        {"settings": []},
    ],
    ids=str,
)
def test_what_does_not_describe_the_adviser_replaces_no_stored_rules(
    ward, network, tmp_path, change
):
    content = json.dumps(ADVISER | change).encode()
    network.answer = 200, "application/json", content
    with pytest.raises(NoAnswerError, match="does not describe adviser alerts"):
        ward.refresh()
    with _ward(network, tmp_path) as rebooted:
        network.answer = page(502)
        assert rebooted.advise("e", 2, "critical")["advice"] == "call doctor"


def test_stored_rules_of_another_shape_are_told_and_raise_nothing(ward, network, tmp_path):
    path = tmp_path / "alerts" / "must_say.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"must_say": ["critical"]}))
    network.answer = page(502)
    with _ward(network, tmp_path) as rebooted:
        why = rebooted.advise("e", 0, "critical")["reason"]["why"]
    assert "must-say advice cannot be read from" in why


@pytest.mark.parametrize("content", [b"null", b"[]", b"{}", b"7"])
def test_a_client_tells_answers_of_somebody_else_in_a_sentence(network, content):
    network.answer = HTTPStatus.OK, "application/json", content
    with Client(f"http://127.0.0.1:{network.server_port}") as client:
        calls = [
            lambda: client.start("alerts", "ann"),
            lambda: client.advise("e", 0, "stable"),
            lambda: client.report("e-0", "carry on"),
            lambda: client.report_decisions("e", []),
            lambda: client.delete_person("ann"),
            lambda: client.delete_adviser("alerts", "Alerts"),
            lambda: client.upload_model(b""),
        ]
        if content != b"null":
            calls.append(lambda: client.end("e"))
        if content != b"[]":
            calls.append(client.advisers)
        for call in calls:
            with pytest.raises(NoAnswerError, match="is none of a Counsel service"):
                call()
