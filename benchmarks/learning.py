"""How well and how fast learners learn, as ratios in one run on the shipped map.

Run with ``make bench``. Regret is the sum of exact value gaps (see ``counsel.learn``).
"""

import resource
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import counsel
from benchmarks.timing import verdict
from counsel import RFE, UCBAD, PaperBonus, Structured
from counsel.worlds import make

BY_ADVICE = [0, 1, 2]


def main() -> None:
    """Measure and print everything."""
    for part in (quality(), exploration(), speed()):
        for line in part:
            print(line, flush=True)


def quality() -> Iterator[str]:
    """Compare the regret of UCB-AD's bounds over 20,000 episodes and 20 seeds."""
    for person, most in (("greedy", 0.5), ("safe", 0.25)):
        problem = make(f"flappy-bird/{person}")
        setting = problem.without_adherence()
        kl = regret(problem, lambda s=setting: UCBAD(s), seeds=20)
        paper = regret(
            problem, lambda s=setting: UCBAD(s, bound=PaperBonus()), seeds=20, every=1000
        )
        pooled = regret(problem, lambda s=setting: UCBAD(s, groups=BY_ADVICE), seeds=20)
        yield f"{person}: regret {kl:.1f}, paper's every 1000 {paper:.1f}, pooled {pooled:.2f}"
        yield verdict(f"{person}: KL / paper's bonus", kl / paper, most, most=True)
        yield verdict(f"{person}: pooled by advice / not pooled", pooled / kl, 0.1, most=True)


def regret(
    problem: counsel.AdviceProblem, build: Callable[[], UCBAD], *, seeds: int, every: int = 1
) -> float:
    """Return the mean regret after 20,000 episodes."""
    simulator, ends = counsel.Simulator(problem), []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        *_, last = counsel.learn(
            build(), simulator, episodes=20_000, every=every, records=20, rng=rng
        )
        ends.append(last.regret)
    return float(np.mean(ends))


def exploration() -> Iterator[str]:
    """Compare how soon all penalties are planned well: structured exploration against RFE-β."""
    for person, most in (("greedy", 0.2), ("safe", 0.5)):
        problem = make(f"flappy-bird/{person}")
        known = {"shape": problem.shape, "reward": problem.mdp.reward}
        plain = settled(problem, partial(RFE, **known, scale=0.1))
        pooled = settled(problem, partial(Structured, **known, groups=BY_ADVICE))
        apart = settled(problem, partial(Structured, **known))
        yield (
            f"{person}: worst gap over all penalties stays below 0.05 from episode {plain:,.0f} "
            f"with RFE, {pooled:,.0f} structured and pooled by advice, {apart:,.0f} not pooled"
        )
        yield verdict(f"{person}: structured, pooled / RFE", pooled / plain, most, most=True)
        yield f"{person}: structured, not pooled / RFE: {apart / plain:.2f} (to be reported)"


def settled(problem: counsel.AdviceProblem, build: Callable[..., RFE | Structured]) -> float:
    """Return the mean first update after which the worst gap stays at or below 0.05, of 5 seeds.

    Updates every 50 episodes, 30,000 in all; a run that never gets there counts as 30,050.
    """
    penalties = [i / 10 for i in range(11)]
    best = [counsel.solve(problem, penalty=b).penalised_value for b in penalties]
    simulator, ends = counsel.Simulator(problem), []
    for seed in range(5):
        learner, rng = build(rng=np.random.default_rng(seed)), np.random.default_rng(100 + seed)
        last_bad = 0
        for episode in range(50, 30_001, 50):
            learner.explore(simulator, episodes=50, rng=rng)
            for penalty, value in zip(penalties, best, strict=True):
                policy = counsel.Policy(learner.best_advice(penalty), n_actions=problem.n_actions)
                worth = counsel.evaluate(problem, policy)
                if value - (worth.value - penalty * worth.advice_count) > 0.05:
                    last_bad = episode
                    break
        ends.append(last_bad + 50)
    return float(np.mean(ends))


def speed() -> Iterator[str]:
    """Time the learners at the paper's scale, one thread."""
    problem = make("flappy-bird/safe")
    for every, most in ((5000, 3.0), (1, 10.0)):
        spent = seconds(UCBAD(problem.without_adherence()), problem, episodes=800_000, every=every)
        name = f"UCB-AD: 8·10⁵ Flappy Bird episodes, planned every {every}, seconds"
        yield verdict(name, spent, most, most=True)
    explorer = RFE(
        problem.shape, rng=np.random.default_rng(0), scale=0.1, reward=problem.mdp.reward
    )
    spent = seconds(explorer, problem, episodes=100_000, every=50)
    yield verdict(
        "RFE: Flappy Bird episodes a second, planned every 50", 100_000 / spent, 100_000.0
    )
    walker = Structured(
        problem.shape, rng=np.random.default_rng(0), groups=BY_ADVICE, reward=problem.mdp.reward
    )
    spent = seconds(walker, problem, episodes=100_000, every=50)
    yield f"structured: {100_000 / spent:,.0f} Flappy Bird episodes a second, planned every 50"
    road = make("car-driving/myopic")
    spent = seconds(UCBAD(road.without_adherence()), road, episodes=400_000, every=8000)
    yield verdict("UCB-AD: 4·10⁵ Car Driving episodes, every 8000, seconds", spent, 60.0, most=True)
    explorer = RFE(road.shape, rng=np.random.default_rng(0), scale=0.1, reward=road.mdp.reward)
    spent = seconds(explorer, road, episodes=400_000, every=8000)
    yield verdict("RFE: 4·10⁵ Car Driving episodes, every 8000, seconds", spent, 60.0, most=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield verdict("RFE on Car Driving: peak memory of the whole process, GB", peak, 3.0, most=True)
    walker = Structured(
        road.shape, rng=np.random.default_rng(0), groups=BY_ADVICE, reward=road.mdp.reward
    )
    spent = seconds(walker, road, episodes=400_000, every=8000)
    yield f"structured: 4·10⁵ Car Driving episodes, every 8000: {spent:.1f} seconds"


def seconds(
    learner: UCBAD | RFE | Structured, problem: counsel.AdviceProblem, *, episodes: int, every: int
) -> float:
    """Return how long a run takes once all is compiled, with the time of judging it."""
    simulator = counsel.Simulator(problem)
    for _ in counsel.learn(
        learner, simulator, episodes=every, every=every, records=1, rng=np.random.default_rng(9)
    ):
        pass
    begin = time.perf_counter()
    records = max(1, episodes // max(every, 5000))
    for _ in counsel.learn(
        learner,
        simulator,
        episodes=episodes,
        every=every,
        records=records,
        rng=np.random.default_rng(0),
    ):
        pass
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
