"""`counsel learn` with costs, random rewards and people with a memory."""

import json
from dataclasses import replace

import numpy as np
import pytest

import counsel
from counsel.cli.learning_output import print_run
from counsel.runs import run as runs
from counsel.runs.algorithms import ALGORITHMS, KNOW_LEVELS
from counsel.runs.manifest import problem_fingerprint
from counsel.runs.run import run
from counsel.runs.spec import Spec
from counsel.worlds import make


@pytest.mark.slow
def test_a_run_on_a_problem_with_costs_is_charged_and_told_in_units_of_cost(capsys):
    shift = make("night-shift")
    problem = counsel.AdviceProblem(shift.mdp, shift.human, cost=[0.5, 2.0, 1.0])
    common = {"world": "shift", "algorithm": "ucb-ad", "share": "advice", "episodes": 300}
    spec = Spec(**common, penalty=0.1)
    result = run(spec, problem)
    assert result.best == counsel.solve(problem, penalty=0.1).penalised_value
    assert result.value <= result.best + 1e-9
    assert result.advice_cost != result.advice_count
    spec = Spec(**common, budget=1.5)
    result = run(spec, problem)
    assert result.best_advice_cost == pytest.approx(1.5)
    print_run(spec, problem, result)
    line = next(line for line in capsys.readouterr().out.splitlines() if "It gives" in line)
    assert f"pieces of advice at a cost of {result.advice_cost:.3g}" in line


def test_random_rewards_are_named_in_the_next_command(command, tmp_path):
    words = ("--random-rewards", "--unknown-rewards", "--episodes", "60")
    done = command("learn", "night-shift", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "--unknown-rewards --random-rewards -o night-shift-ucb-ad" in done.stdout
    done = command("learn", "night-shift", *words, "-o", "out", cwd=tmp_path)
    assert done.stdout.rstrip().endswith("--policy out/policy.npz --random-rewards")
    settings = json.loads((tmp_path / "out" / "manifest.json").read_text())["settings"]
    assert settings["random_rewards"] is True


def test_random_rewards_make_another_problem_and_another_run(tmp_path):
    problem = make("night-shift")
    gaps = []
    for random_rewards in (False, True):
        spec = Spec(
            world="night-shift",
            algorithm="ucb-ad",
            episodes=60,
            unknown_rewards=True,
            random_rewards=random_rewards,
        )
        gaps.append(run(spec, problem).records[-1].regret)
    assert gaps[0] != gaps[1]
    wider = replace(problem, reward_range=(-1.0, 1.0))
    prints = {problem_fingerprint(p) for p in (problem, wider, wider.with_random_rewards())}
    assert len(prints) == 3


@pytest.mark.parametrize("algorithm", ["ucb-ad", "structured"])
def test_advice_to_a_person_with_a_memory_is_counted_on_all_levels_together(algorithm):
    problem = make("ward/tiring")
    for share, groups in (("pair", (6, 5, 3)), ("advice", (6, 3)), ("all", (6, 3))):
        spec = Spec(world="ward/tiring", algorithm=algorithm, episodes=5, share=share)
        assert spec.groups(problem).shape == groups
    spec = Spec(world="ward/tiring", algorithm=algorithm, episodes=5, share="advice")
    learner = ALGORITHMS[algorithm].build(spec, problem, np.random.default_rng(0))
    simulator = counsel.Simulator(problem)
    *_, _ = counsel.learn(learner, simulator, episodes=20, rng=np.random.default_rng(0))
    matched, given = runs.matches_by_advice(learner)
    assert given.shape == (problem.n_actions,)
    assert given.sum() == learner.given.sum()
    assert (matched <= given).all()
    assert matched.sum() == learner.matched.sum()


def test_a_person_with_a_memory_is_learnt_resumed_and_played_at_the_command_line(command, tmp_path):
    # It failed for everybody with a memory: the manifest asked for the adherence without levels.
    words = ("learn", "ward/tiring", "--share", "advice", "-o", "out")
    done = command(*words, "--episodes", "200", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = command(*words, "--episodes", "300", "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert counsel.load_policy(tmp_path / "out" / "policy.npz").levels == 6
    done = command("play-out", "ward/tiring", "--policy", "out/policy.npz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_memories_and_starts_make_other_problems():
    prints = set()
    for memory in (counsel.Memory.pieces(2), counsel.Memory.refusals(2)):
        for start in (0, 1):
            person = make("ward").human.with_memory(memory.starting_at(start), fading=[1, 0.5, 0.2])
            prints.add(problem_fingerprint(counsel.AdviceProblem(make("ward").mdp, person)))
    assert len(prints) == 4


@pytest.mark.parametrize("algorithm", ["euler", "ucbvi", "q-learning", "rf-express", "ucfh"])
def test_a_baseline_on_a_person_with_a_memory_was_refused_for_having_no_single_lift(algorithm):
    with pytest.raises(counsel.CounselError) as fault:
        Spec(world="ward/tiring", algorithm=algorithm, episodes=5).build(make("ward/tiring"))
    assert str(fault.value).startswith(
        f"algorithm {algorithm} knows no levels, and this person has a memory (pieces=5); use "
        "ucb-ad, thompson, rfe-ad, rfe-beta, rfe-cmdp, structured"
    )
    says_how = str(fault.value).endswith(", or unknown rewards")
    assert says_how == (algorithm in {"euler", "q-learning", "rf-express"})


@pytest.mark.parametrize("algorithm", KNOW_LEVELS)
def test_the_algorithms_that_know_levels_are_those_named(algorithm):
    needs = dict.fromkeys(ALGORITHMS[algorithm].needs, 1.0)
    spec = Spec(world="ward/tiring", algorithm=algorithm, episodes=5, **needs)
    learner, _ = spec.build(make("ward/tiring"))
    assert learner.memory.name == "pieces=5"
