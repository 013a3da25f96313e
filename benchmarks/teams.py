"""Teams that share a budget, and the average per step, against peers in the same run.

``benchmarks.planning`` measures these rows with its own.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import sparse

import counsel
from benchmarks import peers
from benchmarks.results import Row, against, alone
from benchmarks.timing import race
from counsel._arrays import Floats
from counsel.simulate import TeamPolicy

ARMS = ((4, 42), (4, 1), (10, 42), (10, 1), (30, 42), (30, 1))
"""States and seed of the arms that the peer draws."""

TEAM, ACTIVE, STEPS, EPISODES = 100, 30, 50, 200
"""Arms, how many may be active, steps, and simulated episodes."""


def rows() -> Iterator[Row]:
    """Measure everything about teams, and averages."""
    yield from one_budget()
    yield from limit_per_step()
    yield from against_whittle()
    yield from averages()


def person(seed: int) -> counsel.AdviceProblem:
    """Return a random problem of 20 states, 3 actions and 20 steps."""
    rng = np.random.default_rng(seed)
    mdp = counsel.MDP(rng.dirichlet(np.full(20, 0.3), (20, 3)), rng.random((20, 3)), horizon=20)
    human = counsel.Human(rng.dirichlet(np.ones(3), 20), lift=rng.random((20, 3)))
    return counsel.AdviceProblem(mdp, human)


def one_budget() -> Iterator[Row]:
    """Share a budget: against one LP over all people, and among ten thousand."""
    few, counts = [person(seed) for seed in range(4)], [10, 20, 30, 40]
    peer = team_lp(few, counts, 200.0)
    apart = abs(counsel.share(few, budget=200, counts=counts).value - peer())
    if apart > 1e-6:
        raise AssertionError(f"the LP of a team differs by {apart}")
    calls: dict[str, Callable[[], object]] = {
        "counsel": partial(counsel.share, few, budget=200, counts=counts),
        "HiGHS": peer,
    }
    seconds = race(calls, turns=3, burst=1)
    yield against(
        "A team of 100 people of 4 kinds: share a budget",
        1e3 * seconds["counsel"],
        "ms",
        "HiGHS",
        1e3 * seconds["HiGHS"],
        spread=seconds.spread("HiGHS", "counsel"),
        note="One LP over all people, built beforehand; the values agree.",
    )
    kinds = [person(seed) for seed in range(50)]
    people = [kinds[i % 50] for i in range(10_000)]
    used = processor_seconds(lambda: counsel.share(people, budget=20_000))
    yield alone(
        "10,000 people of 50 kinds: share a budget",
        used,
        "s",
        "no other library shares a budget of advice",
        most=5.0,
    )
    different = [person(seed) for seed in range(10_000)]
    used = processor_seconds(lambda: counsel.share(different, budget=20_000))
    yield alone(
        "10,000 different people of 20 states and 20 steps: share a budget",
        used,
        "s",
        "no other library shares a budget of advice",
        most=60.0,
    )


def processor_seconds(share: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    begin = time.process_time()
    share()
    return time.process_time() - begin


def team_lp(
    people: list[counsel.AdviceProblem], counts: list[int], budget: float
) -> Callable[[], float]:
    """Return one LP over all people: their occupancies, and one budget."""
    parts = []
    for problem in people:
        machine = problem.machine()
        cost = np.ones(machine.reward[0].shape)
        cost[:, -1] = 0.0
        arrays = (machine.kernel.to_sparse(), np.ascontiguousarray(machine.reward[0]), cost)
        parts.append(peers.occupancy_lp(*arrays, machine.horizon, budget))
    scale = np.repeat(np.array(counts, dtype=float), [part.gain.size for part in parts])
    whole = replace(
        parts[0],
        flow=sparse.csc_array(sparse.block_diag([part.flow for part in parts])),
        gain=scale * np.concatenate([part.gain for part in parts]),
        spend=scale * np.concatenate([part.spend for part in parts]),
        inflow=np.concatenate([part.inflow for part in parts]),
    )
    model = peers.highs_model(whole)
    return lambda: peers.highs_answer(peers.highs_run(model, None, 1e-10, "simplex"))[0]


def limit_per_step() -> Iterator[Row]:
    """Measure how far the ranking stays below the bound on the call centre."""
    problem = counsel.make("call-centre")
    for people, calls, most in ((100, 5, 2.0), (1000, 50, 0.5)):
        plan = counsel.share([problem], per_step=calls, counts=[people])
        team = counsel.Team([problem], counts=[people])
        outcome = team.evaluate(plan, episodes=400, rng=np.random.default_rng(0))
        low, high = (100.0 * (1.0 - end / plan.bound) for end in reversed(outcome.interval))
        yield alone(
            f"Call centre, {people:,} mothers, {calls} calls per week: gap to the bound",
            100.0 * (1.0 - outcome.value / plan.bound),
            "%",
            "the bound is the measure",
            most=most,
            note=f"95 % interval {low:.2f} to {high:.2f} %, 400 episodes.",
        )


def arm(transition: Floats, reward: Floats, horizon: int) -> counsel.Frontier:
    """Return a person who does what is advised and is passive alone; only activity is advised."""
    S = len(transition)
    mdp = counsel.MDP(transition, reward, horizon=horizon, start=np.full(S, 1.0 / S))
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.tile([1.0, 0.0], (S, 1)), 1.0))
    forbidden = np.tile([True, False], (horizon, S, 1))
    return counsel.frontier(problem, max_vertices=2, forbidden=forbidden)


def whittle(passive: Floats, active: Floats, reward0: Floats, reward1: Floats) -> Floats:
    """Return the indices of an arm by the peer, which keeps them with its model."""
    import markovianbandit

    arms = markovianbandit.restless_bandit_from_P0P1_R0R1(passive, active, reward0, reward1)
    index: Floats = arms.whittle_indices()
    return index


def against_whittle() -> Iterator[Row]:
    """Compare rankings with Whittle's index in the same simulation, and how long both take."""
    import markovianbandit

    least, ours_s, theirs_s = np.inf, 0.0, 0.0
    for states, seed in ARMS:
        model = markovianbandit.random_restless(dim=states, seed=seed)
        passive, active, reward0, reward1 = model.get_P0P1R0R1()
        person = arm(
            np.stack((passive, active), axis=1), np.stack((reward0, reward1), axis=1), STEPS
        )
        calls: dict[str, Callable[[], object]] = {
            "counsel": partial(counsel.share, [person], per_step=ACTIVE, counts=[TEAM]),
            "whittle": partial(whittle, passive, active, reward0, reward1),
        }
        seconds = race(calls, turns=2, burst=1)
        ours_s, theirs_s = ours_s + seconds["counsel"], theirs_s + seconds["whittle"]
        index = np.maximum(whittle(passive, active, reward0, reward1), 0.0)
        shape = (STEPS, states)
        ranking = TeamPolicy(
            ACTIVE, advice=[np.ones(shape, dtype=int)], priority=[np.broadcast_to(index, shape)]
        )
        plan = counsel.share([person], per_step=ACTIVE, counts=[TEAM])
        team = counsel.Team([person.problem], counts=[TEAM])
        ours, theirs = (
            team.evaluate(policy, episodes=EPISODES, rng=np.random.default_rng(1))
            for policy in (plan, ranking)
        )
        more = ours.rewards - theirs.rewards
        error = 1.96 * float(more.std()) / EPISODES**0.5
        least = min(least, 100.0 * (float(more.mean()) + error) / theirs.value)
    yield alone(
        f"{len(ARMS)} restless bandits: what the ranking earns beyond Whittle's index, at worst",
        least,
        "%",
        "both are played in the same simulation, with the same luck",
        least=0.0,
        note="The upper end of the 95 % interval of the difference, for the worst bandit; "
        "below 0 the ranking would be worse.",
    )
    yield against(
        f"{len(ARMS)} restless bandits: prices of {STEPS} steps, and the bound",
        1e3 * ours_s,
        "ms",
        "markovianbandit-pkg",
        1e3 * theirs_s,
        ratio=1.0,
        note="The peer computes one index per state for work without end, and no bound.",
    )


