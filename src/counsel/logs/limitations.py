"""What the data of a log cannot tell, and the consequence for a fit."""

from collections.abc import Iterator

import numpy as np

from counsel._arrays import Bools
from counsel.estimate.habit import least_lift
from counsel.logs.check import EXAMPLES, Finding, LogCheck
from counsel.logs.count import Tally
from counsel.logs.decisions import Decisions
from counsel.logs.estimate import Estimates, Sharing
from counsel.logs.read import Log
from counsel.logs.recorded_probabilities import find_miscalibration


def find_limitations(  # noqa: PLR0913 (a log, and all that was made of it)
    log: Log,
    check: LogCheck,
    tally: Tally,
    estimates: Estimates,
    sharing: Sharing,
    rows: Decisions,
    unit: str,
) -> Iterator[Finding]:
    """Yield what the data cannot tell, each as a finding with its consequence."""
    off = find_miscalibration(rows, len(tally.actions))
    if off is not None:
        yield Finding(
            "advice_probability does not fit how often advice was sent; probabilities are "
            "estimated instead",
            0,
            fatal=False,
            examples=(f"in {tally.states[off.state]} {off.words}",),
        )
    if not estimates.given.any():
        yield Finding(
            "no advice was seen: the model assumes that advice has no effect, and plans none",
            0,
            fatal=False,
        )
        return
    silent = [
        name
        for i, name in enumerate(tally.contexts)
        if not tally.times[(tally.heard < len(tally.actions)) & (tally.context == i)].any()
    ]
    if silent:
        what = (
            "contexts in which nobody was advised; their lifts are unknown, so nothing is planned"
        )
        yield Finding(what, len(silent), fatal=False, examples=tuple(silent[:EXAMPLES]))
    for what, names in _gaps(tally, estimates, sharing):
        if names:
            yield Finding(what, len(names), fatal=False, examples=tuple(names[:EXAMPLES]))
    silent_episodes = _silent_episodes(rows, len(tally.actions)) if unit == "decision" else 0
    if silent_episodes:
        yield Finding(
            "episodes without any advice, more than chance explains; if whole episodes were left "
            "without advice on purpose, fit with --unit episode (or person)",
            silent_episodes,
            fatal=False,
        )
    if estimates.guessed_rows and tally.horizon > 1:
        what = "pairs of state and action with an unknown outcome; other actions there stand in"
        yield Finding(what, estimates.guessed_rows, fatal=False)
    yield from (finding for finding in check.findings if finding.what.startswith("episodes"))
    for what, count in _assumptions(log, tally, estimates):
        if count:
            yield Finding(what, count, fatal=False)


def _silent_episodes(rows: Decisions, silence: int) -> int:
    """Return the number of episodes without any advice, 0 if chance explains as many.

    By chance an episode is silent with the product of the shares of silence in its states and
    steps.
    """
    if rows.n_episodes == 0 or rows.horizon < 2:
        return 0
    cell = np.unique(rows.state * rows.horizon + rows.place, return_inverse=True)[1]
    is_silent = rows.advice == silence
    share = np.bincount(cell, is_silent) / np.bincount(cell)
    chance = np.exp(np.bincount(rows.episode, np.log(np.maximum(share[cell], 1e-300))))
    silent = int((np.bincount(rows.episode, ~is_silent) == 0).sum())
    expected, spread = float(chance.sum()), float(np.sqrt((chance * (1.0 - chance)).sum()))
    return silent if silent > 1.2 * expected + 5.0 * spread + 5.0 else 0


def _gaps(tally: Tally, estimates: Estimates, sharing: Sharing) -> Iterator[tuple[str, list[str]]]:
    """Yield which states, actions and pairs lack data, and their names."""
    states, actions = tally.states, tally.actions
    given_sb = estimates.given.sum(axis=0)
    refused_sb = (estimates.given - estimates.matched).sum(axis=0)
    taken_sa = estimates.taken.sum(axis=0) > 0.0
    visited, advised = taken_sa.any(axis=1), given_sb.sum(axis=0) > 0.0
    known = np.asarray(estimates.habit.known.reshape(estimates.taken.shape[:2]).any(axis=0))

    def pairs(where: np.ndarray) -> list[str]:
        return [f"{actions[a]} in {states[s]}" for s, a in np.argwhere(where)]

    yield (
        "states where nobody was left without advice, so the habit is unknown; plans keep what was "
        "done there",
        [states[s] for s in np.flatnonzero(visited & ~known)],
    )
    yield (
        "actions that were never advised: their lift is unknown, so the plan does not advise them",
        [actions[b] for b in np.flatnonzero(~advised)],
    )
    yield (
        "advice that was never refused; its lift may be anything up to 1",
        [actions[b] for b in np.flatnonzero(advised & (refused_sb.sum(axis=0) == 0))],
    )
    if sharing.share == "pair" and sharing.groups is None:
        yield (
            "pairs of state and advice that never occurred; they have the lift of the same advice "
            "in other states",
            pairs((given_sb == 0.0) & taken_sa & known[:, None] & advised),
        )
    yield (
        "pairs of state and action that never occurred; their outcome is unknown, so they are not "
        "advised",
        pairs(~taken_sa & visited[:, None]),
    )
    yield (
        "pairs of state and advice whose lift, times the fading of some level of the memory, would "
        "be impossible; it is cut at that level, so the model may promise too much or too little "
        "there",
        pairs(_is_cut(estimates)),
    )
    yield (
        "states that were reached but have no decision; they count as paying the average of all "
        "decisions",
        [states[s] for s in estimates.unknown_states],
    )


def _is_cut(estimates: Estimates) -> Bools:
    """Return the pairs [s, b] whose lift is cut at some level of a memory."""
    fading, lift = estimates.fading, estimates.lift * estimates.seen
    if fading is None or estimates.problem.memory is None:
        return np.zeros(lift.shape[1:], dtype=np.bool_)
    least = least_lift(estimates.habit.policy).reshape(lift.shape)
    most = max(float(fading.max()), 1.0) * lift
    return np.asarray(((most > 1.0) | (most < least)).any(axis=0))


def _assumptions(log: Log, tally: Tally, estimates: Estimates) -> Iterator[tuple[str, int]]:
    """Yield what the fit assumes about rows that do not say, and the number of these rows."""
    yield (
        "decisions whose next_state is not the state of the next row; next_state counts",
        tally.contradictions,
    )
    if not log.has("terminated") and not log.has("truncated"):
        ended = estimates.move_times[estimates.move_then == len(tally.states)].sum()
        yield (
            f"episodes shorter than the longest ({tally.horizon} decisions); the log does not say "
            "why, so they count as ended",
            int(ended),
        )
    yield (
        "decisions without a reward; the mean of the others stands in",
        int((tally.times - tally.priced).sum()),
    )
    yield (
        "pieces of advice that were not seen; they count as silence, and as sent",
        int(tally.times[~tally.seen].sum()),
    )
