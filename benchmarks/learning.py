"""How well and how fast learners learn, as ratios in one run on the shipped map.

Run with ``make bench``, or alone with ``python -m benchmarks.learning``. Regret is the sum of exact
value gaps (see ``counsel.learn``). How well: Counsel's own bounds and exploration against the
paper's. How fast: against the same learners in plain NumPy and Python, which nobody judges while
they run; Counsel's times hold the judging of every policy.
"""

import resource
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np

import counsel
from benchmarks import plain
from benchmarks.results import Row, against, alone, record
from counsel import RFE, UCBAD, Structured
from counsel.learning import PaperBonus
from counsel.learning.learner import Learner
from counsel.learning.population import Population
from counsel.worlds import make

BY_ADVICE = [0, 1, 2]
RATE = "episodes/s"
PLAIN = "plain NumPy"
ROAD = "400,000 episodes planned every 8,000"


def main() -> None:
    """Measure, print and write everything."""
    record("learning", chain(quality(), teams(), exploration(), speed()))


def quality() -> Iterator[Row]:
    """Compare the regret of UCB-AD's bounds over 20,000 episodes and 20 seeds, on equal schedules.

    The paper's bonus is made for updates in batches: after early refusals it may never try again,
    so after every episode its mean is that of a few seeds, and the medians are shown beside it.
    """
    for person in ("greedy", "safe"):
        problem = make(f"flappy-bird/{person}")
        setting = problem.without_adherence()
        for every in (1, 1000):
            kl, paper, pooled = (
                regrets(problem, partial(UCBAD, setting, **options), every=every)
                for options in ({}, {"bound": PaperBonus()}, {"groups": BY_ADVICE})
            )
            when = "after every episode" if every == 1 else f"every {every:,} episodes"
            what = f"Policy {person.capitalize()}: regret after 20,000 episodes, planned {when}"
            for name, mine, peer, theirs in (
                ("UCB-AD with KL, not pooled", kl, "the paper's bonus, not pooled", paper),
                ("UCB-AD with KL, pooled by advice", pooled, "not pooled", kl),
            ):
                note = (
                    f"Means of 20 seeds; medians {np.median(mine):.3g} and {np.median(theirs):.3g}."
                )
                means = float(np.mean(mine)), "reward", peer, float(np.mean(theirs))
                least = 10.0 if mine is pooled and every == 1 else None
                yield against(f"{what}, {name}", *means, ratio=least, note=note)


def regrets(
    problem: counsel.AdviceProblem, build: Callable[[], UCBAD], *, every: int
) -> list[float]:
    """Return the regret after 20,000 episodes of each of 20 seeds."""
    simulator, ends = counsel.Simulator(problem), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        *_, last = counsel.learn(
            build(), simulator, episodes=20_000, every=every, records=20, rng=rng
        )
        ends.append(last.regret)
    return ends


def teams() -> Iterator[Row]:
    """Compare the regret of the service's learner on forty people with learners that share nothing.

    Each person of the ward listens to each advice with a lift of their own, drawn from Beta(4, 3).
    They are advised by turns, 60 episodes each; their habit is known to every learner.
    """
    for penalty in (0.05, 0.2):
        totals = np.mean([team_regret(seed, penalty) for seed in range(5)], axis=0)
        optimistic, drawn, apart, one = (float(total) for total in totals)
        what = f"Forty people of the ward, penalty {penalty}: regret of the team"
        note = "Mean of 5 teams, 60 episodes per person."
        for name, ours in (("UCB-AD", optimistic), ("Thompson", drawn)):
            of = f"{what}, Population ({name})"
            yield against(of, ours, "reward", "UCB-AD for each person", apart, note=note)
            yield against(of, ours, "reward", "one UCB-AD for all", one, note=note)


def team_regret(seed: int, penalty: float) -> tuple[float, float, float, float]:
    """Return the regret of two populations, of a learner per person, and of one for all."""
    ward, rng = make("ward"), np.random.default_rng(seed)
    lifts = rng.beta(4.0, 3.0, size=(40, ward.n_actions))
    people = [
        counsel.AdviceProblem(ward.mdp, counsel.Human(ward.policy[0], lift=lift)) for lift in lifts
    ]
    setting, turns = ward.without_adherence(), range(len(people))
    shared = [
        Population(setting, knows_habit=True, algorithm=name) for name in ("ucb-ad", "thompson")
    ]
    one = UCBAD(setting, groups=BY_ADVICE, penalty=penalty)
    teams = [
        *(
            [team.learner(i, penalty=penalty, rng=np.random.default_rng(i)) for i in turns]
            for team in shared
        ),
        [UCBAD(setting, groups=BY_ADVICE, penalty=penalty) for _ in turns],
        [one for _ in turns],
    ]
    first, second, third, fourth = (by_turns(team, people, penalty, seed) for team in teams)
    return first, second, third, fourth


