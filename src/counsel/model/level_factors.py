"""The factor between the lifts of each level of a memory and those of the start, if there is one.

A lift is *cut* where the factor would make it larger than 1 or an adherence smaller than 0. Cut
lifts fit every factor that is large enough, so factors follow from the others. If lifts of the
start are cut, factors are those to the level with the fewest cut lifts.
"""

import numpy as np

from counsel._arrays import Bools, Floats

CLOSE = 1e-9


def level_factors(lift_mlsa: Floats, adherence_mlsa: Floats, start: int) -> Floats | None:
    """Return the factor [m] of each level; None if levels differ in more than a factor."""
    if not lift_mlsa.any():
        return np.ones(len(lift_mlsa))
    largest = lift_mlsa >= 1.0
    smallest = (lift_mlsa < 0.0) & (adherence_mlsa <= 0.0)
    is_cut = largest | smallest
    cuts = is_cut.sum(axis=(1, 2, 3))
    base = start
    if cuts[start]:
        moved = np.where(lift_mlsa.any(axis=(1, 2, 3)), cuts, is_cut[0].size + 1)
        base = start if moved[start] == moved.min() else int(moved.argmin())
    base_lsa = lift_mlsa[base]
    if not base_lsa.any():
        return None
    factors = np.array(
        [_factor(lift, base_lsa, cut) for lift, cut in zip(lift_mlsa, is_cut, strict=True)]
    )
    expected = factors[:, None, None, None] * base_lsa
    fits = np.abs(lift_mlsa - expected) <= CLOSE
    fits |= largest & (expected >= 1.0 - CLOSE)
    fits |= smallest & (expected <= lift_mlsa + CLOSE)
    return factors if fits.all() and factors.min() >= 0.0 else None


def _factor(lift_lsa: Floats, base_lsa: Floats, cut_lsa: Bools) -> float:
    """Return the factor by least squares over lifts that are not cut, else the least that fits."""
    base = np.where(cut_lsa, 0.0, base_lsa)
    if base.any():
        return float((lift_lsa * base).sum() / (base * base).sum())
    moves = base_lsa != 0.0
    return float((lift_lsa[moves] / base_lsa[moves]).max())
