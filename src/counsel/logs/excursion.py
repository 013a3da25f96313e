"""Causal excursion effects: what sending advice changes at once, without a model of the world.

The standard analysis of micro-randomised trials (Boruvka, Almirall, Witkiewitz and Murphy, 2018):
weighted and centred least squares. With T whether advice is sent, p its probability, p̃ the mean
probability in that state, and weights p̃ / p if advice was sent and (1 − p̃) / (1 − p) if not,

    y = controls + (T − p̃) (β₀ + β₁ z)

is fitted with errors clustered by person. Controls are the state and the step; centring T makes the
answer right even where they are wrong. β₀ is the effect on y, averaged over the states of the log;
with z = time in the study since it began for the person, β₀ is the effect at the start and β₁ its
change. y is the reward, or whether the action is the advised one (in silence: as often as the
advice given in that state would have been matched).
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.logs.clustered import FEWEST_CLUSTERS, least_squares
from counsel.logs.decisions import Decisions
from counsel.logs.importance_weights import logged_chances
from counsel.logs.listening import CLEAR, STAY
from counsel.model.problem import AdviceProblem

MOST_CONTROLS = 100
"""States that are told apart as controls: the most frequent."""


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect with its 95 % interval and p-value."""

    value: float
    low: float
    high: float
    p_value: float

    @property
    def is_clear(self) -> bool:
        """Whether chance does not explain the effect."""
        return self.p_value < CLEAR


@dataclass(frozen=True, slots=True)
class ExcursionEffect:
    """The effect of sending advice on an outcome at once; the last two if times are known."""

    outcome: str  # "reward" or "match"
    silent: float  # the mean outcome in silence
    average: Effect
    at_start: Effect | None  # when a person's time in the study begins
    change: Effect | None  # from there to the end of it
    decisions: int


def excursion_effects(rows: Decisions, problem: AdviceProblem) -> tuple[ExcursionEffect, ...]:
    """Return the effects of sending advice on the reward and on matching; none if unknown.

    Decisions count where there was both advice and silence in that state and step.
    """
    sent = rows.advice < problem.n_actions
    chance, is_recorded = logged_chances(rows, problem)
    of_advice = np.where(sent, chance, 1.0 - chance)
    if not is_recorded:
        of_advice = _share(rows.state * rows.horizon + rows.place, sent.astype(np.float64))
    usual = _share(rows.state, of_advice)
    mixed = (of_advice > 0.0) & (of_advice < 1.0) & (usual > 0.0) & (usual < 1.0)
    cluster = rows.cluster[rows.episode]
    if (
        np.unique(cluster[mixed]).size < FEWEST_CLUSTERS
        or sent[mixed].all()
        or not sent[mixed].any()
    ):
        return ()
    said, likely, usually = sent[mixed], of_advice[mixed], usual[mixed]
    weight = np.where(said, usually / likely, (1.0 - usually) / (1.0 - likely))
    outcomes = {"reward": rows.reward, "match": _matches(rows, problem)}
    moved = (sent - usual)[mixed]
    controls = _controls(rows)[mixed]
    time = rows.since[mixed]
    passed = time / max(float(np.nanquantile(time, STAY)), 1e-300) if _varies(time) else None
    return tuple(
        _effect(name, y[mixed], moved, controls, passed, weight, cluster[mixed], sent[mixed])
        for name, y in outcomes.items()
    )


def _effect(  # noqa: PLR0913 (what a regression needs)
    name: str,
    y: Floats,
    moved: Floats,
    controls: Floats,
    passed: Floats | None,
    weight: Floats,
    cluster: Ints,
    sent: np.ndarray,
) -> ExcursionEffect:
    def effects(columns: list[Floats]) -> list[Effect]:
        x = np.column_stack((controls, *columns))
        fitted = least_squares(y, x, cluster, weight)
        picks = np.eye(x.shape[1])[controls.shape[1] :]
        return [Effect(*fitted.interval(pick), fitted.p_value(pick)) for pick in picks]

    (average,) = effects([moved])
    at_start = change = None
    if passed is not None:
        controls = np.column_stack((controls, passed))
        at_start, change = effects([moved, moved * passed])
    return ExcursionEffect(name, float(y[~sent].mean()), average, at_start, change, y.size)


def _matches(rows: Decisions, problem: AdviceProblem) -> Floats:
    """Return whether advice was matched; in silence, how often that state's advice would be."""
    S, A = problem.n_states, problem.n_actions
    sent = rows.advice < A
    given = np.bincount((rows.state * A + rows.advice)[sent], minlength=S * A).reshape(S, A)
    mix = given / np.maximum(given.sum(axis=1, keepdims=True), 1)
    matched: Floats = np.where(sent, rows.action == rows.advice, mix[rows.state, rows.action])
    return matched


def _share(cell: Ints, column: Floats) -> Floats:
    """Return the mean of a column in each cell, for each row."""
    at = np.unique(cell, return_inverse=True)[1]
    mean: Floats = (np.bincount(at, column) / np.bincount(at))[at]
    return mean


def _controls(rows: Decisions) -> Floats:
    """Return a column of ones, the step, and a column for each state but one."""
    often = np.argsort(-np.bincount(rows.state), kind="stable")[1:MOST_CONTROLS]
    states = rows.state[:, None] == often[None]
    return np.column_stack((np.ones(rows.place.size), rows.place, states))


def _varies(time: Floats) -> bool:
    return bool(np.isfinite(time).all() and time.any())
