"""A backup or a restore that dies: there is the whole of a file or database, or the one before."""

import os
import subprocess
from pathlib import Path

import pytest

from counsel.errors import CounselError
from counsel.service.db import backup
from counsel.service.db.backup import back_up, restore
from tests.support.crashes import AFTER, BEFORE, DURING, KILLED, forking
from tests.support.services import open_desk

pytestmark = pytest.mark.slow


def filled(url, people):
    """Put people on record."""
    from counsel.service.core.settings import AdviserSettings

    with open_desk(url) as desk:
        settings = AdviserSettings(source="ward", budget=1.0, hard=True)
        adviser = desk.create(1, "alerts", settings, "alerts")
        for person in people:
            desk.start(1, adviser, person)


def people_of(url):
    import sqlalchemy as sa

    from counsel.service.db.tables import people

    with open_desk(url) as desk, desk.engine.connect() as connection:
        return set(connection.scalars(sa.select(people.c.name)))


def _die(function, moment, *arguments):
    """Do something in this process and die where its result is put in place."""
    replace, run = os.replace, backup._run

    def replaced(source, target):
        if moment == DURING:  # a disk that was written in part
            size = Path(source).stat().st_size
            os.truncate(source, size // 2)
        if moment == AFTER:
            replace(source, target)
        os._exit(KILLED)

    def restored(command, *rest):
        if command[0] != "pg_restore" or not any(word.startswith("--dbname") for word in command):
            return run(command, *rest)
        if moment == DURING:
            secret = rest[0] if rest else {}
            with subprocess.Popen(command, env={**os.environ, **secret}) as started:
                started.kill()
        if moment == AFTER:
            run(command, *rest)
        os._exit(KILLED)

    os.replace, backup._run = replaced, restored
    function(*arguments)


def dies(function, moment, *arguments, **named):
    context = forking()
    process = context.Process(target=_die, args=(function, moment, *arguments), kwargs=named)
    process.start()
    process.join(120)
    return process.exitcode == KILLED


def forced(path, url):
    restore(path, url, force=True)


@pytest.mark.parametrize("moment", [BEFORE, DURING, AFTER])
def test_a_backup_that_dies_is_whole_or_not_there(new_url, tmp_path, moment):
    url, other, path = new_url(), new_url(), tmp_path / "a.backup"
    filled(url, ["ann", "bob"])
    assert dies(back_up, moment, url, path)
    assert path.exists() == (moment == AFTER)
    if moment != AFTER:
        back_up(url, path)
    restore(path, other)
    assert people_of(other) == {"ann", "bob"}


@pytest.mark.parametrize("moment", [BEFORE, DURING, AFTER])
def test_a_restore_that_dies_leaves_the_database_of_before_or_the_restored_one(
    new_url, tmp_path, moment
):
    url, other, path = new_url(), new_url(), tmp_path / "a.backup"
    filled(url, ["ann", "bob"])
    filled(other, ["cem"])
    back_up(url, path)
    with pytest.raises(CounselError, match="rows"):
        restore(path, other)
    assert dies(forced, moment, path, other)
    restored = {"ann", "bob"}
    assert people_of(other) == (restored if moment == AFTER else {"cem"})
    forced(path, other)
    assert people_of(other) == restored
