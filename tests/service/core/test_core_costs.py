"""A model with costs in the service: budgets, pacing, reasons and the summary count by cost."""

import json

import numpy as np
import pytest
import sqlalchemy as sa

import counsel
from counsel.estimate.people_counts import PeopleCounts
from counsel.learning.population import NOBODY
from counsel.model.human import draw_index
from counsel.service.core.decide import DecisionRequest, decide
from counsel.service.core.desk import Desk
from counsel.service.core.episode import Episode
from counsel.service.core.explained_plan import explain_plan
from counsel.service.core.kept_plans import PlanKey
from counsel.service.core.live_adviser import LiveAdviser, make_population
from counsel.service.core.outcomes import Outcome
from counsel.service.core.settings import AdviserSettings
from counsel.service.core.summary import summarise
from counsel.service.db.api_keys import tenant_of
from counsel.service.db.engine import open_engine
from counsel.service.db.tables import advisers, decisions, episodes
from tests.support.each import each

WARD = counsel.make("ward")
DETERIORATING = WARD.mdp.state_labels.index("deteriorating")
MOVES = WARD.mdp.kernel.to_dense()
WHOLE, BROKEN = (1.0, 2.0, 3.0), (0.25, 0.5, 1.75)


def ward(cost):
    return counsel.AdviceProblem(WARD.mdp, WARD.human, cost=cost)


SOURCES = {"whole": ward(WHOLE), "broken": ward(BROKEN), "ones": ward(np.ones(3)), "ward": WARD}


@pytest.fixture
def desk(url):
    engine = open_engine(url)
    with engine.begin() as connection:
        tenant_of(connection, "clinic")
    desk = Desk(engine, lambda _, source: SOURCES[source], np.random.default_rng(0))
    yield desk
    desk.close()
    engine.dispose()


def settings(**changes):
    return AdviserSettings.checked(**({"source": "whole", "knows_habit": True} | changes))


def renew(desk, key):
    """Make a plan from everything that is durable by now, and wait for it.

    A stale plan is renewed in the background while a decision or the start of an episode becomes
    durable, and may or may not count it; a plan that is up to date is not renewed.
    """
    desk.plans.renew(key)
    desk.plans.settle()


def play(desk, adviser, shifts, rng, person="ann"):
    """Play shifts with a simulated nurse; return the cost of each and all decisions."""
    costs, said = [], []
    live = desk.live(1, adviser)
    for _ in range(shifts):
        renew(desk, PlanKey(adviser, NOBODY, live.settings.limit))
        episode, state = desk.start(1, adviser, person), draw_index(WARD.mdp.start, rng)
        costs.append(0.0)
        for step in range(WARD.horizon):
            renew(desk, episode.plan_key)
            decision = desk.advise(1, episode.id, step, state)
            desk.plans.settle()
            said.append(decision)
            heard = WARD.defer if decision.shown_advice is None else decision.advice
            if heard < WARD.defer and not decision.must:
                costs[-1] += live.cost[step, state, heard]
            action = draw_index(WARD.law(step, state, heard), rng)
            reward = float(WARD.mdp.reward[step, state, action])
            state = draw_index(MOVES[state, action], rng)
            desk.report(1, [Outcome(decision.id, action, reward)])
            desk.catch_up()
        desk.end(1, episode.id, terminated=False)
    return costs, said


@each("budget", [1, 2, 3, 4, 7, 40])
def test_a_hard_budget_is_never_exceeded_in_cost_on_any_path(budget):
    chosen = settings(budget=budget, hard=True)
    population = make_population(chosen, SOURCES["whole"], PeopleCounts())
    live = LiveAdviser("a", 1, "alerts", chosen, population)
    episode = Episode("e", 1, live, 1, held_out=False, mode="live", own_limit=None)
    plan = explain_plan(population, population.plan(-1, chosen.limit))
    advised, paths = 0, {0}
    for step in range(WARD.horizon):  # a path matters only by what it has spent
        after = set()
        for spent in paths:
            for state in range(WARD.n_states):
                request = DecisionRequest(episode, plan, step, state, 0.0, 0.0)
                decision = decide(request, spent)
                cost = live.cost_of(step, state, decision.advice)
                assert isinstance(cost, int)
                assert spent + cost <= budget
                assert decision.reason["left"] == budget - spent - cost
                advised += decision.advice is not None
                if decision.advice is not None:
                    assert decision.reason.get("cost", 1) == cost
                    assert decision.reason["gain"] >= decision.reason["price"] - 1e-12
                after.add(spent + cost)
        paths = after
    assert advised
    assert max(paths) <= budget


def test_the_record_of_a_hard_budget_is_in_units_of_cost(desk):
    adviser = desk.create(1, "alerts", settings(budget=4, hard=True))
    costs, said = play(desk, adviser, 12, np.random.default_rng(1))
    with desk.engine.connect() as connection:
        spent = connection.scalars(sa.select(episodes.c.spent).order_by(episodes.c.number)).all()
    assert spent == costs
    assert max(costs) <= 4
    assert {decision.reason.get("cost", 1) for decision in said} >= {1, 3}


