"""How fast plans are made, as ratios against peers in the same run.

Run with ``make bench``, or alone with ``python -m benchmarks.planning``. Each line states what was
measured and, where something was asked, whether it holds.
"""

import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain

import numpy as np

import counsel
from benchmarks import peers, problems
from benchmarks.results import Row, against, alone, record
from benchmarks.timing import race
from counsel._arrays import Floats, Ints
from counsel._jit import cores, kernel
from counsel.worlds import make

VALUES_ONLY = "Scipy has one thread and finds values only, no policy."


def main() -> None:
    """Measure, print and write everything."""
    packages = ("quantecon", "stormpy", "highspy", "scipy")
    record("planning", chain(small(), middle(), large()), packages=packages)


def small() -> Iterator[Row]:
    """Compare on Flappy Bird with Policy Safe: 141 states, 3 actions, 20 steps."""
    problem = make("flappy-bird/safe")
    yield from against_planners("Flappy Bird", problem, turns=40, burst=50)
    yield from against_lp(problem)


def middle() -> Iterator[Row]:
    """Compare on Car Driving: 59,050 states, 3 actions, 27 successors, 10 steps."""
    yield from against_planners("Car Driving", make("car-driving/myopic"), turns=7, burst=1)


def against_planners(
    name: str, problem: counsel.AdviceProblem, *, turns: int, burst: int
) -> Iterator[Row]:
    """Race ``solve`` against QuantEcon and Storm on the machine MDP, and check the values."""
    machine = problem.machine()
    arrays = (machine.kernel.to_sparse(), np.ascontiguousarray(machine.reward[0]), machine.horizon)
    calls: dict[str, Callable[[], object]] = {
        "counsel": partial(counsel.solve, problem, threads=1),
        "counsel, all cores": partial(counsel.solve, problem),
        "quantecon": peers.quantecon_plan(*arrays),
        "storm": peers.storm_plan(*arrays),
        "scipy": peers.scipy_plan(*arrays),
    }
    ours = counsel.solve(problem).values[0]
    for peer in ("quantecon", "storm"):
        gap = float(np.abs(ours - calls[peer]()).max())  # type: ignore[operator]
        if gap > 1e-9:
            raise AssertionError(f"{name}: {peer} differs by {gap}")
    seconds = race(calls, turns=turns, burst=burst)
    mine, what = 1e3 * seconds["counsel"], f"{name}: one plan, one thread"
    for peer, key, least in (("QuantEcon", "quantecon", 5.0), ("Storm", "storm", 1.0)):
        yield against(what, mine, "ms", peer, 1e3 * seconds[key], ratio=least)
    yield against(what, mine, "ms", "scipy", 1e3 * seconds["scipy"], note=VALUES_ONLY)
    yield against(
        f"{name}: one plan, {cores()} cores",
        1e3 * seconds["counsel, all cores"],
        "ms",
        "QuantEcon",
        1e3 * seconds["quantecon"],
    )


def against_lp(problem: counsel.AdviceProblem) -> Iterator[Row]:
    """Race the whole frontier against one LP, and compare values at 20 budgets."""
    machine = problem.machine()
    matrix, reward = machine.kernel.to_sparse(), np.ascontiguousarray(machine.reward[0])
    start = int(machine.start.argmax())
    order = np.arange(problem.n_states)
    order[[0, start]] = order[[start, 0]]
    rows = peers.action_rows(order, machine.n_actions)
    matrix, reward = matrix[rows][:, order], reward[order]
    cost = np.ones_like(reward)
    cost[:, problem.defer] = 0.0
    front = counsel.frontier(problem)
    budgets = np.linspace(0.0, front.vertices[-1].advice_count, 20)
    lps = [peers.highs_budget_lp(matrix, reward, cost, machine.horizon, D) for D in budgets]
    gap = max(abs(lp()[0] - front.at_budget(D).value) for lp, D in zip(lps, budgets, strict=True))
    seconds = race(
        {"frontier": partial(counsel.frontier, problem), "lp": lps[10]}, turns=10, burst=5
    )
    yield against(
        "Flappy Bird: all budgets and penalties at once",
        1e3 * seconds["frontier"],
        "ms",
        "HiGHS, one budget",
        1e3 * seconds["lp"],
        ratio=1.0,
        note=f"{len(front.vertices)} vertices of the frontier against one linear programme.",
    )
    yield alone(
        "Flappy Bird: largest difference to the linear programme at 20 budgets",
        gap,
        "reward",
        "a check that both answers are the same",
        most=1e-8,
    )


def large() -> Iterator[Row]:
    """Compare on a million states: scipy on the machine kernel, the wall, and memory."""
    problem = problems.random_sparse()
    H, S = problem.horizon, problem.n_states
    solve = partial(counsel.solve, problem)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    plan = solve()
    extra = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    base = problem.mdp.kernel.nbytes
    share = (base + extra) / (base + plan.values.nbytes + H * S * plan.policy.advice.itemsize)
    yield alone(
        "A million states: peak memory / (kernel + values + policy)",
        share,
        "times",
        "what must be in memory is the measure",
        most=1.2,
        note=f"The kernel has {base / 1e6:.0f} MB; planning adds {extra / 1e6:.0f} MB.",
    )
    # Each ratio comes from its own race, by turns and with equal tries.
    floor = race({"counsel": solve, "wall": partial(wall, problem)}, turns=2, burst=1)
    machine = problem.machine()
    arrays = (machine.kernel.to_sparse(), np.ascontiguousarray(machine.reward[0]), H)
    calls: dict[str, Callable[[], object]] = {
        "scipy": peers.scipy_plan(*arrays),
        "counsel, one thread": partial(counsel.solve, problem, threads=1),
        "counsel": solve,
    }
    seconds = race(calls, turns=2, burst=1)
    what, theirs = "A million states: one plan", seconds["scipy"]
    mine = seconds["counsel"]
    yield against(
        f"{what}, {cores()} cores", mine, "s", "scipy", theirs, ratio=4.0, note=VALUES_ONLY
    )
    mine = seconds["counsel, one thread"]
    yield against(f"{what}, one thread", mine, "s", "scipy", theirs, note=VALUES_ONLY)
    yield alone(
        "A million states: one plan / reading the kernel and gathering values",
        floor["counsel"] / floor["wall"],
        "times",
        "a floor of the machine: nothing is faster",
        most=1.5,
    )


def wall(problem: counsel.AdviceProblem) -> None:
    """Read the kernel's arrays and gather V once for each step, on all cores: nothing is faster."""
    stored, threads = problem.mdp.kernel, cores()
    V_s = np.linspace(0.0, 1.0, problem.n_states)
    cuts = np.linspace(0, stored.n_rows, threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as executor:
        for _ in range(problem.horizon):
            jobs = [
                executor.submit(
                    gather,
                    stored.indptr,
                    stored.next_state,
                    stored.probability,
                    V_s,
                    *cuts[i : i + 2],
                )
                for i in range(threads)
            ]
            for job in jobs:
                job.result()


@kernel
def gather(
    indptr: Ints, next_state: Ints, probability: Floats, V_s: Floats, row: int, end: int
) -> float:
    """Sum p · V over a run of rows."""
    total = 0.0
    for i in range(row, end):
        for j in range(indptr[i], indptr[i + 1]):
            total += probability[j] * V_s[next_state[j]]
    return total


if __name__ == "__main__":
    main()
