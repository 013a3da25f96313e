"""Whether people tire: which memory a log shows, and what it does to listening."""

import math
from collections.abc import Iterator

from counsel.logs.fading import FadingEstimate
from counsel.logs.fitted_model import Fit
from counsel.logs.memory_kind import MemoryKind
from counsel.logs.memory_tests import LEAST_IMPROVEMENT, MemoryTest, MemoryTests
from counsel.logs.memory_worth import MemoryWorth
from counsel.report.number_format import (
    count_of,
    in_full,
    p_value_text,
    percent,
    pieces_per_episode,
    short,
    signed,
)

NOTHING_LEFT = 1e-4
"""A smaller factor is 0: one further piece and nothing is left of the lift."""

UNITS = {
    "pieces": "per piece",
    "since": "per decision closer to the last piece",
    "dose": "per unit of dose",
    "refusals": "per refusal",
    "tenure": "per band of episodes",
}
"""The unit of the scale of each kind of memory."""


def memory_findings(fit: Fit) -> Iterator[str]:
    """Yield the findings about the memory of a fit; nothing if none was asked for."""
    if fit.memories is not None:
        yield from memory_choice(fit.memories, fit.fading)
    if fit.tally.memory is not None:
        yield f"{memory_in_model(fit.tally.memory, fit.fading)}."


def memory_headline(fit: Fit) -> str:
    """Say in a few words whether people tire, without a full stop."""
    if fit.memories is None:
        kind = fit.tally.memory
        return "" if kind is None else f"How much people listen by {kind.words}"
    chosen = fit.memories.chosen
    return "Whether people tire cannot be told" if chosen is None else _change(chosen, fit.fading)


def memory_choice(tests: MemoryTests, fading: FadingEstimate | None = None) -> Iterator[str]:
    """Say which memory the log shows, and what cannot be told from it.

    ``fading`` is that of the kind that was chosen.
    """
    chosen = tests.chosen
    compared = count_of(len(tests.tests), "kind")
    if not tests.tests:
        yield "Whether people tire cannot be tested."
    elif chosen is None:
        yield _no_claim(tests, compared)
    else:
        yield f"{_found(chosen, compared, fading)}."
        tenure = next((test for test in tests.tests if test.kind.kind == "tenure"), None)
        if tenure is not None and tenure.is_clear and tenure is not chosen:
            yield f"{_found(tenure, compared)}; the model leaves this out."
        if chosen.kind.kind != "tenure" and len(tests.tests) > 1:
            yield _told_apart(tests)
    for name, reason in tests.skipped:
        yield f"{name} was not compared: {reason}."


def _no_claim(tests: MemoryTests, compared: str) -> str:
    """Say why no memory is claimed."""
    significant = [test for test in tests.tests if test.is_significant]
    if significant:
        best = max(significant, key=lambda test: test.improvement)
        return (
            f"Whether people tire cannot be told: lift changes with {best.kind.words} "
            f"({p_value_text(best.p_value)} after correction for {compared}), but this hardly "
            f"explains the log better (log likelihood {best.improvement:+.1f}; a claim needs "
            f"{LEAST_IMPROVEMENT:+.1f})."
        )
    least = min(tests.tests, key=lambda test: test.p_value)
    return (
        "Whether people tire cannot be told: lift does not measurably change with any of the "
        f"{compared} of memory compared ({least.kind.words}: {p_value_text(least.p_value)} "
        "after correction for all)."
    )


def _change(test: MemoryTest, fading: FadingEstimate | None = None) -> str:
    falls = test.factor < 1.0
    tires = falls and test.kind.kind != "tenure" and (fading is None or fading.falls)
    start = "People tire: lift" if tires else "Lift"
    return f"{start} {'falls' if falls else 'rises'} with {test.kind.words}"


def _factor(test: MemoryTest) -> str:
    return "0" if test.factor < NOTHING_LEFT else short(test.factor)


