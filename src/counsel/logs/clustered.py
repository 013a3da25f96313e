"""Statistics with errors clustered by person: decisions of one person are not independent.

A *score test* asks whether y depends on the columns of x within cells. With y and x centred in each
cell, the products x y are added up by cluster; if y does not depend on x, their sum over clusters
is 0 but for chance, and the clusters themselves show how large chance is (Hotelling's T²). It is
exact for many clusters and errs on the safe side for few.

*Weighted least squares* has the sandwich as its covariance, with each cluster's share in it made
larger as if the cluster had not been used in the fit (Bell and McCaffrey's, by whole clusters:
Mancl and DeRouen), and Student's quantile.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, Ints

MANY_CLUSTERS = 500
"""With more clusters, a single one hardly moves the fit."""

FEWEST_CLUSTERS = 10
"""With fewer people, or episodes, nothing is tested."""


@dataclass(frozen=True, slots=True)
class ScoreTest:
    """The p-value of a score test, and the share of the spread of y that x explains (√R²)."""

    p_value: float
    strength: float


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """Coefficients of weighted least squares with clustered standard errors."""

    coefficient: Floats
    covariance: Floats
    clusters: int
    influence: Floats  # what each cluster adds to the coefficients [cluster, column]

    def interval(self, weights: Floats) -> tuple[float, float, float]:
        """Return a weighted sum of the coefficients with its 95 % interval."""
        from scipy.special import stdtrit

        middle = float(weights @ self.coefficient)
        half = float(stdtrit(self.clusters - 1.0, 0.975) * self.error(weights))
        return middle, middle - half, middle + half

    def error(self, weights: Floats) -> float:
        """Return the standard error of a weighted sum of the coefficients."""
        return float(max(float(weights @ self.covariance @ weights), 0.0) ** 0.5)

    def p_value(self, weights: Floats) -> float:
        """Return the p-value of a weighted sum of the coefficients being 0."""
        from scipy.special import stdtr

        error = self.error(weights)
        if error == 0.0:
            return 1.0
        t = abs(float(weights @ self.coefficient)) / error
        return float(2.0 * stdtr(self.clusters - 1.0, -t))


def centre(columns: Floats, cell: Ints) -> Floats:
    """Return columns [row, …] minus their mean in each cell."""
    cells = int(cell.max(initial=-1)) + 1
    flat = columns.reshape(len(columns), -1)
    size = np.maximum(np.bincount(cell, minlength=cells), 1.0)
    means = np.stack([np.bincount(cell, column, cells) / size for column in flat.T], axis=1)
    away: Floats = (flat - means[cell]).reshape(columns.shape)
    return away


def score_test(y: Floats, x: Floats, cell: Ints, cluster: Ints) -> ScoreTest | None:
    """Test whether y [row] depends on x [row, column] within cells; None if nothing can be told."""
    from scipy.special import fdtrc

    if not y.size or not x.shape[1]:
        return None
    away_x, away_y = centre(x, cell), centre(y, cell)
    if not away_y.any():
        return None  # y is the same everywhere
    used = np.abs(away_x).any(axis=1)
    away_x, away_y = away_x[used], away_y[used]
    if not used.any():
        return None
    names, at = np.unique(cluster[used], return_inverse=True)
    G = names.size
    sums = np.stack([np.bincount(at, column * away_y, G) for column in away_x.T], axis=1)
    spread = sums.T @ sums
    score = sums.sum(axis=0)
    rank = int(np.linalg.matrix_rank(spread, hermitian=True))
    if G < FEWEST_CLUSTERS or rank == 0 or rank + 1 >= G:
        return None
    statistic = float(score @ np.linalg.pinv(spread, hermitian=True) @ score)
    hotelling = statistic * (G - 1.0) / max(G - statistic, 1e-12)
    p_value = float(fdtrc(rank, G - rank, hotelling * (G - rank) / (rank * (G - 1.0))))
    explained = float(score @ np.linalg.pinv(away_x.T @ away_x, hermitian=True) @ score)
    total = float((away_y**2).sum())
    return ScoreTest(p_value, float(np.sqrt(explained / total)) if total > 0.0 else 0.0)


def least_squares(y: Floats, x: Floats, cluster: Ints, weight: Floats | None = None) -> Regression:
    """Regress y [row] on x [row, column]."""
    weight = np.ones(y.size) if weight is None else weight
    bread = np.linalg.pinv(x.T @ (x * weight[:, None]), hermitian=True)
    coefficient: Floats = bread @ (x.T @ (weight * y))
    names, at = np.unique(cluster, return_inverse=True)
    residual = y - x @ coefficient
    score = x * (weight * residual)[:, None]
    if names.size > MANY_CLUSTERS:
        totals = np.stack([np.bincount(at, column) for column in score.T], axis=1)
        meat = names.size / (names.size - 1.0) * totals.T @ totals
        sums = totals * (names.size / (names.size - 1.0)) ** 0.5
    else:
        order = np.argsort(at, kind="stable")
        meat = np.zeros_like(bread)
        sums = np.zeros((names.size, len(bread)))
        for i, mine in enumerate(np.split(order, np.cumsum(np.bincount(at))[:-1])):
            # With the cluster left out of the fit, its residuals are (I − H)⁻¹ times as large.
            inside = x[mine].T @ (x[mine] * weight[mine][:, None])
            share = np.eye(len(bread)) - inside @ bread
            larger = np.linalg.lstsq(share, score[mine].sum(axis=0), rcond=1e-10)[0]
            meat += np.outer(larger, larger)
            sums[i] = larger
    return Regression(coefficient, bread @ meat @ bread, names.size, sums @ bread)
