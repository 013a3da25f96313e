"""A committer of the service's database, and rows to hand in to it."""

from concurrent.futures import Future

import sqlalchemy as sa

from counsel.service.db import queries
from counsel.service.db.api_keys import tenant_of
from counsel.service.db.group_commit import Committer
from counsel.service.db.tables import advisers, decisions, episodes, people


def enqueue(committer, kind, item):
    done = Future()
    committer.enqueue(kind, item, done)
    return done


def writer(engine):
    """A committer of decisions and outcomes as they are."""

    def add_decisions(connection, rows):
        connection.execute(sa.insert(decisions), rows)
        return [None] * len(rows)

    def add_outcomes(connection, rows):
        queries.add_outcomes(connection, rows)
        return [None] * len(rows)

    return Committer(engine, {"decision": add_decisions, "outcome": add_outcomes})


def an_episode(connection, name="e"):
    """An episode to hang decisions on; returns its number."""
    tenant = tenant_of(connection, "clinic")
    row = {"tenant": tenant, "created": 0.0}
    connection.execute(
        sa.insert(advisers), row | {"id": f"a-{name}", "name": "a", "settings": "{}"}
    )
    person = connection.execute(sa.insert(people), row | {"name": f"p-{name}"})
    made = connection.execute(
        sa.insert(episodes),
        {
            "id": name,
            "adviser": f"a-{name}",
            "person": person.inserted_primary_key[0],
            "held_out": False,
            "mode": "live",
            "spent": 0,
            "started": 0.0,
        },
    )
    return made.inserted_primary_key[0]


def a_decision(step, episode=1):
    return {
        "episode": episode,
        "step": step,
        "state": 0,
        "advice": 1,
        "shown": True,
        "must": False,
        "probability": 1.0,
        "reason": "{}",
        "at": 0.0,
    }


def an_outcome(step, episode=1):
    return {
        "episode": episode,
        "step": step,
        "action": 1,
        "reward": 1.0,
        "next_state": None,
        "seen": True,
        "reason_code": None,
        "comment": None,
        "at": 0.0,
        "version": 1,
        "replaces": None,
        "replaced": None,
    }
