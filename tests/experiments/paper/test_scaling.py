"""The orders of the theorems: drawn worlds, counts, and claims on invented rows."""

import numpy as np
import pytest

import counsel
from counsel.estimate.bounds import Theory
from counsel.experiments.experiment import Size
from counsel.experiments.paper import scaling, scaling_runs
from counsel.experiments.paper.scaling_runs import (
    GATES,
    LEARNERS,
    MIXING,
    Dimensions,
    GateLearning,
    count_late,
    counts_of,
    worlds_of,
)
from counsel.experiments.paper.scaling_worlds import WRONG, gates_problem, mixing_problem
from counsel.experiments.paper.stopping import FACTOR, RULES, equal_counts_time
from counsel.learning.ucb_ad import UCBAD
from counsel.model.policy import Policy
from counsel.simulate.simulator import Simulator
from tests.support.invented_rows import over_seeds, verdicts

FITS = {"ucb-ad": 1.5, "ucb-ad-kl": 2.0, "ucfh": 3.0, "ucfh-0.1": 3.0}
FITS |= {"q-learning": 4.0, "q-learning-0.1": 4.0}
FACTORS = {"ucb-ad": 1.0, "ucb-ad-kl": 0.1, "ucfh": 9.0, "ucfh-0.1": 9.0}
FACTORS |= {"q-learning": 99.0, "q-learning-0.1": 99.0}


def counted(count, *, censored=False):
    """A run whose first ``count`` episodes are not ε-optimal."""
    if censored:
        return {"block": np.array([float(count)]), "value_gap": np.array([9.0])}
    return {"block": np.array([count, 9.0 * count]), "value_gap": np.array([9.0, 0.0])}


def invented(powers=FITS, factors=FACTORS, *, states=None, censored=(), spread=0.0, late=1.0):
    """Rows whose counts are powers of all sizes; RFE's times are those computed.

    ``states`` is the power of S in the stopping times, by default that of the computation, and
    ``late`` how many times later than computed the runs stop.
    """
    noise = np.random.default_rng(3)
    rows = {}
    for name in LEARNERS:
        for world in worlds_of(GATES):
            size = world.H * world.S / world.epsilon

            def make(_, name=name, size=size):
                count = 100.0 * factors[name] * size ** powers[name]
                count *= np.exp(spread * noise.standard_normal())
                return counted(count, censored=name in censored)

            rows |= over_seeds(f"scaling/{name}-{world.name}", make)
    for world in worlds_of(MIXING):
        times = {
            name: np.array([late * equal_counts_time(rule, *world, factor=FACTOR)])
            for name, rule in RULES.items()
        }
        if states is not None:
            times = {name: 1e3 * (world.S**states) * (t * 0 + 1) for name, t in times.items()}
        rows |= over_seeds(f"scaling/rfe-{world.name}", lambda _, times=times: times, seeds=12)
    return rows


def verdict_on(rows, start):
    """The verdict on the only claim that begins with these words."""
    (claim,) = (claim for claim in scaling.claims(rows) if claim.text.startswith(start))
    return claim.verdict.value


def test_what_is_as_the_theorems_say_holds():
    claims = scaling.claims(invented(spread=0.1))
    informal = [claim.text.startswith("Theorem 2, informal") for claim in claims]
    expected = ["does not hold" if is_informal else "holds" for is_informal in informal]
    assert verdicts(claims) == expected
    assert sum(informal) == 1


def test_what_grows_faster_than_theorem_1_does_not_hold():
    rows = invented(FITS | {"ucb-ad": 2.5})
    starts = [f"Theorem 1: the episodes of UCB-AD that are not ε-optimal grow no faster than {x}"
              for x in ("H²", "S²", "1/ε²")]  # fmt: skip
    assert {verdict_on(rows, start) for start in starts} == {"does not hold"}


