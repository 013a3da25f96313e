"""What baselines cost and how well they do, beside a learner that knows the problem's structure.

Run with ``make bench``, or alone with ``python -m benchmarks.baselines``. How well: the regret
after 10,000 episodes (with ``--full`` 100,000, which takes some ten times as long) of learners that
know nothing but the sizes and the rewards: Counsel's structured learner, and black boxes known from
the literature, each with the better of two scales of its bonus, the theory's 1 and 0.01. Regret is
the sum of exact value gaps (see ``counsel.learn``); one seed. After how many episodes a learner
plans anew is in ``settings``; rates hold the time of judging. How fast: the baselines against the
same algorithms in plain NumPy and Python.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

import counsel
from benchmarks.plain import PlainQLearning, PlainUCBVI
from benchmarks.results import FOLDER, Row, against, alone, figure, record
from counsel.baselines import EULER, UCCFH
from counsel.model.machine import machine_rewards
from counsel.runs.spec import Spec
from counsel.worlds import make
from counsel.worlds.flappy_bird import next_column

WORLDS = ("flappy-bird/greedy", "flappy-bird/safe", "night-shift")
BUDGET_WORLD = "flappy-bird-budget/greedy"
MARKS = (1_000, 10_000, 100_000)
OURS = "structured"
SCALED = ", scale 0.01"
TABULAR = 10_000
"""Episodes of Q-learning when its speed is measured."""

KNOWS_MORE = ("ucb-ad", "ucb-ad, shared", "thompson")
"""Learners of Counsel's that are told the world and the habit."""

FIXED = {
    "never": ("never advising", "It knows nothing and learns nothing."),
    "best-action": ("always advising the best action", "It knows the world and does not learn."),
    "all-listen": ("the plan as if all listened", "It knows the world and does not learn."),
}
"""Policies that learn nothing."""


def main() -> None:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="100,000 episodes instead of 10,000")
    marks = MARKS if parser.parse_args().full else MARKS[:-1]
    record("baselines", chain(quality(marks), speed()), packages=("highspy",), folder=FOLDER)


def settings(episodes: int) -> Iterator[tuple[str, Spec]]:
    """Yield a name and the settings of every run."""
    base = Spec(world=WORLDS[0], algorithm="ucb-ad", episodes=episodes)
    for world in WORLDS:
        here = replace(base, world=world)
        for algorithm in ("never", "best-action", "all-listen", "optimum"):
            yield algorithm, replace(here, algorithm=algorithm)
        yield "ucb-ad", here
        yield "ucb-ad, shared", replace(here, share="advice")
        yield "thompson", replace(here, algorithm="thompson", every=50)
        yield "rfe-ad, scale 0.1", replace(here, algorithm="rfe-ad", scale=0.1)
        yield "structured", replace(here, algorithm="structured")
        for algorithm in (
            "euler",
            "ucbvi",
            "ucbvi-hoeffding",
            "q-learning",
            "q-learning-hoeffding",
        ):
            every = 10 if algorithm.startswith("ucbvi") else 50
            yield algorithm, replace(here, algorithm=algorithm, every=every)
            scaled = replace(here, algorithm=algorithm, every=every, scale=0.01)
            yield algorithm + SCALED, scaled
        yield "rf-express", replace(here, algorithm="rf-express", every=50)
        yield "ucfh", replace(here, algorithm="ucfh", every=500)
        yield "ucfh, support known", replace(here, algorithm="ucfh", every=500, known_support=True)
    here = replace(base, world=BUDGET_WORLD, budget=1.0)
    for algorithm in ("never", "all-listen", "optimum", "ucb-ad"):
        yield algorithm, replace(here, algorithm=algorithm, every=50)
    yield "rfe-cmdp, scale 0.1", replace(here, algorithm="rfe-cmdp", scale=0.1)
    yield "structured", replace(here, algorithm="structured")
    yield (
        "uc-cfh, support known",
        replace(here, algorithm="uc-cfh", known_support=True, delta=0.5, epsilon=1.0),
    )


