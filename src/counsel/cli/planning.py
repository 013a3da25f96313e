"""Commands for known problems: solve, frontier, explain, worlds, play-out."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counsel.cli import options
from counsel.cli.app import app, read_problem, waiting
from counsel.errors import CounselError

if TYPE_CHECKING:
    import counsel
    from counsel.model.policy import Policy
    from counsel.model.problem import AdviceProblem


@app.command()
def solve(  # noqa: PLR0913 (one argument for each option)
    source: options.Source,
    *,
    penalty: options.Penalties = None,
    budget: options.Budget = None,
    hard: options.Hard = False,
    discount: options.Discount = None,
    average: options.Average = False,
    cost: options.Cost = None,
    allow_reverse: options.Reverse = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="POLICY", help="Write the policy (.csv, .parquet or .npz)."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Find the best advice: without a limit, at a penalty, or within a budget."""
    import counsel
    from counsel.cli import planning_output as printing
    from counsel.cli.console import print_json

    options.check_output(output, ".csv", ".parquet", ".npz")
    problem = read_problem(source, options.read_costs(cost), discount, average=average)
    penalties = options.read_penalties(penalty)
    plan = counsel.solve(
        problem, penalty=penalties, budget=budget, hard=hard, allow_reverse=allow_reverse
    )
    if output is not None:
        counsel.save_policy(plan.policy, output, problem=problem)
    if as_json:
        print_json(printing.plan_record(problem, plan, output))
        return
    printing.print_plan(problem, plan, reverse_left_out=not allow_reverse)
    typed = options.planning_options(penalties, budget, hard=hard, allow_reverse=allow_reverse)
    typed += options.without_end(discount, average=average) + _typed_cost(cost)
    if output is None:
        typer.echo(f"Next: counsel solve {shlex.quote(source)}{typed} -o policy.csv")
        return
    typer.echo(f"Wrote {output}.")
    state = _first_state(problem)
    step = "" if problem.discount is not None else " --step 0"
    typer.echo(f"Next: counsel explain {shlex.quote(source)}{typed}{step} --state {state}")


@app.command()
def frontier(  # noqa: PLR0913 (one argument for each option)
    source: options.Source,
    *,
    max_vertices: Annotated[
        int, typer.Option(help="Largest number of vertices; the rest is bounded.")
    ] = 1000,
    discount: options.Discount = None,
    average: options.Average = False,
    cost: options.Cost = None,
    allow_reverse: options.Reverse = False,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="FILE", help="Write the vertices (.csv).")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Trace what every number of pieces of advice per episode is worth."""
    import counsel
    from counsel.cli import planning_output as printing
    from counsel.cli.console import print_json

    options.check_output(output, ".csv")
    problem = read_problem(source, options.read_costs(cost), discount, average=average)
    with waiting(f"Tracing up to {max_vertices} vertices (fewer with --max-vertices)"):
        front = counsel.frontier(problem, max_vertices=max_vertices, allow_reverse=allow_reverse)
    if output is not None:
        from counsel._files import write_text

        write_text(output, printing.frontier_csv(front))
    if as_json:
        print_json(printing.frontier_record(front))
        return
    printing.print_frontier(front)
    if output is not None:
        typer.echo(f"Wrote {output}.")
    typed = options.without_end(discount, average=average)
    budget = f"{0.5 * front.vertices[-1].advice_cost:.2g}" if problem.average else "2"
    again = f"{shlex.quote(source)} --budget {budget}{typed}{_typed_cost(cost)}"
    typer.echo(f"Next: counsel solve {again}")


@app.command()
def explain(  # noqa: PLR0913 (one argument for each option)
    source: options.Source,
    *,
    step: Annotated[
        int | None, typer.Option(help="Step, counted from 0. Not for work without end.")
    ] = None,
    state: Annotated[str, typer.Option(help="Number or label of the state.")],
    penalty: options.Penalties = None,
    budget: options.Budget = None,
    hard: options.Hard = False,
    discount: options.Discount = None,
    average: options.Average = False,
    cost: options.Cost = None,
    allow_reverse: options.Reverse = False,
    pieces_left: Annotated[
        int | None, typer.Option(help="Pieces left under a hard budget. Default: all.")
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(help="Number or label of the level of the memory. Default: the start."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Explain why the plan advises, or stays silent, at one step in one state."""
    import counsel
    from counsel.cli import planning_output as printing
    from counsel.cli.console import print_json

    problem = read_problem(source, options.read_costs(cost), discount, average=average)
    penalties = options.read_penalties(penalty)
    plan = counsel.solve(
        problem, penalty=penalties, budget=budget, hard=hard, allow_reverse=allow_reverse
    )
    explanation = counsel.explain(
        problem, plan, step=step, state=state, pieces_left=pieces_left, level=level
    )
    if as_json:
        print_json(printing.explanation_record(explanation))
        return
    typer.echo(explanation.sentence)
    printing.print_explanation(explanation)


