"""A plain service to compare with: ``python -m benchmarks.service_peer DATABASE PORT``.

It answers the calls of ``benchmarks.callers`` with FastAPI and puts each decision and each outcome
on record in an SQLite transaction of its own. It knows no model and gives no advice.
"""

import sqlite3
import sys
import threading
import uuid
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

TABLES = """
pragma journal_mode = wal;
pragma synchronous = full;
create table if not exists decisions (id text primary key, episode text, step, state);
create table if not exists outcomes (id text primary key, action, reward);
"""

app, here = FastAPI(), threading.local()


class Situation(BaseModel):
    """Where advice is asked for."""

    step: int
    state: str


class Outcome(BaseModel):
    """What came of one decision."""

    advice_id: str
    action: str
    reward: float


class Outcomes(BaseModel):
    """What came of several decisions."""

    outcomes: list[Outcome]


def database() -> sqlite3.Connection:
    """Return the connection of this thread."""
    if not hasattr(here, "database"):
        here.database = sqlite3.connect(sys.argv[1], timeout=30)
        here.database.executescript(TABLES)
    connection: sqlite3.Connection = here.database
    return connection


@app.get("/healthz")
def check_health() -> dict[str, str]:
    """Answer once the database is open."""
    database()
    return {}


@app.post("/v1/advisers")
def create_adviser(_settings: dict[str, Any]) -> dict[str, str]:
    """Answer with an id."""
    return {"id": "peer"}


@app.post("/v1/advisers/{_adviser}/episodes")
def start_episode(_adviser: str, _person: dict[str, Any]) -> dict[str, str]:
    """Answer with an id."""
    return {"id": uuid.uuid4().hex}


@app.post("/v1/episodes/{episode}/advice")
def advise(episode: str, at: Situation) -> dict[str, Any]:
    """Put a decision on record, and stay silent."""
    id_ = f"{episode}-{at.step}"
    with database() as transaction:
        row = (id_, episode, at.step, at.state)
        transaction.execute("insert into decisions values (?, ?, ?, ?)", row)
    return {"id": id_, "advice": None, "reason": {}}


@app.post("/v1/outcomes")
def report(reported: Outcomes) -> dict[str, int]:
    """Put outcomes on record."""
    rows = [(one.advice_id, one.action, one.reward) for one in reported.outcomes]
    with database() as transaction:
        transaction.executemany("insert or ignore into outcomes values (?, ?, ?)", rows)
    return {"taken": len(rows)}


@app.post("/v1/episodes/{_episode}/end")
def end_episode(_episode: str, _how: dict[str, Any]) -> dict[str, str]:
    """Answer."""
    return {}


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
