"""The level of an episode follows from the record, whoever reads it and whatever arrives late."""

import numpy as np
import pytest
import sqlalchemy as sa

from counsel import CounselError
from counsel.planning.explain import explain
from counsel.service.core.desk import Desk
from counsel.service.core.episode_record import describe_episode
from counsel.service.core.erasure import erase_person
from counsel.service.core.export import export_log
from counsel.service.core.management import edit_adviser
from counsel.service.core.outcomes import Outcome
from counsel.service.core.person_beliefs import describe_person
from counsel.service.core.reported import ReportedDecision, record_decisions
from counsel.service.core.settings import AdviserSettings
from counsel.service.core.summary import summarise
from counsel.service.db.api_keys import KeyHolder, tenant_of
from counsel.service.db.engine import open_engine
from counsel.service.db.tables import level_changes
from counsel.service.errors import ConflictError
from tests.support.each import each
from tests.support.tiring_people import (
    ACTIONS,
    HORIZON,
    MEMORIES,
    STATES,
    slow_levels,
    tiring_source,
)

TRIAL = {"0": {"0": 0.2, "1": 0.3, "2": 0.2}, "1": {"1": 0.4, "2": 0.3}}
"""Advice at random, so that every kind of event occurs."""


@pytest.fixture
def opened(url):
    """Opens desks on one database and closes them all."""
    engine = open_engine(url)
    with engine.begin() as connection:
        assert tenant_of(connection, "clinic") == 1
    engine.dispose()
    made = []

    def open_desk(seed=0):
        desk = Desk(open_engine(url), tiring_source, np.random.default_rng(seed))
        made.append(desk)
        return desk

    yield open_desk
    for desk in made:
        desk.close()
        desk.engine.dispose()


def settings(source, **changes):
    given = {"source": source, "penalty": 0.05, "knows_habit": True}
    return AdviserSettings.checked(**(given | changes))


class Log:
    """What was said and done, as a caller would write it down, and the levels by slow replay."""

    def __init__(self, desk, adviser, memory, *, lasts):
        self.desks, self.adviser, self.memory, self.lasts = [desk], adviser, memory, lasts
        self.episodes = []  # (id, person, {step: [state, said, did, seen]})

    def start(self, desk, person):
        self.episodes.append((desk.start(1, self.adviser, person).id, person, {}))

    def levels(self):
        """The level at each step of each episode, by id."""
        ends, levels = {}, {}
        for id_, person, steps in self.episodes:
            newcomer = self.memory.newcomer
            start = ends.get(person, newcomer) if self.lasts else newcomer
            last = max(steps, default=-1)
            happened = {step: tuple(row[1:]) for step, row in steps.items()}
            levels[id_] = slow_levels(self.memory, id_, start, happened, HORIZON)
            ends[person] = levels[id_][last + 1]
        return levels

    def counted(self):
        """How often each action was taken on each advice that was seen, by level."""
        counts, levels = {}, self.levels()
        for id_, _, steps in self.episodes:
            for step, (state, said, did, seen) in steps.items():
                if said is not None and did is not None and seen:
                    cell = (state, said, did, levels[id_][step])
                    counts[cell] = counts.get(cell, 0) + 1
        return counts


def something_happens(log, desk, rng):
    """Let a random thing happen at a desk, and return the level of a decision with the expected."""
    live = [one for one in log.episodes if len(one[2]) < HORIZON]
    if not live or rng.random() < 0.15:
        log.start(desk, str(rng.choice(["ann", "bob"])))
        return
    id_, _, steps = live[rng.integers(len(live))]
    pending = [step for step in steps if steps[step][2] is None]
    kind = rng.random()
    if steps and kind < 0.5:
        some = pending if pending and rng.random() < 0.8 else list(steps)  # a correction, perhaps
        step = some[rng.integers(len(some))]
        said = steps[step][1]
        matches = said is not None and rng.random() < 0.5
        did, seen = (said if matches else int(rng.integers(ACTIONS))), bool(rng.random() < 0.85)
        desk.report(1, [Outcome(f"{id_}-{step}", did, 0.5, seen=seen)])
        steps[step][2:] = did, seen
        return
    free = [step for step in range(HORIZON) if step not in steps]
    step = free[0] if rng.random() < 0.8 else free[rng.integers(len(free))]
    state = int(rng.integers(STATES))
    if kind < 0.65:
        said = None if rng.random() < 0.3 else int(rng.integers(ACTIONS))
        record_decisions(desk, 1, id_, [ReportedDecision(step, state, said)])
        steps[step] = [state, said, None, True]
        return
    expected = log.levels()[id_][step]
    decision = desk.advise(1, id_, step, state)
    assert decision.reason["level"] == expected
    steps[step] = [state, decision.shown_advice, None, True]


