"""Kernels as plain Python (``NUMBA_DISABLE_JIT=1``): the same results, and no warning."""

import json
import os
import subprocess
import sys

import numpy as np

from tests.support import kernel_numbers
from tests.support.paths import ROOT


def plain_numbers():
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.kernel_numbers"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    told = json.loads(run.stdout)
    assert told["off"]
    return told["numbers"]


def test_plans_episodes_bounds_and_learners_are_the_same_without_compiling():
    # Found by use: the hash of rows warned of an overflow, so that no world could be built where
    # warnings are errors. Logarithms of NumPy and of the compiler differ in the last bit.
    compiled, plain = kernel_numbers.numbers(), plain_numbers()
    assert compiled.keys() == plain.keys()
    for name, arrays in compiled.items():
        assert len(arrays) == len(plain[name]), name
        for one, other in zip(arrays, plain[name], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15, err_msg=name)
