"""Statements that the driver gets as they are, on both databases."""

import pytest
import sqlalchemy as sa

from counsel.service.db import queries
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.db.tables import decisions, episodes, outcomes
from tests.support.committers import a_decision, an_episode, an_outcome


@pytest.fixture
def connection(url):
    engine = open_engine(url)
    with write_transaction(engine) as open_:
        yield open_
    engine.dispose()


def test_rows_are_stored_as_they_are_given(connection):
    number = an_episode(connection)
    row = a_decision(3, number) | {"advice": None, "shown": False, "level": None}
    queries.add_decisions(connection, [row], {number: 0.5})
    queries.add_outcomes(connection, [an_outcome(3, number) | {"reward": None}])
    stored = connection.execute(sa.select(decisions)).mappings().one()
    assert {name: stored[name] for name in row} == row
    assert stored["shown"] is False
    outcome = connection.execute(sa.select(outcomes)).one()
    assert (outcome.step, outcome.reward, outcome.seen, outcome.version) == (3, None, True, 1)
    assert queries.episode_accounts(connection, [number, number, -1]) == {number: (0.5, False)}


def test_no_rows_change_nothing(connection):
    queries.add_decisions(connection, [], {})
    queries.add_outcomes(connection, [])
    queries.end_episodes(connection, [])
    assert queries.decided_cells(connection, []) == {}
    assert queries.episode_accounts(connection, []) == {}


def test_only_cells_that_were_asked_for_are_returned(connection):
    first, second = an_episode(connection, "e"), an_episode(connection, "f")
    rows = [
        a_decision(step, number) | {"level": None} for number in (first, second) for step in (0, 1)
    ]
    queries.add_decisions(connection, rows, {})
    queries.add_outcomes(connection, [an_outcome(0, first)])
    cells = [(first, 0), (second, 1), (second, 7)]
    assert queries.decided_cells(connection, cells) == {(first, 0): True, (second, 1): False}


def test_an_episode_that_has_ended_stays_as_it_is(connection):
    number = an_episode(connection)
    for at, is_terminated in ((1.0, True), (2.0, False)):
        end = {"which": number, "at": at, "is_terminated": is_terminated}
        queries.end_episodes(connection, [end])
    row = connection.execute(sa.select(episodes)).one()
    assert (row.ended, row.terminated) == (1.0, True)
