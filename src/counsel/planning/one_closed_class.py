"""Policy iteration among advice with one closed class, for worlds that come back.

Where the best choices have several closed classes, e.g. one in which people are left alone and one
in which they are always advised, improving every choice and then leading to one class may undo the
improvement, for ever. Here a choice is changed only where another is better than the kept choice.
With g and h the gain and bias of the kept advice, the *lead* of a choice,

    lead = r + P h − h − g,

is 0 for the kept choice. The gain of a closed class of the changed advice is g plus the average of
the leads in that class. A class without a changed choice is the class of the kept advice, so there
are several classes only if one of them has a better gain: that class is kept, and outside of it
advice is changed where it never leads there. So the gain never falls; while it stays the same, the
biases rise; and iteration ends (Haviv and Puterman 1991; Puterman 1994, section 9.5).

The leads of the second value count where those of the first tie, and all of the above holds for the
pair in lexicographic order. When no lead is left, the first gain is the best of all advice, and the
second gain is the best of all advice with this first gain, because in its closed class any such
advice uses only choices that tie.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel.errors import CounselError
from counsel.planning.linear_equations import Equations
from counsel.planning.recurrence import Choices, Cycles, closed_classes

MOST_ROUNDS = 500
"""The most improvements of advice."""

RESIDUALS = 4.0
"""A lead must exceed the rounding in the leads of the kept choices by this factor."""


class Term(NamedTuple):
    """What every choice earns per step [k, x], and the least lead that is not a tie.

    That is ``tie`` times the sum of ``size`` and of the range of the bias.
    """

    earned_kx: Floats
    size: float
    tie: float


class Kept(NamedTuple):
    """The best advice [x], its first gain, both biases, and the largest lead of a first value."""

    advice_x: Ints
    gain: float
    biases: tuple[Floats, Floats]
    lead: float


def improve_in_one_class(choices: Choices, terms: tuple[Term, Term], advice_x: Ints) -> Kept:
    """Improve advice with one closed class until no choice leads; raise if that does not end."""
    cells = np.arange(advice_x.size)
    for _ in range(MOST_ROUNDS):
        equations = choices.equations(advice_x)
        cycles = Cycles(equations, closed_classes(equations)[0])
        (gain, bias, first_kx, least), (_, second_bias, second_kx, second_least) = (
            _leads(choices, cycles, term, advice_x) for term in terms
        )
        better_x = _better(first_kx, second_kx, (least, second_least), advice_x)
        is_changed = better_x != advice_x
        if not is_changed.any():
            settled_x = _settled((first_kx >= -least) & (second_kx >= -second_least))
            if len(closed_classes(choices.equations(settled_x))) == 1:
                advice_x = settled_x
            return Kept(advice_x, gain, (bias, second_bias), max(float(first_kx.max()), 0.0))
        first_x, second_x = first_kx[better_x, cells], second_kx[better_x, cells]
        first_x = np.where(first_x > least, first_x, 0.0)
        second_x = np.where(is_changed, second_x, 0.0)
        advice_x = _in_one_class(choices, better_x, (first_x, second_x))
    raise CounselError(
        f"the plan by the average per step has not converged after {MOST_ROUNDS} rounds; "
        "give a discount instead"
    )


def _leads(
    choices: Choices, cycles: Cycles, term: Term, advice_x: Ints
) -> tuple[float, Floats, Floats, float]:
    """Return the gain, the bias, the lead of every choice [k, x], and the least that counts."""
    own = (advice_x, np.arange(advice_x.size))
    gain, bias = cycles.gain_and_bias(term.earned_kx[own])
    later_kx = np.stack([matrix @ bias for matrix in choices.matrices])
    lead_kx = np.where(choices.possible, term.earned_kx + later_kx - bias - gain, -np.inf)
    rounding = RESIDUALS * float(np.abs(lead_kx[own]).max())
    return gain, bias, lead_kx, max(term.tie * (term.size + float(np.ptp(bias))), rounding)


def _better(first_kx: Floats, second_kx: Floats, least: tuple[float, float], kept_x: Ints) -> Ints:
    """Return the choice with the largest leads in each cell; the kept choice if it is as good."""
    top_x = first_kx.max(axis=0)
    leads = top_x > least[0]
    tied_kx = first_kx >= np.where(leads, np.maximum(top_x - least[0], least[0]), -least[0])
    tied_second_kx = np.where(tied_kx, second_kx, -np.inf)
    leads |= tied_second_kx.max(axis=0) > least[1]
    return np.where(leads, tied_second_kx.argmax(axis=0), kept_x)


def _settled(tied_kx: Bools) -> Ints:
    """Return silence where it ties in both values, else the lowest index that does."""
    silence = len(tied_kx) - 1
    return np.where(tied_kx[silence], silence, tied_kx.argmax(axis=0))


def _in_one_class(choices: Choices, advice_x: Ints, leads: tuple[Floats, Floats]) -> Ints:
    """Keep the closed class with the best leads on average, and lead there from everywhere."""
    equations = choices.equations(advice_x)
    classes = closed_classes(equations)
    if len(classes) == 1:
        return advice_x
    average_leads = []
    for cells in classes:
        matrix = equations.matrix[cells][:, cells].tocsr()
        begin, column = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        within = Equations(begin, column, matrix.data)
        visits = Cycles(within, np.arange(cells.size)).visits()
        average_leads.append(tuple(float(visits @ lead_x[cells]) for lead_x in leads))
    best = classes[average_leads.index(max(average_leads))]
    return choices.lead_to(best, advice_x, equations)
