"""Plans on fitted models, as tables that people read, edit and give back."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import counsel
from counsel._tables import write_tables
from counsel.logs.plan import plan_advice
from counsel.logs.plan_table import plan_columns, plan_tables
from counsel.logs.read_policy import read_policy
from counsel.worlds import make
from tests.support.drawn_logs import drawn, fit_of, tally_of
from tests.support.later import Later

pd = Later("pandas")

LIMITS = {
    "expected": {"budget": 1.5},
    "none": {},
    "penalty": {"penalty": 0.02},
    "hard": {"budget": 2, "hard": True},
}


@pytest.fixture(scope="module")
def ward():
    """A fit of 3,000 shifts, by counts alone."""
    problem = make("ward")
    return fit_of(tally_of(problem, drawn(problem, 3000, 0)))


def rows_of(planned):
    return pa.concat_tables(plan_tables(planned)).to_pandas()


def cells_of(planned):
    """The rows one by one, empty values as None."""
    rows = pa.concat_tables(plan_tables(planned)).to_pylist()
    return [SimpleNamespace(**row) for row in rows]


@pytest.mark.parametrize("kind", LIMITS)
def test_a_table_has_a_row_for_everything_that_may_be_said(kind, ward):
    planned = plan_advice(ward, **LIMITS[kind])
    rows = rows_of(planned)
    columns = ["step", "state", "advice", "probability", "gain", "lift", "advantage"]
    columns = ["pieces_left"] * (kind == "hard") + columns + ["criticality", "support", "model"]
    assert rows.columns.tolist() == columns
    by = ["pieces_left"] * (kind == "hard") + ["step", "state"]
    total = rows.groupby(by).probability.sum()
    assert len(total) == 6 * 4 * (2 if kind == "hard" else 1)
    np.testing.assert_allclose(total, 1.0)
    assert set(rows.state) == set(ward.tally.states)  # not "over", where nothing is decided
    silent = rows.advice.isna()
    assert rows.loc[silent, ["gain", "lift", "advantage"]].isna().all(axis=None)
    assert rows.loc[~silent, ["gain", "lift", "advantage"]].notna().all(axis=None)
    assert (~silent).any()
    assert silent.any() or kind == "none"
    random = (rows.probability < 1.0).sum()
    assert random == (2 if kind == "expected" else 0)  # one cell, said and not said


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("kind", LIMITS)
def test_a_plan_that_was_written_is_the_plan_that_is_read(kind, ending, ward, tmp_path):
    planned = plan_advice(ward, **LIMITS[kind])
    path = tmp_path / f"policy.{ending}"
    write_tables(path, plan_columns(planned))
    back, policy = read_policy(path, ward), planned.plan.policy
    assert type(back) is type(policy)
    S = len(ward.tally.states)
    if kind == "hard":
        assert back.budget == 2
        assert np.array_equal(back.advice[:, :, :S], policy.advice[:, :, :S])
    else:
        assert np.array_equal(back.probabilities()[:, :S], policy.probabilities()[:, :S])
        assert np.array_equal(back.advice[:, :S], policy.advice[:, :S])
    one, other = (counsel.evaluate(ward.problem, each) for each in (back, policy))
    assert one.value == pytest.approx(other.value, abs=1e-12)
    assert one.advice_count == pytest.approx(other.advice_count, abs=1e-12)
    if kind == "expected":
        assert one.advice_count == pytest.approx(1.5)


@pytest.mark.parametrize("kind", LIMITS)
def test_numbers_are_those_of_explain_and_criticality(kind, ward):
    planned = plan_advice(ward, **LIMITS[kind])
    ranked = counsel.criticality(ward.problem, allow_reverse=False)
    states, actions = ward.tally.states, ward.tally.actions
    spoken = 0
    for row in cells_of(planned):
        s = states.index(row.state)
        assert row.criticality == pytest.approx(ranked.lower[row.step, s], rel=1e-5)
        if row.advice is None:
            assert row.support == ward.estimates.taken[0, s].sum()
            continue
        spoken += 1
        assert row.gain == pytest.approx(row.lift * row.advantage, rel=2e-5)
        b = actions.index(row.advice)
        assert row.support == ward.estimates.given[0, s, b]
        left = {"pieces_left": row.pieces_left} if kind == "hard" else {}
        told = counsel.explain(ward.problem, planned.plan, step=row.step, state=s, **left)
        assert told.advice == b
        # Six digits are written.
        for name in ("gain", "lift", "advantage", "probability"):
            assert getattr(row, name) == pytest.approx(getattr(told, name), rel=1e-5), name
    assert spoken > 5


def test_support_by_step_is_of_that_step():
    problem = make("ward")
    fit = fit_of(tally_of(problem, drawn(problem, 1000, 3), by_step=True))
    planned = plan_advice(fit)
    for row in cells_of(planned):
        s = fit.tally.states.index(row.state)
        if row.advice is None:
            assert row.support == fit.estimates.taken[row.step, s].sum()
        else:
            b = fit.tally.actions.index(row.advice)
            assert row.support == fit.estimates.given[row.step, s, b]
    assert rows_of(planned).groupby("state").support.nunique().max() > 1


def test_tables_may_be_edited_by_hand(ward, tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(
        "step,state,advice\n0,stable,assess\n2,critical,call doctor\n2,watch,\n", encoding="utf-8"
    )
    policy = read_policy(path, ward)
    s, a = ward.tally.states.index, ward.tally.actions.index
    assert policy.at(0, s("stable")) == {a("assess"): 1.0}
    assert policy.at(2, s("critical")) == {a("call doctor"): 1.0}
    assert int((policy.advice != 3).sum()) == 2
    path.write_text(
        "step,state,advice,probability\n0,stable,assess,0.25\n0,stable,,0.5\n"
        "0,stable,carry on,0.25\n"
    )
    said = read_policy(path, ward).at(0, s("stable"))
    assert said == {a("assess"): 0.25, a("carry on"): 0.25, 3: 0.5}
    pq.write_table(
        pa.table({
            "step": [1], "state": [9], "advice": [9],
            "state_label": ["watch"], "advice_label": ["assess"],
        }),
        tmp_path / "p.parquet",
    )  # fmt: skip
    assert read_policy(tmp_path / "p.parquet", ward).at(1, s("watch")) == {a("assess"): 1.0}


def test_a_policy_file_is_read_as_it_is(ward, tmp_path):
    policy = counsel.solve(ward.problem, budget=1).policy
    counsel.save_policy(policy, tmp_path / "p.npz")
    back = read_policy(tmp_path / "p.npz", ward)
    assert np.array_equal(back.probabilities(), policy.probabilities())


# Caution.


def misleading(lucky):
    """800 decisions; "b" was tried a few times only, and by luck it paid."""
    rng = np.random.default_rng(0)
    n = 800
    action = rng.choice(["a", "c"], size=n, p=[0.6, 0.4])
    advice = np.where(rng.random(n) < 0.3, "c", "")
    action = np.where((advice == "c") & (rng.random(n) < 0.5), "c", action)
    rows = pd.DataFrame({
        "state": "calm", "advice": advice, "action": action,
        "reward": np.where(action == "c", 1.0, 0.5) + 0.1 * rng.normal(size=n),
    })  # fmt: skip
    few = pd.DataFrame({
        "state": "calm", "advice": ["b"] * lucky + [""], "action": "b",
        "reward": [5.0] * lucky + [-2.0],
    })  # fmt: skip
    rows = pd.concat((rows, few), ignore_index=True)
    return rows.assign(episode=np.arange(len(rows)), step=0)


@pytest.mark.slow
def test_caution_does_not_advise_what_a_few_lucky_cases_suggest():
    fit = counsel.fit(misleading(2))
    _, b, c = range(3)
    assert plan_advice(fit).plan.policy.advice[0, 0] == b
    careful = plan_advice(fit, cautious=True)
    # "c" pays 1 against 0.5 in hundreds of decisions: that is beyond doubt.
    assert careful.plan.policy.advice[0, 0] == c
    assert careful.doubtful[0, 0].tolist() == [True, True, False]
    assert np.isinf(careful.criticality.lower).sum() == 0
    # The lucky cases many times over are no luck.
    many = counsel.fit(misleading(60))
    assert plan_advice(many, cautious=True).plan.policy.advice[0, 0] == b


@pytest.mark.slow
def test_caution_never_advises_what_was_never_advised():
    problem = make("ward")
    fit = fit_of(tally_of(problem, drawn(problem, 12, 2)))
    careful = plan_advice(fit, cautious=True)
    given = fit.estimates.given[0]
    assert (given == 0.0).any()
    assert careful.doubtful[:, : len(given)][:, given == 0.0].all()
    said = careful.plan.policy.advice[:, : len(given)]
    for h, s in np.argwhere(said < 3):
        assert given[s, said[h, s]] > 0.0
    # Thin data leave most advice in doubt; not so the plain plan.
    plain = plan_advice(fit).plan.policy.advice[:, : len(given)]
    assert (said < 3).sum() < (plain < 3).sum()


@pytest.mark.slow
@pytest.mark.parametrize("limit", [{"budget": 1}, {"budget": 1, "hard": True}, {"penalty": 0.02}])
def test_with_much_data_caution_changes_little(limit):
    problem = make("ward")
    fit = fit_of(tally_of(problem, drawn(problem, 20_000, 1)))
    plain, careful = plan_advice(fit, **limit), plan_advice(fit, **limit, cautious=True)
    assert careful.plan.value <= plain.plan.value + 1e-12
    assert careful.plan.value > plain.plan.value - 0.002
    S = len(fit.tally.states)
    # What is left in doubt gains next to nothing: no advice of a plan is forbidden that gains more
    # than a twentieth of the largest gain.
    if not limit.get("hard"):
        rows = cells_of(plain)
        lost = [
            row.gain
            for row in rows
            if row.advice is not None
            and careful.doubtful[
                row.step, fit.tally.states.index(row.state), fit.tally.actions.index(row.advice)
            ]
        ]
        assert max(lost, default=0.0) < 0.05 * max(row.gain or 0.0 for row in rows)
    same = plain.plan.policy.advice[..., :S] == careful.plan.policy.advice[..., :S]
    assert same.mean() > 0.9


@pytest.mark.slow
def test_caution_is_the_same_every_time(ward):
    seen = []
    one = plan_advice(ward, budget=1, cautious=True, show=seen.append).doubtful
    assert np.array_equal(one, plan_advice(ward, budget=1, cautious=True).doubtful)
    assert seen == list(range(1, 201))


# Reverse advice.


def repelling():
    """Advising "a" makes people take "b", which pays; advising "b" does nothing."""
    rng = np.random.default_rng(5)
    n = 3000
    advice = rng.choice(["a", ""], size=n)
    chance = np.where(advice == "a", 0.2, 0.6)
    action = np.where(rng.random(n) < chance, "a", "b")
    return pd.DataFrame({
        "episode": np.arange(n), "step": 0, "state": "only", "advice": advice, "action": action,
        "reward": (action == "b") * 1.0,
    })  # fmt: skip


@pytest.mark.usefixtures("few_draws")
def test_reverse_advice_is_given_only_when_asked_for():
    fit = counsel.fit(repelling())
    # (0.2 - 0.6) / 0.4 = -1; 1,500 of each.
    assert fit.problem.lift[0, 0, 0] < -0.8
    for limit in ({}, {"budget": 1}, {"penalty": 0.01}, {"budget": 1, "hard": True}):
        quiet = plan_advice(fit, **limit).plan
        assert (quiet.policy.advice == 2).all(), limit
        asked = plan_advice(fit, **limit, allow_reverse=True).plan
        assert (asked.policy.advice == 0).any(), limit
        assert asked.value > quiet.value + 0.2
    careful = plan_advice(fit, cautious=True, allow_reverse=True)
    assert careful.plan.policy.advice[0, 0] == 0
