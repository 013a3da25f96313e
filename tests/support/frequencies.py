"""How far a frequency may lie from its probability.

Seeds are fixed, so a test that passed once passes always; what has to be justified is how far a
frequency may lie from its probability. A single number may miss by 4 standard errors, which a right
simulator does with probability 6.3e-5. Where many are compared, that probability is shared among
them (Bonferroni), and where a count is binomial its exact tail takes the place of the bell curve.
So each check wrongly fails with probability at most ``SLIP``, however much it compares. On top of
single cells, χ² over all of them finds a bias too small to be seen in any one; its lower tail finds
chance that is too regular.
"""

import numpy as np
from scipy.special import ndtr

from tests.support.later import Later

stats = Later("scipy.stats")


SLIP = 2 * ndtr(-4.0)
"""The probability of more than 4 standard errors: 6.3e-5."""

RARE = 1e-6
"""The probability with which a χ² may wrongly fail."""


def check_binomial(count, trials, chance):
    """Each count is binomial: the worst exact tail, times how many were compared, is no slip."""
    count, trials, chance = (np.ravel(x) for x in np.broadcast_arrays(count, trials, chance))
    chance = np.clip(chance, 0.0, 1.0)
    assert (count[chance == 0.0] == 0).all(), "what cannot happen did"
    assert (count[chance == 1.0] == trials[chance == 1.0]).all(), "what must happen did not"
    open_ = (trials > 0) & (chance > 0.0) & (chance < 1.0)
    if not open_.any():
        return 0
    count, trials, chance = count[open_], trials[open_], chance[open_]
    below, above = stats.binom.cdf(count, trials, chance), stats.binom.sf(count - 1, trials, chance)
    tail = 2 * np.minimum(below, above)
    worst = tail.argmin()
    assert tail[worst] * tail.size >= SLIP, (
        f"{count[worst]} of {trials[worst]} where {trials[worst] * chance[worst]:.1f} were due"
    )
    return tail.size


def check_chi_square(count_xk, chance_xk):
    """Rows of counts are multinomial: χ² summed over rows is neither too large nor too small.

    Cells with fewer than 5 due are merged with the largest of their row; a row of fewer than 20
    is left out. Neither choice looks at where the counts fell. Return the degrees of freedom.
    """
    count_xk = count_xk.reshape(-1, count_xk.shape[-1])
    chance_xk = chance_xk.reshape(count_xk.shape)
    total, freedom = 0.0, 0
    for count_k, chance_k in zip(count_xk, chance_xk, strict=True):
        n = count_k.sum()
        if n < 20:
            continue
        due_k = n * chance_k
        rest = due_k < 5.0
        rest[due_k.argmax()] = True
        count_k = np.append(count_k[~rest], count_k[rest].sum())
        due_k = np.append(due_k[~rest], due_k[rest].sum())
        total += ((count_k - due_k) ** 2 / due_k).sum()
        freedom += count_k.size - 1
    if freedom:
        assert stats.chi2.sf(total, freedom) >= RARE, f"χ² is {total:.1f} where {freedom} is due"
        assert stats.chi2.cdf(total, freedom) >= RARE, f"χ² is {total:.1f} where {freedom} is due"
    return freedom


def check_means(mean, error, expected):
    """Means lie within 4 standard errors, or as many more as there are of them."""
    mean, error, expected = (np.ravel(x) for x in np.broadcast_arrays(mean, error, expected))
    limit = stats.norm.isf(SLIP / 2 / mean.size)
    off = np.abs(mean - expected) - limit * error - 1e-9 * (1.0 + np.abs(expected))
    worst = off.argmax()
    assert off[worst] <= 0.0, (
        f"{mean[worst]:.6g} ± {error[worst]:.2g}, but {expected[worst]:.6g} is due"
    )
