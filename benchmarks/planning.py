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
from benchmarks import peers, problems, teams
from benchmarks.results import Row, against, alone, record
from benchmarks.timing import Spread, race
from counsel._arrays import Floats, Ints
from counsel._jit import cores, kernel
from counsel.planning._backward_kernels import expect_far_row
from counsel.worlds import make

VALUES_ONLY = "Scipy has one thread and finds values only, no policy."
STORM = "Storm finds values only, no policy."
START = "one plan from the start"
EVERY = "one plan in every cell"
REACHED = "The peer plans every cell."
MILLION = "A million states"
CACHE = "Depends on the cache: the values of a million states take 8 MB."
SIZES = (100_000, 300_000, 1_000_000, 3_000_000)


def main() -> None:
    """Measure, print and write everything."""
    packages = ("quantecon", "stormpy", "pymdptoolbox", "highspy", "scipy", "markovianbandit-pkg")
    rows = chain(small(), middle(), levels(), large(), endless(), teams.rows(), growth())
    record("planning", rows, packages=packages)


def small() -> Iterator[Row]:
    """Compare on Flappy Bird with Policy Safe: 141 states, 3 actions, 20 steps."""
    problem = make("flappy-bird/safe")
    asked = {"quantecon": 4.0, "storm": 1.0}
    yield from against_planners("Flappy Bird", problem, asked, turns=40, burst=50)
    yield from against_lp(problem)


def middle() -> Iterator[Row]:
    """Compare on Car Driving: 59,050 states, 3 actions, 27 successors, 10 steps."""
    problem = make("car-driving/myopic")
    asked = {"quantecon": 12.0, "storm": 1.0}
    yield from against_planners("Car Driving", problem, asked, turns=7, burst=1)
    if not counsel.criticality(problem).exact:
        raise AssertionError("Car Driving: the criticality is not exact")
    seconds = race({"criticality": partial(counsel.criticality, problem)}, turns=3, burst=1)
    yield alone(
        "Car Driving: criticality of every cell, all cores",
        seconds["criticality"],
        "s",
        "no other library computes it",
        most=1.5,
        note="Exact: no grid of penalties.",
    )


def against_planners(
    name: str, problem: counsel.AdviceProblem, asked: dict[str, float], *, turns: int, burst: int
) -> Iterator[Row]:
    """Race ``solve`` against other planners on the machine MDP, and check the values.

    ``solve`` plans the cells that can occur from the start; the plan in every cell is computed when
    the policy is asked for. Both are raced.
    """
    machine = problem.machine()
    arrays = (machine.kernel.to_sparse(), np.ascontiguousarray(machine.reward[0]), machine.horizon)
    calls: dict[str, Callable[[], object]] = {
        START: partial(counsel.solve, problem, threads=1),
        EVERY: lambda: counsel.solve(problem, threads=1).policy,
        "all cores": lambda: counsel.solve(problem).policy,
        "quantecon": peers.quantecon_plan(*arrays),
        "storm": peers.storm_plan(*arrays),
        "scipy": peers.scipy_plan(*arrays),
    }
    opponents = [("QuantEcon", "quantecon", ""), ("Storm", "storm", STORM)]
    if problem.n_states < 1000:
        calls["mdptoolbox"] = peers.mdptoolbox_plan(*arrays)
        opponents.append(("pymdptoolbox", "mdptoolbox", ""))
    opponents.append(("scipy", "scipy", VALUES_ONLY))
    ours = counsel.solve(problem).values[0]
    for _, key, _ in opponents:
        gap = float(np.abs(ours - calls[key]()).max())  # type: ignore[operator]
        if gap > 1e-9:
            raise AssertionError(f"{name}: {key} differs by {gap}")
    seconds = race(calls, turns=turns, burst=burst)
    for what, scope in ((START, REACHED), (EVERY, "")):
        for peer, key, remark in opponents:
            yield against(
                f"{name}: {what}, one thread",
                1e3 * seconds[what],
                "ms",
                peer,
                1e3 * seconds[key],
                ratio=asked.get(key),
                spread=seconds.spread(key, what),
                note=f"{scope} {remark}".strip(),
            )
    yield against(
        f"{name}: {EVERY}, all cores",
        1e3 * seconds["all cores"],
        "ms",
        "QuantEcon",
        1e3 * seconds["quantecon"],
        spread=seconds.spread("quantecon", "all cores"),
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
        ratio=5.0,
        spread=seconds.spread("lp", "frontier"),
        note=f"{len(front.vertices)} vertices of the frontier against one linear programme.",
    )
    yield alone(
        "Flappy Bird: largest difference to the linear programme at 20 budgets",
        gap,
        "reward",
        "a check that both answers are the same",
        most=1e-8,
    )


