"""Logs drawn from known problems, and their counts without a file in between."""

import hashlib
from functools import lru_cache

import numpy as np

import counsel
from counsel.logs.count import CUT, ENDED, Tally
from counsel.logs.estimate import Sharing, estimate
from counsel.logs.fitted_model import Fit


def uniform(problem):
    """Every advice and silence equally likely."""
    shape = (problem.horizon, problem.n_states, problem.n_actions + 1)
    return counsel.Policy.from_probabilities(np.full(shape, 1.0 / shape[2]))


def drawn(problem, episodes, seed, policy=None):
    """Episodes of a problem."""
    policy = uniform(problem) if policy is None else policy
    rng = np.random.default_rng(seed)
    return counsel.Simulator(problem).play(policy, episodes=episodes, rng=rng)


@lru_cache
def blocks(episodes):
    """The block of each episode that is called by its number."""
    names = [hashlib.md5(str(i).encode()).hexdigest()[:2] for i in range(episodes)]
    return np.unique(names, return_inverse=True)[1]


def order_of(labels, used):
    """The labels that were used, sorted, and the place of each code among them (-1 if unused)."""
    kept = sorted(labels[code] for code in used)
    place = np.full(len(labels) + 1, -1)
    for i, label in enumerate(kept):
        place[labels.index(label)] = i
    return tuple(kept), place


def tally_of(problem, batch, *, by_step=False):
    """What ``count_log`` makes of the written log, by another road."""
    ends = batch.first[1:] - 1
    last = np.zeros(batch.state.size, dtype=bool)
    last[ends] = True
    ended = last & batch.terminated[batch.episode]
    named = np.union1d(batch.state, batch.next_state[~ended])
    states, s = order_of(problem.mdp.state_labels, named)
    named = np.union1d(batch.action, batch.advice[batch.advice != batch.defer])
    actions, a = order_of(problem.mdp.action_labels, named)
    a[batch.defer] = len(actions)
    # save_log records where the last decision led, so only ``terminated`` is an end.
    then = np.where(ended, ENDED, s[batch.next_state])
    one = blocks(len(batch))[batch.episode]
    said, did = a[batch.advice], a[batch.action]
    keys = (one, batch.step, s[batch.state], said, did, then - CUT, batch.step == 0)
    sizes = [int(key.max()) + 1 for key in keys]
    groups, where = np.unique(np.ravel_multi_index(keys, sizes), return_inverse=True)
    block, step, state, advice, action, then, opens = np.unravel_index(groups, sizes)
    times = np.bincount(where).astype(float)
    least, kinds = float(batch.reward.min()), np.unique(batch.reward)
    above = batch.reward - least
    return Tally(
        states=states,
        actions=actions,
        horizon=int(batch.lengths.max()),
        block=np.unique(block, return_inverse=True)[1],
        step=step,
        state=state,
        advice=advice,
        action=action,
        then=then + CUT,
        seen=np.ones(groups.size, dtype=bool),
        opens=opens.astype(bool),
        times=times,
        priced=times,
        paid=np.bincount(where, above),
        paid_squares=np.bincount(where, above**2),
        by_step=by_step,
        least=least,
        other=float(kinds[1]) if kinds.size == 2 else None,
    )


def fit_of(tally, sharing=None):
    """A fit from counts alone."""
    sharing = Sharing() if sharing is None else sharing
    found = estimate(tally, sharing)
    return Fit("drawn", tally, found, sharing, {}, {}, None, (), None)


def places(problem, fit):
    """Where the states and actions of a fit are in the problem it was drawn from."""
    states = [problem.mdp.state_labels.index(name) for name in fit.tally.states]
    actions = [problem.mdp.action_labels.index(name) for name in fit.tally.actions]
    return np.array(states), np.array(actions)


def brought_back(problem, fit, policy):
    """A policy for a fit, by its labels as one for the problem; silent where nothing is known."""
    s, a = places(problem, fit)
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    b = np.append(a, A)
    if policy.budget is not None:
        advice = np.full((policy.budget + 1, H, S), A)
        advice[:, :, s] = b[policy.advice[:, :, : s.size]]
        return counsel.Policy(advice, n_actions=A)
    table = np.zeros((H, S, A + 1))
    table[:, :, A] = 1.0
    said = policy.probabilities()[:, : s.size]
    table[:, s] = 0.0
    table[:, s[:, None], b[None, :]] = said
    return counsel.Policy.from_probabilities(table)
