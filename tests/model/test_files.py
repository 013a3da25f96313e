"""Files: exact round trips, tables people read, one clear line for a file that is not ours."""

import csv
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse as sp

import counsel
from counsel import MDP, AdviceProblem, Human, Policy, _tables
from tests.support import examples, oracles
from tests.support.each import each, each_seed
from tests.support.problems import adapt, draw

# ---- problems ------------------------------------------------------------------------------

LABELS = {"state_labels": ["Zürich", '"a", b\nc'], "action_labels": ["→", "待つ"]}


def small(*, human=None, **changes):
    given = {"transition": [[1, 0], [0, 1]], "reward": [1 / 3, -2e300], "horizon": 3} | changes
    mdp = MDP(given.pop("transition"), given.pop("reward"), **given)
    return AdviceProblem(mdp, Human([[0.3, 0.7], [0.9, 0.1]], 0.6) if human is None else human)


HABIT = [[0.3, 0.7], [0.9, 0.1]]
PROBLEMS = {
    "stationary": lambda: small(start=[0.1, 0.9]),
    "one step": lambda: small(horizon=1, reward=np.ones((1, 2, 2))),
    "time-dependent": lambda: adapt(draw(4)),
    "masked": lambda: adapt(draw(1)),
    "masked for ever": lambda: small(
        transition=[[1, -1], [0, 1]],
        allowed=[[True, False], [True, True]],
        human=Human([[1.0, 0.0], [0.9, 0.1]], 0.6),
    ),
    "labelled": lambda: small(**LABELS),
    "adherence by action": lambda: small(human=Human(HABIT, [0.6, 0.5])),
    "adherence by step": lambda: small(human=Human(HABIT, np.linspace(0, 1, 12).reshape(3, 2, 2))),
    "by lift": lambda: small(human=Human(HABIT, lift=[[0.1, -0.2], [0.3, 1.0]])),
    "grouped": lambda: small(human=Human(HABIT, [0.6, 0.5], groups=[[0, 1], [0, 2]])),
    "grouped by step": lambda: small(
        human=Human(HABIT, lift=0.5, groups=np.arange(12).reshape(3, 2, 2))
    ),
    "a hair off one": lambda: small(transition=np.full((2, 2, 2), 0.5 + 2e-10)),
}


def tables(problem):
    """Every array a problem holds, and everything else it holds."""
    mdp, human, kernel = problem.mdp, problem.human, problem.mdp.kernel
    names = [(kernel, name) for name in counsel.Kernel.__slots__]
    names += [(mdp, name) for name in ("reward", "allowed", "start")]
    names += [(human, name) for name in ("policy", "adherence", "lift", "given", "groups")]
    arrays = {name: getattr(owner, name) for owner, name in names}
    plain = (
        mdp.horizon,
        mdp.state_labels,
        mdp.action_labels,
        human.shares_lift,
        human.given_groups is None,
        mdp.reward.strides[0] == 0,
        mdp.allowed.strides[0] == 0,
    )
    return arrays, plain


def assert_same(one, other):
    (arrays, plain), (other_arrays, other_plain) = tables(one), tables(other)
    assert plain == other_plain
    for name, array in arrays.items():
        assert array.dtype == other_arrays[name].dtype, name
        np.testing.assert_array_equal(array, other_arrays[name], err_msg=name)


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


# ---- policies ------------------------------------------------------------------------------

SURE = Policy([[0, 2], [1, 0]], n_actions=2)
RANDOM = Policy.from_probabilities([[[1, 0, 0], [0.1, 0.2, 0.7]], [[0, 1 / 3, 2 / 3], [0, 0, 1]]])
HARD = Policy([[[2, 2], [2, 2]], [[0, 2], [1, 2]], [[0, 1], [1, 1]]], n_actions=2)


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


# ---- files that are not ours ---------------------------------------------------------------