@app.command()
def worlds(*, as_json: options.Json = False) -> None:
    """List the worlds that can be named instead of a problem file."""
    import counsel.worlds
    from counsel.cli import planning_output as printing
    from counsel.cli.console import print_json

    catalogue = counsel.worlds.list_worlds()
    if as_json:
        print_json(printing.worlds_record(catalogue))
        return
    printing.print_worlds(catalogue)
    typer.echo("Next: counsel play-out flappy-bird/safe --policy best")


@app.command()
def play_out(  # noqa: PLR0913 (one argument for each option)
    source: options.Source,
    *,
    policy: Annotated[
        str,
        typer.Option(help="A policy file (.npz), or best (the best advice), or never (silence)."),
    ] = "best",
    penalty: options.Penalties = None,
    budget: options.Budget = None,
    hard: options.Hard = False,
    cost: options.Cost = None,
    random_rewards: options.RandomRewards = False,
    allow_reverse: options.Reverse = False,
    episodes: Annotated[int, typer.Option(help="Number of episodes.")] = 1000,
    seed: options.Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="LOG", help="Write every decision (.csv or .parquet)."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Simulate episodes with a person and measure what the advice is worth."""
    import numpy as np

    import counsel
    from counsel._arrays import whole
    from counsel.cli import planning_output as printing
    from counsel.cli.console import print_json, progress
    from counsel.simulate.episodes import EpisodeSummary

    options.check_output(output, ".csv", ".parquet")
    whole("--episodes", episodes, least=1)
    problem = read_problem(source, options.read_costs(cost))
    if random_rewards:
        problem = problem.with_random_rewards()
    penalties = options.read_penalties(penalty)
    limit = {"penalty": penalties, "budget": budget, "hard": hard, "allow_reverse": allow_reverse}
    chosen = _policy(problem, policy, **limit)
    simulator = counsel.Simulator(problem)
    played = EpisodeSummary(problem)
    rng = np.random.default_rng(seed)
    with progress("Playing", episodes) as advance:

        def batches() -> "Iterator[counsel.simulate.Episodes]":
            most = max(1, 200_000 // problem.horizon)
            for first in range(0, episodes, most):
                batch = simulator.play(chosen, episodes=min(most, episodes - first), rng=rng)
                played.add(batch)
                advance(len(batch), f"mean reward {played.reward.mean:.5g}")
                yield batch

        if output is None:
            for _ in batches():
                pass
        else:
            counsel.save_log(batches(), output, problem=problem, person=source)
    # Played episodes end early; so must the policy whose exact value stands beside them.
    exact = counsel.evaluate(problem, chosen.silent_where(problem.mdp.over))
    if as_json:
        settings = {"problem": source, "policy": policy, "seed": seed, "penalty": penalties}
        settings |= {"budget": budget, "hard": hard, "written": output and str(output)}
        print_json(settings | printing.play_out_record(played, exact))
        return
    printing.print_play_out(played, exact)
    if output is not None:
        typer.echo(f"Wrote {output}.")
        typer.echo(f"Next: counsel frontier {shlex.quote(source)}{_typed_cost(cost)}")
        return
    again = f"counsel play-out {shlex.quote(source)} --policy {shlex.quote(policy)}"
    again += options.planning_options(penalties, budget, hard=hard, allow_reverse=allow_reverse)
    again += _typed_cost(cost) + (" --random-rewards" if random_rewards else "")
    typer.echo(f"Next: {again} --episodes {episodes} --seed {seed} -o log.csv")


def _typed_cost(cost: str | None) -> str:
    return "" if cost is None else f" --cost {shlex.quote(cost)}"


def _policy(problem: "AdviceProblem", name: str, **limit: Any) -> "Policy":  # noqa: ANN401
    """Return the policy of this name or from this file; ``limit`` holds the options of solve."""
    import counsel
    from counsel._tables import TABLES
    from counsel.planning.reference_policies import never_advise

    if name == "best":
        return counsel.solve(problem, **limit).policy
    if any(value not in (None, False) for value in limit.values()):
        raise CounselError(
            "--penalty, --budget, --hard and --allow-reverse go with --policy best, "
            f"not with {name}"
        )
    if name == "never":
        return never_advise(problem)
    if not name.endswith((".npz", *TABLES)):
        raise CounselError(f"--policy is {name!r}; give best, never, or a policy file (.npz)")
    return counsel.load_policy(name)


def _first_state(problem: "AdviceProblem") -> str:
    """Return the likeliest first state as a user would type it."""
    state = int(problem.mdp.start.argmax())
    return shlex.quote(problem.mdp.state_labels[state]) if problem.mdp.state_labels else str(state)
