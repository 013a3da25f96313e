"""A world in which each action stands twice, for plans with two lifts of each advice."""

from dataclasses import replace

import numpy as np

from counsel._arrays import layers, unlayered
from counsel.model.mdp import MDP


def double_actions(mdp: MDP) -> MDP:
    """Return the world with each action a once more as A + a."""
    tables = layers(mdp.reward), layers(mdp.allowed)
    reward, allowed = (unlayered(np.concatenate((table, table), axis=2)) for table in tables)
    kernel = replace(mdp.kernel, row=np.concatenate((mdp.kernel.row, mdp.kernel.row), axis=2))
    return MDP(kernel, reward, horizon=mdp.horizon, start=mdp.start, allowed=allowed)
