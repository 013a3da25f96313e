"""Commands for keys and the audit trail: what they print, and what they refuse in one sentence."""

import json

import pytest

from counsel import CounselError
from counsel.service.db import engine


@pytest.fixture
def run(command, tmp_path):
    """Run a command that succeeds and return what it prints."""

    def run(*words):
        done = command(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def listed(run, *words):
    return json.loads(run("keys", "list", "--json", *words))["keys"]


def test_keys_are_made_rotated_listed_and_revoked_and_all_is_on_record(run):
    key = run("keys", "add", "--role", "admin", "--name", "first", "--expires", "90d").strip()
    made = json.loads(run("keys", "add", "--name", "ward 3", "--json"))
    assert key.startswith("counsel_")
    assert [row["id"] for row in listed(run)] == [1, made["id"]]
    rotated = json.loads(run("keys", "rotate", "1", "--overlap", "0d", "--json"))
    assert run("keys", "revoke", "--id", str(made["id"])) == f"Revoked key {made['id']}.\n"
    assert run("keys", "revoke", "--name", "first") == "Revoked 1 key called 'first'.\n"
    rows = listed(run)
    assert [row["state"] for row in rows] == ["expired", "revoked", "revoked"]
    assert rows[2]["expires"] - rows[2]["created"] == pytest.approx(90 * 86_400.0, abs=5)
    assert set(rows[0]) == {
        "id", "name", "role", "created", "expires", "last_used", "revoked", "state",
    }  # fmt: skip
    assert rotated["key"].startswith("counsel_")
    table = run("keys", "list")
    for word in ("id", "expires", "last used", "state", "ward 3", "revoked"):
        assert word in table

    trail = json.loads(run("audit", "--json"))["audit"]
    assert [(row["action"], row["target"], row["key"]) for row in trail] == [
        ("key created", "1", None),
        ("key created", "2", None),
        ("key rotated", "1", None),
        ("key revoked", "2", None),
        ("key revoked", "3", None),
    ]
    assert trail[0]["tenant"] == "local"
    assert trail[2]["details"] == {"new": 3, "overlap_seconds": 0.0}
    assert json.loads(run("audit", "--json", "--limit", "2"))["audit"] == trail[-2:]
    assert json.loads(run("audit", "--json", "--tenant", "none"))["audit"] == []
    assert run("audit", "--tenant", "none") == "There are no changes.\n"
    assert "key rotated" in run("audit")
    everything = json.dumps(trail) + table + run("audit")
    assert [secret for secret in (key, made["key"], rotated["key"]) if secret in everything] == []


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("keys", "add", "--expires", "1999-01-01"), "which is in the past"),
        (("keys", "add", "--expires", "0d"), "which is in the past"),
        (("keys", "add", "--expires", "soon"), "give a duration (12h, 90d) or a date"),
        (("keys", "rotate", "9"), "there is no key 9; see counsel keys list"),
        (("keys", "rotate", "1", "--overlap", "long"), "overlap is 'long'"),
        (("keys", "revoke"), "give either --id or --name"),
        (("keys", "revoke", "--id", "1", "--name", "k"), "give either --id or --name"),
        (("keys", "revoke", "--id", "9"), "there is no key 9"),
        (("keys", "revoke", "--name", "none"), "has no valid key 'none'"),
        (("serve", "--log-level", "loud"), "log_level is 'loud'; it must be one of debug, info"),
    ],
)
def test_commands_that_make_no_sense_are_refused_in_one_line(command, tmp_path, arguments, what):
    assert command("keys", "add", cwd=tmp_path).returncode == 0
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert what in done.stderr
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert len(json.loads(command("keys", "list", "--json", cwd=tmp_path).stdout)["keys"]) == 1


def test_the_audit_of_no_database_is_refused(command, tmp_path):
    done = command("audit", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "there is no database counsel.db" in done.stderr


@pytest.mark.parametrize("name", ["typo.db", "sqlite:///typo.db", "sqlite://"])
@pytest.mark.parametrize(
    "words", ["keys list", "keys rotate 1", "keys revoke --id 1", "audit", "backup -o copy"]
)
def test_a_database_that_is_not_there_is_not_created_to_be_looked_at(
    command, tmp_path, words, name
):
    done = command(*words.split(), "--db", name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"there is no database {name}; name it with --db" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("variables", "words", "what"),
    [
        ({"COUNSEL_HOST": "0.0.0.0"}, ["--no-auth"], "leave out --host 0.0.0.0, or COUNSEL_HOST"),
        ({"COUNSEL_HOST": "::1"}, ["--no-auth", "--host", "10.0.0.1"], "leave out --host 10.0.0.1"),
        ({"COUNSEL_WORKERS": "2"}, [], "several workers need PostgreSQL"),
        ({"COUNSEL_WORKERS": "1"}, ["--workers", "2"], "several workers need PostgreSQL"),
        ({"COUNSEL_PORT": "65536"}, [], "COUNSEL_PORT"),
        ({"COUNSEL_PORT": "1"}, ["--port", "65536"], "--port"),
    ],
)
def test_where_to_listen_is_an_option_or_else_a_variable(
    command, tmp_path, monkeypatch, variables, words, what
):
    def refuse(*_):
        raise CounselError("all options were taken")

    monkeypatch.setattr(engine, "wait_for_database", refuse)  # it does not serve, whatever happens
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    refused = command("serve", *words, cwd=tmp_path)
    assert refused.returncode == 2
    assert what in refused.stderr


@pytest.mark.parametrize(
    ("host", "address"), [("::1", "http://[::1]:8000"), ("localhost", "http://localhost:8000")]
)
def test_the_address_that_is_printed_can_be_opened(command, tmp_path, monkeypatch, host, address):
    monkeypatch.setattr("counsel.cli.service._free_port", lambda _, port: port)
    monkeypatch.setattr("counsel.service.server.run", lambda *_, **__: None)
    monkeypatch.setattr("counsel.service.process.ServiceProcess.app", lambda _: None)
    done = command("serve", "--no-auth", "--host", host, cwd=tmp_path)
    assert f"Serving on {address} (Ctrl-C stops); the game is at {address}/play." in done.stdout


def test_help_says_which_of_option_variable_and_default_counts(run):
    text = " ".join(run("serve", "--help").split())
    assert "--log-level" in text
    assert "--access-log" in text
    assert "An option goes before its variable, and the variable before the default." in text
