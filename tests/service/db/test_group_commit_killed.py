"""Kill -9 under load: what was acknowledged is there once, and is what was learnt."""

import random
import threading
import time

import pytest
import sqlalchemy as sa

from counsel.service.client import Client
from counsel.service.db.tables import decisions, episodes, outcomes
from tests.support import services

pytestmark = pytest.mark.slow

KILLS = {"sqlite": 20, "postgresql": 6}
CLIENTS = 8
MOST = 60  # round trips acknowledged before a kill, drawn from 1 up to this


def play_until_killed(port, adviser, name, acknowledged):
    """Ask and report as fast as can be; keep what was acknowledged."""
    rng = random.Random(name)
    try:
        with Client(f"http://127.0.0.1:{port}", timeout=20) as client:
            while True:
                episode = client.start(adviser, name)
                for step in range(20):
                    said = client.advise(episode, step, f"c{step}r{rng.randrange(7)}")
                    told = {"advice_id": said["id"], "action": said["advice"] or "Down"}
                    client.report_all([told | {"reward": 1.0}])
                    acknowledged.append((said["id"], said["advice"]))
    except Exception as fault:  # the service was killed: whatever was not acknowledged may be lost
        acknowledged.append(fault)


def test_what_was_acknowledged_under_load_survives_kills_once_and_is_what_was_learnt(url):
    rng, known, adviser = random.Random(1), {}, None
    moments = [rng.randint(1, MOST) for _ in range(KILLS[url.partition(":")[0]])]
    assert sum(moments) > 20 * len(moments)
    for moment in moments:
        port = services.free_port()
        process = services.start(url, port)
        try:
            if adviser is None:
                with Client(f"http://127.0.0.1:{port}", timeout=120) as client:  # it compiles
                    settings = {"budget": 2, "hard": True}
                    adviser = client.create_adviser("birds", "flappy-bird/safe", **settings)["id"]
            heard = [[] for _ in range(CLIENTS)]
            playing = [
                threading.Thread(target=play_until_killed, args=(port, adviser, f"p{i}", heard[i]))
                for i in range(CLIENTS)
            ]
            for one in playing:
                one.start()
            while sum(map(len, heard)) < moment and all(one.is_alive() for one in playing):
                time.sleep(0.001)
            time.sleep(rng.uniform(0.0, 0.02))
        finally:
            process.kill()
            process.join()
        for one in playing:
            one.join(timeout=30)
            assert not one.is_alive()
        for told in heard:
            assert isinstance(told.pop(), Exception)
            known.update(told)
    assert len(known) >= sum(moments)
    with services.open_desk(url) as desk:
        rows = on_record(desk.engine)
        check_record(rows, known)
        check_learnt(rows, desk.learnt.of(adviser).everybody.cells)


def on_record(engine):
    """Every decision on record with what followed."""
    joined = sa.select(
        episodes.c.id, episodes.c.spent, decisions.c.step, decisions.c.advice, outcomes.c.action
    )
    joined = joined.join(decisions, decisions.c.episode == episodes.c.number).join(
        outcomes,
        (outcomes.c.episode == decisions.c.episode) & (outcomes.c.step == decisions.c.step),
        isouter=True,
    )
    with engine.connect() as connection:
        return connection.execute(joined).all()


def check_record(rows, known):
    """What was acknowledged is there, once, within the budget of two."""
    names = ("Up", "Up-Up", "Down")
    record = {f"{row.id}-{row.step}": row for row in rows}
    assert len(record) == len(rows), "nothing is there twice"
    for id_, advice in known.items():
        row = record[id_]
        assert (None if row.advice is None else names[row.advice]) == advice
        assert names[row.action] == (advice or "Down")
    pieces = {}
    for row in rows:
        pieces.setdefault(row.id, [row.spent, 0])[1] += row.advice is not None
    assert all(spent == given <= 2 for spent, given in pieces.values())


def check_learnt(rows, cells):
    """What is believed after a start is what the record says."""
    counted = {}
    for row in rows:
        if row.action is not None:
            counted[row.advice, row.action] = counted.get((row.advice, row.action), 0) + 1
    learnt = {}
    for (_, heard, action), times in cells.items():
        learnt[heard, action] = learnt.get((heard, action), 0) + times
    assert learnt == counted
