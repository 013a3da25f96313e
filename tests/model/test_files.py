"""Problems on disk: exact round trips."""

import json
import os

import numpy as np
import pytest
import scipy.sparse as sp

import counsel
from counsel import MDP, AdviceProblem, Human, Policy
from tests.support.each import each_seed
from tests.support.problems import adapt, draw
from tests.support.saved import LABELS, PROBLEMS, assert_same, small, tables


@pytest.mark.parametrize("build", PROBLEMS.values(), ids=PROBLEMS.keys())
def test_a_saved_problem_comes_back_to_the_last_bit(build, tmp_path):
    problem = build()
    counsel.save(problem, tmp_path / "problem.npz")
    assert_same(counsel.load(tmp_path / "problem.npz"), problem)


@each_seed(range(30))
def test_a_drawn_problem_comes_back_to_the_last_bit(seed, tmp_path):
    problem = adapt(draw(seed))
    counsel.save(problem, tmp_path / "problem.npz")
    assert_same(counsel.load(tmp_path / "problem.npz"), problem)


def test_saving_what_was_loaded_writes_the_same_arrays(tmp_path):
    counsel.save(adapt(draw(1)), tmp_path / "one.npz")
    counsel.save(counsel.load(tmp_path / "one.npz"), tmp_path / "two.npz")
    with np.load(tmp_path / "one.npz") as one, np.load(tmp_path / "two.npz") as two:
        assert one.files == two.files
        for name in one.files:
            np.testing.assert_array_equal(one[name], two[name])


def test_a_loaded_problem_is_read_only(tmp_path):
    counsel.save(adapt(draw(1)), tmp_path / "problem.npz")
    arrays, _ = tables(counsel.load(tmp_path / "problem.npz"))
    assert [name for name, array in arrays.items() if array.flags.writeable] == []


def test_a_path_may_be_a_text(tmp_path):
    path = os.fspath(tmp_path / "problem.npz")
    counsel.save(small(), path)
    assert_same(counsel.load(path), small())


def test_a_problem_is_saved_over_an_older_one(tmp_path):
    path = tmp_path / "problem.npz"
    counsel.save(small(), path)
    counsel.save(small(**LABELS), path)
    assert counsel.load(path).mdp.action_labels == ("→", "待つ")
    assert os.listdir(tmp_path) == ["problem.npz"]


def test_what_never_changes_is_saved_once(tmp_path):
    counsel.save(small(horizon=1_000_000), tmp_path / "problem.npz")
    assert (tmp_path / "problem.npz").stat().st_size < 10_000


def test_a_large_sparse_problem_is_saved_sparse(tmp_path):
    S = 20_000
    mdp = MDP(sp.eye_array(S, format="csr"), np.zeros(S), horizon=3)
    problem = AdviceProblem(mdp, Human(np.ones((S, 1)), 0.5))
    counsel.save(problem, tmp_path / "problem.npz")
    assert_same(counsel.load(tmp_path / "problem.npz"), problem)
    assert (tmp_path / "problem.npz").stat().st_size < 100 * S


def test_a_file_has_a_header_with_format_and_version_and_no_pickle(tmp_path):
    counsel.save(small(**LABELS), tmp_path / "problem.npz")
    with np.load(tmp_path / "problem.npz", allow_pickle=False) as file:
        header = json.loads(bytes(file["header"]))
        assert all(file[name].dtype != object for name in file.files)
    assert (header["format"], header["version"]) == ("counsel-problem", 1)
    assert header["state_labels"] == LABELS["state_labels"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    counsel.save(small(), tmp_path / "problem.npz")
    counsel.save_policy(Policy([[0]], n_actions=1), tmp_path / "policy.csv")
    modes = {(tmp_path / n).stat().st_mode for n in ("plain", "problem.npz", "policy.csv")}
    assert len(modes) == 1
