"""Learners on equal terms: schedules, pooling, both readings, and claims on invented rows."""

import re

import numpy as np

from counsel.experiments.experiment import Size
from counsel.experiments.paper import beyond
from counsel.experiments.paper.beyond import EXPLORERS, OF_ADHERENCE, SCHEDULES
from counsel.experiments.paper.regret import PEOPLE
from tests.support.invented_rows import curve, explored, over_seeds, verdicts

REGRETS = {"paper": 30.0, "paper-pooled": 3.0, "kl": 20.0, "kl-pooled": 2.0, "thompson": 20.0}
REGRETS |= {"thompson-pooled": 2.0, "rfe": 50.0, "structured": 40.0, "structured-pooled": 4.0}


def invented(regrets=REGRETS, *, spread=0.0, gaps=None):
    """Rows of every learner; ``gaps`` are value gaps of explorers after their blocks."""
    noise = np.random.default_rng(2)
    gaps = {"rfe": 5.0, "structured": 4.0} if gaps is None else gaps
    rows = {}
    for person in PEOPLE:
        for place in beyond.PLACES:
            for name, entry in (OF_ADHERENCE | EXPLORERS).items():
                for every in entry.schedules:

                    def make(_, name=name):
                        end = regrets[name] * np.exp(spread * noise.standard_normal())
                        if name in EXPLORERS:
                            gap = gaps.get(name, 1.0) * np.exp(spread * noise.standard_normal())
                            return explored(end, gaps=(gap, 0.0, 0.0), before=(9.0, gap))
                        return curve(end, regret_after=end / 2.0)

                    rows |= over_seeds(f"beyond/{place}{person}-{name}-{every}", make)
    return rows


def test_less_regret_on_every_map_holds():
    claims = beyond.claims(invented(spread=0.02))
    assert verdicts(claims) == ["holds"] * 12
    assert {claim.unit for claim in claims} == {"maps"}
    assert {claim.source for claim in claims} == {"ours"}


def test_more_regret_on_every_map_does_not_hold():
    upside_down = {name: 100.0 - regret for name, regret in REGRETS.items()}
    gaps = {"rfe": 4.0, "structured": 5.0}
    assert verdicts(beyond.claims(invented(upside_down, gaps=gaps))) == ["does not hold"] * 12


def test_regrets_that_are_alike_cannot_be_told_apart():
    alike = dict.fromkeys(REGRETS, 10.0)
    gaps = {"rfe": 4.0, "structured": 4.0}
    claims = beyond.claims(invented(alike, spread=0.5, gaps=gaps))
    assert verdicts(claims) == ["cannot be told"] * 12


def test_a_run_that_runs_away_moves_the_mean_but_not_the_verdict():
    # The mean of the paper's bonus was worse than that of KL because of a single seed.
    rows = invented(REGRETS | {"paper": 10.0})
    for name in [key for key in rows if re.search(r"-paper-\d+#3$", key)]:
        rows[name] = curve(1e6, regret_after=1e6)
    claim = beyond.claims(rows)[0]
    assert claim.text.endswith("KL bounds have less regret than the paper's bonus.")
    assert claim.verdict.value == "does not hold"
    assert "medians 20 against 10, means 20 against 41,700" in claim.measured


def test_the_two_readings_of_an_explorers_regret_may_differ():
    # Before the blocks structured exploration is worse, after them it is better.
    rows = invented(REGRETS | {"structured": 60.0})
    texts = {c.text: c.verdict.value for c in beyond.claims(rows) if "structured" in c.text}
    for text, verdict in texts.items():
        is_before = text.endswith("charged with the policy before each block.")
        assert verdict == ("does not hold" if is_before else "holds")
    assert len(texts) == 4
    key = "beyond/maps-safe-structured-50"
    np.testing.assert_allclose(beyond.final_regret(rows, key), 60.0)
    np.testing.assert_allclose(beyond.final_regret(rows, key, after=True), 8.0)


def test_claims_compare_equal_schedules_knowledge_and_maps():
    runs = {run.id: run for run in beyond.runs(Size(seeds=3))}
    for person in PEOPLE:
        for seed in range(3):
            for every in SCHEDULES:
                pair = [
                    runs[f"beyond/maps-{person}-{name}-{every}#{seed}"] for name in ("kl", "paper")
                ]
                assert {(run.spec.every, run.spec.seed, run.family) for run in pair} == {
                    (every, seed, "three-phase")
                }
                assert {run.spec.share for run in pair} == {None}
            pair = [
                runs[f"beyond/maps-{person}-{name}-50#{seed}"] for name in ("structured", "rfe")
            ]
            assert {(run.every, run.seed, run.family, run.pooled) for run in pair} == {
                (50, seed, "three-phase", False)
            }


def test_pooling_is_in_the_label_wherever_it_is_used():
    for run in beyond.runs(Size(seeds=1)):
        name = re.fullmatch(r"beyond/(?:maps-)?[a-z]+-(.*)-\d+#0", run.id)[1]
        is_pooled = run.pooled if name in EXPLORERS else run.spec.share == "advice"
        assert is_pooled == ("pooled" in (OF_ADHERENCE | EXPLORERS)[name].label)


def test_the_table_has_medians_means_and_the_worst_run():
    (table,) = beyond.tables(invented())
    assert {len(row) for row in table.rows} == {9}
    row = ("Policy Safe", "UCB-AD, KL", "1", "random maps", "24", "20", "20", "20", "10")
    assert row in table.rows
    # Four learners on three schedules and three explorers on two have both kinds of maps,
    # Thompson sampling on two schedules only the shipped map.
    assert len(table.rows) == 1 + 2 * (2 * (4 * 3 + 3 * 2) + 2 * 2)


def test_pictures_have_a_panel_for_each_person_and_schedule():
    known, unknown = beyond.pictures(invented())
    assert len(known.figure.axes) == 6
    assert len(unknown.figure.axes) == 4
    titles = [axes.get_title(loc="left") for axes in known.figure.axes]
    assert titles[0] == "Policy Greedy, a plan after every episode"
    assert titles[5] == "Policy Safe, a plan every 1,000 episodes"
