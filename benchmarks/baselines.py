"""What baselines cost and how well they do, beside learners that know the problem's structure.

Run with ``make bench``. The table has one line for each learner and world: the regret after 10³,
10⁴ and 10⁵ episodes and the episodes a second, with the time of judging. Regret is the sum of exact
value gaps (see ``counsel.learn``); one seed. Black boxes have ``scale`` 1, the theory's, unless the
name says otherwise. After how many episodes a learner plans anew is in ``settings``.
"""

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import counsel
from benchmarks.timing import verdict
from counsel import EULER, UCCFH
from counsel.experiments.spec import Spec
from counsel.model.problem import machine_rewards
from counsel.worlds import make
from counsel.worlds.flappy_bird import next_column

WORLDS = ("flappy-bird/greedy", "flappy-bird/safe", "night-shift")
BUDGET_WORLD = "flappy-bird-budget/greedy"
MARKS = (1_000, 10_000, 100_000)


def main() -> None:
    """Measure and print everything."""
    for part in (table(), speed()):
        for line in part:
            print(line, flush=True)


def settings() -> Iterator[tuple[str, Spec]]:
    """Yield a name and the settings of every run."""
    base = Spec(world=WORLDS[0], algorithm="ucb-ad", episodes=MARKS[-1])
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
            yield f"{algorithm}, scale 0.01", scaled
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


def table() -> Iterator[str]:
    """Run every learner in every world."""
    marks = "".join(f"{f'at {mark:,}':>14}" for mark in MARKS)
    yield f"{'learner':<34}{'world':<28}{marks}{'episodes/s':>14}"
    for name, spec in settings():
        regret, rate = marked(spec)
        shown = "".join(f"{value:>14,.1f}" for value in regret)
        limit = "" if spec.budget is None else f", budget {spec.budget:g}"
        yield f"{name:<34}{spec.world + limit:<28}{shown}{rate:>14,.0f}"


def marked(spec: Spec) -> tuple[list[float], float]:
    """Return the regret at the marks, and the episodes a second once all is compiled."""
    problem = make(spec.world)
    simulator = counsel.Simulator(problem)
    warm, rng = spec.build(problem)
    short = 2 * int(spec.schedule)
    for _ in counsel.learn(warm, simulator, episodes=short, every=spec.schedule, rng=rng):
        pass
    learner, rng = spec.build(problem)
    begin, regret, end, before = time.perf_counter(), [], None, 0
    for mark in MARKS:
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
        regret.append(end.regret)
    return regret, MARKS[-1] / (time.perf_counter() - begin)


def speed() -> Iterator[str]:
    """Time EULER at the paper's scale, UCBVI beside NumPy, and UC-CFH's programme."""
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
    yield verdict("EULER: 11·10⁵ Flappy Bird episodes, every 5000, seconds", spent, 60.0, most=True)
    yield from ucbvi_against_numpy(problem)
    yield from programme()


def ucbvi_against_numpy(problem: counsel.AdviceProblem) -> Iterator[str]:
    """Compare episodes a second of UCBVI planned before each, by turns with plain NumPy."""
    simulator, rates = counsel.Simulator(problem), {"counsel": 0.0, "numpy": 0.0}
    spec = Spec(world="flappy-bird/greedy", algorithm="ucbvi", episodes=2000)
    for _ in range(3):
        learner, rng = spec.build(problem)
        begin = time.perf_counter()
        for _ in counsel.learn(learner, simulator, episodes=2000, records=1, rng=rng):
            pass
        rates["counsel"] = max(rates["counsel"], 2000 / (time.perf_counter() - begin))
        peer = PlainUCBVI(problem, episodes=2000, rng=np.random.default_rng(0))
        begin = time.perf_counter()
        for _ in range(100):
            peer.play(peer.plan())
        rates["numpy"] = max(rates["numpy"], 100 / (time.perf_counter() - begin))
    yield (
        f"UCBVI: {rates['counsel']:,.0f} episodes a second, each policy judged; "
        f"plain NumPy {rates['numpy']:,.0f}, not judged"
    )
    yield verdict("UCBVI: Counsel / plain NumPy", rates["counsel"] / rates["numpy"], 20.0)


class PlainUCBVI:
    """UCBVI with the Bernstein–Freedman bonus as one would write it in NumPy: dense tables."""

    def __init__(
        self, problem: counsel.AdviceProblem, *, episodes: int, rng: np.random.Generator
    ) -> None:
        machine = problem.machine()
        H, S, B = problem.horizon, problem.n_states, problem.n_actions + 1
        self.reward, self.over = machine.reward[0], problem.mdp.over[0]
        self.upto = machine.kernel.to_dense().cumsum(axis=2)
        self.start = int(problem.mdp.start.argmax())
        self.counts, self.Q = np.zeros((H, S, B, S)), np.full((H, S, B), float(H))
        self.log = np.log(5 * H * S * B * episodes * H / 0.1)
        self.rng = rng

    def plan(self) -> np.ndarray:
        """Return the advice [h, s]."""
        (H, S, B, _), L = self.counts.shape, self.log
        advice, V, after = np.empty((H, S), dtype=int), np.zeros(S), np.ones(S)
        for h in reversed(range(H)):
            n = self.counts[h].sum(axis=2)
            N = np.maximum(n, 1)
            p = self.counts[h] / N[..., None]
            mean = p @ V
            variance = np.maximum(p @ V**2 - mean**2, 0)
            cap = np.minimum(1e4 * H**5 * S**2 * B * L**2 / np.maximum(after, 1), H**2)
            onward = p @ cap if h < H - 1 else 0.0
            bonus = np.sqrt(8 * L * variance / N) + 14 * H * L / (3 * N) + np.sqrt(8 * onward / N)
            lowered = np.minimum(self.Q[h], self.reward + mean + bonus)
            self.Q[h] = np.where(n > 0, lowered, H)
            advice[h] = (self.Q[h] + 1e-9 * self.rng.random((S, B))).argmax(axis=1)
            V = np.where(self.over, 0.0, self.Q[h].max(axis=1))
            after = n.sum(axis=1)
        return advice

    def play(self, advice: np.ndarray) -> None:
        """Play one episode and count it."""
        s = self.start
        for h in range(len(advice)):
            b = advice[h, s]
            t = int(np.searchsorted(self.upto[s, b], self.rng.random(), side="right"))
            self.counts[h, s, b, t] += 1
            s = t
            if self.over[s]:
                break


def programme() -> Iterator[str]:
    """Time UC-CFH's linear programme on the budget map, with and without a declared support."""
    problem = make(BUDGET_WORLD)
    for name, support in (("next column and over", next_column(problem)), ("no support", None)):
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
        for _ in range(30):
            begin = time.perf_counter()
            policy = learner.policy
            spent.append(time.perf_counter() - begin)
            learner.update(simulator.play(policy, episodes=50, rng=rng))
        line = f"UC-CFH: one programme on the budget map ({name}), seconds"
        if support is not None:
            slowest = f"{line}, slowest of {len(spent) - 1}"
            yield verdict(slowest, max(spent[1:]), 1.0, most=True)
        yield f"{line}, median {np.median(spent[1:]):.3g}, slowest {max(spent[1:]):.3g}"


if __name__ == "__main__":
    main()