def refused(load, path):
    """Load, which must fail with one line that names the path; return the line."""
    with pytest.raises(counsel.CounselError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


@pytest.fixture
def problem_file(tmp_path):
    path = tmp_path / "problem.npz"
    human = Human(HABIT, [0.6, 0.5], groups=[[0, 1], [0, 2]])
    counsel.save(small(human=human, state_labels=["x", "y"]), path)
    return path


@pytest.fixture
def policy_file(tmp_path):
    path = tmp_path / "policy.npz"
    counsel.save_policy(RANDOM, path)
    return path


def test_a_problem_cut_short_anywhere_is_refused(problem_file):
    whole = problem_file.read_bytes()
    for size in [*range(0, len(whole), 13), *range(len(whole) - 40, len(whole))]:
        problem_file.write_bytes(whole[:size])
        refused(counsel.load, problem_file)


def test_a_policy_cut_short_anywhere_is_refused(policy_file):
    whole = policy_file.read_bytes()
    for size in [*range(0, len(whole), 13), *range(len(whole) - 40, len(whole))]:
        policy_file.write_bytes(whole[:size])
        refused(counsel.load_policy, policy_file)


def read_or_refused(path):
    """Load a problem, or None with one line that names the path."""
    try:
        return counsel.load(path)
    except counsel.CounselError as fault:
        message = str(fault)
    assert "\n" not in message
    assert str(path) in message
    return None


def flip_bytes(path, flip, places):
    """Change one byte at a time and yield what is read."""
    whole = path.read_bytes()
    for i in places:
        path.write_bytes(whole[:i] + bytes([whole[i] ^ flip]) + whole[i + 1 :])
        yield read_or_refused(path)
    path.write_bytes(whole)


@pytest.mark.slow
@each("flip", [0x01, 0x10, 0x80, 0xFF])
def test_a_problem_with_a_byte_changed_is_refused_or_reads_the_same(problem_file, flip):
    problem, size = counsel.load(problem_file), problem_file.stat().st_size
    for again in flip_bytes(problem_file, flip, range(flip % 3, size, 3)):
        if again is not None:
            assert_same(again, problem)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"PK",
        b"PK\x03\x04",
        b"PK\x05\x06" + bytes(18),
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00",
        b"hello, world\n" * 100,
        bytes(10_000),
        np.random.default_rng(0).bytes(10_000),
        b"PK\x03\x04" + np.random.default_rng(1).bytes(10_000),
        b"step,state,advice,probability\n0,0,1,1\n",
        pickle.dumps({"format": "counsel-problem"}),
        json.dumps({"format": "counsel-problem", "version": 1}).encode(),
    ],
    ids=lambda content: repr(content[:8]),
)
@pytest.mark.parametrize("load", [counsel.load, counsel.load_policy])
def test_garbage_is_refused(load, content, tmp_path):
    path = tmp_path / "garbage.npz"
    path.write_bytes(content)
    refused(load, path)


@pytest.mark.parametrize("load", [counsel.load, counsel.load_policy])
def test_an_array_file_is_refused(load, tmp_path):
    np.save(tmp_path / "array.npy", np.ones((3, 2)))
    refused(load, tmp_path / "array.npy")


@pytest.mark.parametrize("load", [counsel.load, counsel.load_policy])
def test_a_foreign_npz_is_refused(load, tmp_path):
    np.savez(tmp_path / "foreign.npz", a=np.ones(3))
    assert "header" in refused(load, tmp_path / "foreign.npz")


@pytest.mark.parametrize("load", [counsel.load, counsel.load_policy])
def test_a_zip_of_something_else_is_refused(load, tmp_path):
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as file:
        file.writestr("header", b"{}")
        file.writestr("readme.txt", b"hello")
    refused(load, tmp_path / "other.npz")


def test_a_problem_is_no_policy_and_a_policy_is_no_problem(problem_file, policy_file):
    assert "counsel-policy" in refused(counsel.load, policy_file)
    assert "counsel-problem" in refused(counsel.load_policy, problem_file)