def test_a_plan_prices_advice_by_its_cost(desk):
    adviser = desk.create(1, "alerts", settings(penalty=0.02))
    episode = desk.start(1, adviser, "ann")
    for step in range(WARD.horizon):
        said = desk.advise(1, episode.id, step, DETERIORATING)
        cost = WHOLE[said.reason["considered"]]
        assert said.reason["price"] == pytest.approx(0.02 * cost)
        assert said.reason.get("cost", 1) == cost
        assert (said.advice is not None) == (said.reason["gain"] > said.reason["price"])


def test_silence_is_explained_where_the_rest_of_the_budget_is_too_small(desk):
    adviser = desk.create(1, "alerts", settings(budget=4, hard=True))
    episode = desk.start(1, adviser, "ann").id
    said = [desk.advise(1, episode, step, DETERIORATING) for step in range(WARD.horizon)]
    assert said[-1].reason["left"] in (0, 1)
    silent = [one.reason for one in said if one.advice is None]
    assert {reason["why"] for reason in silent} <= {
        "it costs more than is left of the budget",
        "the budget is spent",
        "its cost is worth more elsewhere",
        "a piece of advice is worth more elsewhere",
    }
    for reason in silent:
        if reason["why"] == "it costs more than is left of the budget":
            assert reason["cost"] > reason["left"] > 0
            assert reason["gain"] > 0.0


@pytest.mark.slow
def test_an_expected_budget_is_paced_by_cost(desk):
    adviser = desk.create(1, "alerts", settings(source="broken", budget=1.2))
    costs = []
    rng = np.random.default_rng(2)
    for _ in range(30):
        costs += play(desk, adviser, 1, rng)[0]
    with desk.engine.connect() as connection:
        row = connection.execute(sa.select(advisers)).one()
        spent = connection.scalars(sa.select(episodes.c.spent).order_by(episodes.c.number)).all()
    assert spent == costs
    assert any(cost % 1 for cost in costs)
    assert (row.paced_episodes, row.paced_pieces) == (30, pytest.approx(sum(costs)))
    assert np.mean(costs) == pytest.approx(1.2, abs=0.35)


def test_must_say_advice_is_not_charged_and_counts_by_its_cost(desk):
    must = {"deteriorating": "call doctor"}
    adviser = desk.create(1, "alerts", settings(budget=2, hard=True, must_say=must))
    episode = desk.start(1, adviser, "ann").id
    said = desk.advise(1, episode, 0, DETERIORATING)
    assert (said.must, said.reason["cost"], said.reason["left"]) == (True, 3, 2)
    with desk.engine.connect() as connection:
        assert connection.scalar(sa.select(episodes.c.spent)) == 0
    spending = summarise(desk, 1, adviser)["spending"]
    assert (spending["per_episode"], spending["must_say"], spending["unit"]) == (0.0, 3.0, "cost")


@pytest.mark.slow
def test_the_summary_is_in_units_of_cost(desk):
    adviser = desk.create(1, "alerts", settings(source="broken", budget=1.5))
    costs, _ = play(desk, adviser, 10, np.random.default_rng(3))
    summary = summarise(desk, 1, adviser)
    assert summary["spending"]["per_episode"] == pytest.approx(np.mean(costs))
    assert summary["spending"]["unit"] == summary["frontier"]["unit"] == "cost"
    marks = {mark["name"]: mark["pieces"] for mark in summary["frontier"]["marks"]}
    assert marks["chosen"] == pytest.approx(1.5)
    assert marks["now"] == pytest.approx(np.mean(costs))
    assert json.dumps(summary)


@pytest.mark.slow
@each("limit", [{"penalty": 0.05}, {"budget": 1.5}, {"budget": 2, "hard": True}])
def test_costs_of_one_change_no_answer(tmp_path, limit):
    answers = []
    for source in ("ward", "ones"):
        engine = open_engine(str(tmp_path / f"{source}{len(limit)}{next(iter(limit))}.db"))
        with engine.begin() as connection:
            tenant_of(connection, "clinic")
        desk = Desk(engine, lambda _, name: SOURCES[name], np.random.default_rng(0))
        adviser = desk.create(1, "alerts", settings(source=source, **limit))
        _, said = play(desk, adviser, 4, np.random.default_rng(4))
        summary = summarise(desk, 1, adviser)
        with engine.connect() as connection:
            rows = connection.scalars(sa.select(decisions.c.reason)).all()
        kept = {name: summary[name] for name in ("spending", "frontier", "where")}
        answers.append(([(one.advice, one.reason) for one in said], rows, kept))
        desk.close()
        engine.dispose()
    assert answers[0] == answers[1]
    assert "cost" not in answers[0][0][0][1]


def test_a_hard_budget_with_costs_that_are_not_whole_is_refused(desk):
    with pytest.raises(counsel.CounselError, match=r"is 0\.25; under a hard budget"):
        desk.create(1, "alerts", settings(source="broken", budget=2, hard=True))
