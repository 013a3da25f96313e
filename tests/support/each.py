"""Loops over seeds and numbers inside one test.

A test id is for a case that a reader wants to see by name. Sixty seeds of one claim are one test:
``each`` runs the claim for every value and names the value at which it fails.
"""

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

FUZZ_SEED = int(os.environ["COUNSEL_FUZZ_SEED"]) if "COUNSEL_FUZZ_SEED" in os.environ else None
"""Set by `make fuzz`: where fresh seeds begin."""


def each(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[..., Any]:
    """Run a test for each of ``values``, which fill the parameter (or parameters) ``names``.

    Takes what ``pytest.mark.parametrize`` takes. A value whose case skips is passed over; a test
    all of whose cases skip is skipped.
    """
    fields = (names,) if isinstance(names, str) else names
    cases = [(value,) if isinstance(names, str) else tuple(value) for value in values]
    if not cases:
        raise ValueError(f"no values for {', '.join(fields)}")

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def loop(*args: object, **fixtures: object) -> None:
            skipped = []
            for case in cases:
                filled = dict(zip(fields, case, strict=True))
                try:
                    test(*args, **fixtures, **filled)
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except Exception as error:
                    said = ", ".join(f"{name} = {value!r}" for name, value in filled.items())
                    error.add_note(f"failed at {said}")
                    raise
            if len(skipped) == len(cases):
                raise skipped[0]

        kept = [p for p in signature.parameters.values() if p.name not in fields]
        if len(kept) + len(fields) != len(signature.parameters):
            raise ValueError(f"{test.__name__} has no parameter {', '.join(fields)}")
        loop.__signature__ = signature.replace(parameters=kept)  # what pytest looks for fixtures in
        return loop

    return decorate


QUICK_SEEDS, SLOW_SEEDS = 5, 10
"""Of a longer loop, the quick tests try the first seeds, the slow tests more, the nightly all."""


def each_seed(seeds: Iterable[int]) -> Callable[..., Any]:
    """Run a test for each seed. Its claim holds for any seed: `make fuzz` tries others.

    A longer loop is up to three tests: the first ``QUICK_SEEDS``, slow those up to ``SLOW_SEEDS``,
    and long all others.
    """
    tried = list(seeds)
    if FUZZ_SEED is not None:
        tried = list(range(FUZZ_SEED, FUZZ_SEED + len(tried)))

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        if FUZZ_SEED is not None or len(tried) <= QUICK_SEEDS:
            run = each("seed", tried)(test)
        else:
            more, most = tried[QUICK_SEEDS:SLOW_SEEDS], tried[SLOW_SEEDS:]
            parts: list[Any] = [pytest.param(tried[:QUICK_SEEDS], id="first")]
            parts.append(pytest.param(more, marks=pytest.mark.slow, id="more"))
            if most:
                parts.append(pytest.param(most, marks=pytest.mark.long, id="most"))
            run = pytest.mark.parametrize("seeds", parts)(_by_part(test))
        run.fresh_seeds = True
        return run

    return decorate


def _by_part(test: Callable[..., None]) -> Callable[..., None]:
    """Return a test that takes the seeds to try in place of one seed."""

    @functools.wraps(test)
    def run(*args: object, seeds: list[int], **fixtures: object) -> None:
        each("seed", seeds)(test)(*args, **fixtures)

    signature = inspect.signature(each("seed", [0])(test))
    taken = inspect.Parameter("seeds", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), taken])
    return run


def each_seed_up_to(few: int, many: int) -> Callable[..., Any]:
    """Run a slow test for each of the first seeds, and the nightly tests for many more."""
    parts = [range(few), pytest.param(range(few, many), marks=pytest.mark.long)]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.slow
        @pytest.mark.parametrize("seeds", parts, ids=["few", "many"])
        def run(seeds: Iterable[int]) -> None:
            first = 0 if FUZZ_SEED is None else FUZZ_SEED
            each("seed", [first + seed for seed in seeds])(test)()

        run.__name__, run.__module__ = test.__name__, test.__module__
        run.fresh_seeds = True  # type: ignore[attr-defined]
        return run

    return decorate