@pytest.mark.parametrize("load", [counsel.load, counsel.load_policy])
def test_a_missing_file_is_said_to_be_missing(load, tmp_path):
    assert "does not exist" in refused(load, tmp_path / "nowhere.npz")
    refused(load, tmp_path / "nowhere" / "problem.npz")


@pytest.mark.parametrize("load", [counsel.load, counsel.load_policy])
def test_a_directory_is_refused(load, tmp_path):
    refused(load, tmp_path)


class Bomb:
    """Goes off when unpickled."""

    gone_off = False

    def __reduce__(self):
        return (setattr, (Bomb, "gone_off", True))


def stored(path):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(bytes(arrays.pop("header"))), arrays


def rewrite(path, *, header=None, without=(), **changes):
    """Write the file again with other arrays or header fields (or raw header bytes)."""
    told, arrays = stored(path)
    if not isinstance(header, bytes):
        told |= header or {}
        header = json.dumps({k: v for k, v in told.items() if k not in without}).encode()
    arrays = {k: v for k, v in (arrays | changes).items() if k not in without}
    np.savez(path, header=np.frombuffer(header, dtype=np.uint8), **arrays)


@pytest.mark.parametrize("name", ["row", "reward", "given", "extra"])
def test_nothing_in_a_file_is_ever_unpickled(problem_file, name):
    rewrite(problem_file, **{name: np.array([Bomb()], dtype=object)})
    refused(counsel.load, problem_file)
    assert not Bomb.gone_off


def test_a_pickled_header_is_never_unpickled(tmp_path):
    np.savez(tmp_path / "bomb.npz", header=np.array([Bomb()], dtype=object))
    refused(counsel.load, tmp_path / "bomb.npz")
    assert not Bomb.gone_off


@pytest.mark.parametrize("version", [2, 99, 0, "1", None])
def test_another_version_is_refused_by_its_number(problem_file, policy_file, version):
    for load, path in ((counsel.load, problem_file), (counsel.load_policy, policy_file)):
        rewrite(path, header={"version": version})
        assert f"version {version}" in refused(load, path)


def test_the_file_of_a_newer_counsel_is_refused_whatever_else_it_holds(tmp_path):
    header = json.dumps({"format": "counsel-problem", "version": 2}).encode()
    np.savez(tmp_path / "new.npz", header=np.frombuffer(header, dtype=np.uint8))
    assert "upgrade" in refused(counsel.load, tmp_path / "new.npz")


HEADERS = {
    "empty": b"",
    "no JSON": b"{",
    "no UTF-8": b'{"format": "\xff"}',
    "a list": b"[]",
    "a number": b"7",
    "null": b"null",
    "no format": b'{"version": 1}',
    "nested for ever": b"[" * 200_000,
    "a number for ever": b"9" * 10_000,
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS.keys())
def test_a_header_that_makes_no_sense_is_refused(problem_file, policy_file, header):
    for load, path in ((counsel.load, problem_file), (counsel.load_policy, policy_file)):
        rewrite(path, header=header)
        refused(load, path)


@pytest.mark.parametrize("header", [np.array(5), np.array("{}"), np.ones((2, 2)), np.array([])])
def test_a_header_of_another_type_is_refused(tmp_path, header):
    np.savez(tmp_path / "odd.npz", header=header)
    refused(counsel.load, tmp_path / "odd.npz")


PROBLEM_PARTS = [
    "row", "first_row", "indptr", "next_state", "probability", "reward", "start", "allowed",
    "policy", "given", "groups", "horizon", "state_labels", "action_labels", "shares_lift",
    "grouped",
]  # fmt: skip
POLICY_PARTS = [
    "advice", "cell", "indptr", "random_advice", "random_probability", "n_actions", "hard",
]  # fmt: skip


@pytest.mark.parametrize("part", PROBLEM_PARTS)
def test_a_problem_that_lacks_a_part_is_refused_by_its_name(problem_file, part):
    rewrite(problem_file, without=[part])
    assert part in refused(counsel.load, problem_file)