def check(log, desk):
    """Compare everything that shows a level with the slow replay."""
    levels, names = log.levels(), log.memory.labels
    for id_, _, steps in log.episodes:
        shown = describe_episode(desk, 1, id_)
        assert {one["step"]: one["level"] for one in shown["decisions"]} == {
            step: names[levels[id_][step]] for step in steps
        }
        assert shown["level"] == names[levels[id_][max(steps, default=-1) + 1]]
    desk.catch_up()
    assert dict(desk.learnt.of(log.adviser).everybody.levels) == log.counted()


QUICK = {("refusals", "person"), ("random", "episode")}


@pytest.mark.parametrize(
    ("source", "across"),
    [
        pytest.param(source, across, marks=() if (source, across) in QUICK else pytest.mark.slow)
        for source in MEMORIES
        for across in ("episode", "person")
    ],
)
def test_the_level_is_that_of_a_slow_replay_whatever_happens(source, across, opened):
    rng = np.random.default_rng([len(source), len(across)])
    one = opened()
    chosen = settings(source, memory_across=across, explore=1.0, schedule=TRIAL)
    adviser = one.create(1, "alerts", chosen)
    log = Log(one, adviser, MEMORIES[source][0], lasts=across == "person")
    desks = [one, opened(1)]  # two services on one database
    for _ in range(60):
        something_happens(log, desks[rng.integers(2)], rng)
    for desk in desks:
        check(log, desk)
    one.save_snapshot().result()
    for _ in range(20):
        something_happens(log, desks[1], rng)
    again = opened(2)  # reads the snapshot, and what happened since
    check(log, again)
    with again.reading.connect() as connection:
        again.learnt.recount(connection)
    check(log, again)


def advised(desk, **changes):
    """An adviser who always speaks, and an episode of ann."""
    chosen = {"penalty": None, "always": True} | changes
    adviser = desk.create(1, "alerts", settings(chosen.pop("source", "refusals"), **chosen))
    return adviser, desk.start(1, adviser, "ann").id


def ask(desk, episode, step, state=0):
    return desk.advise(1, episode, step, state)


def answer(desk, decision, *, matches, **more):
    action = decision.advice if matches else (decision.advice + 1) % ACTIONS
    desk.report(1, [Outcome(decision.id, action, 0.5, **more)])


def test_a_piece_that_nobody_answers_counts_as_refused_until_it_is(opened):
    desk = opened()
    _, episode = advised(desk)
    first = ask(desk, episode, 0)
    assert ask(desk, episode, 1).reason["level"] == 1
    answer(desk, first, matches=True)
    assert ask(desk, episode, 2).reason["level"] == 1, "only the second is unanswered"


def test_a_correction_moves_the_level_and_what_was_learnt(opened):
    desk = opened()
    adviser, episode = advised(desk)
    for step in range(3):
        answer(desk, ask(desk, episode, step), matches=False)
    desk.catch_up()
    before = dict(desk.learnt.of(adviser).everybody.levels)
    assert {cell[3] for cell in before} == {0, 1, 2}
    first = ask(desk, episode, 0)
    answer(desk, first, matches=True)  # a correction: version 2
    assert ask(desk, episode, 3).reason["level"] == 2
    shown = describe_episode(desk, 1, episode)["decisions"]
    assert [one["level"] for one in shown[:3]] == [
        "no refusal in a row", "no refusal in a row", "1 refusal in a row",
    ]  # fmt: skip
    assert shown[2]["reason"]["level"] == "2 or more refusals in a row", "as it was known then"
    levels = dict(desk.learnt.of(adviser).everybody.levels)
    assert sorted(cell[3] for cell, times in levels.items() for _ in range(times)) == [0, 0, 1]
    other = opened(1)
    assert dict(other.learnt.of(adviser).everybody.levels) == levels