def quality(marks: tuple[int, ...]) -> Iterator[Row]:
    """Run every learner in every world; compare what they have missed."""
    runs: dict[str, dict[str, tuple[list[float], float]]] = {}
    for name, spec in settings(marks[-1]):
        limit = "" if spec.budget is None else f", budget {spec.budget:g}"
        regret, rate = runs.setdefault(spec.world + limit, {})[name] = marked(spec, marks)
        shown = "".join(f"{value:>14,.1f}" for value in regret)
        print(f"{name:<34}{spec.world + limit:<36}{shown}{rate:>12,.0f} a second", flush=True)
    for world, learners in runs.items():
        yield from compared(world, learners, marks)


def compared(
    world: str, learners: dict[str, tuple[list[float], float]], marks: tuple[int, ...]
) -> Iterator[Row]:
    """Put the structured learner beside the others, each at the better of its two scales."""
    what = f"{world}: regret after {marks[-1]:,} episodes"
    mine = learners[OURS][0][-1]
    for name, (regret, rate) in learners.items():
        if name in (OURS, "optimum") or not chosen(learners, name):
            continue
        note = f"{figure(regret[0])} after {marks[0]:,}; {figure(rate)} episodes/s."
        if name in KNOWS_MORE:
            why = "told the world and the habit, which the others learn"
            yield alone(f"{what}, {name}", regret[-1], "reward", why, note=note)
            continue
        peer, note = FIXED.get(name, (name, note))
        yield against(f"{what}, structured", mine, "reward", peer, regret[-1], note=note)


def chosen(learners: dict[str, tuple[list[float], float]], name: str) -> bool:
    """Tell whether no other scale of the same learner does better."""
    theory = name.removesuffix(SCALED)
    rivals = [other for other in (theory, theory + SCALED) if other in learners]
    return name == min(rivals, key=lambda other: learners[other][0][-1])


def marked(spec: Spec, marks: tuple[int, ...]) -> tuple[list[float], float]:
    """Return the regret at the marks, and the episodes a second once all is compiled."""
    problem = make(spec.world)
    simulator = counsel.Simulator(problem)
    warm, rng = spec.build(problem)
    short = 2 * int(spec.schedule)
    for _ in counsel.learn(warm, simulator, episodes=short, every=spec.schedule, rng=rng):
        pass
    learner, rng = spec.build(problem)
    begin, regret, end, before = time.perf_counter(), [], None, 0
    for mark in marks:
        *_, end = counsel.learn(
            learner,
            simulator,
            episodes=mark - before,
            every=spec.schedule,
            records=1,
            rng=rng,
            after=end,
        )
        before = mark
        regret.append(round(end.regret, 6))
    return regret, marks[-1] / (time.perf_counter() - begin)


def speed() -> Iterator[Row]:
    """Time EULER at the paper's scale, UCBVI and Q-learning beside NumPy, UC-CFH's programme."""
    problem = make("flappy-bird/greedy")
    simulator = counsel.Simulator(problem)
    rewards = machine_rewards(problem)

    def euler() -> EULER:
        rng = np.random.default_rng(0)
        return EULER(problem.shape, rng=rng, reward=rewards, episodes=1_100_000)

    euler().burn_in(simulator, episodes=5000, rng=np.random.default_rng(1))
    begin, learner = time.perf_counter(), euler()
    learner.burn_in(simulator, episodes=300_000, rng=np.random.default_rng(1))
    for _ in counsel.learn(
        learner, simulator, episodes=800_000, every=5000, rng=np.random.default_rng(2)
    ):
        pass
    spent = time.perf_counter() - begin
    yield alone(
        "Flappy Bird: EULER, 1,100,000 episodes planned every 5,000",
        spent,
        "s",
        "planned so rarely that it is the speed of simulation",
        most=60.0,
    )
    yield from against_plain(problem)
    yield from programme()


