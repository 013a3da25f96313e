"""Simulated clinics whose truth is known: logs that fit the model, and logs that break it.

A patient is calm, at risk or in crisis for up to six visits. A nurse waits or acts; advice is
``act``, rarely ``wait``. Each *scenario* changes one thing. Some keep to what a fit assumes; the
others break an assumption that an analysis must notice:

* ``nagging``: advice costs reward by itself, whatever the nurse does;
* ``endogenous``: motivated nurses both act and earn, and acting itself brings nothing;
* ``severity``: an unrecorded illness moves the states and draws the advice;
* ``failing``: advice goes to visits that fail for a reason that is not recorded;
* ``deterministic``: advice is always given at risk and in crisis, and never when calm.
"""

from dataclasses import dataclass, replace

import numpy as np

from tests.support.later import Later

pd = Later("pandas")

STATES, ACTIONS, STEPS = ("calm", "crisis", "risk"), ("act", "wait"), 6
CALM, CRISIS, RISK = range(3)
ACT, WAIT, SILENT = range(3)
HABIT = np.array([0.15, 0.6, 0.35])  # the chance to act without advice
LIFT = np.array([0.3, 0.6, 0.5])
RULE = np.array([[0.25, 0.05, 0.70], [0.40, 0.10, 0.50], [0.40, 0.10, 0.50]])
REWARD = np.array([[0.8, 1.0], [0.3, 0.0], [0.6, 0.7]])
NEXT = np.array(
    [
        [[0.85, 0.02, 0.13], [0.75, 0.05, 0.20]],
        [[0.45, 0.35, 0.20], [0.10, 0.75, 0.15]],
        [[0.60, 0.10, 0.30], [0.25, 0.40, 0.35]],
    ]
)
ENDS = np.array([0.02, 0.15, 0.05])  # the chance that the visit was the last


@dataclass(frozen=True)
class Scenario:
    """What is special about a clinic; all zeros for one that the model describes."""

    people: int = 0  # nurses with their own habit and lift; 0 for a new one each episode
    spread: float = 0.0  # the standard deviation of their habits and lifts
    lift: float = 1.0  # a factor of all lifts
    by_step: float = 0.0  # how much rewards and lifts change from the first to the last visit
    ends: bool = True  # whether episodes end before the last visit
    marks_last: bool = False  # whether the last visit is marked as the end
    cut: float = 0.0  # the chance that the record breaks off after a visit
    seen: tuple[float, float, float] | None = None  # the chance that advice is seen, by state
    arms: float = 0.0  # the share of episodes without any advice
    nagging: float = 0.0
    endogenous: float = 0.0
    severity: float = 0.0
    failing: float = 0.0
    deterministic: bool = False


WELL_SPECIFIED = {
    "as modelled": Scenario(),
    "twenty people": Scenario(people=20, spread=0.15),
    "by step": Scenario(by_step=0.6, ends=False),
    "ended at the last step": Scenario(ends=False, marks_last=True),
    "cut at random": Scenario(cut=0.08),
    "seen by state": Scenario(seen=(0.9, 0.9, 0.4)),
    "arms": Scenario(arms=0.4),
}
BROKEN = {
    "nagging": Scenario(nagging=0.15),
    "endogenous": Scenario(endogenous=1.0),
    "severity": Scenario(severity=1.0),
    "failing": Scenario(failing=1.0),
    "deterministic": Scenario(deterministic=True),
}
NO_EFFECT = Scenario(lift=0.0)


@dataclass(frozen=True)
class Visits:
    """Visits of episodes [episode, visit]; ``alive`` where there was one."""

    person: np.ndarray  # [episode]
    state: np.ndarray
    advice: np.ndarray
    seen: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    alive: np.ndarray
    ended: np.ndarray
    cut: np.ndarray

    @property
    def value(self):
        """The mean return."""
        return float((self.reward * self.alive).sum(axis=1).mean())

    def frame(self, scenario=None, *, chance=False):
        """The log as a pandas frame."""
        i, h = np.nonzero(self.alive)
        pick = (i, h)
        columns = {
            "episode": [f"e{k}" for k in i],
            "step": h,
            "person": [f"p{k}" for k in self.person[i]],
            "state": np.array(STATES)[self.state[pick]],
            "advice": np.array((*ACTIONS, None), dtype=object)[self.advice[pick]],
            "action": np.array(ACTIONS)[self.action[pick]],
            "reward": self.reward[pick],
            "terminated": self.ended[pick],
            "truncated": self.cut[pick],
        }
        if scenario is not None and scenario.seen is not None:
            columns["seen"] = self.seen[pick]
        return pd.DataFrame(columns)


