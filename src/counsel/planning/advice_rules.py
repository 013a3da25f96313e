"""Where advice may not be given, where it must be, and whether reverse advice is used.

Advice that repels (lift < 0) towards a better action is *reverse advice*: the exact optimum may say
the worse thing so that the person does the better one. ``allow_reverse=False`` never gives advice
that repels; only a must-say cell where all permitted advice repels keeps it.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Bools, Floats, first, layers, place, rectangular, sealed
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """Permitted advice [layer, s, a] and must-say cells [layer, s].

    ``pull`` is the lift where advice is permitted and moves the person, NaN elsewhere.
    """

    speak: Bools
    must: Bools
    pull: Floats

    @classmethod
    def read(
        cls,
        problem: AdviceProblem,
        *,
        forbidden: ArrayLike | None,
        required: ArrayLike | None,
        allow_reverse: bool,
    ) -> "Rules":
        """Check the masks and join them with the actions that are allowed."""
        if not isinstance(problem, AdviceProblem):
            raise CounselError(
                f"expected an AdviceProblem (a world and a person), not {type(problem).__name__}"
            )
        if forbidden is None and required is None and allow_reverse:
            return _unrestricted(problem)
        speak = layers(problem.mdp.allowed)
        must = _read_mask("required", required, problem, most=2)
        if forbidden is not None:
            speak = speak & ~_read_mask("forbidden", forbidden, problem, most=3)
        where = first(must & ~speak.any(axis=-1))
        if where is not None:
            raise CounselError(
                f"required{place('hs', where)} is a must-say cell where all advice is forbidden"
            )
        lift = layers(problem.human.lift)
        if not allow_reverse and problem.human.repels:
            drawn = speak & (lift >= 0.0)
            stuck = must & ~drawn.any(axis=-1)
            speak = np.where(stuck[..., None], speak, drawn)
        pull = _pull(lift, speak)
        return cls(speak=sealed(np.ascontiguousarray(speak)), must=sealed(must), pull=pull)


_KNOWN: WeakKeyDictionary[AdviceProblem, Rules] = WeakKeyDictionary()


def _unrestricted(problem: AdviceProblem) -> Rules:
    """Return the rules without masks; made once for each problem."""
    if problem not in _KNOWN:
        must = sealed(np.zeros((1, problem.n_states), dtype=np.bool_))
        speak = layers(problem.mdp.allowed)
        _KNOWN[problem] = Rules(speak=speak, must=must, pull=_pull(problem.human.lift, speak))
    return _KNOWN[problem]


def _pull(lift: Floats, speak: Bools) -> Floats:
    """Return the lift itself where all advice is permitted and moves the person."""
    usable = speak & (lift != 0.0)
    return lift if usable.all() else sealed(np.where(usable, lift, np.nan))


def _read_mask(name: str, given: ArrayLike | None, problem: AdviceProblem, *, most: int) -> Bools:
    """Return a mask [layer, s], or [layer, s, a] where ``most`` is 3."""
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    shapes = {(S,): "[s]", (H, S): "[h, s]", (H, S, A): "[h, s, a]"}
    shapes = dict(list(shapes.items())[:most])
    if given is None:
        mask = np.zeros(S, dtype=np.bool_)
    else:
        mask = rectangular(name, given)
        if mask.dtype != np.bool_ or mask.shape not in shapes:
            wanted = " or ".join(f"{axes} = {shape}" for shape, axes in shapes.items())
            raise CounselError(
                f"{name} is {mask.dtype} of shape {mask.shape}; expected booleans {wanted}"
            )
    if most == 2:
        return mask.reshape(-1, S)
    return mask if mask.ndim == 3 else mask.reshape(-1, S, 1)