def levels() -> Iterator[Row]:
    """Compare plans for people with a memory of M levels with M plans for people without one."""
    memories = {
        "pieces(5)": counsel.Memory.pieces(5),
        "since(3)": counsel.Memory.since(3),
        "dose(0.6, 6)": counsel.Memory.dose(0.6, 6),
        "refusals(3)": counsel.Memory.refusals(3),
        "pieces(2) × since(2)": counsel.Memory.pieces(2) * counsel.Memory.since(2),
    }
    for world, turns, burst in (("flappy-bird/safe", 20, 20), ("car-driving/myopic", 5, 1)):
        plain = make(world)
        people = {
            name: plain.human.with_memory(memory, fading=np.linspace(1.0, 0.4, memory.n_levels))
            for name, memory in memories.items()
        }
        problems_by_name = {"none": plain} | {
            name: counsel.AdviceProblem(plain.mdp, person) for name, person in people.items()
        }
        for penalty in (0.0, 0.05):
            calls: dict[str, Callable[[], object]] = {
                name: partial(plan_every_cell, problem, penalty)
                for name, problem in problems_by_name.items()
            }
            seconds = race(calls, turns=turns, burst=burst)
            for name, memory in memories.items():
                M, spread = memory.n_levels, seconds.spread(name, "none")
                yield alone(
                    f"{world}: a plan for {name} at penalty {penalty:g} / {M} plans without",
                    seconds[name] / seconds["none"] / M,
                    "times",
                    "a plan without a memory is the measure",
                    most=1.2,
                    spread=Spread(*(ratio / M for ratio in spread)),
                    note="In every cell, one thread.",
                )


def large() -> Iterator[Row]:
    """Compare on a million states: scipy on the machine kernel, the wall, and memory."""
    problem = problems.random_sparse()
    yield peak_memory(problem)
    machine, threads = problem.machine(), cores()
    arrays = (machine.kernel.to_sparse(), np.ascontiguousarray(machine.reward[0]), problem.horizon)
    calls: dict[str, Callable[[], object]] = {"scipy": peers.scipy_plan(*arrays)}
    for count in sorted({1, threads}):
        calls[f"counsel {count}"] = lambda n=count: counsel.solve(problem, threads=n).policy
        calls[f"wall {count}"] = partial(wall, problem, count)
    seconds = race(calls, turns=3, burst=1)
    for name, count, least in (("one thread", 1, 4.0), ("all cores", threads, 7.0)):
        yield against(
            f"{MILLION}: {EVERY}, {name}",
            seconds[f"counsel {count}"],
            "s",
            "scipy",
            seconds["scipy"],
            ratio=least,
            spread=seconds.spread("scipy", f"counsel {count}"),
            note=f"{VALUES_ONLY} {CACHE}",
        )
    for name, count in (("one thread", 1), ("all cores", threads)):
        yield alone(
            f"{MILLION}: {EVERY} / reading the kernel and gathering values, {name}",
            seconds[f"counsel {count}"] / seconds[f"wall {count}"],
            "times",
            "a floor of the machine: the same loop without decisions",
            most=1.5,
            spread=seconds.spread(f"counsel {count}", f"wall {count}"),
            note=f"The floor takes {seconds[f'wall {count}']:.3g} s. {CACHE}",
        )


