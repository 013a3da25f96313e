"""What the regret experiments claim, on invented rows; what each run is charged with."""

import numpy as np
import pytest

from counsel import Simulator, evaluate, learn, solve
from counsel.experiments.experiment import Size
from counsel.experiments.paper import regret
from counsel.experiments.rows import last_of
from counsel.experiments.run_types import uniform_advice
from tests.support.invented_rows import curve, explored, over_seeds, verdicts

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be told"


def race(ucb, rfe, euler, *, odd=(), seeds=24):
    """The final regrets of three learners on every map, and others for the odd seeds."""

    def pick(own, other):
        return lambda seed: other if seed in odd else own

    rows = {}
    for prefix in ("", "maps-"):
        for name, own, other in (("ucb-ad", ucb, 9.0), ("euler", euler, 9.0)):
            chosen = pick(own, other)
            rows |= over_seeds(
                f"regret-safe/{prefix}{name}",
                lambda seed, chosen=chosen: curve(chosen(seed), regret_after=chosen(seed)),
                seeds,
            )
        rows |= over_seeds(f"regret-safe/{prefix}rfe-ad", lambda _: explored(rfe), seeds)
    return rows


@pytest.mark.parametrize(
    ("regrets", "order", "half"),
    [
        ((1, 2, 9), HOLDS, HOLDS),
        ((3, 2, 9), FAILS, HOLDS),
        ((1, 8, 9), HOLDS, FAILS),
        ((1, 10, 9), FAILS, FAILS),
    ],
)
def test_the_order_of_regrets_must_hold_on_most_maps(regrets, order, half):
    assert verdicts(regret.claims("safe", race(*regrets)))[:2] == [order, half]


def test_a_few_maps_with_another_order_leave_it_open_and_many_refute_it():
    assert verdicts(regret.claims("safe", race(1, 2, 9, odd={5, 17})))[0] == UNKNOWN
    assert verdicts(regret.claims("safe", race(1, 2, 9, odd=set(range(0, 24, 2)))))[0] == FAILS
    assert verdicts(regret.claims("safe", race(1, 2, 9, seeds=5))) == [UNKNOWN] * 3


def test_the_other_reading_charges_blocks_with_the_policy_planned_after_them():
    # Gaps 5 and 3 before two blocks of one episode and 1 after the last: 5 + 3, or 3 + 1.
    run = explored(8.0, (1.0, 0.0, 0.0), before=(5.0, 3.0))
    rows = race(1, 2, 9)
    rows |= over_seeds("regret-safe/maps-rfe-ad", lambda _: run)
    assert set(regret.final_regret(rows, "regret-safe/maps-rfe-ad", after=True)) == {4.0}
    for charged, verdict in ((3.9, HOLDS), (4.1, FAILS)):
        rows |= over_seeds(
            "regret-safe/maps-ucb-ad", lambda _, c=charged: curve(1.0, regret_after=c)
        )
        assert verdicts(regret.claims("safe", rows))[2] == verdict


@pytest.mark.parametrize("episodes", [40, 45])
def test_a_run_knows_both_readings_and_the_cost_of_its_burn_in(episodes):
    from dataclasses import replace

    runs = regret.runs("safe", Size(0.0001, 1))
    for name in ("ucb-ad", "euler"):
        (run,) = (run for run in runs if run.id == f"regret-safe/maps-{name}#0")
        run = replace(run, spec=replace(run.spec, episodes=episodes, every=10))
        rows = run.rows()
        # By hand: the same learner, one block after the other.
        problem = regret_problem(run)
        best = solve(problem).value
        learner, rng = run.spec.build(problem)
        gaps, sizes, left = [best - evaluate(problem, learner.policy).value], [], episodes
        while left > 0:
            size = min(10, left)
            learner.update(Simulator(problem).play(learner.policy, episodes=size, rng=rng))
            gaps.append(best - evaluate(problem, learner.policy).value)
            sizes.append(size)
            left -= size
        assert rows["regret"][-1] == pytest.approx(np.dot(sizes, gaps[:-1]))
        assert rows["regret_after"][-1] == pytest.approx(np.dot(sizes, gaps[1:]))
        assert (rows["first_gap"][0], rows["end_gap"][0]) == pytest.approx((gaps[0], gaps[-1]))
        uniform = best - evaluate(problem, uniform_advice(problem)).value
        expected = (run.spec.burn_in or 0) * uniform
        assert rows["burn_in_regret"][0] == pytest.approx(expected)


def regret_problem(run):
    from counsel.experiments.map_families import problem_of

    return problem_of(run.spec.world, run.family, run.spec.seed)


def test_regrets_of_adherence_are_compared_with_and_without_advice_that_repels():
    # At θ = 0.4, 0.5 of the 1 per episode is due to advice that repels.
    rows = {}
    for person in regret.PEOPLE:
        for prefix in ("", "maps-"):
            high, low = f"{prefix}{person}-high", f"{prefix}{person}-low"
            rows |= over_seeds(f"regret-adherence/{high}", lambda _: curve(1.5, reverse=0.0))
            rows |= over_seeds(f"regret-adherence/{low}", lambda _: curve(2.0, reverse=0.5))
    assert verdicts(regret.adherence_claims(rows)) == [HOLDS, FAILS] * 2
    for seed in range(12):
        rows[f"regret-adherence/maps-safe-high#{seed}"] = curve(3.0, reverse=0.0)
    assert verdicts(regret.adherence_claims(rows)) == [HOLDS, FAILS, UNKNOWN, FAILS]


def test_learning_is_not_disturbed_by_what_is_recorded_besides():
    # The first and the last policy are evaluated too; the learner plays as if they were not.
    (run,) = (r for r in regret.runs("safe", Size(0.001, 1)) if r.id == "regret-safe/maps-euler#0")
    problem = regret_problem(run)
    learner, rng = run.spec.build(problem)
    simulator, every = Simulator(problem), run.spec.schedule
    *_, last = learn(learner, simulator, episodes=run.spec.episodes, every=every, rng=rng)
    assert last_of({run.id: run.rows()}, "regret-safe/maps-euler", "regret")[0] == last.regret