def by_turns(
    learners: Sequence[Learner],
    people: list[counsel.AdviceProblem],
    penalty: float,
    seed: int,
    episodes: int = 60,
) -> float:
    """Advise people by turns, each by their learner, and return the sum of all value gaps."""
    rng, total = np.random.default_rng(seed), 0.0
    best = [counsel.solve(person, penalty=penalty).penalised_value for person in people]
    simulators = [counsel.Simulator(person) for person in people]
    for _ in range(episodes):
        for learner, person, simulator, value in zip(
            learners, people, simulators, best, strict=True
        ):
            policy = learner.policy
            worth = counsel.evaluate(person, policy)
            total += max(value - (worth.value - penalty * worth.advice_count), 0.0)
            learner.update(simulator.play(policy, episodes=1, rng=rng))
    return total


def exploration() -> Iterator[Row]:
    """Compare how soon all penalties are planned well: structured exploration against RFE-β."""
    for person, least in (("greedy", 5.0), ("safe", 2.0)):
        problem = make(f"flappy-bird/{person}")
        known = {"shape": problem.shape, "reward": problem.mdp.reward}
        plain_rfe = settled(problem, partial(RFE, **known, scale=0.1))
        pooled = settled(problem, partial(Structured, **known, groups=BY_ADVICE))
        apart = settled(problem, partial(Structured, **known))
        what = f"Policy {person.capitalize()}: episodes until every penalty is planned well"
        note = "From there on the worst gap over 11 penalties is at most 0.05; mean of 5 seeds."
        for name, mine, asked in (("pooled by advice", pooled, least), ("not pooled", apart, None)):
            ours = f"{what}, structured, {name}"
            yield against(ours, mine, "episodes", "RFE", plain_rfe, ratio=asked, note=note)


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


def speed() -> Iterator[Row]:
    """Time the learners at the paper's scale, one thread."""
    yield from every_episode("night-shift", "Night shift, penalty 0.05", penalty=0.05)
    yield from every_episode("flappy-bird/safe", "Flappy Bird")
    yield from birds()
    yield from cars()


def every_episode(world: str, name: str, *, penalty: float = 0.0) -> Iterator[Row]:
    """Time UCB-AD planned after every episode, and the plain one beside it."""
    problem, rng = make(world), np.random.default_rng
    build = partial(UCBAD, problem.without_adherence(), penalty=penalty)
    peer, played, gaps = 0.0, 500, list[float]()
    for seed in range(3):
        rate, gap = plain_ucb_ad(problem, episodes=played, seed=seed, penalty=penalty)
        peer = max(peer, rate)
        gaps.append(gap)
    simulator, mine = counsel.Simulator(problem), list[float]()
    for seed in range(3):
        *_, end = counsel.learn(build(), simulator, episodes=played, records=1, rng=rng(seed))
        mine.append(end.regret)
    spent = seconds(build(), problem, episodes=800_000, every=1)
    yield against(
        f"{name}: UCB-AD, planned after every episode",
        800_000 / spent,
        RATE,
        PLAIN,
        peer,
        more=True,
        least=100_000.0,
        note=f"Both learn alike: regret after {played} episodes {np.mean(mine):.3g} against "
        f"{np.mean(gaps):.3g}, means of 3 seeds.",
    )


def birds() -> Iterator[Row]:
    """Time learners on Flappy Bird with Policy Safe, and the plain ones beside them."""
    problem, rng = make("flappy-bird/safe"), np.random.default_rng
    spent = seconds(UCBAD(problem.without_adherence()), problem, episodes=800_000, every=5000)
    why = "planned so rarely that it is the speed of simulation"
    what = "Flappy Bird: UCB-AD, 800,000 episodes planned every 5,000"
    yield alone(what, spent, "s", why, most=3.0)
    known = {"shape": problem.shape, "reward": problem.mdp.reward}
    explorer = RFE(rng=rng(0), scale=0.1, **known)
    spent, least = seconds(explorer, problem, episodes=100_000, every=50), 100_000.0
    peer = plain_rfe(problem, episodes=1000, every=50)
    what = "Flappy Bird: RFE, planned every 50 episodes"
    yield against(what, 100_000 / spent, RATE, PLAIN, peer, more=True, least=least)
    explorer = RFE(rng=rng(0), scale=0.1, **known)
    spent = seconds(explorer, problem, episodes=5000, every=1)
    peer = plain_rfe(problem, episodes=100, every=1)
    what = "Flappy Bird: RFE, planned after every episode"
    note = "NumPy updates after every episode, and plans no policy."
    yield against(what, 5000 / spent, RATE, PLAIN, peer, more=True, ratio=10.0, note=note)
    walker = Structured(rng=rng(0), groups=BY_ADVICE, **known)
    spent = seconds(walker, problem, episodes=50_000, every=50)
    why = "the learner is Counsel's own"
    yield alone("Flappy Bird: structured, planned every 50 episodes", 50_000 / spent, RATE, why)


