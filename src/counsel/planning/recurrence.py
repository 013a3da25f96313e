"""Where work without end stays: closed classes of a policy, and worlds that come back.

A *closed class* of a policy is a set of cells (a state, on a level of the person's memory) that
lead to one another and that the policy never leaves. With one closed class the average reward per
step, the *gain* g, does not depend on the start. With P and r the transitions and rewards of the
policy, the *bias* h is what a start in each cell brings beyond g per step:

    h = r − g + P h

Both follow from cycles between two visits to one cell, the *home*. Without the column of the home
every path ends there, so x = r + G x is what a cycle brings from each cell on, τ = 1 + G τ is how
long it takes, and g = x / τ at home. The visits per cycle, divided by τ at home, are the share of
time that is spent in each cell.

**Worlds that come back.** If advice and silence can lead from everywhere to the cells that are
visited for ever, the best gain does not depend on the start either. Otherwise the world has two
sets of cells such that a policy may stay in either for ever and no policy leads from one to the
other and back: its maximal end components (de Alfaro 1997), which ``check_comes_back`` names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from counsel._arrays import Bools, Floats, Ints
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Model
from counsel.planning._level_kernels import Levels
from counsel.planning.linear_equations import EPSILON, FLOOR, Equations
from counsel.planning.stationary_policy import StationaryPolicy, stationary

STEPS_TO_FIND_HOME = 30
"""Steps of the chain after which the likeliest cell is taken as home."""

RARE, FADING = 10.0, 1e-6
"""A home is rare if its cycles take more than this many steps per cell. Then the cell that is
visited most is taken, with visits that fade by this share per step."""

REFINED = 3
"""The most corrections of a gain."""

NAMED = 3
"""At most this many states of a set are named."""


def strong_components(matrix: "sp.csr_matrix") -> Ints:
    """Return the number of the strongly connected component of each cell."""
    from scipy.sparse.csgraph import connected_components

    labels: Ints = connected_components(matrix, directed=True, connection="strong")[1]
    return labels.astype(np.int64)


def positive(equations: Equations) -> "sp.csr_matrix":
    """Return the matrix of equations without entries of 0."""
    matrix = equations.matrix
    if (matrix.data == 0.0).any():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix


def closed_classes(equations: Equations) -> list[Ints]:
    """Return the cells of each closed class, the class with the lowest cell first."""
    matrix = positive(equations)
    labels = strong_components(matrix)
    is_closed = np.ones(labels.max(initial=0) + 1, dtype=np.bool_)
    is_closed[labels[_leaving(matrix, labels)]] = False
    order = np.argsort(labels, kind="stable")
    begins = np.flatnonzero(np.diff(labels[order], prepend=-1))
    classes = [part for part in np.split(order, begins[1:]) if is_closed[labels[part[0]]]]
    return sorted(classes, key=lambda part: int(part[0]))


def _leaving(matrix: "sp.csr_matrix", labels: Ints) -> Ints:
    """Return the cells with a next cell in another component."""
    row = np.repeat(np.arange(labels.size), np.diff(matrix.indptr))
    return np.unique(row[labels[row] != labels[matrix.indices]])


def likeliest(equations: Equations, cells: Ints) -> int:
    """Return the cell of a closed class in which much time is spent."""
    x, transposed = np.zeros(equations.size), equations.transposed
    x[cells] = 1.0 / cells.size
    for _ in range(STEPS_TO_FIND_HOME):
        x = 0.5 * (x + transposed.multiply(x))  # half of them wait, so that cycles do not matter
    return int(cells[x[cells].argmax()])


def most_visited(equations: Equations, cells: Ints) -> int:
    """Return the cell of a closed class that is visited most in a very long time."""
    weight, start = (1.0 - FADING) * equations.weight, np.zeros(equations.size)
    start[cells] = 1.0 / cells.size
    fading = Equations(equations.begin, equations.column, weight, equations.threads)
    return int(cells[fading.transposed.solve(start)[cells].argmax()])


class Cycles:
    """What a policy with one closed class brings per step, from cycles between visits to home.

    The home is a cell of the class in which much time is spent: where visits are rare, the
    equations of a cycle are nearly singular.
    """

    def __init__(self, equations: Equations, cells: Ints) -> None:
        self._start_at(equations, likeliest(equations, cells))
        if not 0.0 < self.length[self.home] <= RARE * equations.size:
            self._start_at(equations, most_visited(equations, cells))

    def _start_at(self, equations: Equations, home: int) -> None:
        weight = np.where(equations.column == home, 0.0, equations.weight)
        self.equations, self.home = equations, home
        self.within = Equations(equations.begin, equations.column, weight, equations.threads)
        self.length: Floats = self.within.solve(np.ones(equations.size))

    def gain_and_bias(
        self,
        earned: Floats,
        *,
        near: float | None = None,
        guess: Floats | None = None,
        tolerance: float = 0.0,
    ) -> tuple[float, Floats]:
        """Return what is earned per step, and the bias of each cell, 0 at home.

        ``near`` and ``guess`` are a gain and a bias from which the search starts.
        """
        home, gain = self.home, near
        if gain is None:
            gain = float(self.within.solve(earned)[home] / self.length[home])
        # Where all cells earn the same, the differences are only rounding.
        tolerance = max(tolerance, FLOOR * EPSILON * (np.abs(earned).max() + abs(gain)))
        start = None if guess is None else guess - guess[home]
        bias = self.within.solve(earned - gain, guess=start, tolerance=tolerance)
        for _ in range(REFINED):
            more = float(bias[home] / self.length[home])
            gain, bias = gain + more, bias - more * self.length
            if abs(more) <= max(1e-15 * abs(gain), 0.1 * tolerance):
                break
            bias = self.within.solve(earned - gain, guess=bias, tolerance=tolerance)
        bias[home] = 0.0
        return gain, bias

    def visits(self) -> Floats:
        """Return the share of time in each cell."""
        start = np.zeros(self.equations.size)
        start[self.home] = 1.0
        visits: Floats = np.maximum(self.within.transposed.solve(start), 0.0)
        visits /= visits.sum()
        return visits


def part_of(chosen: StationaryPolicy, cells: Ints) -> StationaryPolicy:
    """Return a policy within a closed class."""
    matrix = chosen.equations.matrix[cells][:, cells].tocsr()
    begin, column = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    equations = Equations(begin, column, matrix.data, chosen.equations.threads)
    return StationaryPolicy(
        equations, chosen.reward[cells], chosen.cost[cells], chosen.pieces[cells]
    )


@dataclass(frozen=True, eq=False)
class Choices:
    """The transitions, reward and cost of every choice [k, x], and where it is possible.

    Silence is the last choice.
    """

    matrices: Sequence["sp.csr_matrix"]
    possible: Bools
    reward: Floats
    cost: Floats

    @cached_property
    def _stacked(self) -> "sp.csr_matrix":
        return sp.vstack(self.matrices, format="csr")

    def equations(self, advice_x: Ints) -> Equations:
        """Return the transitions of advice."""
        X = self.possible.shape[1]
        matrix = self._stacked[advice_x.astype(np.int64) * X + np.arange(X)]
        begin, column = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        return Equations(begin, column, matrix.data)

    def sets_to_stay_in(self) -> list[Ints]:
        """Return the maximal end components: sets of cells in which some policy stays for ever.

        Choices that may leave their component are dropped until there are none.
        """
        possible = self.possible.copy()
        while True:
            kept = [
                sp.diags(ok.astype(np.float64)) @ matrix
                for ok, matrix in zip(possible, self.matrices, strict=True)
            ]
            union = sum(kept[1:], kept[0]).tocsr()
            union.eliminate_zeros()
            labels, before = strong_components(union), int(possible.sum())
            for k, matrix in enumerate(kept):
                inside = matrix.tocsr()
                inside.eliminate_zeros()
                possible[k, _leaving(inside, labels)] = False
            if int(possible.sum()) == before:
                break
        cells = np.flatnonzero(possible.any(axis=0))
        order = cells[np.argsort(labels[cells], kind="stable")]
        begins = np.flatnonzero(np.diff(labels[order], prepend=-1))
        sets = [part for part in np.split(order, begins[1:]) if part.size]
        return sorted(sets, key=lambda part: int(part[0]))

    def lead_to(self, cells: Ints, advice_x: Ints, equations: Equations) -> Ints:
        """Change advice where it never leads to ``cells``, so that every path comes there."""
        K, X = self.possible.shape
        is_led = np.zeros(X, dtype=np.bool_)
        is_led[cells] = True
        is_led = equations.transposed.reached(is_led.astype(np.float64))
        advice_x = advice_x.copy()
        while not is_led.all():
            before = is_led.copy()
            for k in (K - 1, *range(K - 1)):  # silence first
                is_new = ~is_led & self.possible[k] & ((self.matrices[k] @ before) > 0.0)
                advice_x[is_new] = k
                is_led |= is_new
            if np.array_equal(before, is_led):
                raise AssertionError("the world comes back from every cell")
        return advice_x


def choices_of(model: Model, levels: Levels) -> Choices:
    """Return the transitions of every choice in every cell."""
    M, A = levels.after_cm.shape[1], model.policy_lsa.shape[2]
    possible_ks = np.vstack((model.permitted_lsa[0].T, ~model.required_ls[0]))
    matrices, rewards, costs = [], [], []
    for k in range(A + 1):
        advice_s = np.where(possible_ks[k], k, A).astype(np.int16)
        chosen = stationary(model, levels, np.tile(advice_s, (M, 1)))
        matrices.append(positive(chosen.equations))
        rewards.append(chosen.reward)
        costs.append(chosen.cost)
    possible = np.tile(possible_ks, (1, M))
    return Choices(matrices, possible, np.stack(rewards), np.stack(costs))


def always_reaches_silence(model: Model, levels: Levels) -> bool:
    """Return whether every choice can do in each cell what the person does alone."""
    if levels.after_cm.shape[1] > 1:
        return False
    lift = model.lift_lsa[0][model.permitted_lsa[0]]
    return bool(((lift >= 0.0) & (lift < 1.0)).all())


def check_comes_back(problem: AdviceProblem, sets: Sequence[Ints], kind_s: Ints | None) -> None:
    """Raise if there are two sets to stay in, and name their states."""
    if len(sets) < 2:
        return
    first, second = _names(problem, sets[:2], kind_s)
    raise CounselError(
        "the average per step needs a world that comes back to where it was, but one can stay in "
        f"{first} for ever or in {second} for ever, and no way leads from one to the other and "
        "back; give a discount instead"
    )


def only_class(problem: AdviceProblem, chosen: StationaryPolicy, start_x: Floats) -> Ints:
    """Return the closed class that a policy reaches from the start; raise if there are several."""
    reached = chosen.equations.reached(start_x)
    classes = [cells for cells in closed_classes(chosen.equations) if reached[cells[0]]]
    if len(classes) > 1:
        first, second = _names(problem, classes[:2], None)
        raise CounselError(
            f"the policy has no one average per step: it may stay in {first} for ever or in "
            f"{second} for ever; change the policy, or give a discount"
        )
    return classes[0]


def _names(problem: AdviceProblem, sets: Sequence[Ints], kind_s: Ints | None) -> list[str]:
    """Return the names of a few states of each set; with levels only where the states are alike."""
    size = problem.n_states if kind_s is None else int(kind_s.max()) + 1
    states = [np.unique(cells % size) for cells in sets]
    with_levels = np.intersect1d(states[0], states[1]).size > 0
    texts = []
    for own, cells in zip(states, sets, strict=True):
        shown = cells if with_levels else own
        names = []
        for x in shown[:NAMED].tolist():
            m, s = divmod(x, size)
            state = s if kind_s is None else int((kind_s == s).argmax())
            level = f" ({problem.memory.labels[m]})" if problem.memory and with_levels else ""
            names.append(problem.mdp.state_name(state) + level)
        more = f" and {shown.size - NAMED} more" if shown.size > NAMED else ""
        texts.append(", ".join(names) + more)
    return texts
