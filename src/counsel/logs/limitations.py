"""What the data of a log cannot tell, and what follows from it for a fit."""

from collections.abc import Iterator

import numpy as np

from counsel.logs.check import EXAMPLES, Checked, Finding
from counsel.logs.count import Tally
from counsel.logs.estimate import Estimates, Sharing
from counsel.logs.read import Log


def notes_of(
    log: Log, checked: Checked, tally: Tally, found: Estimates, sharing: Sharing
) -> Iterator[Finding]:
    """Yield what the data cannot tell, each as a finding that says what follows."""
    if not found.given.any():
        yield _note("no advice was seen: it is taken to change nothing, and none is planned", [])
        return
    yield from _about_pairs(tally, found, sharing)
    yield from _about_rows(log, checked, tally, found)


def _note(what: str, names: list[str]) -> Finding:
    return Finding(what, len(names), fatal=False, examples=tuple(names[:EXAMPLES]))


def _about_pairs(tally: Tally, found: Estimates, sharing: Sharing) -> Iterator[Finding]:
    """Yield which states, actions and pairs of both were never, or hardly, tried."""
    states, actions = tally.states, tally.actions
    given_sb, refused_sb = found.given.sum(axis=0), (found.given - found.matched).sum(axis=0)
    visited = found.taken.sum(axis=(0, 2)) > 0.0
    told = np.asarray(found.habit.told.reshape(found.taken.shape[:2]).any(axis=0))
    dark = [states[s] for s in np.flatnonzero(visited & ~told)]
    if dark:
        yield _note(
            "states where nobody was left alone, so what people would do there is not known; "
            "no advice is planned there",
            dark,
        )
    never = [actions[b] for b in np.flatnonzero(given_sb.sum(axis=0) == 0)]
    if never:
        yield _note(
            "actions that were never advised: who would listen is not known, so the plan does not "
            "advise them",
            never,
        )
    always = (given_sb.sum(axis=0) > 0) & (refused_sb.sum(axis=0) == 0)
    if always.any():
        yield _note(
            "advice that was never refused; its lift may be anything up to 1",
            [actions[b] for b in np.flatnonzero(always)],
        )
    taken = found.taken.sum(axis=0) > 0.0
    if sharing.share == "pair" and sharing.groups is None:
        thin = np.argwhere((given_sb == 0.0) & taken & told[:, None] & (given_sb.sum(axis=0) > 0.0))
        if len(thin):
            yield _note(
                "pairs of state and advice that never occurred; their lift is that of the same "
                "advice in other states",
                [f"{actions[b]} in {states[s]}" for s, b in thin],
            )
    masked = np.argwhere(~taken & visited[:, None])
    if len(masked):
        yield _note(
            "pairs of state and action that never occurred; what they lead to is not known, so "
            "they are not advised",
            [f"{actions[a]} in {states[s]}" for s, a in masked],
        )
    if found.unknown_states.size:
        yield _note(
            "states that were arrived at and never decided in; they are taken to pay the average "
            "of all decisions",
            [states[s] for s in found.unknown_states],
        )
    if found.guessed_rows:
        what = "pairs of which nothing is known of what follows; other decisions there stand in"
        yield Finding(what, found.guessed_rows, fatal=False)


def _about_rows(log: Log, checked: Checked, tally: Tally, found: Estimates) -> Iterator[Finding]:
    """Yield how many rows had to be taken for something that they do not say."""
    for finding in checked.findings:
        if finding.what.startswith("episodes"):
            yield finding
    if tally.contradictions:
        what = "decisions whose next_state is not the state of the next row; next_state is believed"
        yield Finding(what, tally.contradictions, fatal=False)
    if not log.has("terminated") and not log.has("truncated") and found.move_then.size:
        ended = int(found.move_times[found.move_then == len(tally.states)].sum())
        if ended:
            what = (
                f"episodes shorter than the longest ({tally.horizon} decisions); the log does not "
                "say why, so they are taken to have ended"
            )
            yield Finding(what, ended, fatal=False)
    unpaid = int((tally.times - tally.priced).sum())
    if unpaid:
        what = "decisions without a reward; the mean of the others stands in"
        yield Finding(what, unpaid, fatal=False)
    missed = int(tally.times[~tally.seen].sum())
    if missed:
        what = "pieces of advice that were not seen; they count as silence, and as sent"
        yield Finding(what, missed, fatal=False)
