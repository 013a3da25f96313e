"""Peer solvers for finite-horizon MDPs, all fed the same plain arrays.

The problem form everywhere is a stationary MDP with ``S`` states, ``B``
actions and start state 0:

- ``matrix``: scipy CSR of shape ``(S * B, S)``; row ``s * B + b`` is the
  distribution ``p(. | s, b)``; every row is non-empty and sums to one;
- ``reward``: float array of shape ``(S, B)``;
- ``horizon``: number of decision steps ``H >= 1``; nothing is discounted.

Every ``*_plan`` function does all preparation (conversion, model building,
JIT warm-up) and returns a zero-argument callable.  Only that call is meant to
be timed.  It returns the values of all states at step 0, i.e. the maximal
expected sum of reward over exactly ``horizon`` steps.

Peer libraries are imported inside the functions that need them, so any one of
them may be missing.
"""

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
SparseRows: TypeAlias = "sparse.csr_array | sparse.csr_matrix"
Plan: TypeAlias = Callable[[], FloatArray]
BudgetPlan: TypeAlias = Callable[[], tuple[float, float]]


def scipy_plan(matrix: SparseRows, reward: FloatArray, horizon: int) -> Plan:
    """Plain scipy backward induction: one sparse product and one max per step."""
    states, _ = reward.shape

    def solve() -> FloatArray:
        value = np.zeros(states)
        for _ in range(horizon):
            value = (reward + (matrix @ value).reshape(reward.shape)).max(axis=1)
        return value

    return solve


def quantecon_prefers_dense(matrix: SparseRows) -> bool:
    """Say whether QuantEcon is faster on a dense than on a sparse matrix.

    Fitted to timings: a dense entry costs about 0.15 ns per step (BLAS gemv),
    a stored sparse entry about 0.7 ns, and the scipy product has about 3.5 us
    more fixed overhead per step.
    """
    rows, columns = matrix.shape
    return bool(rows * columns <= 5 * matrix.nnz + 20_000)


def quantecon_model(matrix: SparseRows, reward: FloatArray) -> Any:
    """Build a QuantEcon ``DiscreteDP`` in state-action-pair form with beta = 1.

    The state-action-pair form is used for dense matrices too: its numba
    max/argmax kernel beats the numpy ``argmax`` plus fancy indexing of the
    product form at every size measured.
    """
    from quantecon.markov.ddp import DiscreteDP

    states, actions = reward.shape
    transitions = matrix.toarray() if quantecon_prefers_dense(matrix) else matrix
    with warnings.catch_warnings():
        # Only the constructor warns; backward induction is valid for beta = 1.
        warnings.filterwarnings(
            "ignore",
            message="infinite horizon solution methods are disabled with beta=1",
            category=UserWarning,
        )
        return DiscreteDP(
            reward.ravel(),
            transitions,
            1.0,
            np.repeat(np.arange(states), actions),
            np.tile(np.arange(actions), states),
        )


def quantecon_plan(matrix: SparseRows, reward: FloatArray, horizon: int) -> Plan:
    """Plan with ``quantecon.markov.ddp.backward_induction``.

    QuantEcon always records the greedy policy of every step as well; there is
    no switch for leaving that out.
    """
    from quantecon.markov.ddp import backward_induction

    model = quantecon_model(matrix, reward)
    backward_induction(model, 1)  # loads or compiles the numba kernels

    def solve() -> FloatArray:
        values, _policy = backward_induction(model, horizon)
        first: FloatArray = values[0]
        return first

    return solve


def quantecon_endless(
    matrix: SparseRows, reward: FloatArray, discount: float, error: float
) -> Plan:
    """Plan discounted work with QuantEcon's modified policy iteration."""
    from quantecon.markov import DiscreteDP

    states, actions = reward.shape
    pairs = (np.repeat(np.arange(states), actions), np.tile(np.arange(actions), states))
    model = DiscreteDP(reward.reshape(-1), matrix, discount, *pairs)

    def solve() -> FloatArray:
        solved = model.solve(method="modified_policy_iteration", epsilon=error, max_iter=10_000)
        values: FloatArray = solved.v
        return values

    solve()  # loads or compiles the numba kernels
    return solve


def canonical(matrix: SparseRows) -> sparse.csr_array:
    """Copy with sorted columns, duplicates summed and stored zeros removed."""
    copy = sparse.csr_array(matrix, copy=True)
    copy.sum_duplicates()
    copy.eliminate_zeros()
    return copy