def _found(test: MemoryTest, compared: str, fading: FadingEstimate | None = None) -> str:
    return (
        f"{_change(test, fading)}, by a factor of {_factor(test)} "
        f"{UNITS[test.kind.kind]} ({p_value_text(test.p_value)} after "
        f"correction for {compared}; log likelihood {test.improvement:+.1f})"
    )


def _told_apart(tests: MemoryTests) -> str:
    names = [f"{t.kind.words} (log likelihood {t.improvement:+.1f})" for t in tests.alike]
    if not names:
        return "The other kinds of memory explain the log clearly worse."
    return f"The log cannot tell this from {' or '.join(names)}."


def memory_in_model(kind: MemoryKind, fading: FadingEstimate | None) -> str:
    """Say what a model takes for granted about memory, without a full stop."""
    if kind.kind == "tenure":
        return (
            "Speaking does not change time in the study, so plans have no levels: the model is of "
            f"people late in the study ({kind.labels[-1]})"
        )
    if kind.across == "person":
        return (
            f"The model has a memory of {kind.words}. A plan is for one episode, which begins at "
            "the level where most episodes of the log begin; what it costs of listening in later "
            "episodes is left out"
        )
    if fading is None or not (fading.falls or fading.rises):
        return (
            f"The model has a memory of {kind.words}, though no level's lift is clearly below or "
            "above 100 %"
        )
    if fading.falls:
        return f"The model has a memory of {kind.words}, and its plans let people rest"
    return f"The model has a memory of {kind.words}, with which lift rises"


def memory_cells(test: MemoryTest, tests: MemoryTests) -> tuple[str, str, str, str, str]:
    """Return the cells of a kind in a table of those compared."""
    verdict = "no clear change"
    if test.kind == tests.choice:
        verdict = "chosen"
    elif test.is_alike:
        verdict = "as likely"
    elif test.is_clear:
        verdict = "changes, too" if test.kind.kind == "tenure" else "less likely"
    return (
        test.kind.name,
        f"× {_factor(test)} {UNITS[test.kind.kind]}",
        p_value_text(test.p_value),
        verdict,
        f"{test.improvement:+.1f}",
    )


def fading_cells(fading: FadingEstimate, level: int) -> tuple[str, str, str]:
    """Return the level, its pieces and the share of the lift that is left, with its interval."""
    share = percent(float(fading.factor[level]))
    ends = (float(fading.low[level]), float(fading.high[level]))
    if level == fading.reference:
        text = f"{share} (by definition)"
    elif not fading.is_known[level]:
        text = f"{share} (too few pieces: as at other levels)"
    elif not math.isfinite(ends[1]):
        text = f"{share} (interval cannot be told)"
    elif ends[1] == 0.0:
        text = f"{share} (the lift changes its sign)"
    else:
        text = f"{share} [{percent(ends[0])} to {percent(ends[1])}]"
    return fading.kind.labels[level], f"{fading.pieces[level]:,.0f}", text


def kind_levels(test: MemoryTest) -> str:
    """Return what is left of the lift at each level of a kind, the start of the memory first."""
    shares = ["–" if f is None else f"{100 * f:.0f}" for f in test.fading]
    if test.kind.kind == "since":
        shares.reverse()
    return f"{', '.join(shares)} %"


def memory_worth(worth: MemoryWorth) -> str:
    """Say what planning for a memory is worth."""
    is_net = not math.isclose(worth.gain, worth.value - worth.blind_value, abs_tol=1e-12)
    after = " after the penalty" if is_net else ""
    return (
        f"Planned for the memory, advice brings {in_full(worth.value)} with "
        f"{pieces_per_episode(worth.pieces)}; a plan that is blind to it, "
        f"{in_full(worth.blind_value)} with {pieces_per_episode(worth.blind_pieces)}. Both are "
        "values in the model with the memory: knowing of it is worth "
        f"{signed(worth.gain)} per episode{after}."
    )
