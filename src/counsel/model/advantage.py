"""Advantage and gain: how much better an action is than what the person does alone."""

import numpy as np

from counsel._arrays import Floats
from counsel.model._kernels import fill_advantages


def advantages(own: Floats, values: Floats) -> Floats:
    """Return values(a) − Σ_b π(b) values(b) along the last axis.

    For an action the person takes most of the time it is Σ_b π(b) (values(a) − values(b)): the
    plain difference would lose its digits, and a lift far below 0 magnifies that. A value of −∞
    marks an infeasible action: its advantage is −∞, and the others' is ∞ if the person may take it.
    """
    if own.shape != values.shape:
        own, values = np.broadcast_arrays(own, values)
    shape = values.shape
    tables = (np.array(table, order="C") for table in (own, values))
    own_na, values_na = (table.reshape(-1, shape[-1]) for table in tables)
    advantage_na = np.empty_like(values_na)
    fill_advantages(own_na, values_na, advantage_na)
    return advantage_na.reshape(shape)


def gain_of(lift: Floats, advantage: Floats) -> Floats:
    """Return lift × advantage, and 0 where the lift is 0 even if the advantage is infinite."""
    moves = lift != 0.0
    gain: Floats = np.where(moves, lift, 0.0) * np.where(moves, advantage, 0.0)
    return gain
