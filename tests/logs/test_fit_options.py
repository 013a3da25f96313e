"""`counsel.fit` with bins, and with adherence that is shared."""

import numpy as np
import pytest

import counsel
from counsel.logs.binning import Bins
from counsel.logs.estimate import Sharing
from tests.support.drawn_logs import fit_of
from tests.support.drawn_tables import spoken, table, ward_tally
from tests.support.later import Later

pd = Later("pandas")

pytestmark = pytest.mark.usefixtures("few_draws")

# Bins.


def numbers_log(values, **columns):
    rng = np.random.default_rng(0)
    advice, action = spoken(rng, len(values), [0.5, 0.3, 0.2], 0.5)
    return table(advice=advice, action=action, **{"spo2": values} | columns)


def test_numbers_are_cut_where_one_says_and_the_cuts_are_kept(tmp_path):
    values = [80.0, 87.9, 88.0, 91.99, 92.0, 99.0] * 20
    fit = counsel.fit(numbers_log(values), columns="state=spo2", bins=Bins.parse(["spo2=88,92"]))
    assert set(fit.tally.states) == {"spo2 < 88", "spo2 88 to 92", "spo2 ≥ 92"}
    assert fit.estimates.taken.sum(axis=(0, 2)).tolist() == [40.0, 40.0, 40.0]
    assert fit.bins == {"spo2": (88.0, 92.0)}
    fit.save(tmp_path / "m.npz")
    assert counsel.load_fit(tmp_path / "m.npz").bins == {"spo2": (88.0, 92.0)}


def test_quantiles_are_asked_of_the_data_and_kept_as_cuts(tmp_path):
    values = np.random.default_rng(3).normal(50.0, 10.0, 4000)
    fit = counsel.fit(numbers_log(values), columns="state=spo2", bins=Bins.parse(["spo2=q4"]))
    (cuts,) = fit.bins.values()
    np.testing.assert_allclose(cuts, np.quantile(values, [0.25, 0.5, 0.75]), atol=0.05)
    assert np.abs(fit.estimates.taken.sum(axis=(0, 2)) - 1000.0).max() <= 1
    fit.save(tmp_path / "m.npz")
    assert counsel.load_fit(tmp_path / "m.npz").bins == fit.bins


def test_a_number_that_is_none_is_a_fault():
    rows = numbers_log(["80", "low", "95", "91"] * 5)
    with pytest.raises(counsel.CounselError, match="spo2 is not a number and cannot be binned: 5"):
        counsel.fit(rows, columns="state=spo2", bins=Bins.parse(["spo2=88"]))
    with pytest.raises(counsel.CounselError, match="holds no numbers"):
        counsel.fit(numbers_log(["low"] * 9), columns="state=spo2", bins=Bins.parse(["spo2=q3"]))
    with pytest.raises(counsel.CounselError, match="is no part of the state"):
        counsel.fit(numbers_log([1.0] * 9), bins=Bins.parse(["spo2=88"]))


def test_a_state_of_several_columns_is_all_of_them():
    values = [80.0, 95.0] * 60
    rows = numbers_log(values, ward=["A", "A", "B"] * 40)
    fit = counsel.fit(rows, columns="state=ward+spo2", bins=Bins.parse(["spo2=88"]))
    assert fit.tally.states == (
        "A · spo2 < 88", "A · spo2 ≥ 88", "B · spo2 < 88", "B · spo2 ≥ 88"
    )  # fmt: skip
    assert fit.estimates.taken.sum(axis=(0, 2)).tolist() == [40.0, 40.0, 20.0, 20.0]
    assert fit.columns["state"] == ("ward", "spo2")


# Who shares one adherence.


