"""People who are to be erased, and where they can be found in the files of a database."""

from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa

from counsel.service.core.outcomes import Outcome
from counsel.service.db.tables import decisions, episodes, outcomes, people, remarks

NAME, COMMENT = "Zacharias Quillfeather", "peculiar-words-of-theirs"


def lived(desk, adviser, person, episodes_=3, comment=COMMENT):
    for _ in range(episodes_):
        episode = desk.start(1, adviser, person)
        for step in range(6):
            decision = desk.advise(1, episode.id, step, 2)
            said = {"comment": comment, "reason_code": comment[:8]} if comment else {}
            desk.report(1, [Outcome(decision.id, step % 3, 0.5, **said)])


def traces(folder):
    """Files in which the person can be found."""
    words = (NAME.encode(), COMMENT.encode(), COMMENT[:8].encode() + b"\n")
    found = []
    for path in Path(folder).rglob("*"):
        with suppress(FileNotFoundError):  # PostgreSQL removes files meanwhile
            if path.is_file() and any(word in path.read_bytes() for word in words):
                found.append(path.name)
    return found


def counts(desk):
    with desk.engine.connect() as connection:
        return [
            connection.scalar(sa.select(sa.func.count()).select_from(table))
            for table in (people, episodes, decisions, outcomes, remarks)
        ]


def folder_of(desk):
    """The folder with the files of a desk's database; everything but the log on PostgreSQL."""
    if desk.engine.dialect.name == "sqlite":
        return Path(desk.engine.url.database).parent
    query = "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = "
    with desk.engine.begin() as connection:
        connection.exec_driver_sql("CHECKPOINT")
        base, oid = connection.execute(sa.text(query + "current_database()")).one()
    return Path(base) / "base" / str(oid)


@contextmanager
def reader_of(desk, *, has_snapshot=True):
    """Somebody who reads people for long; on PostgreSQL perhaps with a lock and no snapshot."""
    reader = sa.create_engine(desk.engine.url)
    with reader.connect() as connection:
        if desk.engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")
            connection.execute(sa.select(people)).all()
        elif has_snapshot:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute(sa.select(people)).all()
        else:
            connection.exec_driver_sql("LOCK TABLE people IN ACCESS SHARE MODE")
        yield
        connection.rollback()
    reader.dispose()
