"""The Python client against a real service."""

import doctest
import socket
import threading

import pytest

import counsel
from counsel import CounselError
from counsel.service.client import Client, ServiceError
from counsel.service.connection import _next_page
from counsel.worlds import make


@pytest.fixture
def client(address):
    with Client(address) as found:
        yield found


@pytest.mark.slow
def test_a_whole_episode(client):
    adviser = client.create_adviser("alerts", "ward", budget=1, hard=True, holdout=0.0)
    assert [one["id"] for one in client.advisers()] == [adviser["id"]]
    episode = client.start(adviser["id"], "ann / ⚕")
    said = [client.advise(episode, step, "deteriorating") for step in range(3)]
    assert sum(one["advice"] is not None for one in said) == 1
    for one in said:
        client.report(one["id"], one["advice"] or "carry on", reward=1.0, reason_code="busy")
    client.end(episode)
    assert client.log(adviser["id"]).count(b"\n") == 4
    assert client.log(adviser["id"], "parquet").startswith(b"PAR1")
    assert client.summary(adviser["id"])["episodes"] == 1
    person = client.person("ann / ⚕")
    assert person["advisers"][0]["episodes"] == 1
    assert sum(one["pieces"] for one in person["advisers"][0]["listening"]) == 1
    assert [one["name"] for one in client.people()] == ["ann / ⚕"]
    assert client.delete_person("ann / ⚕") == []
    with pytest.raises(ServiceError, match="there is no person") as fault:
        client.person("ann / ⚕")
    assert fault.value.status == 404
    assert client.summary(adviser["id"])["decisions"] == 0
    assert client.set_mode(adviser["id"], "off")["settings"]["mode"] == "off"


def test_the_example_of_its_docstring_runs(address, capsys):
    text = Client.__doc__.replace("http://127.0.0.1:8000", address)
    text = text.replace("  # doctest: +SKIP", "")
    example = doctest.DocTestParser().get_doctest(text, {"Client": Client}, "Client", None, 0)
    result = doctest.DocTestRunner().run(example)
    assert result.attempted > 8
    assert result.failed == 0, capsys.readouterr().out


def test_a_model_that_is_too_large_is_refused_in_the_words_of_the_service(client):
    with pytest.raises(ServiceError, match="the model is larger than 20000000 bytes") as fault:
        client.upload_model(bytes(60_000_000))
    assert fault.value.status == 413
    assert client.models() == [], "another connection is opened"


def test_what_the_service_refuses_is_told_in_its_own_words(client):
    with pytest.raises(ServiceError, match="source is 'atlantis'") as fault:
        client.create_adviser("a", "atlantis")
    assert fault.value.status == 400
    assert client.advisers() == [], "the connection is still good"


def test_a_lost_connection_is_opened_again_where_that_is_safe(client):
    adviser = client.create_adviser("alerts", "ward", budget=1)
    episode = client.start(adviser["id"], "ann")
    client._connection.sock.shutdown(socket.SHUT_RDWR)
    said = client.advise(episode, 0, "stable")
    client._connection.sock.shutdown(socket.SHUT_RDWR)
    client.report(said["id"], "assess")
    client._connection.sock.shutdown(socket.SHUT_RDWR)
    with pytest.raises(CounselError, match="may have been carried out"):
        client.start(adviser["id"], "ann")
    assert client.summary(adviser["id"])["decisions"] == 1
    episode = client.start(adviser["id"], "ann", "visit 17")
    client._connection.sock.shutdown(socket.SHUT_RDWR)
    assert client.start(adviser["id"], "ann", "visit 17") == episode, "a start with a name is safe"
    with pytest.raises(CounselError, match="request is 'a"):
        client.start(adviser["id"], "ann", "a\nb")


def test_lists_are_read_page_by_page_whatever_is_sent_between(client, monkeypatch):
    monkeypatch.setattr("counsel.service.client.PAGE", 2)
    ids = [client.create_adviser(f"a {i}", "ward", budget=1)["id"] for i in range(5)]
    assert [one["id"] for one in client.advisers()] == ids
    begun = [client.start(ids[0], f"person {i % 2}") for i in range(5)]
    listed = []
    for one in client.episodes(ids[0]):
        client.advisers()
        listed.append(one["id"])
    assert listed == begun[::-1]
    assert [one["id"] for one in client.episodes(ids[0], "person 1")] == [begun[3], begun[1]]
    assert [one["episodes"] for one in client.people()] == [3, 2]


@pytest.mark.parametrize(
    ("link", "path"),
    [
        (None, None),
        ('</v1/people?after=b>; rel="next"', "/v1/people?after=b"),
        ('<https://host/counsel/v1/people?after=b>; rel="next"', "/v1/people?after=b"),
        ('</v1/people?after=b>; rel="prev"', None),
    ],
)
def test_the_next_page_is_read_from_the_link(link, path):
    assert _next_page(link) == path


