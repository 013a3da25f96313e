"""Which advice is permitted, where advice is required, and whether reverse advice is used.

Advice that repels (lift < 0) towards a better action is *reverse advice*: the exact optimum may
advise the worse action so that the person takes the better one. With ``allow_reverse=False`` no
advice that repels is given, except in cells that require advice and permit no other. For a person
with a memory, advice repels if it repels on any level.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Bools, Floats, first, layers, place, rectangular, sealed
from counsel._docstrings import share_parameters
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem

documented = share_parameters(
    {
        "problem": "The world and the person.",
        "forbidden": "Booleans [s], [h, s] or [h, s, a]: where no advice, or not this advice, is "
        "permitted. For work without end [s] or [s, a].",
        "required": "Booleans [s] or [h, s]: where advice is required. For work without end [s].",
        "allow_reverse": "Whether advice that repels is permitted where it leads the person to a "
        "better action. For a person with a memory, advice repels if it repels on any level.",
    }
)
"""Parameters that ``solve``, ``criticality`` and ``frontier`` share."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Constraints:
    """Permitted advice [layer, s, a] and cells that require advice [layer, s].

    ``pull`` is the lift where advice is permitted and either moves the person or is required, NaN
    elsewhere. For a person with a memory it is 1 where advice is permitted: advice without lift may
    still change how they listen later.
    """

    permitted: Bools
    required: Bools
    pull: Floats

    @classmethod
    def read(
        cls,
        problem: AdviceProblem,
        *,
        forbidden: ArrayLike | None = None,
        required: ArrayLike | None = None,
        allow_reverse: bool = True,
    ) -> "Constraints":
        """Check the masks and combine them with the allowed actions."""
        if not isinstance(problem, AdviceProblem):
            raise CounselError(f"expected an AdviceProblem, not {type(problem).__name__}")
        if forbidden is None and required is None and allow_reverse:
            return _unconstrained(problem)
        permitted = layers(problem.mdp.allowed)
        required_ls = _read_mask("required", required, problem, most_axes=2)
        if forbidden is not None:
            permitted = permitted & ~_read_mask("forbidden", forbidden, problem, most_axes=3)
        where = first(required_ls & ~permitted.any(axis=-1))
        if where is not None:
            raise CounselError(
                f"required{place('hs', where)} is true where all advice is forbidden; "
                "permit an advice there or do not require one"
            )
        lift = _least_lift(problem)
        if not allow_reverse and problem.human.repels:
            attracting = permitted & (lift >= 0.0)
            only_reverse = required_ls & ~attracting.any(axis=-1)
            permitted = np.where(only_reverse[..., None], permitted, attracting)
        return cls(
            sealed(np.ascontiguousarray(permitted)),
            sealed(required_ls),
            _pull(problem, permitted, required_ls),
        )


_UNCONSTRAINED: WeakKeyDictionary[AdviceProblem, Constraints] = WeakKeyDictionary()


def _unconstrained(problem: AdviceProblem) -> Constraints:
    """Return the constraints without masks, computed once per problem."""
    if problem not in _UNCONSTRAINED:
        required = sealed(np.zeros((1, problem.n_states), dtype=np.bool_))
        allowed = layers(problem.mdp.allowed)
        _UNCONSTRAINED[problem] = Constraints(allowed, required, _pull(problem, allowed, required))
    return _UNCONSTRAINED[problem]


def _least_lift(problem: AdviceProblem) -> Floats:
    """Return the lift [layer, s, a], the least over the levels of a memory."""
    lift_mlsa = problem.human.level_lift
    return lift_mlsa[0] if len(lift_mlsa) == 1 else sealed(lift_mlsa.min(axis=0))


def _pull(problem: AdviceProblem, permitted: Bools, required: Bools) -> Floats:
    """Return the lift of advice that may be worth a piece, NaN elsewhere; 1 with a memory."""
    if problem.memory is not None:
        return sealed(np.where(permitted, 1.0, np.nan))
    lift = problem.human.lift
    usable = permitted & ((lift != 0.0) | required[..., None])
    return lift if usable.all() else sealed(np.where(usable, lift, np.nan))


def _read_mask(
    name: str, mask: ArrayLike | None, problem: AdviceProblem, *, most_axes: int
) -> Bools:
    """Return a mask [layer, s], or [layer, s, a] if it may have three axes."""
    H, S, A = problem.n_steps, problem.n_states, problem.n_actions
    shapes = [("[s]", (S,)), ("[h, s]", (H, S)), ("[h, s, a]", (H, S, A))][:most_axes]
    if problem.discount is not None:
        shapes = [("[s]", (S,)), ("[s, a]", (S, A))][: most_axes - 1]
    table = np.zeros(S, dtype=np.bool_) if mask is None else rectangular(name, mask)
    if table.dtype != np.bool_ or table.shape not in dict(shapes).values():
        expected = " or ".join(f"{axes} = {shape}" for axes, shape in shapes)
        raise CounselError(
            f"{name} is {table.dtype} of shape {table.shape}; expected booleans {expected}"
        )
    if problem.discount is not None and table.ndim == 2:
        return table.reshape(1, S, A)
    if most_axes == 2:
        return table.reshape(-1, S)
    return table if table.ndim == 3 else table.reshape(-1, S, 1)
