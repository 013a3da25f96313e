"""A database that comes up late is waited for, and the log says so."""

import json
import logging
import signal
import subprocess
import sys
import threading

import pytest

from counsel import CounselError
from counsel.service.db.engine import open_engine, wait_for_database
from tests.support import services
from tests.support.doors import door_to
from tests.support.processes import started
from tests.support.waiting import PATIENCE, until


def test_a_file_is_not_waited_for(tmp_path):
    wait_for_database(str(tmp_path / "counsel.db"), PATIENCE)
    wait_for_database("sqlite:////no/such/folder/counsel.db", PATIENCE)


def test_when_the_time_is_up_opening_says_what_is_wrong(caplog):
    url = "postgresql://counsel:secret@127.0.0.1:9/counsel"
    wait_for_database(url, 0.3)
    (line,) = caplog.messages
    assert line.startswith("waiting up to 0 s for the database postgresql+psycopg://counsel:***@")
    assert "refused" in line
    assert "secret" not in line
    with pytest.raises(CounselError, match=r"cannot be opened: .*refused"):
        open_engine(url)
    caplog.clear()
    wait_for_database(url, 0.0)
    assert caplog.messages == []


@pytest.mark.slow
def test_it_goes_on_when_the_port_opens(server, caplog):
    port = services.free_port()
    url = server.url().replace(str(server.port), str(port))
    caplog.set_level(logging.WARNING, "counsel.service")
    waiting = threading.Thread(target=wait_for_database, args=(url, PATIENCE))
    waiting.start()
    until(lambda: any("waiting up to" in line for line in caplog.messages))
    with door_to(f"http://127.0.0.1:{server.port}", port=port):
        waiting.join(PATIENCE)
        assert not waiting.is_alive()
    assert "answers" in caplog.messages[-1]


@pytest.mark.slow
def test_the_command_starts_before_its_database(server, tmp_path):
    database, port = services.free_port(), services.free_port()
    with server.connect() as connection:
        connection.execute("create database late")
    url = server.url(database="late").replace(str(server.port), str(database))
    command = [sys.executable, "-c", "from counsel.cli import main; main()", "serve", "--no-auth"]
    command += ["--db", url, "--port", str(port), "--wait", str(PATIENCE)]
    log = tmp_path / "log"
    with log.open("w") as stream, started(command, stdout=stream, stderr=stream) as process:
        until(lambda: "waiting up to 120 s for the database" in log.read_text())
        assert not services.answers(port)
        assert process.poll() is None
        with door_to(f"http://127.0.0.1:{server.port}", port=database):
            until(lambda: services.answers(port))
            process.send_signal(signal.SIGTERM)
            process.wait(30)


@pytest.mark.slow
def test_the_command_can_be_stopped_while_it_waits(tmp_path):
    command = [sys.executable, "-c", "from counsel.cli import main; main()", "serve", "--no-auth"]
    command += ["--db", "postgresql://a@127.0.0.1:9/a", "--wait", str(PATIENCE)]
    with started(command, stderr=subprocess.PIPE, text=True) as process:
        line = json.loads(process.stderr.readline())
        assert (line["level"], line["message"][:13]) == ("warning", "waiting up to")
        process.send_signal(signal.SIGTERM)
        process.wait(30)
