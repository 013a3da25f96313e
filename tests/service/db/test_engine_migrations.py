"""Databases of earlier versions are brought up to date with all they hold; newer ones refused."""

from pathlib import Path

import pytest
import sqlalchemy as sa

import counsel.service.db
from counsel import CounselError
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.db.tables import decisions, episodes, level_changes, outcomes, remarks

ROWS = {
    "tenants": [{"id": 1, "name": "clinic"}],
    "advisers": [
        {
            "id": "a", "tenant": 1, "name": "alerts", "settings": "{}", "paced_episodes": 0,
            "paced_pieces": 0, "created": 1.0,
        }
    ],
    "keys": [
        {"id": 1, "tenant": 1, "name": "k", "role": "read", "digest": "d" * 64, "created": 1.0}
    ],
    "people": [{"id": 1, "tenant": 1, "name": "ann", "created": 1.0}],
    "episodes": [
        {
            "number": 1, "id": "e", "adviser": "a", "person": 1, "held_out": False, "mode": "live",
            "spent": 1, "started": 1.0,
        }
    ],
    "decisions": [
        {
            "seq": step + 1, "episode": 1, "step": step, "state": 0, "advice": 1, "shown": True,
            "must": False, "probability": 1.0, "reason": "{}", "at": 1.0,
        }
        for step in range(3)
    ],
    "outcomes": [
        {
            "seq": step + 10, "episode": 1, "step": step, "action": 1, "reward": 0.5, "seen": True,
            "reason_code": "busy" if step else None, "comment": None, "at": 2.0,
        }
        for step in range(3)
    ],
}  # fmt: skip
"""Rows of a database of the second version."""


def at_version(url, version):
    """A database of an earlier version, empty."""
    from alembic import command
    from alembic.config import Config

    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    config = Config()
    folder = Path(counsel.service.db.__file__).parent / "migrations"
    config.set_main_option("script_location", str(folder))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
    return engine


def test_a_database_of_the_second_version_keeps_all_it_holds(url):
    old = at_version(url, "0002")
    with old.begin() as connection:
        tables = sa.MetaData()
        tables.reflect(connection)
        for name, rows in ROWS.items():
            connection.execute(sa.insert(tables.tables[name]), rows)
        # The last outcome was deleted: its number must not be given again.
        connection.execute(sa.delete(tables.tables["outcomes"]).where(sa.text("seq = 12")))
        if old.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT setval('outcomes_seq_seq', 12)"))
    old.dispose()
    engine = open_engine(url)
    with write_transaction(engine) as connection:
        kept = connection.execute(sa.select(outcomes).order_by(outcomes.c.seq)).all()
        assert [(row.seq, row.step, row.version, row.replaced_by) for row in kept] == [
            (10, 0, 1, None),
            (11, 1, 1, None),
        ]
        said = connection.execute(sa.select(remarks)).all()
        assert [tuple(row) for row in said] == [(1, 1, 1, "busy", None)]
        row = {"episode": 1, "step": 2, "action": 0, "seen": True, "at": 3.0, "version": 1}
        assert connection.execute(sa.insert(outcomes), row).inserted_primary_key[0] == 13
        connection.execute(sa.delete(decisions))
        assert connection.scalar(sa.select(sa.func.count()).select_from(remarks)) == 0
    engine.dispose()


def test_a_database_of_the_third_version_has_no_levels_and_takes_them(url):
    old = at_version(url, "0003")
    with old.begin() as connection:
        tables = sa.MetaData()
        tables.reflect(connection)
        for name, rows in ROWS.items():
            own = {column.name for column in tables.tables[name].columns}
            kept = [{key: value for key, value in row.items() if key in own} for row in rows]
            connection.execute(sa.insert(tables.tables[name]), kept)
    old.dispose()
    engine = open_engine(url)
    with write_transaction(engine) as connection:
        assert connection.execute(sa.select(decisions.c.level)).scalars().all() == [None] * 3
        assert connection.scalar(sa.select(episodes.c.level)) is None
        assert connection.scalar(sa.select(sa.func.count()).select_from(outcomes)) == 3
        row = {"episode": 1, "step": 2, "level": 4}
        assert connection.execute(sa.insert(level_changes), row).inserted_primary_key[0] == 1
        connection.execute(sa.delete(decisions))
        assert connection.scalar(sa.select(sa.func.count()).select_from(level_changes)) == 0
    engine.dispose()


def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(url):
    engine = open_engine(url)
    with write_transaction(engine) as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(CounselError, match="made by another version of Counsel"):
        open_engine(url)
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT version_num FROM alembic_version")) == "9999"
    engine.dispose()
