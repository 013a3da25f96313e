"""The log: one JSON object per line, with the request's id and route, and without names."""

import asyncio
import json
import logging

import pytest
from starlette.testclient import TestClient

from counsel.service.api import request_log
from counsel.service.api.app import make_app
from counsel.service.api.request_log import HEADER, JsonFormatter, configure_logging
from counsel.service.db.api_keys import add_key
from counsel.service.db.engine import write_transaction
from counsel.service.settings import ServiceSettings
from tests.support.services import open_desk
from tests.support.short_deadlines import within

ID = HEADER.decode()


@pytest.fixture
def lines(caplog):
    """Return what was logged so far as objects; the log is formatted where it is written."""
    caplog.handler.setFormatter(JsonFormatter())
    caplog.set_level(logging.DEBUG, "counsel")
    return lambda: [json.loads(line) for line in caplog.text.splitlines()]


@pytest.fixture(params=[False], ids=["errors only"])
def client(request, tmp_path):
    settings = ServiceSettings(access_log=request.param)
    with open_desk(str(tmp_path / "counsel.db"), settings) as desk:
        app = make_app(desk)

        @app.get("/broken/{person}")
        async def broken(person: str) -> None:
            raise KeyError(person)

        @app.get("/threaded/{person}")
        @app.state.lanes.reading
        def threaded(person: str) -> str:
            logging.getLogger("counsel.service").info("work")
            return "done"

        with write_transaction(desk.engine) as connection:
            app.state.key = add_key(connection, tenant="local", role="admin", name="mine")
        with TestClient(app) as client:
            yield client


ALL = pytest.mark.parametrize("client", [True], indirect=True, ids=["every request"])


@ALL
def test_a_line_has_the_template_of_the_route_and_no_name_query_or_key(client, lines):
    headers = {"Authorization": f"Bearer {client.app.state.key}"}
    client.get("/v1/people/ann%20b?secret=1", headers=headers)
    client.get("/nowhere/ann%20b", headers=headers)
    client.request("BREW", "/v1/people/ann%20b", headers=headers)
    shown, nowhere, brewed = lines()
    assert shown.pop("time").endswith("Z")
    assert shown.pop("milliseconds") >= 0
    assert len(shown.pop("request")) == 32
    assert shown == {
        "level": "info",
        "logger": "counsel.service.requests",
        "message": "answered",
        "method": "GET",
        "route": "/v1/people/{person}",
        "status": 404,
    }
    assert (nowhere["route"], nowhere["status"]) == ("none", 404)
    assert (brewed["method"], brewed["status"]) == ("other", 405)
    text = json.dumps(lines())
    assert [word for word in ("ann", "secret", client.app.state.key) if word in text] == []


def test_without_access_log_only_what_failed_or_was_slow_has_a_line(client, lines, monkeypatch):
    assert client.get("/healthz").status_code == 200
    assert client.get("/v1/advisers").status_code == 401
    assert lines() == []
    monkeypatch.setattr(request_log, "SLOW_SECONDS", 0.0)
    client.get("/healthz")
    assert [(line["level"], line["route"]) for line in lines()] == [("warning", "/healthz")]


def test_a_request_that_fails_is_answered_and_logged_without_its_values(client, lines):
    answer = client.get("/broken/ann")
    assert answer.status_code == 500
    assert answer.json()["detail"] == "the service failed; its log says why"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    failed, answered = lines()
    assert failed["exception"] == "KeyError"
    assert failed["stack"][-1].endswith(" broken")
    assert (answered["level"], answered["status"]) == ("error", 500)
    assert failed["request"] == answered["request"] == answer.headers[ID]
    assert "ann" not in json.dumps([failed, answered]).replace("/broken/{person}", "")


def test_a_deadline_that_passed_is_logged_with_its_request(tmp_path, lines):
    settings = within(0.01)
    with open_desk(str(tmp_path / "counsel.db"), settings) as desk:
        app = make_app(desk)

        @app.post("/v1/play/stuck")
        async def stuck() -> None:
            await asyncio.Event().wait()

        with TestClient(app) as client:
            answer = client.post("/v1/play/stuck", headers={ID: "mine"})
            numbers = client.get("/metrics").text
    assert (answer.status_code, answer.headers[ID]) == (503, "mine")
    assert [(line["request"], line["route"]) for line in lines()] == [
        ("mine", "/v1/play/stuck")
    ] * 2
    assert lines()[-1]["status"] == 503
    assert "counsel_late_total 1.0" in numbers


def test_lines_of_other_threads_have_the_request(client, lines):
    client.get("/threaded/ann", headers={ID: "from-me"})
    (line,) = lines()
    assert (line["message"], line["request"]) == ("work", "from-me")
    assert (line["method"], line["route"]) == ("GET", "/threaded/{person}")


@pytest.mark.parametrize("given", ["", "x" * 65, "two words", "tab\there", "naïve"])
def test_an_id_that_is_long_or_not_printable_is_replaced(client, given):
    answer = client.get("/healthz", headers={ID: given.encode("latin-1")})
    assert answer.headers[ID] != given
    assert len(answer.headers[ID]) == 32


@pytest.mark.parametrize("path", ["/healthz", "/v1/advisers", "/none", "/broken/x", "/a%00"])
def test_every_answer_has_the_id_of_its_caller(client, path):
    assert client.get(path, headers={ID: "a-1/B:2"}).headers[ID] == "a-1/B:2"


@pytest.fixture
def plain_logging():
    """Restore what a test configures."""
    names = (None, "counsel", "uvicorn")
    before = [(logging.getLogger(name), logging.getLogger(name).level) for name in names]
    handlers = logging.getLogger().handlers[:]
    yield
    for logger, level in before:
        logger.setLevel(level)
    logging.getLogger().handlers = handlers


def test_loggers_of_the_server_write_alike_and_by_level(plain_logging, capsys):
    configure_logging(ServiceSettings(log_level="info"))
    logging.getLogger("uvicorn.error").info("Started\nserver")
    logging.getLogger("counsel.service").debug("too fine")
    logging.getLogger("sqlalchemy.engine").info("SELECT ann")
    logging.getLogger("alembic").warning("other packages warn")
    configure_logging(ServiceSettings(log_level="error"))
    logging.getLogger("uvicorn.error").warning("too low")
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in err.splitlines()]
    assert out == ""
    assert [(line["logger"], line["message"]) for line in lines] == [
        ("uvicorn.error", "Started"),
        ("alembic", "other packages warn"),
    ]
    assert set(lines[0]) == {"time", "level", "logger", "message"}
