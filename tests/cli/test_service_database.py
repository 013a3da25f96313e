"""Where the commands of the service find the address of their database."""

import pytest


@pytest.fixture
def secret(tmp_path, monkeypatch):
    """A file with the address of a database, as a container is given it."""
    monkeypatch.delenv("COUNSEL_DB", raising=False)
    path = tmp_path / "secret"
    path.write_text(f"{tmp_path / 'kept.db'}\n")
    monkeypatch.setenv("COUNSEL_DB_FILE", str(path))
    return path


def test_the_file_that_the_environment_names(command, secret, tmp_path):
    assert command("keys", "add", cwd=tmp_path).returncode == 0
    assert (tmp_path / "kept.db").exists()
    assert not (tmp_path / "counsel.db").exists()
    assert "advise" in command("keys", "list", cwd=tmp_path).stdout


def test_an_option_and_the_variable_come_first(command, secret, tmp_path, monkeypatch):
    assert command("keys", "add", "--db", "given.db", cwd=tmp_path).returncode == 0
    monkeypatch.setenv("COUNSEL_DB", "named.db")
    assert command("keys", "add", cwd=tmp_path).returncode == 0
    assert {path.name for path in tmp_path.glob("*.db")} == {"given.db", "named.db"}


def test_a_file_that_cannot_be_read_or_is_empty_is_told(command, secret, tmp_path):
    secret.write_text(" \n")
    assert "which is empty" in command("keys", "list", cwd=tmp_path).stderr
    secret.write_bytes(b"\xff")
    assert "cannot be read" in command("keys", "list", cwd=tmp_path).stderr
    secret.unlink()
    refused = command("serve", cwd=tmp_path)
    assert refused.returncode != 0
    assert "COUNSEL_DB_FILE is" in refused.stderr
    assert "No such file" in refused.stderr


def test_nobody_waits_for_a_negative_time(command, tmp_path):
    refused = command("serve", "--wait", "-1", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--wait" in refused.stderr
