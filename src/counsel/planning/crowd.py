"""The prices of pieces at each step by turns: gains backwards, a crowd of people forwards.

If a limit of k pieces per step holds only on average, a team is a crowd that moves as expected. In
the best plan the cells with the largest gains are served at each step until its k pieces are used;
the first cell for which they do not suffice is the *marginal* cell of the step. One more piece
would go there, so its gain is the price.

A pass backwards takes the marginal cells of the last pass forwards and computes gains, prices and
values together: at step h all gains follow from the values at h + 1, the price β_h is the gain of
the marginal cell, and a cell is worth silence plus max(gain − β_h, 0). A pass forwards serves the
crowd by these gains, which gives new marginal cells.

Every pass backwards proves the bound D(β) of ``per_step.py``, and every pass forwards earns a value
that keeps the limit on average. If the marginal cells stay the same, everybody who is served has a
gain of at least the price and everybody who is not has at most that, so bound and value meet: both
are optimal (complementary slackness). That mostly takes a few turns. Where turns repeat themselves,
e.g. because cells tie, ``step_prices.py`` searches on from the best prices.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Floats, Ints, sealed
from counsel.model.random_cells import Advice
from counsel.planning._backward_kernels import Model
from counsel.planning._crowd_kernels import (
    fill_best_gains,
    move_crowd,
    serve_cells,
    serve_steps,
    settle_step,
    settle_steps,
)
from counsel.planning._level_kernels import Levels, Space
from counsel.planning.level_planner import space_of
from counsel.planning.step_prices import GAP, Kind, Mix

MOST_TURNS = 30
"""Turns after which prices are searched for in another way."""

SAME_GAIN = 1e-9
"""Gains that differ by less than this share of the largest are equal."""

_T = TypeVar("_T", bound=np.generic)


class Gains(NamedTuple):
    """The gain of the best advice in each cell of all kinds of people, and this advice [h, x]."""

    gain: Floats
    advice: Advice


class Prices(NamedTuple):
    """Prices of each step, the bound that they prove, and the gains under their values."""

    price_h: Floats
    bound: float
    gains: Gains


class Served(NamedTuple):
    """What a crowd earns if it is served by its gains, what each kind gets, and marginal cells."""

    value: float
    mixes: list[Mix]
    marginal_h: Ints


class _Part(NamedTuple):
    """The cells of one kind of person: the part of the crowd that they are, and how they move."""

    cells: slice
    shape: tuple[int, int]
    people: int
    model: Model
    levels: Levels
    space: Space
    mass_dr: Floats


class Crowd:
    """A team in which everybody moves as expected, and k pieces per step."""

    def __init__(self, kinds: Sequence[Kind], k: int) -> None:
        self.kinds, self.k, self.horizon = kinds, k, kinds[0].problem.horizon
        self._parts, first = list[_Part](), 0
        for kind in kinds:
            prepared, M, S = kind.planner.prepared, kind.problem.n_levels, kind.problem.n_states
            model, levels = prepared.whole.model, prepared.levels
            rows = int(np.diff(model.first_row_l).max())
            mass_dr = np.zeros((levels.indptr.size - 1, rows))
            space, cells = space_of(model, levels, 1.0, 1), slice(first, first + M * S)
            self._parts.append(_Part(cells, (M, S), kind.people, model, levels, space, mass_dr))
            first += M * S
        self.people_x: Floats = np.zeros(first)
        for kind, part in zip(kinds, self._parts, strict=True):
            people_ms = self.people_x[part.cells].reshape(part.shape)
            people_ms[kind.problem.level_of(None)] = kind.people * kind.problem.mdp.start

    def take_turns(self) -> tuple[Prices, Served]:
        """Return the prices with the least bound, and how the crowd is served at the best value."""
        marginal_h: Ints = np.full(self.horizon, -1)
        best: Prices | None = None
        best_served: Served | None = None
        for _ in range(MOST_TURNS):
            prices = self.look_back(marginal_h)
            served = self.serve(prices.gains)
            if best is None or prices.bound < best.bound:
                best = prices
            if best_served is None or served.value > best_served.value:
                best_served = served
            is_settled = best.bound - best_served.value <= GAP * abs(best.bound)
            if is_settled or np.array_equal(served.marginal_h, marginal_h):
                break
            marginal_h = served.marginal_h
        if best is None or best_served is None:
            raise AssertionError("there is at least one turn")
        return best, best_served

    def look_back(self, marginal_h: Ints | None = None, price_h: Floats | None = None) -> Prices:
        """Return prices, their bound and gains.

        Prices are given, or are the gains of the marginal cells; a step with cell −1 is free.
        """
        H, X = self.horizon, self.people_x.size
        gain_hx, advice_hx = np.empty((H, X)), np.empty((H, X), dtype=np.int16)
        price_h = np.zeros(H) if price_h is None else price_h.copy()
        marginal_h = np.full(H, -1) if marginal_h is None else marginal_h
        value_x, silent_x = np.zeros(X), np.empty(X)
        if len(self._parts) == 1:  # all steps at once
            [part] = self._parts
            tables, value_ms = (gain_hx, advice_hx), value_x.reshape(part.shape)
            settle_steps(part.model, part.levels, part.space, marginal_h, price_h, value_ms, tables)
        else:
            for h in reversed(range(H)):
                for part in self._parts:
                    then_ms, silent_ms, gain_ms = (
                        table_x[part.cells].reshape(part.shape)
                        for table_x in (value_x, silent_x, gain_hx[h])
                    )
                    found = (silent_ms, gain_ms, advice_hx[h, part.cells].reshape(part.shape))
                    fill_best_gains(part.model, part.levels, h, then_ms, part.space, found)
                price_h[h] = settle_step(gain_hx[h], silent_x, marginal_h[h], price_h[h], value_x)
        bound = float(self.people_x @ value_x) + self.k * float(price_h.sum())
        return Prices(price_h, bound, Gains(gain_hx, advice_hx))

    def serve(self, gains: Gains) -> Served:
        """Move the crowd from the start, and serve the largest gains at each step."""
        H, X = gains.gain.shape
        least = SAME_GAIN * max(float(gains.gain.max(initial=0.0)), 0.0)
        order_hx = np.argsort(-gains.gain, axis=1, kind="stable")
        marginal_h, now_h2x = np.empty(H, np.int64), np.empty((H, 2, X))
        earned_n = np.zeros(len(self._parts))
        if len(self._parts) == 1:  # all steps at once
            [part] = self._parts
            earned_n[0] = serve_steps(
                part.model,
                part.levels,
                self.k,
                least,
                (gains.gain, order_hx, gains.advice),
                part.mass_dr,
                self.people_x.reshape(part.shape),
                (marginal_h, now_h2x),
            )
        else:
            now_x = self.people_x
            for h in range(H):
                marginal_h[h] = serve_cells(
                    gains.gain[h], order_hx[h], now_x, self.k, least, now_h2x[h]
                )
                now_x = np.zeros(X)
                for i, part in enumerate(self._parts):
                    earned_n[i] += move_crowd(
                        part.model,
                        part.levels,
                        h,
                        now_h2x[h, :, part.cells].reshape(2, *part.shape),
                        gains.advice[h, part.cells].reshape(part.shape),
                        part.mass_dr,
                        now_x[part.cells].reshape(part.shape),
                    )
        served_hx, people_hx = now_h2x[:, 1], now_h2x.sum(axis=1)
        chance_hx = np.divide(served_hx, people_hx, out=np.zeros((H, X)), where=people_hx > 0.0)
        mixes = [
            Mix(
                float(earned) / part.people,
                float(served_hx[:, part.cells].sum()) / part.people,
                sealed(np.minimum(self.table(chance_hx, i), 1.0)),
            )
            for i, (part, earned) in enumerate(zip(self._parts, earned_n, strict=True))
        ]
        return Served(float(earned_n.sum()), mixes, marginal_h)

    def table(self, table_hx: NDArray[_T], kind: int) -> NDArray[_T]:
        """Return the part of a table of one kind of person: [h, s], with a memory [m, h, s]."""
        part, problem = self._parts[kind], self.kinds[kind].problem
        table_mhs = table_hx[:, part.cells].reshape(self.horizon, *part.shape).swapaxes(0, 1)
        return np.ascontiguousarray(table_mhs if problem.memory else table_mhs[0])
