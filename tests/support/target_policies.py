"""Policies to evaluate on drawn logs, and the decisions of a drawn batch as a log has them."""

import numpy as np

import counsel
from counsel.logs.decisions import Decisions
from tests.support.drawn_logs import order_of, places


def in_fit_order(problem, fit, policy):
    """A policy of the true problem for the states and actions of a fit."""
    s, a = places(problem, fit)
    H, T, A = fit.problem.horizon, fit.problem.n_states, fit.problem.n_actions
    if policy.budget is not None:
        back = np.append(np.argsort(a), A)
        advice = np.full((policy.budget + 1, H, T), A)
        advice[:, :, : s.size] = back[policy.advice[:, :, s]]
        return counsel.Policy(advice, n_actions=A)
    table = np.zeros((H, T, A + 1))
    table[:, :, A] = 1.0
    table[:, : s.size] = policy.probabilities()[:, s][:, :, np.append(a, A)]
    return counsel.Policy.from_probabilities(table)


def rows_of(problem, batch, recorded=np.nan):
    """The decisions of a batch as ``load_decisions`` brings them over."""
    labels = problem.mdp.state_labels
    _, s = order_of(labels, np.unique(batch.state))
    _, a = order_of(problem.mdp.action_labels, range(problem.n_actions))
    a[batch.defer] = batch.defer
    spoken = (batch.advice != batch.defer).astype(np.int64)
    earlier = np.cumsum(spoken) - spoken
    earlier -= np.repeat(earlier[batch.first[:-1]], batch.lengths)
    return Decisions(
        episode=batch.episode,
        place=batch.step,
        state=s[batch.state],
        advice=a[batch.advice],
        action=a[batch.action],
        earlier=earlier,
        pieces=earlier,
        reward=batch.reward,
        heard=spoken.astype(bool),
        since=np.full(batch.state.size, np.nan),
        recorded=np.full(batch.state.size, recorded),
        people=(),
        person=np.full(len(batch), -1),
        context=np.zeros(len(batch), dtype=int),
        cluster=np.arange(len(batch)),
        block=np.arange(len(batch)) % 256,
        complete=np.ones(len(batch), dtype=bool),
        horizon=problem.horizon,
    )


def half_uniform(problem):
    """Half what is best within one piece, half anything."""
    best = counsel.solve(problem, budget=1).policy.probabilities()
    return counsel.Policy.from_probabilities(0.5 * best + 0.5 / best.shape[2])


def best_within_one(problem):
    return counsel.solve(problem, budget=1).policy


def hard(problem):
    return counsel.solve(problem, budget=1, hard=True).policy