@pytest.mark.parametrize("part", POLICY_PARTS)
def test_a_policy_that_lacks_a_part_is_refused_by_its_name(policy_file, part):
    rewrite(policy_file, without=[part])
    assert part in refused(counsel.load_policy, policy_file)


ODD_ARRAYS = {
    "texts": lambda x: np.full(x.shape, "x"),
    "complex numbers": lambda x: x.astype(complex),
    "dates": lambda x: np.zeros(x.shape, "datetime64[s]"),
    "a number": lambda x: x.reshape(-1)[0],
    "nothing": lambda x: x[:0],
    "one axis more": lambda x: np.stack([x, x]),
    "two axes more": lambda x: np.array([[x, x], [x, x]]),
    "all in a row": lambda x: np.tile(x.reshape(-1), 3),
    "records": lambda x: np.zeros(x.shape, [("a", int), ("b", float)]),
}


# One number, or one axis more, is another good shape of an adherence by action.
GOOD_SHAPES = {("given", "a number"), ("given", "one axis more")}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in PROBLEM_PARTS[:11]
        for kind in ODD_ARRAYS
        if (name, kind) not in GOOD_SHAPES
    ],
)
def test_a_problem_with_an_array_of_another_kind_is_refused(problem_file, name, kind):
    rewrite(problem_file, **{name: ODD_ARRAYS[kind](stored(problem_file)[1][name])})
    refused(counsel.load, problem_file)


@pytest.mark.parametrize("spoil", ODD_ARRAYS.values(), ids=ODD_ARRAYS.keys())
@pytest.mark.parametrize("name", POLICY_PARTS[:5])
def test_a_policy_with_an_array_of_another_kind_is_refused(policy_file, name, spoil):
    rewrite(policy_file, **{name: spoil(stored(policy_file)[1][name])})
    refused(counsel.load_policy, policy_file)


def at(index, value, dtype=None):
    """Change one entry of a stored array."""

    def change(array):
        array = array.astype(dtype or array.dtype)
        array[index] = value
        return array

    return change


TAMPERED = {
    "next state S": ("next_state", at(0, 2), []),
    "next state -1": ("next_state", at(0, -1), []),
    "next state 2**40": ("next_state", at(0, 2**40, np.int64), []),
    "next state 0.5": ("next_state", at(0, 0.5, float), []),
    "next state NaN": ("next_state", at(0, np.nan, float), []),
    "row too far": ("row", at((0, 0, 0), 99), []),
    "row 2**40": ("row", at((0, 0, 0), 2**40, np.int64), []),
    "row -2": ("row", at((0, 0, 0), -2), []),
    "row 0.5": ("row", at((0, 0, 0), 0.5, float), []),
    "no row for an allowed action": ("row", at((0, 1, 1), -1), ["s=1, a=1"]),
    "first row not 0": ("first_row", at(0, 1), []),
    "first row too far": ("first_row", at(-1, 99), []),
    "first row 2**62": ("first_row", at(-1, 2**62), []),
    "first row NaN": ("first_row", at(-1, np.nan, float), []),
    "end of a row too far": ("indptr", at(-1, 99), []),
    "end of a row before its begin": ("indptr", at(1, 5), []),
    "end of a row negative": ("indptr", at(1, -5), []),
    "end of a row NaN": ("indptr", at(1, np.nan, float), []),
    "probability NaN": ("probability", at(0, np.nan), []),
    "probability negative": ("probability", at(0, -1.0), []),
    "probability infinite": ("probability", at(0, np.inf), []),
    "probability off": ("probability", at(0, 0.75), ["0.75"]),
    "probability zero": ("probability", at(0, 0.0), []),
    "reward NaN": ("reward", at((0, 1, 0), np.nan), ["reward[s=1, a=0]", "nan"]),
    "start off": ("start", at(0, 0.5), ["start", "0.5"]),
    "start negative": ("start", at(1, -0.5), ["start[s=1]", "-0.5"]),
    "allowed as numbers": ("allowed", lambda x: x.astype(np.int8), ["allowed"]),
    "nothing allowed": ("allowed", at((0, 1), False), ["allowed[s=1]"]),
    "habit not allowed": ("allowed", at((0, 1, 0), False), ["policy", "s=1, a=0", "0.9"]),
    "policy off": ("policy", at((0, 1, 0), 0.8), ["policy[s=1]", "0.9"]),
    "policy NaN": ("policy", at((0, 1, 0), np.nan), ["policy[s=1, a=0]", "nan"]),
    "adherence above one": ("given", at(1, 1.5), ["adherence", "a=1", "1.5"]),
    "adherence NaN": ("given", at(1, np.nan), ["adherence", "a=1", "nan"]),
    "groups negative": ("groups", at((0, 0), -3), ["groups"]),
    "groups that differ": ("groups", at((0, 1), 0), ["a=1", "0.5", "group 0", "0.6"]),
}