def test_who_shares_has_one_lift():
    _, tally = ward_tally()
    lifts = {
        name: fit_of(tally, sharing).estimates.lift[0]
        for name, sharing in {
            "pair": Sharing(),
            "advice": Sharing("advice"),
            "all": Sharing("all"),
            "groups": Sharing(groups={"assess": "x", "carry on": "x"}),
        }.items()
    }
    assert tally.actions == ("assess", "call doctor", "carry on")
    assert (np.ptp(lifts["pair"], axis=0) > 0.01).all()
    assert np.ptp(lifts["advice"], axis=0).max() < 1e-12
    assert np.unique(lifts["advice"][0].round(6)).size == 3
    assert np.ptp(lifts["all"]) < 1e-12
    one = lifts["groups"]
    assert np.ptp(one[:, [0, 2]]) < 1e-12
    assert np.ptp(one[:, 1]) < 1e-12
    assert abs(one[0, 0] - one[0, 1]) > 0.05
    # 3,600 rounds: each advice given 900 times, its lift known to 0.03 (0.05 where most carry on).
    np.testing.assert_allclose(lifts["advice"][0], [0.3, 0.7, 0.55], atol=0.16)
    middle = lifts["all"][0, 0]
    assert lifts["advice"].min() < middle < lifts["advice"].max()


@pytest.mark.slow
def test_on_the_scale_of_adherence_thin_pairs_lean_on_theta():
    # One θ for all states but different habits: alike on θ, apart in lift.
    rng = np.random.default_rng(11)
    parts = []
    for state, own in (("s", 0.1), ("t", 0.5), ("u", 0.3)):
        n = 2000 if state != "u" else 12
        theta = 0.7
        lift = (theta - own) / (1 - own)
        said = np.where(rng.random(n) < 0.5, 0, 3)
        advice, action = spoken(rng, n, [own, 1 - own - 0.05, 0.05], lift, said=said)
        parts.append(table(advice=advice, action=action, state=state))
        quiet_advice, quiet = spoken(rng, 4000, [own, 1 - own - 0.05, 0.05], 0.0,
                                     said=np.full(4000, 3))  # fmt: skip
        parts.append(table(advice=quiet_advice, action=quiet, state=state))
    rows = pd.concat(parts)
    rows["episode"] = np.arange(len(rows))
    on_theta = counsel.fit(rows, scale="adherence").estimates
    on_lift = counsel.fit(rows, scale="lift").estimates
    # 1,000 pieces in s and t: θ to 0.0145; the thin u leans on 0.7, whatever its own six say.
    np.testing.assert_allclose(on_theta.adherence[0, :, 0], 0.7, atol=3 * 0.02)
    width = on_theta.adherence_high[0, 2, 0] - on_theta.adherence_low[0, 2, 0]
    assert width > 0.3  # its own data alone would tell next to nothing
    # On lift the two families differ (0.67 and 0.4), so the thin one is left in more doubt.
    doubt = [x.lift_high[0, 2, 0] - x.lift_low[0, 2, 0] for x in (on_theta, on_lift)]
    assert doubt[0] < doubt[1]


@pytest.mark.parametrize("wrong", [
    {"share": "some"}, {"scale": "metre"}, {"groups": {"shout": "x"}},
])  # fmt: skip
def test_sharing_that_makes_no_sense_is_refused(wrong):
    rng = np.random.default_rng(0)
    advice, action = spoken(rng, 50, [0.5, 0.3, 0.2], 0.5)
    with pytest.raises(counsel.CounselError, match=r"must be one of|groups name"):
        counsel.fit(table(advice=advice, action=action), **wrong)


# The range of rewards.


def rewards_log(rewards, **columns):
    rng = np.random.default_rng(0)
    advice, action = spoken(rng, len(rewards), [0.5, 0.3, 0.2], 0.5)
    return table(advice=advice, action=action, reward=rewards, **columns)


def test_the_problem_keeps_the_range_of_rewards(tmp_path):
    fit = counsel.fit(rewards_log([1.0, 2.0] * 60), reward_range=(0, 5))
    assert fit.problem.reward_range == (0.0, 5.0)
    assert fit.estimate(fit.tally).problem.reward_range == (0.0, 5.0)
    fit.save(tmp_path / "m.npz")
    assert counsel.load_fit(tmp_path / "m.npz").problem.reward_range == (0.0, 5.0)
    assert counsel.fit(rewards_log([1.0, 2.0] * 60)).problem.reward_range is None


def test_a_mean_that_rounding_puts_outside_the_range_widens_it():
    fit = counsel.fit(rewards_log([0.1] * 120), reward_range=(0.1, 0.1))
    low, high = fit.problem.reward_range
    assert low <= 0.1 <= high
    assert high - low < 1e-12
