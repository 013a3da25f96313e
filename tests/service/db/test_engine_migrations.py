"""Databases of earlier versions are brought up to date with all they hold; newer ones refused."""

from pathlib import Path

import pytest
import sqlalchemy as sa

import counsel.service.db
from counsel import CounselError
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.db.model_queries import content_of
from counsel.service.db.tables import (
    advisers,
    decisions,
    episodes,
    level_changes,
    models,
    outcomes,
    outlines,
    remarks,
    stretches,
    tenants,
)

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


def test_a_database_of_before_shared_limits_gets_their_accounts(url):
    old = at_version(url, "0004")
    with old.begin() as connection:
        assert not sa.inspect(connection).has_table("stretches")
        for name in ("tenants", "advisers"):
            table = sa.Table(name, sa.MetaData(), autoload_with=connection)
            connection.execute(sa.insert(table), ROWS[name])
    old.dispose()
    engine = open_engine(url)
    row = {"adviser": "a", "seconds": 86_400, "start": 0, "pieces": 1.5, "spent": 0.5}
    row |= {"priced": 0.0, "opened": 1.0, "memory": "{}", "seen": "{}"}
    with write_transaction(engine) as connection:
        connection.execute(sa.insert(stretches), row)
        assert connection.scalar(sa.select(stretches.c.spent)) == 0.5
        connection.execute(sa.delete(advisers))
        assert connection.scalar(sa.select(sa.func.count()).select_from(stretches)) == 0
    engine.dispose()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_statistics_have_no_names_and_no_remarks(url):
    """PostgreSQL's planner kept some of the names and comments, also of people who were erased."""
    known = "SELECT attname FROM pg_stats WHERE tablename IN ('people', 'remarks')"
    old = at_version(url, "0005")
    rows = {**ROWS, "people": [ROWS["people"][0] | {"id": n, "name": f"p{n}"} for n in range(300)]}
    with old.begin() as connection:
        tables = sa.MetaData()
        tables.reflect(connection)
        for name in ("tenants", "advisers", "people", "episodes", "decisions", "outcomes"):
            own = {column.name for column in tables.tables[name].columns}
            kept = [{key: row[key] for key in own & set(row)} for row in rows[name]]
            connection.execute(sa.insert(tables.tables[name]), kept)
        remark = {"episode": 1, "version": 1, "reason_code": "busy", "comment": "no time"}
        said = [remark | {"step": step} for step in range(3)]
        connection.execute(sa.insert(tables.tables["remarks"]), said)
        connection.execute(sa.text("ANALYZE"))
        assert {"name", "reason_code", "comment"} <= set(connection.scalars(sa.text(known)))
    old.dispose()
    engine = open_engine(url)
    with engine.begin() as connection:
        assert not {"name", "reason_code", "comment"} & set(connection.scalars(sa.text(known)))
        connection.execute(sa.text("ANALYZE"))
        kept = set(connection.scalars(sa.text(known)))
        assert {"id", "created", "episode", "step"} <= kept
        assert not {"name", "reason_code", "comment"} & kept
    engine.dispose()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_no_column_with_words_of_people_has_statistics(url):
    engine = open_engine(url)
    query = """
        SELECT attname, attstattarget FROM pg_attribute
        WHERE attrelid IN ('people'::regclass, 'remarks'::regclass)
        AND atttypid IN ('text'::regtype, 'varchar'::regtype)
    """
    with engine.connect() as connection:
        targets = {row.attname: row.attstattarget for row in connection.execute(sa.text(query))}
    assert targets == {"name": 0, "reason_code": 0, "comment": 0}
    engine.dispose()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_name_is_looked_up_in_the_index_though_there_are_no_statistics(url):
    engine = open_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.insert(tenants), {"id": 1, "name": "clinic"})
        names = "SELECT 1, md5(n::text), 1.0 FROM generate_series(1, 50000) AS n"
        connection.execute(sa.text(f"INSERT INTO people (tenant, name, created) {names}"))
        connection.execute(sa.text("ANALYZE people"))
        connection.execute(sa.text("SET LOCAL plan_cache_mode = force_generic_plan"))
        query = "SELECT id FROM people WHERE tenant = $1 AND name = $2"
        connection.execute(sa.text(f"PREPARE lookup (bigint, text) AS {query}"))
        plan = " ".join(connection.scalars(sa.text("EXPLAIN EXECUTE lookup (1, 'ann')")))
    assert "uq_people_tenant" in plan
    assert "Seq Scan" not in plan
    engine.dispose()


def test_a_database_of_before_outlines_keeps_its_models_and_takes_them(url):
    old = at_version(url, "0006")
    model = {"id": "m", "tenant": 1, "name": "ward", "content": b"a file", "created": 1.0}
    with old.begin() as connection:
        for name, rows in {"tenants": ROWS["tenants"], "models": [model]}.items():
            table = sa.Table(name, sa.MetaData(), autoload_with=connection)
            connection.execute(sa.insert(table), rows)
    old.dispose()
    engine = open_engine(url)
    with write_transaction(engine) as connection:
        connection.execute(sa.insert(outlines), {"model": "m", "content": "{}"})
        assert connection.scalar(sa.select(models.c.content)) == b"a file"
        assert content_of(connection, 1, "m") == b"a file"
        connection.execute(sa.delete(models))
        assert connection.scalar(sa.select(sa.func.count()).select_from(outlines)) == 0
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
