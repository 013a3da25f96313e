"""The arrays of a learner that are saved under a name and restored."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from counsel.errors import CounselError

Check = Callable[[dict[str, Any]], bool]


class SavedArrays:
    """Arrays that the learner or its components own, by the names they have in a saved state."""

    def __init__(self) -> None:
        self._owner: dict[str, tuple[object, str]] = {}
        self._growing: set[str] = set()

    def add(self, owner: object, names: Mapping[str, str], *, growing: bool = False) -> None:
        """Save attributes of an object; ``names`` maps names in the state to attributes.

        Arrays that are ``growing`` may have another shape when they are restored.
        """
        for name, attribute in names.items():
            self._owner[name] = owner, attribute
            if growing:
                self._growing.add(name)

    def state(self) -> dict[str, Any]:
        """Return copies of all arrays, by name."""
        return {
            name: getattr(owner, attribute).copy()
            for name, (owner, attribute) in self._owner.items()
        }

    def restore(self, state: dict[str, Any], is_consistent: Check) -> None:
        """Check a saved state and then take its arrays; on an error nothing has changed."""
        for name, (owner, attribute) in self._owner.items():
            self._check(name, state[name], getattr(owner, attribute))
        if not is_consistent(state):
            raise CounselError("the transition counts are inconsistent; the state is damaged")
        for name, (owner, attribute) in self._owner.items():
            setattr(owner, attribute, state[name].copy())

    def _check(self, name: str, saved: np.ndarray[Any, Any], own: np.ndarray[Any, Any]) -> None:
        fits = saved.shape == own.shape or name in self._growing
        if not fits or saved.dtype != own.dtype:
            raise CounselError(
                f"{name[1:]} is {saved.dtype} of shape {saved.shape} but in this learner "
                f"{own.dtype} of {own.shape}; restore a learner with the same settings"
            )
        valid = np.isfinite(saved) if saved.dtype.kind == "f" else saved >= -1
        if not valid.all():
            raise CounselError(
                f"{name[1:]} contains {saved[~valid][0]}, which is invalid; the state is damaged"
            )