def test_an_exponent_too_close_to_the_theorems_cannot_be_told():
    rows = invented(FITS | {"ucb-ad": 2.0}, spread=0.5)
    decided = [c.verdict.value for c in scaling.claims(rows) if c.text.startswith("Theorem 1")]
    assert decided == ["cannot be told"] * 3


def test_a_learner_whose_counts_are_censored_has_no_exponent():
    rows = invented(censored=("ucb-ad",))
    decided = [c.verdict.value for c in scaling.claims(rows) if c.text.startswith("Theorem 1")]
    assert decided == ["cannot be told"] * 3
    (table,) = scaling.tables(rows)
    assert table.rows[1][:4] == ("UCB-AD (Theorem 1)", "–", "–", "–")


def test_fewer_than_a_censored_count_holds_and_more_than_it_cannot_be_told():
    start = "UCB-AD (Theorem 1) has fewer episodes that are not ε-optimal than Q-learning."
    assert verdict_on(invented(censored=("q-learning",)), start) == "holds"
    few = FACTORS | {"q-learning": 1e-9}
    assert verdict_on(invented(factors=few, censored=("q-learning",)), start) == "cannot be told"
    assert verdict_on(invented(factors=few), start) == "does not hold"


def test_a_learner_that_grows_as_fast_as_another_does_not_grow_more_slowly():
    start = "UCB-AD (Theorem 1) grows more slowly with H than UCFH"
    assert verdict_on(invented(FITS | {"ucfh": 1.0}), start) == "does not hold"
    assert verdict_on(invented(FITS | {"ucfh": 1.5}, spread=0.3), start) == "cannot be told"


def test_the_order_of_stopping_times_in_S_is_read_off_the_runs():
    start = "Theorem 2, informal"
    assert verdict_on(invented(states=0.9), start) == "holds"
    assert verdict_on(invented(states=1.1), start) == "does not hold"


def test_penalties_that_cost_no_more_than_none_do_not_cost_the_square_of_H():
    assert verdict_on(invented(states=1.0), "To serve all penalties") == "does not hold"


def test_computed_times_that_differ_from_runs_are_noticed():
    start = "Stopping times computed"
    assert verdict_on(invented(late=1.05), start) == "holds"
    assert verdict_on(invented(late=1.3), start) == "does not hold"


def test_episodes_that_are_not_epsilon_optimal_are_counted_by_block():
    run = {"block": np.array([1.0, 1, 2, 4]), "value_gap": np.array([0.5, 0.0, 0.2, 0.05])}
    assert count_late(run, 0.1) == (3.0, False)
    assert count_late(run, 0.01) == (7.0, True)
    assert count_late(run, 0.6) == (0.0, False)
    # The last late block ends after 6 of 8 episodes: the last quarter is ε-optimal.
    late = {"block": np.array([2.0, 4, 2]), "value_gap": np.array([0.0, 1.0, 0.0])}
    assert count_late(late, 0.5) == (4.0, False)
    late["block"] = np.array([3.0, 4, 2])
    assert count_late(late, 0.5) == (4.0, True)


@pytest.mark.parametrize(("H", "gates", "epsilon"), [(8, 6, 0.63), (12, 4, 0.25)])
def test_wrong_advice_at_every_gate_costs_what_is_declared(H, gates, epsilon):
    problem = gates_problem(H, gates, epsilon, seed=4)
    best = counsel.solve(problem)
    lift, own = problem.human.lift[0], problem.human.policy[0]
    advice = np.full((H, problem.n_states), problem.n_actions)
    for s in range(1, gates + 1):  # neither the habit nor the best advice
        habit, right = own[s].argmax(), lift[s].argmax()
        advice[:, s] = next(a for a in range(4) if a not in (habit, right))
    wrong = counsel.evaluate(problem, Policy(advice, n_actions=problem.n_actions))
    assert best.value - wrong.value == pytest.approx(WRONG * epsilon)