def test_advice_that_was_not_seen_lets_them_rest(opened):
    desk = opened()
    _, episode = advised(desk, source="since")
    answer(desk, ask(desk, episode, 0), matches=False, seen=False)
    assert ask(desk, episode, 1).reason["level"] == 2
    assert ask(desk, episode, 2).reason["level"] == 0


@each("changes", [{"mode": "shadow"}, {"mode": "off"}, {"holdout": 1.0}])
def test_advice_that_is_not_shown_tires_nobody(changes, opened):
    desk = opened()
    _, episode = advised(desk, source="pieces", **changes)
    assert [ask(desk, episode, step).reason["level"] for step in range(3)] == [0, 0, 0]


def test_an_episode_starts_where_the_last_one_ended(opened):
    desk = opened()
    adviser, first = advised(desk, source="pieces", memory_across="person")
    for step in range(2):
        answer(desk, ask(desk, first, step), matches=True)
    desk.end(1, first, terminated=True)
    second, other = (desk.start(1, adviser, person).id for person in ("ann", "bob"))
    assert ask(desk, second, 0).reason["level"] == 2
    assert ask(desk, other, 0).reason["level"] == 0, "bob was advised by nobody yet"
    [belief] = describe_person(desk, 1, "ann")["advisers"]
    assert (belief["level"], belief["rested"]) == ("3 or more pieces so far", 0.35)


def test_a_correction_reaches_the_episodes_that_followed(opened):
    desk = opened()
    adviser, first = advised(desk, memory_across="person")
    refused = ask(desk, first, 0)
    answer(desk, refused, matches=False)
    later = [desk.start(1, adviser, "ann").id for _ in range(2)]
    assert ask(desk, later[1], 0).reason["level"] == 1
    answer(desk, refused, matches=True)
    assert describe_episode(desk, 1, later[0])["level"] == "no refusal in a row"
    assert ask(desk, later[1], 1).reason["level"] == 1, "one refusal: the piece just given"


def test_the_export_has_the_level_of_each_decision(opened):
    desk = opened()
    adviser, episode = advised(desk, source="pieces")
    for step in range(3):
        answer(desk, ask(desk, episode, step), matches=True)
    rows = b"".join(export_log(desk, desk.live(1, adviser), "csv")).decode().splitlines()
    assert rows[0].split(",")[-1].strip('"') == "level"
    assert [row.split(",")[-1].strip('"') for row in rows[1:]] == [
        "no piece so far", "1 piece so far", "2 pieces so far",
    ]  # fmt: skip
    plain = desk.create(1, "plain", settings("plain"))
    assert b"level" not in b"".join(export_log(desk, desk.live(1, plain), "csv"))


@pytest.mark.parametrize(
    "limit",
    [{"penalty": 0.3}, {"penalty": None, "budget": 6.0, "hard": True}],
    ids=["penalty", "hard budget"],
)
def test_decisions_are_those_of_the_plan_on_the_level(limit, opened):
    desk = opened()
    adviser = desk.create(1, "alerts", settings("since 12", **limit))
    live, rests = desk.live(1, adviser), 0
    for _ in range(2):
        episode = desk.start(1, adviser, "ann")
        spent = 0
        for step in range(12):
            person_plan = desk.plans.wait_for(episode.plan_key)
            plan, state = person_plan.plan, step % STATES
            decision = ask(desk, episode.id, step, state)
            level, left = decision.reason["level"], plan.policy.left_after(spent)
            index = live.mdp.defer if decision.advice is None else decision.advice
            chances = plan.policy.at(step, state, left, level)
            assert chances[index] == decision.probability
            why = explain(
                person_plan.problem, plan, step=step, state=state, pieces_left=left, level=level
            )
            if left != 0:
                assert decision.reason["burden"] == pytest.approx(why.burden, abs=1e-12)
                assert decision.reason["gain"] == pytest.approx(why.gain, abs=1e-12)
                rested = decision.reason["why"].startswith("letting them rest")
                assert rested == ("letting them rest" in why.sentence)
                rests += rested
            spent += decision.advice is not None
            desk.report(1, [Outcome(decision.id, 0, 0.0)])
        if "hard" in limit:
            assert spent <= 6
    assert rests > 0