def against_plain(problem: counsel.AdviceProblem) -> Iterator[Row]:
    """Compare UCBVI and Q-learning by turns with plain NumPy and Python."""
    best: dict[str, float] = {}
    for seed in range(3):
        ucbvi = PlainUCBVI(problem, episodes=2000, rng=np.random.default_rng(seed))
        q_rates = (
            ("q", learnt(problem, "q-learning-hoeffding", episodes=TABULAR, every=1)[1]),
            ("q, every 50", learnt(problem, "q-learning-hoeffding", TABULAR, every=50)[1]),
            ("python", plain_q_learning(problem, seed)),
        )
        for name, rate in (
            ("ucbvi", learnt(problem, "ucbvi", episodes=2000, every=1)[0]),
            ("numpy", plain_ucbvi(ucbvi, 100)),
            *q_rates,
        ):
            best[name] = max(best.get(name, 0.0), rate)
    judged = "Counsel's policies are judged, the peer's are not."
    what, peer = "Flappy Bird: UCBVI, planned after every episode", "plain NumPy"
    mine, theirs = best["ucbvi"], best["numpy"]
    yield against(what, mine, "episodes/s", peer, theirs, more=True, ratio=20.0, note=judged)
    what, peer = "Flappy Bird: Q-learning, policy held for", "a Python loop"
    for part, name, why in (
        ("50 episodes", "q, every 50", "The loop chooses its advice anew at each step."),
        ("one episode", "q", "After each episode Counsel lays out and judges a whole policy."),
    ):
        mine, note = best[name], f"{judged} {why}"
        yield against(f"{what} {part}", mine, "steps/s", peer, best["python"], more=True, note=note)


def learnt(
    problem: counsel.AdviceProblem, algorithm: str, episodes: int, *, every: int
) -> tuple[float, float]:
    """Return the episodes and the steps a second of one of Counsel's learners."""
    spec = Spec(world="flappy-bird/greedy", algorithm=algorithm, episodes=episodes, every=every)
    simulator = counsel.Simulator(problem)
    warm, rng = spec.build(problem)
    for _ in counsel.learn(warm, simulator, episodes=every, every=every, records=1, rng=rng):
        pass
    learner, rng = spec.build(problem)
    begin = time.perf_counter()
    for _ in counsel.learn(learner, simulator, episodes=episodes, every=every, records=1, rng=rng):
        pass
    spent = time.perf_counter() - begin
    return episodes / spent, int(learner.state()["_visits"].sum()) / spent


def plain_ucbvi(peer: PlainUCBVI, episodes: int) -> float:
    """Return the episodes a second of UCBVI in NumPy."""
    begin = time.perf_counter()
    for _ in range(episodes):
        peer.play(peer.plan())
    return episodes / (time.perf_counter() - begin)


def plain_q_learning(problem: counsel.AdviceProblem, seed: int) -> float:
    """Return the steps a second of Q-learning in Python, over as many episodes as Counsel's.

    Steps, not episodes: early on episodes are short, as birds crash.
    """
    peer = PlainQLearning(problem, episodes=TABULAR, seed=seed)
    begin = time.perf_counter()
    for _ in range(TABULAR):
        peer.play()
    return peer.steps / (time.perf_counter() - begin)


def programme() -> Iterator[Row]:
    """Time UC-CFH's linear programme on the budget map, with and without a declared support."""
    problem = make(BUDGET_WORLD)
    declared = next_column(problem)
    for name, support, times in (("next column and over", declared, 30), ("no support", None, 8)):
        learner = UCCFH(
            problem.shape,
            rng=np.random.default_rng(0),
            reward=machine_rewards(problem),
            budget=1.0,
            delta=0.5,
            support=support,
        )
        simulator, rng = counsel.Simulator(problem), np.random.default_rng(1)
        spent = []
        for _ in range(times):
            begin = time.perf_counter()
            policy = learner.policy
            spent.append(time.perf_counter() - begin)
            learner.update(simulator.play(policy, episodes=50, rng=rng))
        yield alone(
            f"Flappy Bird, budget map: one programme of UC-CFH ({name}), slowest of {times - 1}",
            1e3 * max(spent[1:]),
            "ms",
            "HiGHS solves the programme, as it would for anybody",
            most=1000.0 if support is not None else None,
            note=f"Median {1e3 * np.median(spent[1:]):.3g} ms.",
        )


if __name__ == "__main__":
    main()
