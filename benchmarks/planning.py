"""How fast plans are made, as ratios against peers in the same run.

Run with ``make bench``. Each line states what was asked, what was measured, and whether it holds.
"""

import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

import counsel
from benchmarks import peers, problems
from benchmarks.timing import race, verdict
from counsel._arrays import Floats, Ints
from counsel._jit import cores, kernel
from counsel.worlds import make


def main() -> None:
    """Measure and print everything."""
    for line in (*small(), *middle(), *large()):
        print(line, flush=True)


def small() -> Iterator[str]:
    """Compare on Flappy Bird with Policy Safe: 141 states, 3 actions, 20 steps."""
    problem = make("flappy-bird/safe")
    yield from against_planners("Flappy Bird", problem, turns=40, burst=50)
    yield from against_lp(problem)


def middle() -> Iterator[str]:
    """Compare on Car Driving: 59,050 states, 3 actions, 27 successors, 10 steps."""
    yield from against_planners("Car Driving", make("car-driving/myopic"), turns=7, burst=1)


def against_planners(
    name: str, problem: counsel.AdviceProblem, *, turns: int, burst: int
) -> Iterator[str]:
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
    for call, spent in seconds.items():
        yield f"{name}: {call} {1e3 * spent:.3f} ms"
    mine = seconds["counsel"]
    yield verdict(f"{name}: QuantEcon / Counsel, one thread each", seconds["quantecon"] / mine, 5.0)
    yield verdict(f"{name}: Storm / Counsel, one thread each", seconds["storm"] / mine, 1.0)
    faster = seconds["quantecon"] / seconds["counsel, all cores"]
    yield f"{name}: QuantEcon / Counsel on {cores()} cores: {faster:.1f}"


def against_lp(problem: counsel.AdviceProblem) -> Iterator[str]:
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
    count = len(front.vertices)
    yield f"Frontier: {count} vertices in {1e3 * seconds['frontier']:.2f} ms"
    yield f"Frontier: one LP in {1e3 * seconds['lp']:.2f} ms"
    yield verdict("Frontier: one LP / whole frontier", seconds["lp"] / seconds["frontier"], 1.0)
    yield verdict("Frontier: largest difference to the LP at 20 budgets", gap, 1e-8, most=True)


def large() -> Iterator[str]:
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
    yield f"Million states: kernel {base / 1e6:.0f} MB, planning adds {extra / 1e6:.0f} MB"
    yield verdict("Million states: peak memory / (kernel + values + policy)", share, 1.2, most=True)
    calls = {
        "counsel, one thread": partial(counsel.solve, problem, threads=1),
        "counsel": solve,
        "wall": partial(wall, problem),
    }
    seconds = race(calls, turns=3, burst=1)
    machine = problem.machine()
    arrays = (machine.kernel.to_sparse(), np.ascontiguousarray(machine.reward[0]), H)
    # Each ratio comes from its own race, by turns and with equal tries.
    beside = race({"scipy": peers.scipy_plan(*arrays), "counsel": solve}, turns=3, burst=1)
    for call, spent in (*seconds.items(), *((f"{k}, beside scipy", v) for k, v in beside.items())):
        yield f"Million states: {call} {spent:.2f} s"
    yield verdict("Million states: scipy / Counsel", beside["scipy"] / beside["counsel"], 4.0)
    yield verdict(
        "Million states: Counsel / wall, all cores",
        seconds["counsel"] / seconds["wall"],
        1.5,
        most=True,
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