def storm_matrix(matrix: SparseRows, actions: int, block: int = 256) -> Any:
    """Build Storm's transition matrix, one row group of ``actions`` rows per state.

    ``add_next_values`` takes whole sequences, row by row and column by column.
    Feeding it lists for ``block`` states at a time takes about 0.1 us per entry
    and little memory; one call with all entries as lists or as numpy arrays is
    4 to 5 times slower (8 million entries: 0.8 s against 3 to 4 s).
    """
    from stormpy.datastructures import SparseMatrixBuilder

    entries = canonical(matrix)
    rows, states = entries.shape
    builder = SparseMatrixBuilder[float](
        rows=rows,
        columns=states,
        entries=entries.nnz,
        has_custom_row_grouping=True,
        row_groups=states,
    )
    row_of = np.repeat(np.arange(rows), np.diff(entries.indptr))
    for first in range(0, rows, block * actions):
        last = min(first + block * actions, rows)
        part = slice(entries.indptr[first], entries.indptr[last])
        builder.add_next_values(
            row_of[part].tolist(),
            entries.indices[part].tolist(),
            entries.data[part].tolist(),
            list(range(first, last, actions)),
        )
    return builder.build()


def storm_model(matrix: SparseRows, reward: FloatArray) -> Any:
    """Build a Storm sparse MDP with state-action rewards and 'init' on state 0."""
    from stormpy.models import (
        SparseMdp,
        SparseModelComponents,
        SparseRewardModel,
        StateLabeling,
    )

    states, actions = reward.shape
    labeling = StateLabeling(states)
    labeling.add_label("init")
    labeling.add_label_to_state("init", 0)
    rewards = SparseRewardModel[float](optional_state_action_reward_vector=reward.ravel().tolist())
    components = SparseModelComponents[float](
        transition_matrix=storm_matrix(matrix, actions),
        state_labeling=labeling,
        reward_models={"reward": rewards},
    )
    return SparseMdp[float](components)


def storm_plan(matrix: SparseRows, reward: FloatArray, horizon: int) -> Plan:
    """Plan by model checking ``Rmax=? [C<=H]`` with Storm's sparse engine.

    ``C<=H`` sums the rewards of exactly the first H choices (H Bellman steps
    from zero; ``C<H`` would be H - 1 of them), negative rewards included.  It
    is a step-bounded property, so Storm does H exact double-precision steps:
    no precision, solver or environment setting has any influence.

    Every check first repacks the whole matrix into Storm's value-iteration
    operator, a fixed cost of a few Bellman steps that cannot be kept between
    calls.  Storm returns no policy for this property, and
    ``only_initial_states`` changes neither the work nor the result.
    """
    from stormpy import Engine, model_checking, parse_properties

    model = storm_model(matrix, reward)
    formula = parse_properties(f'R{{"reward"}}max=? [C<={horizon}]')[0]

    def solve() -> FloatArray:
        result = model_checking(model, formula, only_initial_states=False, engine=Engine.SPARSE)
        return np.array(result.get_value_vector())

    return solve


def mdptoolbox_plan(matrix: SparseRows, reward: FloatArray, horizon: int) -> Plan:
    """Plan with ``mdptoolbox.mdp.FiniteHorizon`` of pymdptoolbox, which also records the policy.

    The matrices are dense: at 141 states they are five times as fast as sparse ones. The library
    checks its matrices in S x S numbers even if they are sparse, 28 GB for 59,050 states, so only
    small problems fit.
    """
    from mdptoolbox.mdp import FiniteHorizon

    states, actions = reward.shape
    dense = matrix.toarray().reshape(states, actions, states)
    transitions = np.ascontiguousarray(dense.swapaxes(0, 1))
    with contextlib.redirect_stdout(io.StringIO()):  # it prints a remark on discount 1
        model = FiniteHorizon(transitions, reward, 1.0, horizon)

    def solve() -> FloatArray:
        model.run()
        return np.array(model.V[:, 0])

    return solve


@dataclass(frozen=True)
class OccupancyLP:
    """Occupancy-measure LP of a budgeted MDP, to be maximised over ``x >= 0``.

    Attributes
    ----------
        gain: objective coefficient of every variable ``x[h, s, b]``.
        spend: budget-row coefficient of every variable.
        flow: flow rows; one per ``(h, s)`` reachable from the start.
        inflow: right-hand side of ``flow @ x == inflow``.
        budget: right-hand side of ``spend @ x <= budget``.
    """

    gain: FloatArray
    spend: FloatArray
    flow: sparse.csc_array
    inflow: FloatArray
    budget: float


