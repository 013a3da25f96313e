"""Plans for a person with a memory whose lifts are estimated, made again as the estimates change.

The plan is that of ``planning.level_planner``, on the cells that can occur where these are few.
``pull`` holds a lift of each advice on each level, in the order [cell, level, advice]. With
``two_sided``, ``push`` holds a second one, and every advice stands twice in the plan: with the lift
in ``pull`` and with the lift in ``push``. The better of the two counts (``ucb_ad.py`` says why).
NaN leaves advice out.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counsel._arrays import Floats, layers, one_type, unlayered
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.memory import Memory, level_rows
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.planning._backward_kernels import expect_start
from counsel.planning._level_kernels import Levels, plan_back_levels
from counsel.planning.level_planner import check_size, space_of
from counsel.planning.prepared_problem import prepare

_T = TypeVar("_T", bound=np.generic)


class LevelPlan:
    """A plan on every level of a memory, for one or two lifts of each advice.

    ``own_lsa`` is the habit [layer, s, a]; ``penalty`` is one number per unit of cost, or one for
    each step.
    """

    cells = None

    def __init__(  # noqa: PLR0913 (the world, the person and the charges)
        self,
        mdp: MDP,
        own_lsa: Floats,
        memory: Memory,
        *,
        penalty: ArrayLike,
        cost: ArrayLike = 1.0,
        two_sided: bool = False,
    ) -> None:
        person = Human(unlayered(own_lsa), lift=0.0, memory=memory)
        problem = AdviceProblem(mdp, person, np.asarray(cost))
        check_size(problem)
        prepared = prepare(problem)
        part = prepared.reachable or prepared.whole
        self._levels, self._start, self._memory = prepared.levels, part.start, memory
        self._aim = prepared.at_price(prepared.free, np.atleast_1d(penalty))
        model, self._shape = part.model, (memory.n_levels, *problem.policy.shape)
        self._is_whole = part.cells is None
        if part.cells is None:
            L, S = max(len(own_lsa), len(layers(mdp.allowed))), problem.n_states
            self._step, self._state = np.divmod(np.arange(L * S), S)
            self._number, self._n_layers = self._state, L
        else:
            self._step, self._state = part.cells.step, part.cells.states
            self._number, self._n_layers = part.cells.number, problem.horizon
        (_, S, A), M, ends = model.policy_lsa.shape, memory.n_levels, 1 + two_sided
        self.pull = np.zeros(self._step.size * M * A)
        self.push: Floats | None = np.zeros(self.pull.size) if two_sided else None
        # Numbers of the smaller problem that stand for no cell are left out: they would all tie.
        self._lift_lsmea = np.full((self._n_layers, S, M, ends, A), np.nan)
        self._model = model._replace(pull_lsa=one_type((np.ones((1, S, ends * A)),))[0])
        self._reward_lsa = np.array(model.reward_lsa)
        self.left_out = ~self.aligned(np.tile(layers(mdp.allowed), M))
        H, self._space = problem.horizon, space_of(self._model, self._levels, 1.0, 1)
        self._V_hms, self._second_jms = np.empty((H + 1, M, S)), np.empty((2, M, S))
        self._advice_mhs: Advice = np.empty((M, H, S), dtype=np.int16)

    def aligned(self, table_lsx: NDArray[_T]) -> NDArray[_T]:
        """Return the numbers of a table [layer, s, level · A + a] in the order of ``pull``."""
        step = self._step if len(table_lsx) > 1 else 0
        chosen: NDArray[_T] = table_lsx[step, self._state]
        return chosen.reshape(-1)

    def lifts(self) -> Floats:
        """Return the lifts [m, h, s, a] in ``pull``; 0 for advice that is left out."""
        return np.nan_to_num(self._by_step(self.pull))

    def ends(self) -> Floats:
        """Return the lifts [end, m, h, s, a] in ``pull`` and ``push``; NaN if left out."""
        low = self.pull if self.push is None else self.push
        return np.stack((self._by_step(self.pull), self._by_step(low)))

    def _by_step(self, lifts: Floats) -> Floats:
        """Return lifts [m, h, s, a] from the order of ``pull``, 0 in cells that cannot occur."""
        M, H, S, A = self._shape
        lift_hsma, lift_cma = np.zeros((H, S, M, A)), np.reshape(lifts, (-1, M, A))
        if self._n_layers == 1:
            lift_hsma[:, self._state] = lift_cma
        else:
            lift_hsma[self._step, self._state] = lift_cma
        return np.moveaxis(lift_hsma, 2, 0)

    def set_rewards(self, reward_lsa: Floats) -> None:
        """Replace the rewards [layer, s, a]."""
        if self._is_whole:
            self._reward_lsa[:] = reward_lsa
            return
        step = self._step if len(reward_lsa) > 1 else 0
        self._reward_lsa[self._step, self._number] = reward_lsa[step, self._state]

    def advise(self) -> Advice:
        """Plan; return the advice [m, h, s]. Cells that cannot occur stay silent."""
        M, H, S, A = self._shape
        for end, lifts in enumerate((self.pull,) if self.push is None else (self.pull, self.push)):
            usable = np.where(self.left_out, np.nan, lifts).reshape(-1, M, A)
            self._lift_lsmea[self._step, self._number, :, end] = usable
        L, width = self._lift_lsmea.shape[:2]
        tables = self._lift_lsmea.reshape(L, width, -1), self._reward_lsa
        lift_lsx, reward_lsa = one_type(tables)
        model = self._model._replace(lift_lsa=lift_lsx, reward_lsa=reward_lsa)
        out = (self._V_hms, self._second_jms, self._advice_mhs)
        plan_back_levels(model, self._levels, self._aim, self._space, out, False)  # noqa: FBT003 (a kernel)
        silence = model.pull_lsa.shape[2]
        planned: Advice = np.where(self._advice_mhs == silence, A, self._advice_mhs % A).astype(
            np.int16
        )
        if self._is_whole:
            return planned
        advice: Advice = np.full((M, H, S), A, dtype=np.int16)
        advice[:, self._step, self._state] = planned[:, self._step, self._number]
        return advice

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy; its arrays must be read-only again, or kernels are compiled anew."""
        vars(self).update(state)
        self._model, self._start = one_type(self._model), one_type((self._start,))[0]
        self._levels = Levels(*level_rows(self._memory), is_hard=False)
        self._aim = self._aim._replace(price0_h=one_type((self._aim.price0_h,))[0])

    @property
    def value(self) -> float:
        """The value of the last plan from the start, less the charge for advice."""
        return expect_start(self._start, self._V_hms[0, self._memory.start])