def test_a_gate_is_reached_once_at_an_even_step_of_the_first_half():
    problem = gates_problem(8, 6, 0.63, seed=1)
    played = Simulator(problem).play(
        counsel.solve(problem).policy, episodes=8000, rng=np.random.default_rng(0)
    )
    at_gate = (played.state >= 1) & (played.state <= 6)
    assert at_gate.sum() == 8000
    share = np.bincount(played.step[at_gate], minlength=8) / 8000
    np.testing.assert_allclose(share, [0.25] * 4 + [0.0] * 4, atol=0.02)  # four deviations


def test_only_the_size_that_is_named_differs():
    small, long = (gates_problem(H, 6, 0.63, seed=0) for H in (8, 24))
    assert small.n_states == long.n_states == 9
    wide = gates_problem(8, 16, 0.63, seed=0)
    assert (wide.mdp.horizon, wide.n_states) == (8, 19)
    assert mixing_problem(4, 16, 2, seed=0).n_states == 16


@pytest.mark.slow
def test_the_schedule_of_all_learners_costs_ucb_ad_little():
    # Theorem 1 plans after every episode; here learners plan whenever episodes grow by a tenth.
    ratios = []
    for seed in range(8):
        world = Dimensions(8, 9, 1.0)
        run = GateLearning(
            id="a/b#0", learner="ucb-ad", horizon=8, states=9, epsilon=1.0, episodes=20_000,
            seed=seed,
        )  # fmt: skip
        count, censored = count_late(run.rows(), world.epsilon)
        assert not censored
        problem = gates_problem(8, 6, 1.0, seed)
        bound = Theory(delta=0.1, episodes=20_000)
        learner = UCBAD(problem.without_adherence(), bound=bound)
        best = counsel.solve(problem).value
        gaps, _ = learner.run(
            Simulator(problem), best=best, episodes=20_000, every=1, rng=np.random.default_rng(seed)
        )
        ratios.append(count / (gaps > 1.0).sum())
    assert 0.8 < np.exp(np.mean(np.log(ratios))) < 1.25


def test_runs_isolate_one_size_at_a_time():
    for grid in (GATES, MIXING):
        for axis, worlds in grid.items():
            varied = {name: len(set(values)) for name, values in zip(
                ("H", "S", "1/ε"), zip(*worlds, strict=True), strict=True)}  # fmt: skip
            assert varied == {name: len(worlds) if name == axis else 1 for name in varied}


def test_every_learner_meets_the_same_worlds():
    worlds = {}
    for run in scaling_runs.runs(Size(seeds=2)):
        if isinstance(run, GateLearning):
            world = (run.horizon, run.states, run.epsilon, run.episodes, run.seed)
            worlds.setdefault(run.learner, set()).add(world)
    assert set(worlds) == set(LEARNERS)
    assert len(set(map(frozenset, worlds.values()))) == 1


def test_claims_have_the_seeds_they_need():
    ids = [run.id for run in scaling_runs.runs(Size(seeds=24))]
    seeds = {name: sum(f"{name}-h8-s9-e0.63#" in run for run in ids) for name in LEARNERS}
    assert seeds == dict.fromkeys(LEARNERS, 24) | {"q-learning": 12}
    assert sum("rfe-h4-s4-e1#" in run for run in ids) == 12


def test_counts_are_read_along_each_axis():
    rows = invented()
    assert [counts.size for counts in counts_of(rows, "ucfh", "H")] == [8.0, 12.0, 16.0, 24.0]
    assert [counts.size for counts in counts_of(rows, "rfe-ad", "1/ε")][::4] == [1.0, 4.0]


def test_the_pictures_have_a_panel_for_each_size():
    rows = invented()
    pictures = scaling.pictures(rows)
    assert pictures
    for picture in pictures:
        titles = [axes.get_title(loc="left") for axes in picture.figure.axes]
        assert titles == [f"Drawn people, by {axis}" for axis in scaling.AXES]
    assert all(len(table.rows) > 1 for table in scaling.tables(rows))