def test_advisers_and_models_are_managed(client, tmp_path):
    counsel.save(make("ward"), tmp_path / "model.npz")
    content = (tmp_path / "model.npz").read_bytes()
    model = client.upload_model(content, "ward")
    adviser = client.create_adviser("alerts", model, budget=1)["id"]
    assert client.edit_adviser(adviser, budget=None, penalty=0.1)["settings"]["penalty"] == 0.1
    [listed] = client.models()
    assert (listed["id"], listed["bytes"], listed["advisers"]) == (model, len(content), 1)
    assert client.model(model)["actions"] == ["carry on", "assess", "call doctor"]
    assert client.model_file(model) == content
    assert client.rename_model(model, "another")["name"] == "another"
    episode = client.start(adviser, "ann")
    decision = client.advise(episode, 0, "stable")
    client.report(decision["id"], "assess", reason_code="busy")
    client.report(decision["id"], "assess", comment="not busy")
    [recorded] = client.episode(episode)["decisions"]
    assert (recorded["outcome"]["version"], recorded["outcome"]["comment"]) == (2, "not busy")
    assert [one["reason_code"] for one in recorded["earlier"]] == ["busy"]
    assert client.archive_adviser(adviser)["archived"] > 0
    assert client.advisers() == []
    assert [one["id"] for one in client.advisers(archived=True)] == [adviser]
    assert client.restore_adviser(adviser)["archived"] is None
    client.archive_adviser(adviser)
    with pytest.raises(ServiceError, match="is the source of 1 adviser") as fault:
        client.delete_model(model)
    assert fault.value.status == 409
    assert client.delete_adviser(adviser, "alerts") == []
    client.delete_model(model)
    assert (client.models(), client.advisers(archived=True)) == ([], [])


def test_somebody_else_who_answers_is_told_apart():
    """A server that speaks HTTP and is no Counsel."""
    door = socket.create_server(("127.0.0.1", 0))

    def answer():
        with door, door.accept()[0] as caller:
            caller.recv(65536)
            caller.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\n<no>")

    threading.Thread(target=answer, daemon=True).start()
    with (
        Client(f"http://127.0.0.1:{door.getsockname()[1]}") as client,
        pytest.raises(ServiceError, match="the service answered 502"),
    ):
        client.advisers()


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (b"", "does not answer"),
        (b"garbage\r\n\r\n", "does not answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{", "does not answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<no>", "is not JSON"),
        (b"HTTP/1.1 307 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "answered 307"),
    ],
)
def test_answers_that_are_none_are_told_in_a_sentence(answer, what):
    door = socket.create_server(("127.0.0.1", 0))

    def reply():
        with door:
            for _ in range(2):
                with door.accept()[0] as caller:
                    caller.recv(65536)
                    caller.sendall(answer)

    threading.Thread(target=reply, daemon=True).start()
    with (
        Client(f"http://127.0.0.1:{door.getsockname()[1]}") as client,
        pytest.raises(CounselError, match=what),
    ):
        client.advisers()


def test_nobody_there_too_slow_and_unsendable_are_told_in_a_sentence(client):
    with Client("http://127.0.0.1:9") as other, pytest.raises(CounselError, match="nobody answers"):
        other.create_adviser("a", "ward")
    with (
        socket.create_server(("127.0.0.1", 0)) as door,
        Client(f"http://127.0.0.1:{door.getsockname()[1]}", timeout=0.05) as slow,
        pytest.raises(CounselError, match="does not answer: timed out"),
    ):
        slow.advisers()
    with pytest.raises(CounselError, match="cannot be sent"):
        client.create_adviser("a", "ward", budget={1, 2})
    with pytest.raises(CounselError, match="no key can have"):
        Client("http://127.0.0.1:9", key="a\nb")


def test_a_connection_that_idled_is_opened_anew_before_something_is_made(client, monkeypatch):
    """Found in use: the service closes idle connections, and what makes something is sent once."""
    adviser = client.create_adviser("alerts", "ward", budget=1)
    client._connection.sock.shutdown(socket.SHUT_RDWR)
    monkeypatch.setattr("counsel.service.connection.IDLE", -1.0)
    assert len(client.start(adviser["id"], "ann")) == 32


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host", "http://", "", "http://h:x"])
def test_addresses_that_are_none_are_refused(url):
    with pytest.raises(CounselError, match="write http://HOST:PORT"):
        Client(url)


def test_a_connection_that_breaks_while_it_is_opened_is_no_answer(monkeypatch):
    def reset(*_, **__):
        raise ConnectionResetError("reset by peer")

    monkeypatch.setattr(socket, "create_connection", reset)
    with (
        Client("http://127.0.0.1:1") as client,
        pytest.raises(CounselError, match="does not answer: reset by peer"),
    ):
        client.advisers()
