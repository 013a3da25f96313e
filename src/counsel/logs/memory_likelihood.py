"""The likelihood of kinds of memory with a geometric fading, on the same pieces of advice.

Every kind has one number, so likelihoods are compared as they are. Time in the study is held: it
multiplies the lift by the fading that is likeliest without a memory.
"""

from dataclasses import dataclass, replace

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel.logs.fading import (
    RARE,
    LevelCounts,
    fit_free,
    fit_geometric,
    fit_plain,
    reference_level,
)
from counsel.logs.listening import Listening
from counsel.logs.memory_kind import MemoryKind


@dataclass(frozen=True, slots=True, eq=False)
class KindLikelihood:
    """The likelihood of one kind."""

    factor: float  # what a unit of the scale multiplies the lift by
    improvement: float  # of the log likelihood over none
    fading: tuple[float, ...]  # the likeliest factor of each level, NaN where there are no pieces
    by_cluster: Floats  # the log likelihood of each cluster's pieces

    def advantage(self, other: "KindLikelihood") -> float:
        """Return by how many errors the likelihood is above another (Vuong's statistic)."""
        apart = self.by_cluster - other.by_cluster
        error = float(np.sqrt(((apart - apart.mean()) ** 2).sum()))
        return float(apart.sum()) / error if error > 0.0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """Pieces of advice that were seen; arrays are [row]."""

    pair: Ints  # of state and advice
    advice: Ints
    match: Bools
    habit: Floats
    cluster: Ints

    @classmethod
    def of(cls, listening: Listening) -> "_Pieces":
        rows, some = listening.rows, listening.advised
        said, own = rows.advice[some], listening.base[some]
        # A fit by step has a habit for each step.
        keys = np.stack((rows.state[some], said, np.round(own * 1e12).astype(np.int64)), axis=1)
        pair = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
        cluster = np.unique(rows.cluster[rows.episode][some], return_inverse=True)[1]
        return cls(pair, said, rows.action[some] == said, own, cluster)


def likelihoods(
    listening: Listening, kinds: tuple[MemoryKind, ...], levels: Ints
) -> list[KindLikelihood]:
    """Return the likelihood of each kind, given the levels [row, kind] of all decisions."""
    pieces, levels = _Pieces.of(listening), levels[listening.advised]
    names = [kind.kind for kind in kinds]
    band: Ints = np.zeros(pieces.pair.size, dtype=np.int64)
    waning = np.ones(1)
    fits = dict[int, KindLikelihood]()
    if "tenure" in names:
        i = names.index("tenure")
        fits[i], found = _fit(pieces, kinds[i], levels[:, i], band, waning)
        band, waning = levels[:, i], found
    for i, kind in enumerate(kinds):
        if i not in fits:
            fits[i], _ = _fit(pieces, kind, levels[:, i], band, waning)
    return [fits[i] for i in range(len(kinds))]


def _fit(
    pieces: _Pieces, kind: MemoryKind, level: Ints, band: Ints, waning: Floats
) -> tuple[KindLikelihood, Floats]:
    """Return the likelihood of a kind where time in the study multiplies lifts, and its fading."""
    entry, counts = _count(pieces, level, kind.n_levels, band, waning)
    plain, fitted = fit_plain(counts), fit_geometric(counts, kind.scale)
    back = np.empty_like(counts.order)
    back[counts.order] = np.arange(counts.order.size)
    chance = counts.chances(fitted.lift, fitted.fading)[back[entry], level]
    log = np.where(pieces.match, np.log(chance), np.log1p(-chance))
    far = int(kind.scale.argmax())
    factor = float(fitted.fading[far] ** (1.0 / kind.scale[far]))
    improvement = float(fitted.height - plain.height)
    by_cluster = np.bincount(pieces.cluster, log).astype(np.float64)
    total = counts.given.sum(axis=0)
    free = fit_free(counts, reference_level(kind, total)).fading
    by_level = tuple(np.where(total > 0.0, np.maximum(free, 0.0), np.nan).tolist())
    return KindLikelihood(factor, improvement, by_level, by_cluster), fitted.fading


def _count(
    pieces: _Pieces, level: Ints, levels: int, band: Ints, waning: Floats
) -> tuple[Ints, LevelCounts]:
    """Count pieces by pair, band and level; also return the entry of each row."""
    bands = waning.size
    key, entry = np.unique(pieces.pair * bands + band, return_inverse=True)
    E = key.size
    given, matched = (
        np.bincount(entry * levels + level, weight, E * levels).astype(np.float64)
        for weight in (np.ones(entry.size), pieces.match.astype(np.float64))
    )
    habit, advice = np.empty(E), np.empty(E, dtype=np.int64)
    habit[entry], advice[entry] = pieces.habit, pieces.advice
    pair = key // bands
    often = np.bincount(pieces.pair)[pair] >= RARE
    unit = np.where(often, pair, pair.max() + 1 + advice)
    shape = (E, levels)
    counts = LevelCounts.of(given.reshape(shape), matched.reshape(shape), habit, unit)
    return entry, replace(counts, room=counts.room * waning[(key % bands)[counts.order]])
