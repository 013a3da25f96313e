"""What played episodes brought, summed batch by batch: nothing grows with their number."""

import math
from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats
from counsel.model.problem import AdviceProblem
from counsel.simulate.episodes import Episodes


@dataclass(slots=True)
class Mean:
    """A running mean and its standard error (Chan, Golub and LeVeque's way of joining parts)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, numbers: Floats) -> None:
        """Take in more numbers."""
        n = numbers.size
        if n == 0:
            return
        mean = float(numbers.mean())
        away = mean - self.mean
        total = self.count + n
        self.squares += float(((numbers - mean) ** 2).sum()) + away**2 * self.count * n / total
        self.mean += away * n / total
        self.count = total

    @property
    def error(self) -> float:
        """The standard error of the mean; infinite for a single number."""
        if self.count < 2:
            return math.inf
        return math.sqrt(self.squares / (self.count - 1) / self.count)


class Summary:
    """Mean reward and pieces of advice, and how often each advice was given and matched."""

    def __init__(self, problem: AdviceProblem) -> None:
        self.problem = problem
        self.reward, self.pieces = Mean(), Mean()
        self.decisions = self.ended = 0
        self.given_a = np.zeros(problem.n_actions, dtype=np.int64)
        self.matched_a = np.zeros(problem.n_actions, dtype=np.int64)

    def add(self, batch: Episodes) -> None:
        """Count one batch."""
        A = self.problem.n_actions
        self.reward.add(batch.rewards)
        self.pieces.add(batch.pieces.astype(np.float64))
        self.decisions += batch.state.size
        self.ended += int(batch.terminated.sum())
        self.given_a += np.bincount(batch.advice, minlength=A + 1)[:A]
        self.matched_a += np.bincount(batch.advice[batch.matched], minlength=A)

    @property
    def episodes(self) -> int:
        """How many episodes were counted."""
        return self.reward.count