def play(scenario, episodes, rng, policy=None):
    """Play episodes by the rule of the log, or by a policy [h, s, b] with silence last.

    Played by a policy, every episode has a nurse of its own and nothing is cut: the mean return is
    the truth.
    """
    person, *steps = _play_steps(scenario, episodes, rng, policy)
    return Visits(person, *(np.stack(column, axis=1) for column in zip(*steps, strict=True)))


def _play_steps(scenario, n, rng, policy):
    """Yield the nurse of each episode, and the columns of ``Visits`` at each visit."""
    logged = policy is None
    people = scenario.people if logged and scenario.people else n
    person = np.arange(n) % people
    habit_shift, lift_shift = scenario.spread * rng.standard_normal((2, people))[:, person]
    motivated = rng.random(n) < 0.5
    ill = rng.random(n) < 0.5
    silent_arm = logged & (rng.random(n) < scenario.arms)
    state = np.where(rng.random(n) < 0.5, CALM, RISK)
    going = np.ones(n, dtype=bool)
    yield person
    for h in range(STEPS):
        late = scenario.by_step * h / (STEPS - 1)
        failing = (rng.random(n) < 0.4) & (scenario.failing > 0.0)
        chance = _chances(scenario, state, ill, failing) if logged else policy[h, state]
        if scenario.arms:
            chance = np.where(silent_arm[:, None], [0.0, 0.0, 1.0], chance)
        advice = _draw(chance, rng)
        advised = advice != SILENT
        seen = np.ones(n, dtype=bool)
        if scenario.seen is not None:
            seen = rng.random(n) < np.array(scenario.seen)[state]
        own = HABIT[state] + habit_shift
        own = own + scenario.endogenous * np.where(motivated, 0.25, -0.12)
        own = np.clip(own, 0.02, 0.98)
        free = np.where(rng.random(n) < own, ACT, WAIT)
        lift = scenario.lift * np.clip(LIFT[state] + lift_shift, 0.0, 1.0) * (1.0 - late)
        moved = advised & seen & (rng.random(n) < lift)
        action = np.where(moved, advice, free)
        mean = REWARD[state, action]
        if scenario.endogenous:  # acting changes nothing; motivation does
            mean = 0.5 + scenario.endogenous * np.where(motivated, 0.3, -0.2)
        mean = mean * (1.0 - late) - 0.4 * failing - scenario.nagging * advised
        reward = mean + 0.2 * rng.standard_normal(n)
        kernel = NEXT[state, ACT if scenario.endogenous else action]
        if scenario.severity:
            worse = np.array([0.05, 0.6, 0.35])
            kernel = np.where(ill[:, None], 0.4 * kernel + 0.6 * worse, kernel)
        later = _draw(kernel, rng)
        ends = going & scenario.ends & (rng.random(n) < ENDS[state])
        cut = going & ~ends & logged & (h < STEPS - 1) & (rng.random(n) < scenario.cut)
        ended = ends | (going & scenario.marks_last & (h == STEPS - 1))
        yield state, advice, seen, action, reward, going, ended, cut
        going = going & ~ends & ~cut
        state = later


def truth(scenario, policy, *, episodes=400_000, seed=12345):
    """The mean return of a policy [h, s, b], or of the log's rule (None), without cuts."""
    rng = np.random.default_rng(seed)
    if policy is None:
        scenario = replace(scenario, cut=0.0, people=0)
    steps = _play_steps(scenario, episodes, rng, policy)
    next(steps)  # the nurses
    return float(sum(reward * alive for *_, reward, alive, _, _ in steps).mean())


def silence():
    """The policy that never advises."""
    return np.broadcast_to(np.eye(3)[SILENT], (STEPS, 3, 3))


def _chances(scenario, state, ill, failing):
    """The chance of each advice in the log [episode, b]."""
    if scenario.deterministic:
        return np.eye(3)[np.where(state == CALM, SILENT, ACT)]
    chance = RULE[state]
    needy = (ill & (scenario.severity > 0.0)) | failing
    more = np.array([0.75, 0.05, 0.20])
    less = np.array([0.20, 0.05, 0.75])
    if scenario.severity or scenario.failing:
        chance = np.where(needy[:, None], more, less)
    return chance


def _draw(chance, rng):
    drawn, upto, beyond = rng.random(len(chance)), 0.0, 0
    for column in chance.T[:-1]:
        upto = upto + column
        beyond = beyond + (drawn > upto)
    return beyond
