"""What is saved of a learner: named arrays, live moves, the generator and the episode."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from counsel._arrays import generator_from
from counsel.errors import CounselError
from counsel.learning.live_play import EpisodeBuffer


class SavedLearner(Protocol):
    """A learner that counts episodes, with a generator of its own or None."""

    rng: Any
    episode: int


class SavedState:
    """The state of a learner, by the names of version 0.1.

    Arrays belong to the learner or to its components, which register them with ``add``.
    """

    def __init__(self, learner: SavedLearner, buffer: EpisodeBuffer) -> None:
        self._learner, self._buffer = learner, buffer
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
        """Return copies of all arrays, by name, and the rest of the state."""
        rng = self._learner.rng
        return {
            **{name: getattr(*field).copy() for name, field in self._owner.items()},
            **({} if rng is None else {"chance": rng.bit_generator.state}),
            "episode": self._learner.episode,
            "moves": self._buffer.table(),
        }

    def restore(
        self, state: dict[str, Any], is_consistent: Callable[[dict[str, Any]], bool] | None = None
    ) -> None:
        """Check the arrays of a saved state, then take it; if they are wrong nothing changes."""
        for name, field in self._owner.items():
            self._check(name, state[name], getattr(*field))
        if is_consistent is not None and not is_consistent(state):
            raise CounselError("the transition counts are inconsistent; the state is damaged")
        for name, (owner, attribute) in self._owner.items():
            setattr(owner, attribute, state[name].copy())
        self._buffer.restore(state["moves"])
        if self._learner.rng is not None:
            self._learner.rng = generator_from(state["chance"])
        self._learner.episode = int(state["episode"])

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