@pytest.mark.parametrize(("name", "change", "fragments"), TAMPERED.values(), ids=TAMPERED.keys())
def test_a_problem_with_a_number_changed_is_refused(problem_file, name, change, fragments):
    rewrite(problem_file, **{name: change(stored(problem_file)[1][name])})
    message = refused(counsel.load, problem_file)
    assert all(fragment in message for fragment in fragments)


TAMPERED_HEADERS = {
    "horizon 0": ({"horizon": 0}, ["horizon", "0"]),
    "horizon text": ({"horizon": "3"}, ["horizon", "3"]),
    "horizon null": ({"horizon": None}, ["horizon"]),
    "horizon broken": ({"horizon": 2.5}, ["horizon", "2.5"]),
    "horizon yes": ({"horizon": True}, ["horizon"]),
    "horizon 2**62": ({"horizon": 2**62}, ["horizon"]),
    "horizon 10**30": ({"horizon": 10**30}, ["horizon"]),
    "labels too few": ({"state_labels": ["x"]}, ["state_labels", "1", "2"]),
    "labels equal": ({"state_labels": ["x", "x"]}, ["state_labels[1]", "x"]),
    "labels a number": ({"state_labels": 5}, []),
    "labels numbers": ({"state_labels": [1, 2]}, ["state_labels[0]"]),
    "labels lists": ({"action_labels": [["x"], ["y"]]}, ["action_labels[0]"]),
}


@pytest.mark.parametrize(
    ("header", "fragments"), TAMPERED_HEADERS.values(), ids=TAMPERED_HEADERS.keys()
)
def test_a_problem_with_a_header_changed_is_refused(problem_file, header, fragments):
    rewrite(problem_file, header=header)
    message = refused(counsel.load, problem_file)
    assert all(fragment in message for fragment in fragments)


TAMPERED_POLICIES = {
    "advice too high": {"advice": np.array([[0, 3], [1, 2]])},
    "advice negative": {"advice": np.array([[0, -1], [1, 2]])},
    "advice broken": {"advice": np.array([[0, 1.5], [1, 2]])},
    "cell too far": {"cell": np.array([1, 4])},
    "cell negative": {"cell": np.array([-1, 2])},
    "cell twice": {"cell": np.array([1, 1])},
    "cell broken": {"cell": np.array([0.5, 2.0])},
    "cell NaN": {"cell": np.array([np.nan, 2.0])},
    "end too far": {"indptr": np.array([0, 3, 9])},
    "end negative": {"indptr": np.array([0, -3, 5])},
    "end broken": {"indptr": np.array([0, 2.5, 5])},
    "random advice too high": {"random_advice": np.array([0, 1, 3, 1, 2])},
    "random advice broken": {"random_advice": np.array([0, 0.5, 2, 1, 2])},
    "random advice twice": {"random_advice": np.array([0, 0, 2, 1, 2])},
    "probability NaN": {"random_probability": np.array([0.1, 0.2, np.nan, 0.5, 0.5])},
    "probability negative": {"random_probability": np.array([0.1, 0.2, 0.7, 1.5, -0.5])},
    "probability off": {"random_probability": np.array([0.1, 0.2, 0.7, 0.5, 0.4])},
    "probability infinite": {"random_probability": np.array([0.1, 0.2, np.inf, 0.5, 0.5])},
    "no actions": {"header": {"n_actions": 0}},
    "actions broken": {"header": {"n_actions": 2.5}},
    "actions text": {"header": {"n_actions": "2"}},
    "actions null": {"header": {"n_actions": None}},
    "actions too few": {"header": {"n_actions": 1}},
    "actions too many": {"header": {"n_actions": 10**30}},
    "hard": {"header": {"hard": True}},
    "hard with advice and no piece": {"header": {"hard": True}, "advice": np.zeros((2, 2, 2), int)},
}


