"""Uploaded models: what claims to be larger than it is costs neither time nor memory."""

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

import counsel
from counsel.model.files import LARGEST_HEADER, loads, problem_parts

HEADER, ARRAYS = problem_parts(counsel.make("night-shift"))
NAMES = tuple(ARRAYS)


def array(values):
    """Return an array as it is in a file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(values))
    return stream.getvalue()


def claim(descr, shape, content=b""):
    """Return an array that claims a type and a shape, whatever it contains."""
    stream = io.BytesIO()
    parts = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, parts)
    return stream.getvalue() + content


def packed(how=zipfile.ZIP_DEFLATED, **replaced):
    """Return a model with some of its parts replaced."""
    text = json.dumps({"format": "counsel-problem", "version": 1, **HEADER}).encode()
    parts = {name: array(values) for name, values in ARRAYS.items()}
    parts = {"header": array(np.frombuffer(text, np.uint8)), **parts, **replaced}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how) as file:
        for name, content in parts.items():
            file.writestr(f"{name}.npy", content)
    return stream.getvalue()


def refused(content, match):
    """Require that a model is refused in one line and takes next to no memory."""
    tracemalloc.start()
    try:
        with pytest.raises(counsel.CounselError, match=match) as fault:
            loads(content, name="the model", most=100_000_000)
        assert tracemalloc.get_traced_memory()[1] < 5e6 + 3 * len(content)
    finally:
        tracemalloc.stop()
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_model_is_read_compressed_or_not(how):
    problem = loads(packed(how), name="the model", most=100_000_000)
    assert problem.horizon == counsel.make("night-shift").horizon


@pytest.mark.parametrize("name", [*NAMES, "header", "unknown"])
def test_arrays_of_nothing_with_a_huge_shape_are_refused(name):
    for kind in ("|S0", "|V0", "<U0"):
        refused(packed(**{name: claim(kind, (10**12,))}), "does not contain numbers")


@pytest.mark.parametrize("name", [*NAMES, "header", "unknown"])
def test_arrays_that_claim_more_than_they_contain_are_refused(name):
    for shape in ((10**10,), (10**9, 10**9, 10**9), (11,), (-1,), (0, 10**9), (0,)):
        refused(packed(**{name: claim("<f8", shape, b"a" * 80)}), "the file is damaged")
    refused(packed(**{name: claim("<f8", (0, 10**9))}), "the file is damaged")


@pytest.mark.parametrize("kind", ["|O", "<c16", "<M8[s]", "|S8", [("a", "<f8")]], ids=str)
def test_arrays_of_other_things_than_numbers_are_refused(kind):
    refused(packed(reward=claim(kind, (3,), b"a" * 48)), "does not contain numbers")


def test_a_small_file_does_not_unpack_to_a_large_one():
    content = packed(unknown=array(np.zeros(24_000_000, np.int8)))
    assert len(content) < 50_000
    refused(content, "bytes when unpacked")


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_compression_are_refused(how):
    refused(packed(how), "compressed in an unknown way")


def test_a_header_without_end_is_refused():
    rng = np.random.default_rng(0)
    text = rng.integers(32, 127, LARGEST_HEADER, dtype=np.uint8)
    refused(packed(header=array(text)), "header of 4,000,1")


def test_what_is_no_array_is_refused():
    for content in (b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{", b"(" * 9999):
        refused(packed(reward=content), "truncated, damaged or not a Counsel file")
