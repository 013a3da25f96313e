"""Intervals of a fading where the search ends at a bound, and where advice starts to repel."""

import math

import numpy as np
import pyarrow as pa

import counsel
from counsel.cli.memory_output import memory_record
from counsel.report import findings


def _fit(lifts):
    """A model of people with these lifts at their first and at a later piece of an episode."""
    rng, columns = np.random.default_rng(0), {}
    E, own = 3000, 0.4
    said = rng.random((E, 2)) < 0.5
    lift = np.stack((np.full(E, lifts[0]), np.where(said[:, 0], lifts[1], lifts[0])), axis=1)
    does = rng.random((E, 2)) < np.where(said, own + lift * (1.0 - own), own)
    columns["episode"] = np.repeat(np.arange(E), 2)
    columns["step"] = np.tile([0, 1], E)
    columns["person"] = [f"p{i % 20}" for i in columns["episode"]]
    columns["state"] = ["here"] * (2 * E)
    columns["advice"] = np.where(said, "act", None).reshape(-1)
    columns["action"] = np.where(does, "act", "wait").reshape(-1)
    columns["reward"] = np.ones(2 * E)
    table = pa.table({name: list(column) for name, column in columns.items()})
    return counsel.fit(table, memory="pieces=1")


def test_an_estimate_at_a_bound_once_had_an_interval_of_no_width():
    model = _fit((0.02, 0.7))
    fading = model.fading
    assert fading.factor[1] == 4.0
    assert (fading.low[1], fading.high[1]) == (0.0, math.inf)
    assert fading.is_known[1]
    assert findings.fading_cells(fading, 1)[2] == "400 % (interval cannot be told)"
    assert memory_record(model)["memory"]["fading"][1] == [4.0, 0.0, None]


def test_an_interval_once_ended_below_zero():
    fading = _fit((0.7, -0.3)).fading
    assert fading.factor[1] == fading.low[1] == fading.high[1] == 0.0
    assert findings.fading_cells(fading, 1)[2] == "0 % (the lift changes its sign)"
