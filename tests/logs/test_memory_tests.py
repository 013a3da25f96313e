"""Which memory a log shows: what is found, what is not claimed, and what is said."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import counsel
from counsel.logs.clustered import least_squares
from counsel.logs.fading import FadingEstimate
from counsel.logs.memory_kind import MemoryKind
from counsel.logs.memory_tests import LEAST_IMPROVEMENT, MemoryTests, _choose
from counsel.report import findings
from tests.support.memory_logs import tiring_ward, verdict, ward_rows
from tests.support.paths import HEARTSTEPS
from tests.support.real_data import real_data


@pytest.fixture(scope="module")
def tired():
    """A model of nurses whom every further alert of a shift moves 40 % less."""
    return counsel.fit(ward_rows(tiring_ward(0.6), 2500, seed=1), memory="auto")


@pytest.mark.slow
def test_nurses_who_tire_with_every_piece_are_found(tired):
    fit = tired
    assert fit.tally.memory.name == "pieces=5"
    chosen = fit.memories.chosen
    assert chosen.is_clear
    assert chosen.factor == pytest.approx(0.6, abs=0.06)
    assert chosen.improvement == max(test.improvement for test in fit.memories.tests)
    words = list(findings.memory_findings(fit))
    assert words[0].startswith("People tire: lift falls with pieces of advice so far, by a factor")
    names = [test.kind.kind for test in fit.memories.tests]
    assert names == ["tenure", "pieces", "since", "dose", "refusals"]


@pytest.mark.slow
def test_without_a_memory_none_is_claimed():
    fit = counsel.fit(ward_rows(tiring_ward(1.0), 1200, seed=3), memory="auto")
    assert fit.memories.choice is None
    assert fit.tally.memory is None
    assert fit.problem.memory is None
    (first, *_) = findings.memory_findings(fit)
    assert first.startswith("Whether people tire cannot be told")


def test_a_memory_was_once_claimed_that_explains_the_log_no_better(tired):
    weak = [replace(test, improvement=0.4) for test in tired.memories.tests]
    assert any(test.is_significant for test in weak)
    assert not any(test.is_clear for test in weak)
    tests, choice = _choose(weak, [])
    assert choice is None
    (first, *_) = findings.memory_choice(MemoryTests(tuple(tests), choice, "episode"))
    assert first.startswith("Whether people tire cannot be told: lift changes with ")
    assert first.endswith("(log likelihood +0.4; a claim needs +2.0).")
    enough = [replace(test, improvement=LEAST_IMPROVEMENT) for test in tired.memories.tests]
    assert any(test.is_clear for test in enough)


@pytest.mark.parametrize(
    ("low", "high", "change", "model"),
    [
        ([1.0, 0.3], [1.0, 0.9], "People tire: lift falls", ", and its plans let people rest"),
        ([1.0, 0.3], [1.0, 1.1], "Lift falls", ", though no level's lift is clearly below or"),
        ([1.0, 0.0], [1.0, np.inf], "Lift falls", ", though no level's lift is clearly below or"),
        ([1.0, 1.2], [1.0, 1.9], "Lift falls", ", with which lift rises"),
        ([1.1, 1.0], [1.9, 1.0], "People tire: lift falls", ", and its plans let people rest"),
        ([0.2, 1.0], [0.9, 1.0], "Lift falls", ", with which lift rises"),
    ],
)
def test_people_are_said_to_tire_only_where_an_interval_says_so(tired, low, high, change, model):
    low, high = np.array(low), np.array(high)
    reference = int(np.flatnonzero(low == high)[0])
    kind = MemoryKind.parse("pieces=1")
    fading = FadingEstimate(kind, reference, np.full(2, 99.0), (low + high) / 2.0, low, high)
    chosen = replace(tired.memories.chosen, kind=kind)
    tests = MemoryTests((chosen,), kind, "episode")
    (first, *_) = findings.memory_choice(tests, fading)
    assert first.startswith(f"{change} with pieces of advice so far")
    said = findings.memory_in_model(kind, fading)
    assert said.startswith(f"The model has a memory of pieces of advice so far{model}")


@pytest.mark.slow
def test_what_cannot_be_compared_is_said():
    table = ward_rows(tiring_ward(1.0), 300, seed=3).drop_columns(["person"])
    tests = counsel.fit(table, memory="auto").memories
    assert dict(tests.skipped) == {
        "tenure": "log has no column person; map it with --columns person=…",
        "refusals=3": "the log does not name people, and some may refuse more than others",
    }
    said = list(findings.memory_choice(tests))
    assert said[1].startswith("tenure was not compared: log has no column person")


@pytest.mark.slow
def test_few_pieces_per_person_cannot_tell_refusals_from_people():
    table = ward_rows(tiring_ward(1.0), 300, seed=3, nurses=100)
    skipped = dict(counsel.fit(table, memory="auto").memories.skipped)
    assert skipped["refusals=3"].startswith("there are fewer than 50 pieces per person")


@pytest.mark.slow
def test_a_log_without_advice_cannot_be_tested():
    table = ward_rows(tiring_ward(1.0), 100, seed=3)
    silent = table.set_column(4, "advice", pa.nulls(table.num_rows, pa.string()))
    fit = counsel.fit(silent, memory="auto")
    assert fit.memories.tests == ()
    (first, *_) = findings.memory_choice(fit.memories)
    assert first == "Whether people tire cannot be tested."


def test_the_comparison_is_saved_with_the_model(tired, tmp_path):
    tired.save(tmp_path / "model.npz")
    again = counsel.load_fit(tmp_path / "model.npz").memories
    assert isinstance(again, MemoryTests)
    assert again == tired.memories


def test_a_factor_of_nothing_was_once_printed_as_a_power_of_ten(tired):
    test = replace(tired.memories.chosen, factor=2.79e-10)
    assert findings.memory_cells(test, tired.memories)[1] == "× 0 per piece"


def test_what_clusters_add_to_coefficients_is_their_covariance():
    rng = np.random.default_rng(0)
    x, y, cluster = rng.normal(size=(900, 3)), rng.normal(size=900), rng.integers(600, size=900)
    for some in (cluster, cluster % 30):
        found = least_squares(y, x, some)
        np.testing.assert_allclose(found.influence.T @ found.influence, found.covariance)


@pytest.mark.slow
def test_waning_with_time_is_found_and_is_no_fatigue():
    """Lift falls with the person's episodes and not with advice."""
    table = ward_rows(tiring_ward(1.0), 4000, seed=5)
    rng = np.random.default_rng(1)
    rows = table.to_pydict()
    number, so_far = {}, {}
    for i in range(table.num_rows):
        who, episode = rows["person"][i], rows["episode"][i]
        if episode not in number:
            number[episode] = so_far[who] = so_far.get(who, -1) + 1
        # The longer people are there, the more often a match is undone.
        if rows["advice"][i] == rows["action"][i] and rng.random() < 0.006 * number[episode]:
            rows["action"][i] = "assess" if rows["action"][i] != "assess" else "carry on"
    fit = counsel.fit(pa.table(rows), memory="auto")
    assert fit.memories.choice.kind == "tenure"
    memories = [test for test in fit.memories.tests if test.kind.kind != "tenure"]
    assert not any(test.is_clear for test in memories)


