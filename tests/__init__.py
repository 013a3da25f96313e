"""The tests. Linear algebra has one thread: several wait for each other at full load."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy and SciPy are loaded
