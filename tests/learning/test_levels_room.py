"""A learner for more levels than fit into the machine's memory is refused with the sizes."""

import numpy as np
import pytest

import counsel
from counsel.learning import levels

LEARNERS = {
    "ucb-ad": lambda p: counsel.UCBAD(p.without_adherence()),
    "thompson": lambda p: counsel.Thompson(p.without_adherence(), rng=np.random.default_rng(0)),
    "rfe": lambda p: counsel.RFE(p.shape, rng=np.random.default_rng(0)),
    "structured": lambda p: counsel.Structured(p.shape, rng=np.random.default_rng(0)),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_that_would_not_fit_is_refused_with_its_sizes(name, monkeypatch):
    problem = counsel.make("ward/tiring")
    LEARNERS[name](problem)
    monkeypatch.setattr(levels, "MOST_BYTES", 1000.0)
    H, S, M = problem.horizon, problem.n_states, problem.n_levels
    with pytest.raises(counsel.CounselError, match=rf"{M} levels × {H} × {S} cells, 0 GB; give a"):
        LEARNERS[name](problem)
    LEARNERS[name](problem.without_memory())
