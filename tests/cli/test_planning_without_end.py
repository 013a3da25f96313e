"""``counsel solve``, ``frontier`` and ``explain`` on work without end."""

import json

import pytest
from typer.testing import CliRunner

import counsel
from counsel.cli.app import app


def run(*arguments):
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=True)
    if isinstance(result.exception, counsel.CounselError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_a_plan_says_that_the_work_has_no_end():
    printed = run("solve", "machine-repair", "--budget", "2")
    assert "The work has no end" in printed
    assert "for ever, discounted by 0.95" in printed
    assert "When the advice comes" not in printed


def test_the_json_of_a_plan_has_its_discount_and_error():
    printed = json.loads(run("solve", "machine-repair", "--penalty", "0.5", "--json"))
    plan = counsel.solve(counsel.make("machine-repair"), penalty=0.5)
    assert printed["discount"] == 0.95
    assert printed["error"] == plan.error
    assert printed["value"] == pytest.approx(plan.value)


def test_a_discount_makes_a_problem_endless_and_the_next_command_keeps_it():
    printed = run("solve", "ward", "--discount", "0.9", "--penalty", "0.05")
    assert "--discount 0.9" in printed
    assert run("explain", "ward", "--discount", "0.9", "--state", "watch").startswith("In watch, ")
    assert "The frontier" in run("frontier", "ward", "--discount", "0.9")


def test_a_problem_that_changes_with_the_step_cannot_be_endless():
    with pytest.raises(counsel.CounselError, match="12 steps, but work without end has none"):
        run("solve", "night-shift", "--discount", "0.9")


def test_playing_out_refuses_work_without_end():
    with pytest.raises(counsel.CounselError, match="no end"):
        run("play-out", "machine-repair")


def test_an_average_is_told_per_step_and_the_next_command_keeps_it():
    printed = run("solve", "machine-repair", "--average", "--budget", "0.1")
    assert "all numbers are averages per step" in printed
    assert "pieces per step" in printed
    assert "per episode" not in printed
    assert "--budget 0.1 --average" in printed
    printed = run("frontier", "machine-repair", "--average")
    assert "0.1 pieces of advice per step keep" in printed
    assert "--average" in printed
    assert run("explain", "machine-repair", "--average", "--state", "new").startswith("In new, ")
    record = json.loads(run("solve", "machine-repair", "--average", "--json"))
    assert record["average"] is True
    assert record["discount"] is None


def test_a_discount_and_an_average_exclude_each_other():
    with pytest.raises(counsel.CounselError, match=r"discount is 0\.9 and average is True"):
        run("solve", "machine-repair", "--average", "--discount", "0.9")


def test_the_next_command_keeps_every_digit_of_a_discount():
    printed = run("solve", "machine-repair", "--discount", "0.9999999")
    assert "for ever, discounted by 0.9999999 " in printed
    assert "--discount 0.9999999 " in printed