def averages() -> Iterator[Row]:
    """Compare plans by their average per step with relative value iteration."""
    from mdptoolbox.mdp import RelativeValueIteration

    problem = counsel.make("inventory", shelves=60, demand=20.0).without_end(average=True)
    machine = problem.machine()
    S, K = machine.reward[0].shape
    allowed = machine.allowed[0]
    moves = machine.kernel.to_dense().reshape(S, K, S)
    moves = np.where(allowed[:, :, None], moves, np.eye(S)[:, None])
    net = np.where(allowed, machine.reward[0], -1e6)
    plan = counsel.solve(problem)

    def peer() -> float:
        theirs = RelativeValueIteration(moves.swapaxes(0, 1), net, epsilon=1e-9, max_iter=10**6)
        theirs.run()
        return float(theirs.average_reward)

    apart = abs(peer() - plan.value)
    if apart > 1e-6:
        raise AssertionError(f"the average per step differs by {apart}")
    calls: dict[str, Callable[[], object]] = {
        "counsel": lambda: counsel.solve(problem).policy,
        "mdptoolbox": peer,
    }
    seconds = race(calls, turns=3, burst=1)
    yield against(
        "Inventory of 61 states: the best average per step",
        1e3 * seconds["counsel"],
        "ms",
        "pymdptoolbox",
        1e3 * seconds["mdptoolbox"],
        spread=seconds.spread("mdptoolbox", "counsel"),
        note=f"Error at most {plan.error:.0e}; the peer stops at 1e-9 and bounds nothing.",
    )
