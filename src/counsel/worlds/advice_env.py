"""The machine's side of an advice problem as a Gymnasium environment."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from counsel._arrays import Floats, brief
from counsel.errors import CounselError
from counsel.model.human import advised_law, draw_index
from counsel.model.problem import AdviceProblem
from counsel.planning.solve import read_penalty
from counsel.worlds.catalogue import make
from counsel.worlds.views import Decision, PictureView, TextView, View, sign_of

SHOWN = 1000  # in work without end the view shows the last decisions, so that few are kept
NO_ACTION = -1  # the action in ``info`` before the person has acted


class AdviceEnv(gymnasium.Env[Any, np.int64]):
    """An advice problem as a Gymnasium environment in which the machine acts.

    Observations are states; actions are the advice 0 … A−1 and, last, to defer. The person then
    acts according to the adherence law (equation 1) and the world moves on. The reward is the
    person's reward less ``penalty`` times the cost of the advice. ``terminated`` means that the
    state is absorbing and pays nothing (``MDP.over``); ``truncated`` means that the horizon was
    reached first. In work without end every step is the last with probability 1 − γ, and then
    ``terminated``: sums of rewards have the expectation of discounted sums. Where the problem has a
    ``reward_law``, rewards are drawn from it. For a person with a memory, observations are
    dictionaries of the ``state`` and the ``level`` of the memory.

    Parameters
    ----------
    problem
        The world and the person.
    penalty
        The penalty per unit of cost, in units of reward, or one for each step [h]. A piece of
        advice costs 1 unless the problem says otherwise.
    render_mode
        "ansi" for text, "rgb_array" for pixels if the view can draw.
    view
        How episodes are shown; by default the name of the state.

    Raises
    ------
    CounselError
        If a penalty is negative or not finite, there are not as many as steps, or the render mode
        is unknown; from ``step``, if the advice is out of range or not allowed, or the episode is
        over.

    Notes
    -----
    ``info`` has the same keys after ``reset`` and ``step``: ``step``, ``advice``, ``action`` (what
    the person did; −1 after reset), ``matched``, ``deferred``, ``cost`` (of the advice given, 0 for
    silence), ``action_mask`` (the advice that is allowed now) and, for a person with a memory,
    ``level``. The best advice depends on the
    step, which is not in the observation. For learners that need it there, wrap an environment made
    with ``max_episode_steps=`` its horizon in Gymnasium's ``TimeAwareObservation(env,
    flatten=False)``. (In Flappy Bird the state determines the step.)

    Examples
    --------
    The advice of the second hour is not taken, but still costs 0.1:

    >>> from counsel.worlds import AdviceEnv, make
    >>> env = AdviceEnv(make("night-shift"), penalty=0.1, render_mode="ansi")
    >>> state, info = env.reset(seed=0)
    >>> for advice in (env.problem.defer, 1):
    ...     state, reward, terminated, truncated, info = env.step(advice)
    ...     print(info["action"], info["matched"], round(reward, 3))
    0 False 1.0
    0 False 0.9
    >>> print(env.render())
    step 2 of 12 · reward 2 · △ advised check, did wait
    stable
    <BLANKLINE>
    """

    def __init__(
        self,
        problem: AdviceProblem,
        *,
        penalty: ArrayLike = 0.0,
        render_mode: str | None = None,
        view: View | None = None,
    ) -> None:
        if not isinstance(problem, AdviceProblem):
            raise CounselError(f"problem is {brief(problem)}; give an AdviceProblem")
        self.problem = problem
        penalty_h = read_penalty(penalty, problem.n_steps)
        self.penalty: float | Floats = float(penalty_h[0]) if np.ndim(penalty) == 0 else penalty_h
        self.view = TextView(problem) if view is None else view
        modes = ["ansi", "rgb_array"] if isinstance(self.view, PictureView) else ["ansi"]
        self.metadata = {"render_modes": modes, "render_fps": 4}
        if render_mode is not None and render_mode not in modes:
            raise CounselError(
                f"render_mode is {brief(render_mode)}; this environment has {', '.join(modes)}"
            )
        self.render_mode = render_mode
        states = spaces.Discrete(problem.n_states)
        self.observation_space: spaces.Space[Any] = states
        if problem.memory is not None:
            levels = spaces.Discrete(problem.n_levels)
            self.observation_space = spaces.Dict({"state": states, "level": levels})
        self.action_space = spaces.Discrete(problem.n_actions + 1)
        self._over_hs, self._reward_hsa = problem.mdp.over, problem.mdp.reward
        self._own_hsa, self._adherence_mhsa = problem.policy, problem.level_adherence
        self._allowed_hsa = problem.mdp.allowed
        self._penalty_h = np.broadcast_to(penalty_h, problem.n_steps)
        self._starts = np.flatnonzero(problem.mdp.start)
        self._start_upto = np.cumsum(problem.mdp.start[self._starts])
        self._state, self._level, self._step, self._is_over = 0, 0, 0, True
        self._decisions = deque[Decision](maxlen=None if problem.discount is None else SHOWN)
        self._earned = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; return the first observation and ``info``.

        Parameters
        ----------
        seed
            Seeds the generator of world and person; without a seed it continues.
        options
            Not used.
        """
        super().reset(seed=seed)
        u = self.np_random.random() * self._start_upto[-1]
        drawn = int(np.searchsorted(self._start_upto[:-1], u, side="right"))
        self._state, self._step, self._is_over = int(self._starts[drawn]), 0, False
        self._level = self.problem.level_of(None)
        self._decisions.clear()
        self._earned = 0.0
        return self._observation(), self._info(None)

    def _observation(self) -> Any:  # noqa: ANN401 (Gymnasium's)
        """Return the state, and with a memory its level."""
        state = np.int64(self._state)
        if self.problem.memory is None:
            return state
        return {"state": state, "level": np.int64(self._level)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401 (Gymnasium's)
        """Advise ``action``, or defer, and let the person act; return what Gymnasium expects.

        Parameters
        ----------
        action
            The advice, from 0, or ``problem.defer``.
        """
        problem, s = self.problem, self._state
        h = self._table_step(self._step)
        if self._is_over:
            raise CounselError("the episode is over; call reset before another step")
        if not self.action_space.contains(action):
            raise CounselError(
                f"advice is {brief(action)}; give 0 to {problem.defer}, the last of which defers"
            )
        advice = int(action)
        if advice < problem.defer and not self._allowed_hsa[h, s, advice]:
            raise CounselError(
                f"{problem.mdp.action_name(advice)} is not allowed in "
                f'{problem.mdp.state_name(s)} at step {self._step}; see info["action_mask"]'
            )
        law = self._own_hsa[h, s]
        if advice < problem.defer:
            theta = self._adherence_mhsa[self._level, h, s, advice]
            law = advised_law(law, advice, float(theta))
        did = draw_index(law, self.np_random)
        if problem.memory is not None:
            chances = problem.memory.next_levels(self._level, advice, did, defer=problem.defer)
            self._level = draw_index(chances, self.np_random)
        states, chances = problem.mdp.kernel.successors(h, s, did)
        self._state = int(states[draw_index(chances, self.np_random)])
        reward = float(self._reward_hsa[h, s, did])
        if problem.reward_law is not None and not self._over_hs[h, s]:
            cell = np.array([h]), np.array([s]), np.array([did])
            reward = float(problem.draw_rewards(*cell, self.np_random.random(1))[0])
        self._step += 1
        self._earned += reward
        decision = Decision(s, advice, did, self._state)
        self._decisions.append(decision)
        cost = self._cost_of(h, s, advice)
        reward -= float(self._penalty_h[h]) * cost
        terminated = bool(self._over_hs[self._table_step(self._step), self._state])
        truncated = False
        if problem.discount is not None:
            terminated = self.np_random.random() >= problem.discount
        elif not terminated:
            truncated = self._step == problem.horizon
        self._is_over = terminated or truncated
        info = self._info(decision, cost)
        return self._observation(), reward, terminated, truncated, info

    def _table_step(self, step: int) -> int:
        """Return a step of the tables: the last after the end, 0 in work without end."""
        return min(step, self.problem.n_steps - 1)

    def render(self) -> str | NDArray[np.uint8] | None:
        """Show the episode so far: as text or pixels [height, width, 3], or None without a mode."""
        if self.render_mode == "ansi":
            return self.view.text(list(self._decisions), self._state, self._caption())
        if self.render_mode == "rgb_array" and isinstance(self.view, PictureView):
            return self.view.frame(list(self._decisions), self._state, self._caption())
        return None

    def _cost_of(self, step: int, state: int, advice: int) -> float:
        """Return the cost of advice, 0 for silence."""
        return (
            0.0 if advice == self.problem.defer else float(self.problem.cost[step, state, advice])
        )

    def _info(self, decision: Decision | None, cost: float = 0.0) -> dict[str, Any]:
        mdp = self.problem.mdp
        advice = mdp.defer if decision is None else decision.advice
        action = NO_ACTION if decision is None else decision.action
        allowed = self._allowed_hsa[self._table_step(self._step), self._state]
        info = {
            "step": self._step,
            "advice": advice,
            "action": action,
            "matched": advice == action,
            "deferred": decision is not None and advice == mdp.defer,
            "cost": cost,
            "action_mask": np.append(allowed, True).astype(np.int8),
        }
        return info if self.problem.memory is None else info | {"level": self._level}

    def _caption(self) -> str:
        mdp = self.problem.mdp
        end = "" if mdp.discount is not None else f" of {mdp.horizon}"
        parts = [f"step {self._step}{end}", f"reward {self._earned:g}"]
        if self._decisions:
            decision = self._decisions[-1]
            said = "silent"
            if decision.advice != mdp.defer:
                said = f"advised {mdp.action_name(decision.advice)}"
            sign = sign_of(decision, defer=mdp.defer)
            parts.append(f"{sign} {said}, did {mdp.action_name(decision.action)}")
        return " · ".join(parts)


def night_shift_env(
    *, render_mode: str | None = None, penalty: ArrayLike = 0.0, **overrides: object
) -> AdviceEnv:
    """Return the environment of the night shift."""
    return AdviceEnv(make("night-shift", **overrides), penalty=penalty, render_mode=render_mode)


IDS: Sequence[tuple[str, str]] = (
    ("counsel/FlappyBird-v0", "counsel.drawing.rendering:flappy_bird_env"),
    ("counsel/CarDriving-v0", "counsel.drawing.rendering:car_driving_env"),
    ("counsel/NightShift-v0", "counsel.worlds.advice_env:night_shift_env"),
)


def register() -> None:
    """Register the ids with ``gymnasium.make``."""
    for name, entry_point in IDS:
        gymnasium.register(name, entry_point=entry_point)
