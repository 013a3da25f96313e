"""Files that are damaged, changed or not ours are refused in one clear line."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest

import counsel
from counsel import Human
from tests.support.saved import HABIT, RANDOM, assert_same, refused, small


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
@pytest.mark.parametrize(
    "flip", [0x80, *(pytest.param(flip, marks=pytest.mark.long) for flip in (0x01, 0x10, 0xFF))]
)
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
