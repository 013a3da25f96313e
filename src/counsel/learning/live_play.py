"""Episodes played step by step, through the methods that run a learner live."""

from numpy.random import Generator

from counsel.learning.learner import Learner, Move
from counsel.model._kernels import layer_of
from counsel.simulate._episode_kernels import draw_action, draw_row, draw_start
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
                layer = layer_of(len(scene.person_lsc), h)
                a = int(draw_action(scene.person_lsc, layer, s, b, u_w[2 + draws * h]))
                t = int(scene.leads_lsa[layer_of(len(scene.leads_lsa), h), s, a])
                if t < 0:
                    t = int(draw_row(scene, -1 - t, u_w[3 + draws * h]))
                reward = float(scene.reward_lsa[layer_of(len(scene.reward_lsa), h), s, a])
                learner.observe(Move(h, s, b, a, reward, t))
                h, s = h + 1, t
            learner.finish(terminated=is_over(h, s))