@pytest.mark.parametrize("changes", TAMPERED_POLICIES.values(), ids=TAMPERED_POLICIES.keys())
def test_a_policy_with_a_number_changed_is_refused(policy_file, changes):
    rewrite(policy_file, **changes)
    refused(counsel.load_policy, policy_file)


def test_a_file_written_on_a_machine_of_other_byte_order_reads_the_same(problem_file):
    problem = counsel.load(problem_file)
    arrays = stored(problem_file)[1]
    rewrite(
        problem_file, **{name: x.astype(x.dtype.newbyteorder(">")) for name, x in arrays.items()}
    )
    assert_same(counsel.load(problem_file), problem)


def replace_member(path, name, content):
    """Replace the bytes of one member of a zip file."""
    with zipfile.ZipFile(path) as file:
        members = {member: file.read(member) for member in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for member, old in members.items():
            file.writestr(member, content if member == name else old)


def test_an_array_that_claims_to_be_larger_than_any_memory_is_refused(problem_file):
    stream = io.BytesIO()
    claim = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(stream, claim)
    replace_member(problem_file, "reward.npy", stream.getvalue())
    refused(counsel.load, problem_file)


def compress(path):
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)


def test_a_compressed_file_is_read_like_any_other(problem_file):
    problem = counsel.load(problem_file)
    compress(problem_file)
    assert_same(counsel.load(problem_file), problem)


def test_a_compressed_problem_with_a_byte_changed_is_refused_or_reads_the_same(problem_file):
    problem = counsel.load(problem_file)
    compress(problem_file)
    for again in flip_bytes(problem_file, 0xFF, range(0, problem_file.stat().st_size, 7)):
        if again is not None:
            assert_same(again, problem)


# ---- writing -------------------------------------------------------------------------------


def write_to(path):
    """Write a problem or a policy, by the ending of the path."""
    if path.suffix == ".npz":
        counsel.save(small(**LABELS), path)
    else:
        counsel.save_policy(SURE, path)


