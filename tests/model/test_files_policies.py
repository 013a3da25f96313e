"""Policies on disk: exact round trips, and tables that people read."""

import csv
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import counsel
from counsel import Policy
from tests.support.each import each_seed
from tests.support.saved import HARD, LABELS, RANDOM, SURE, small


@pytest.mark.parametrize("policy", [SURE, RANDOM], ids=["sure", "random"])
def test_a_saved_policy_comes_back_to_the_last_bit(policy, tmp_path):
    counsel.save_policy(policy, tmp_path / "policy.npz")
    again = counsel.load_policy(tmp_path / "policy.npz")
    assert isinstance(again, Policy)
    assert again.n_actions == 2
    np.testing.assert_array_equal(again.advice, policy.advice)
    np.testing.assert_array_equal(again.probabilities(), policy.probabilities())
    assert again.at(0, 1) == policy.at(0, 1)


def test_a_saved_hard_policy_comes_back(tmp_path):
    counsel.save_policy(HARD, tmp_path / "policy.npz")
    again = counsel.load_policy(tmp_path / "policy.npz")
    assert isinstance(again, Policy)
    assert again.budget == 2
    assert (again.n_actions, again.budget) == (2, 2)
    np.testing.assert_array_equal(again.advice, HARD.advice)


def test_a_loaded_policy_is_read_only(tmp_path):
    counsel.save_policy(RANDOM, tmp_path / "policy.npz")
    again = counsel.load_policy(tmp_path / "policy.npz")
    random = again.random
    arrays = [again.advice, random.cell, random.indptr, random.advice, random.probability]
    assert not any(array.flags.writeable for array in arrays)


def test_a_policy_whose_actions_were_counted_by_numpy_is_saved(tmp_path):
    # Found by reading: JSON has no numpy integers.
    counsel.save_policy(Policy([[0]], n_actions=np.int64(2)), tmp_path / "policy.npz")
    assert counsel.load_policy(tmp_path / "policy.npz").n_actions == 2


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def read_parquet(path):
    """Rows as CSV would give them: texts, with nothing for what is missing."""
    rows = pa.parquet.read_table(path).to_pylist()
    return [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows]


READERS = {".csv": read_csv, ".parquet": read_parquet}


@pytest.fixture(params=READERS, ids=["csv", "parquet"])
def table(request, tmp_path):
    """Write a policy as a table and read it back as rows of text."""

    def write_and_read(policy, **labels):
        path = tmp_path / f"policy{request.param}"
        counsel.save_policy(policy, path, **labels)
        assert os.listdir(tmp_path) == [path.name]
        return READERS[request.param](path)

    return write_and_read


def test_a_sure_policy_is_one_row_a_cell_and_silence_is_empty(table):
    rows = table(SURE)
    assert [list(row) for row in rows] == [["step", "state", "advice", "probability"]] * 4
    cells = [(row["step"], row["state"], row["advice"]) for row in rows]
    assert cells == [("0", "0", "0"), ("0", "1", ""), ("1", "0", "1"), ("1", "1", "0")]
    assert [float(row["probability"]) for row in rows] == [1.0] * 4


def test_a_random_cell_is_one_row_for_each_advice_with_its_probability(table):
    rows = table(RANDOM)
    cells = [(row["step"], row["state"], row["advice"], float(row["probability"])) for row in rows]
    assert cells == [
        ("0", "0", "0", 1.0),
        ("0", "1", "0", 0.1),
        ("0", "1", "1", 0.2),
        ("0", "1", "", 0.7),
        ("1", "0", "1", 1 / 3),
        ("1", "0", "", 2 / 3),
        ("1", "1", "", 1.0),
    ]


@each_seed(range(5))
def test_a_table_holds_the_distributions_to_the_last_bit(seed, table):
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.ones(4) * 0.3, size=(3, 7))
    probability[rng.random((3, 7)) < 0.4] = np.eye(4)[3]
    got = np.zeros_like(probability)
    for row in table(Policy.from_probabilities(probability)):
        advice = int(row["advice"]) if row["advice"] else 3
        got[int(row["step"]), int(row["state"]), advice] += float(row["probability"])
    np.testing.assert_array_equal(got, probability)


def test_a_hard_policy_tells_the_pieces_left_first(table):
    rows = table(HARD)
    assert list(rows[0]) == ["pieces_left", "step", "state", "advice", "probability"]
    got = {
        (int(row["pieces_left"]), int(row["step"]), int(row["state"])): row["advice"]
        for row in rows
    }
    assert len(rows) == len(got) == 12
    for (k, h, s), advice in got.items():
        (expected,) = HARD.at(h, s, k)
        assert advice == ("" if expected == 2 else str(expected))


def test_a_table_carries_the_labels_of_the_problem(table):
    rows = table(RANDOM, problem=small(horizon=2, **LABELS))
    header = ["step", "state", "state_label", "advice", "advice_label", "probability"]
    assert list(rows[0]) == header
    for row in rows:
        assert row["state_label"] == LABELS["state_labels"][int(row["state"])]
        expected = LABELS["action_labels"][int(row["advice"])] if row["advice"] else ""
        assert row["advice_label"] == expected


def test_a_table_of_a_problem_with_half_its_labels_carries_that_half(table):
    rows = table(SURE, problem=small(horizon=2, state_labels=LABELS["state_labels"]))
    assert list(rows[0]) == ["step", "state", "state_label", "advice", "probability"]


def test_a_table_of_a_problem_without_labels_has_none(table):
    assert list(table(SURE, problem=small(horizon=2))[0]) == list(table(SURE)[0])


def test_a_silent_policy_has_the_columns_of_any_other(table):
    rows = table(
        Policy.never(horizon=1, n_states=2, n_actions=2), problem=small(horizon=1, **LABELS)
    )
    assert [row["advice"] + row["advice_label"] for row in rows] == ["", ""]


def test_parquet_columns_have_types(tmp_path):
    counsel.save_policy(HARD, tmp_path / "p.parquet", problem=small(horizon=2, **LABELS))
    schema = pa.parquet.read_schema(tmp_path / "p.parquet")
    assert all(pa.types.is_integer(schema.field(n).type) for n in ("pieces_left", "step", "state"))
    assert pa.types.is_integer(schema.field("advice").type)
    assert pa.types.is_string(schema.field("advice_label").type)
    assert pa.types.is_float64(schema.field("probability").type)


def test_a_silent_first_step_does_not_spoil_the_types_of_a_csv_file(tmp_path):
    policy = Policy([[2, 2], [0, 2]], n_actions=2)
    counsel.save_policy(policy, tmp_path / "p.csv", problem=small(horizon=2, **LABELS))
    table = pa.csv.read_csv(
        tmp_path / "p.csv", parse_options=pa.csv.ParseOptions(newlines_in_values=True)
    )
    assert table["advice"].to_pylist() == [None, None, 0, None]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    "policy", [Policy([[0, 0, 0]], n_actions=2), Policy([[0, 0]], n_actions=3)], ids=["S", "A"]
)
def test_the_labels_of_a_problem_of_other_size_are_refused(policy, suffix, tmp_path):
    with pytest.raises(counsel.CounselError) as caught:
        counsel.save_policy(policy, tmp_path / f"p{suffix}", problem=small(horizon=1, **LABELS))
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_a_mixture_is_refused_since_no_file_holds_one(suffix, tmp_path):
    mixture = counsel.Mixture((SURE, RANDOM), (0.5, 0.5))
    with pytest.raises(counsel.CounselError, match="Mixture"):
        counsel.save_policy(mixture, tmp_path / f"p{suffix}")
    assert os.listdir(tmp_path) == []