def reachable_layers(matrix: SparseRows, states: int, horizon: int) -> list[IntArray]:
    """States that some policy can occupy at step h from state 0, for h < horizon."""
    actions = matrix.shape[0] // states
    layers = [np.zeros(1, dtype=np.int64)]
    for _ in range(horizon - 1):
        rows = action_rows(layers[-1], actions)
        layers.append(np.unique(canonical(matrix[rows]).indices).astype(np.int64))
    return layers


def action_rows(states: IntArray, actions: int) -> IntArray:
    """Row numbers of all state-action pairs of the given states."""
    return (states[:, None] * actions + np.arange(actions)).ravel()


def occupancy_lp(
    matrix: SparseRows,
    reward: FloatArray,
    cost: FloatArray,
    horizon: int,
    budget: float,
) -> OccupancyLP:
    """Assemble the occupancy LP over the reachable part of the time-state space."""
    states, actions = reward.shape
    layers = reachable_layers(matrix, states, horizon)
    pairs = [action_rows(layer, actions) for layer in layers]
    blocks: list[list[Any]] = [[None] * horizon for _ in range(horizon)]
    for step, layer in enumerate(layers):
        blocks[step][step] = sparse.kron(sparse.eye_array(layer.size), np.ones((1, actions)))
        if step + 1 < horizon:
            blocks[step + 1][step] = -matrix[pairs[step]][:, layers[step + 1]].T
    flow = sparse.csc_array(sparse.block_array(blocks, format="csc"))
    inflow = np.zeros(flow.shape[0])
    inflow[0] = 1.0
    chosen = np.concatenate(pairs)
    return OccupancyLP(
        gain=reward.ravel()[chosen],
        spend=cost.ravel()[chosen],
        flow=flow,
        inflow=inflow,
        budget=float(budget),
    )


def highs_model(lp: OccupancyLP) -> Any:
    """Convert the LP to a ``highspy.HighsLp`` whose last row is the budget."""
    import highspy

    rows = sparse.csc_array(
        sparse.vstack([lp.flow, sparse.csr_array(lp.spend[None, :])], format="csc")
    )
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = rows.shape
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = lp.gain
    model.col_lower_ = np.zeros(lp.gain.size)
    model.col_upper_ = np.full(lp.gain.size, highspy.kHighsInf)
    model.row_lower_ = np.append(lp.inflow, -highspy.kHighsInf)
    model.row_upper_ = np.append(lp.inflow, lp.budget)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = rows.indptr
    model.a_matrix_.index_ = rows.indices
    model.a_matrix_.value_ = rows.data
    return model


def highs_run(model: Any, basis: Any, tolerance: float, solver: str) -> Any:
    """Load a model into a fresh HiGHS, solve it, and return the HiGHS object.

    It is fresh because a second ``run()`` on the same object would merely
    return the basis it already has.  ``basis`` may be None for a cold start.
    """
    import highspy

    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("solver", solver)
    highs.setOptionValue("primal_feasibility_tolerance", tolerance)
    highs.setOptionValue("dual_feasibility_tolerance", tolerance)
    highs.passModel(model)
    if basis is not None:
        highs.setBasis(basis)
    highs.run()
    status = highs.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"HiGHS: {highs.modelStatusToString(status)}")
    return highs


def highs_answer(highs: Any) -> tuple[float, float]:
    """Read the optimal value and the dual of the last row (the budget)."""
    return float(highs.getObjectiveValue()), float(highs.getSolution().row_dual[-1])


def highs_budget_lp(
    matrix: SparseRows,
    reward: FloatArray,
    cost: FloatArray,
    horizon: int,
    budget: float,
    tolerance: float = 1e-10,
    solver: str = "simplex",
) -> BudgetPlan:
    """Solve the budgeted MDP with HiGHS from scratch.

    The call gives the value from state 0 and the price of the budget, i.e. the
    derivative of that value by the budget (>= 0).

    The value is wrong by about ``price * tolerance`` (seen at price 226: 2e-5
    with HiGHS' own tolerance of 1e-7, 3e-8 with 1e-10).  The default here is
    the tightest that HiGHS accepts and costs about a tenth more time.  Where
    the value has a kink in the budget, any price between its slopes may come.
    """
    model = highs_model(occupancy_lp(matrix, reward, cost, horizon, budget))

    def solve() -> tuple[float, float]:
        return highs_answer(highs_run(model, None, tolerance, solver))

    return solve