@pytest.mark.slow
def test_people_who_differ_in_how_often_they_refuse_do_not_tire():
    """Half of the nurses never listen: refusals in a row follow from who they are."""
    listening = ward_rows(tiring_ward(1.0), 2000, seed=1, nurses=20).to_pylist()
    deaf = counsel.AdviceProblem(
        tiring_ward(1.0).mdp,
        counsel.Human(tiring_ward(1.0).human.policy[0], lift=0.1),
    )
    others = ward_rows(deaf, 2000, seed=2, nurses=20).to_pylist()
    others = [
        row | {"episode": row["episode"] + 2000, "person": f"other {row['person']}"}
        for row in others
    ]
    fit = counsel.fit(pa.Table.from_pylist(listening + others), memory="auto")
    assert fit.memories.choice is None


@pytest.mark.parametrize("across", ["episode", pytest.param("person", marks=pytest.mark.slow)])
def test_heartsteps_wanes_with_time_in_the_study_and_not_by_dose(across):
    fit = counsel.fit(real_data(HEARTSTEPS), memory="auto", across=across)
    assert fit.memories.choice.kind == "tenure"
    assert fit.memories.chosen.statistic < -2.5
    assert fit.memories.chosen.p_value < 0.05
    others = [test for test in fit.memories.tests if test.kind.kind != "tenure"]
    assert {test.kind.kind for test in others} == {"pieces", "since", "dose", "refusals"}
    assert min(test.p_value for test in others) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("logs", "claimed", "found"),
    [((6, 3), 1, 3), pytest.param((60, 20), 7, 17, marks=pytest.mark.long)],
)
def test_auto_on_many_logs(logs, claimed, found):
    none = [verdict(1.0, 2000, seed).choice for seed in range(logs[0])]
    assert sum(choice != "none" for choice in none) <= claimed  # 5 %, with room for chance
    some = [verdict(0.8, 5000, seed).choice for seed in range(logs[1])]
    assert sum(choice == "pieces=5" for choice in some) >= found