def endless() -> Iterator[Row]:
    """Compare work without end on Car Driving and on a random world of a million states."""
    cars, many = make("car-driving/myopic"), problems.random_sparse(1_000_000)
    for name, world, turns in (("Car Driving", cars, 5), (MILLION, many, 3)):
        problem = world.without_end(0.95)
        plan = counsel.solve(problem, penalty=0.02)
        machine = problem.machine()
        reward = machine.reward[0].copy()
        reward[:, :-1] -= 0.02
        peer = peers.quantecon_endless(machine.kernel.to_sparse(), reward, 0.95, plan.error)
        gap = float(np.abs(plan.values[0] - peer()).max())
        if gap > 2.0 * plan.error:
            raise AssertionError(f"work without end: QuantEcon differs by {gap}")
        calls: dict[str, Callable[[], object]] = {
            "counsel": lambda: counsel.solve(problem, penalty=0.02).policy,  # noqa: B023
            "quantecon": peer,
        }
        seconds = race(calls, turns=turns, burst=1)
        yield against(
            f"{name}: one plan without end in every state, all cores",
            1e3 * seconds["counsel"],
            "ms",
            "QuantEcon",
            1e3 * seconds["quantecon"],
            ratio=5.0,
            spread=seconds.spread("quantecon", "counsel"),
            note=f"Discount 0.95, both to an error of {plan.error:.0e}. QuantEcon's best method "
            "here: modified policy iteration.",
        )


def peak_memory(problem: counsel.AdviceProblem) -> Row:
    """Compare the peak memory of a plan in every cell with what must be in memory."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    plan = counsel.solve(problem)
    policy, values = plan.policy, plan.values
    extra = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    base = problem.mdp.kernel.nbytes
    return alone(
        f"{MILLION}: peak memory / (kernel + values + policy)",
        (base + extra) / (base + values.nbytes + policy.advice.nbytes),
        "times",
        "what must be in memory is the measure",
        most=1.2,
        note=f"The kernel has {base / 1e6:.0f} MB; planning adds {extra / 1e6:.0f} MB.",
    )


def growth() -> Iterator[Row]:
    """Compare the time per stored probability from a hundred thousand to three million states."""
    calls, stored = dict[str, Callable[[], object]](), dict[str, int]()
    for states in SIZES:
        problem = problems.random_sparse(states)
        stored[f"{states:,}"] = problem.mdp.kernel.probability.size * problem.horizon
        calls[f"{states:,}"] = partial(plan_every_cell, problem)
    seconds = race(calls, turns=2, burst=1)
    each = {size: 1e9 * seconds[size] / stored[size] for size in calls}
    told = ", ".join(f"{value:.2f} ns at {size}" for size, value in each.items())
    yield alone(
        "100,000 to 3,000,000 states: slowest / fastest time per stored probability, one thread",
        max(each.values()) / min(each.values()),
        "times",
        "growth is asked of Counsel alone",
        most=2.0,
        note=f"{told} states. Depends on the cache: the values take 0.8 to 24 MB.",
    )


def plan_every_cell(problem: counsel.AdviceProblem, penalty: float = 0.0) -> counsel.Policy:
    """Plan every cell on one thread."""
    return counsel.solve(problem, penalty=penalty, threads=1).policy


def wall(problem: counsel.AdviceProblem, threads: int) -> None:
    """Read the kernel's arrays and gather V once for each step, without deciding anything."""
    stored = problem.mdp.kernel
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
    """Sum p · V over a run of rows, with the same prefetching as a plan.

    Each row has its own sum, as in a plan: in one long sum every addition waits for the one before.
    """
    total = 0.0
    for i in range(row, end):
        total += expect_far_row(next_state, probability, indptr[i], indptr[i + 1], V_s)
    return total


if __name__ == "__main__":
    main()