@pytest.mark.parametrize("suffix", ["", ".txt", ".npy", ".json", ".npz.gz"])
def test_a_path_with_another_ending_is_refused(suffix, tmp_path):
    refused(lambda path: counsel.save(small(), path), tmp_path / f"file{suffix}")
    refused(lambda path: counsel.save_policy(SURE, path), tmp_path / f"file{suffix}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_a_directory_in_the_place_of_the_file_is_kept_and_refused(suffix, tmp_path):
    place = tmp_path / f"file{suffix}"
    place.mkdir()
    refused(write_to, place)
    assert os.listdir(tmp_path) == [place.name]


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_a_missing_folder_is_refused(suffix, tmp_path):
    refused(write_to, tmp_path / "nowhere" / f"file{suffix}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_a_file_in_the_place_of_the_folder_is_refused(suffix, tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    refused(write_to, tmp_path / "file" / f"file{suffix}")
    assert (tmp_path / "file").read_bytes() == b"mine"


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_a_folder_one_may_not_write_to_is_refused(suffix, tmp_path, monkeypatch):
    # Permissions do not stop root, so the system's refusal is played.
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):
        really_open = os.open

        def refuse(path, *rest, **more):
            if str(path).startswith(str(folder)):
                raise PermissionError(13, "Permission denied", str(path))
            return really_open(path, *rest, **more)

        monkeypatch.setattr(os, "open", refuse)
    assert "Permission denied" in refused(write_to, folder / f"file{suffix}")
    monkeypatch.undo()
    folder.chmod(0o700)
    assert os.listdir(folder) == []


FAULTS = {
    "full disk": OSError(28, "No space left on device"),
    "nameless fault of the system": OSError("the disk went away"),
    "crash": RuntimeError("boom"),
    "interrupt": KeyboardInterrupt(),
    "no memory": MemoryError(),
}


def check_old_file_survives(path, fault, spoil):
    """Write, spoil the writing, write again: the old bytes stay and nothing lies about."""
    write_to(path)
    old = path.read_bytes()
    spoil()
    if isinstance(fault, OSError):
        message = refused(write_to, path)
        assert "None" not in message
        assert fault.args[-1] in message
    else:
        with pytest.raises(type(fault)):
            write_to(path)
    assert path.read_bytes() == old
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_an_interrupted_npz_leaves_the_old_file_and_nothing_else(fault, tmp_path, monkeypatch):
    def half(stream, **_arrays):
        stream.write(b"PK\x03\x04 half a file")
        stream.flush()
        raise fault

    check_old_file_survives(
        tmp_path / "file.npz", fault, lambda: monkeypatch.setattr(np, "savez", half)
    )


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_interrupted_table_leaves_the_old_file_and_nothing_else(
    fault, suffix, tmp_path, monkeypatch
):
    class Half:
        def __init__(self, stream, _schema):
            stream.write(b"half a file")

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def write_table(self, _table):
            raise fault

    def fail(_table):
        raise fault

    def spoil():
        monkeypatch.setattr(pyarrow.parquet, "ParquetWriter", Half)
        monkeypatch.setattr(_tables, "_csv_rows", fail)

    check_old_file_survives(tmp_path / f"file{suffix}", fault, spoil)


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_at_the_last_moment_leaves_the_old_file_and_nothing_else(
    call, suffix, fault, tmp_path, monkeypatch
):
    def fail(*_):
        raise fault

    check_old_file_survives(
        tmp_path / f"file{suffix}", fault, lambda: monkeypatch.setattr(os, call, fail)
    )


def test_the_new_file_appears_only_when_it_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "file.npz"
    seen = []
    really_replace = os.replace

    def watch(unfinished, place):
        seen.append(path.exists())
        assert_same(counsel.load(unfinished), small(**LABELS))
        really_replace(unfinished, place)

    monkeypatch.setattr(os, "replace", watch)
    write_to(path)
    assert seen == [False]
    assert path.exists()


def test_a_long_name_the_system_would_take_is_taken(tmp_path):
    # Found by reading: the unfinished file's name is longer than the file's.
    path = tmp_path / ("x" * 246 + ".npz")
    path.write_bytes(b"")
    counsel.save(small(), path)
    assert_same(counsel.load(path), small())


def test_the_examples_come_back(tmp_path):
    for build in (examples.silent_then_advised, examples.advice_can_wait):
        problem = adapt(build())
        counsel.save(problem, tmp_path / "example.npz")
        again = counsel.load(tmp_path / "example.npz")
        P_hsbt, r_hsb = oracles.machine(*build()[:4])
        np.testing.assert_allclose(again.machine().kernel.to_dense(), P_hsbt, atol=1e-15)
        np.testing.assert_allclose(again.machine().reward, r_hsb, atol=1e-15)


def test_a_name_that_no_file_can_have_is_refused_in_one_line(tmp_path):
    for name in ("x" * 5000 + ".npz", "a\0b.npz"):
        assert "does not exist" in refused(counsel.load, tmp_path / name)