@pytest.mark.parametrize(
    ("limit", "price"),
    [
        ({"penalty": 0.3}, "what it costs"),
        ({"penalty": None, "budget": 5.0, "hard": True}, "what a piece is worth elsewhere"),
    ],
    ids=["penalty", "hard budget"],
)
def test_rest_was_said_to_cost_more_than_it_gains_where_the_price_decided(limit, price, opened):
    desk = opened()
    adviser, whys = desk.create(1, "alerts", settings("since 12", **limit)), set()
    for _ in range(2):
        episode = desk.start(1, adviser, "ann")
        for step in range(12):
            decision = ask(desk, episode.id, step, step % STATES)
            reason = decision.reason
            if reason["why"].startswith("letting them rest"):
                now = reason["lift"] * reason["advantage"]
                costs_more = "costs more of later listening than it gains" in reason["why"]
                assert costs_more == (reason["burden"] >= now)
                assert costs_more or reason["why"].endswith(f"does not exceed {price}")
                whys.add(costs_more)
            desk.report(1, [Outcome(decision.id, 0, 0.0)])
    assert False in whys


def test_the_dashboard_shows_levels_where_there_is_a_memory(opened):
    desk = opened()
    adviser, episode = advised(desk, source="pieces")
    for step in range(3):
        answer(desk, ask(desk, episode, step), matches=True)
    desk.catch_up()
    summary = summarise(desk, 1, adviser)
    assert [row["reason"]["level"] for row in summary["recent"]] == [
        "2 pieces so far", "1 piece so far", "no piece so far",
    ]  # fmt: skip
    assert [row["reason"]["rested"] for row in summary["recent"]] == [0.5, 0.7, 1.0]


def test_must_say_advice_is_said_to_the_tired_and_tires_them_more(opened):
    desk = opened()
    _, episode = advised(desk, source="pieces", penalty=100.0, always=False, must_say={"1": "2"})
    desk.plans.settle()  # without a plan the reason has no lift
    said = [ask(desk, episode, step, state=1) for step in range(3)]
    assert [one.shown_advice for one in said] == [2, 2, 2]
    assert [one.reason["level"] for one in said] == [0, 1, 2]
    assert said[2].reason["lift"] == pytest.approx(0.5 * said[0].reason["lift"], rel=0.2)
    assert ask(desk, episode, 3).shown_advice is None


def test_nothing_is_left_of_the_levels_of_an_erased_person(opened):
    desk = opened()
    adviser, episode = advised(desk, memory_across="person")
    first = ask(desk, episode, 0)
    answer(desk, ask(desk, episode, 1), matches=True)
    answer(desk, first, matches=True)  # late: the level of step 1 changes
    desk.catch_up()
    with desk.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(level_changes)) == 1
    assert desk.learnt.of(adviser).everybody.levels
    erase_person(desk, 1, "ann")
    with desk.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(level_changes)) == 0
    assert not desk.learnt.of(adviser).everybody.levels
    again = desk.start(1, adviser, "ann").id
    assert ask(desk, again, 0).reason["level"] == 0


def test_how_long_people_remember_is_fixed_once_there_are_episodes(opened):
    desk = opened()
    adviser, _ = advised(desk, source="pieces")
    with pytest.raises(ConflictError, match="memory_across is episode and stays so: the levels"):
        edit_adviser(desk, KeyHolder(1, "admin"), adviser, {"memory_across": "person"})


def test_a_memory_across_episodes_needs_a_memory(opened):
    with pytest.raises(CounselError, match="memory_across is 'person', but the person of this"):
        opened().create(1, "alerts", settings("plain", memory_across="person"))


@each("across", ["person", "episode"])
def test_somebody_never_advised_once_started_as_tired_as_most_episodes_of_the_log(across, opened):
    desk = opened()
    adviser, first = advised(desk, source="carried", memory_across=across)
    assert ask(desk, first, 0).reason["level"] == 0
    desk.end(1, first, terminated=True)
    second, other = (desk.start(1, adviser, person).id for person in ("ann", "bob"))
    assert ask(desk, second, 0).reason["level"] == (1 if across == "person" else 0)
    assert describe_episode(desk, 1, other)["level"] == "no piece so far"