def plain_ucb_ad(
    problem: counsel.AdviceProblem, *, episodes: int, seed: int, penalty: float
) -> tuple[float, float]:
    """Return the episodes per second of UCB-AD in NumPy, planned after each, and its regret."""
    peer, played = plain.PlainUCBAD(problem, seed=seed, penalty=penalty), []
    begin = time.perf_counter()
    for _ in range(episodes):
        advice, _ = peer.plan()
        peer.play(advice)
        played.append(advice)
    rate = episodes / (time.perf_counter() - begin)
    return rate, plain.regret(problem, played, penalty=penalty)


def plain_rfe(problem: counsel.AdviceProblem, *, episodes: int, every: int) -> float:
    """Return the episodes per second of RFE in NumPy on this schedule: the best of 3 tries."""
    rate = 0.0
    for seed in range(3):
        peer, begin = plain.PlainRFE(problem, scale=0.1, seed=seed), time.perf_counter()
        for episode in range(episodes):
            if episode % every == 0:
                peer.look_behind()
            peer.play()
        rate = max(rate, episodes / (time.perf_counter() - begin))
    return rate


def cars() -> Iterator[Row]:
    """Time learners on Car Driving: 59,050 states, updates every 8,000 episodes."""
    road, rng, every = make("car-driving/myopic"), np.random.default_rng, 8000
    mine = theirs = 0.0
    for seed in range(3):
        mine = max(mine, updates(road, every=every, seed=seed))
        theirs = max(theirs, plain_updates(road, every=every, seed=seed))
    yield against(
        "Car Driving: UCB-AD, planned every 8,000 episodes, not judged",
        mine,
        RATE,
        PLAIN,
        theirs,
        more=True,
        note="NumPy plans with scipy's sparse product and plays all episodes of an update at once; "
        "the best of 3 runs of 5 updates.",
    )
    spent = seconds(UCBAD(road.without_adherence()), road, episodes=400_000, every=every)
    why = "the peer does not judge"
    yield alone(f"Car Driving: UCB-AD, {ROAD}", spent, "s", why, most=60.0)
    explorer = RFE(road.shape, rng=rng(0), scale=0.1, reward=road.mdp.reward)
    spent = seconds(explorer, road, episodes=400_000, every=every)
    why = "dense counts of what follows would take a terabyte"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    what = f"Car Driving: RFE, {ROAD}"
    yield alone(what, spent, "s", why, most=60.0)
    what = "Car Driving: RFE, peak memory of the whole process"
    yield alone(what, peak, "GB", why, most=3.0, memory=peak)
    walker = Structured(road.shape, rng=rng(0), groups=BY_ADVICE, reward=road.mdp.reward)
    spent = seconds(walker, road, episodes=400_000, every=every)
    why = "the learner is Counsel's own"
    yield alone(f"Car Driving: structured, {ROAD}", spent, "s", why)


def updates(road: counsel.AdviceProblem, *, every: int, seed: int) -> float:
    """Return the episodes a second of UCB-AD over 5 updates, without judging."""
    simulator, rng = counsel.Simulator(road), np.random.default_rng(seed)
    learner = UCBAD(road.without_adherence())
    begin = time.perf_counter()
    for _ in range(5):
        learner.update(simulator.play(learner.policy, episodes=every, rng=rng))
    return 5 * every / (time.perf_counter() - begin)


def plain_updates(road: counsel.AdviceProblem, *, every: int, seed: int) -> float:
    """Return the episodes a second of UCB-AD in NumPy over 5 updates."""
    peer = plain.PlainUCBAD(road, seed=seed)
    begin = time.perf_counter()
    for _ in range(5):
        peer.play_many(peer.plan()[0], every)
    return 5 * every / (time.perf_counter() - begin)


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
