"""Episodes played step by step, through the methods that run a learner live."""

from numpy.random import Generator

from counsel.learning.learner import Learner, Move
from counsel.simulate._episode_kernels import draw_start, take_step
from counsel.simulate.simulator import Simulator


def play_live(learner: Learner, simulator: Simulator, *, episodes: int, rng: Generator) -> None:
    """Play episodes by ``advise``, ``observe`` and ``finish``; the slow way to explore."""
    scene, H = simulator.scene, simulator.problem.horizon
    draws = (simulator.draws - 2) // H

    def is_over(step: int, state: int) -> bool:
        return bool(scene.over_ls[min(step, len(scene.over_ls) - 1), state])

    for u_nw in simulator.batches(episodes, rng):
        for u_w in u_nw:
            h, s = 0, int(draw_start(scene, u_w[1]))
            while h < H and not is_over(h, s):
                b = learner.advise(h, s)
                a, t, reward = take_step(scene, h, s, b, u_w, draws)
                learner.observe(Move(h, s, b, int(a), float(reward), int(t)))
                h, s = h + 1, int(t)
            learner.finish(terminated=is_over(h, s))
