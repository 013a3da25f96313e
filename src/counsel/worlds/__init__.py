"""Named problems, the people in them, and the door to Gymnasium."""

from counsel.worlds.advice_env import AdviceEnv, register
from counsel.worlds.advice_wrapper import AdviceWrapper
from counsel.worlds.car_driving import car_driving
from counsel.worlds.catalogue import World, catalogue, make
from counsel.worlds.flappy_bird import flappy_bird
from counsel.worlds.from_gymnasium import from_gymnasium
from counsel.worlds.grid_map import GridMap, generate_map
from counsel.worlds.people import Boltzmann, Noisy, Uniform

__all__ = [
    "AdviceEnv",
    "AdviceWrapper",
    "Boltzmann",
    "GridMap",
    "Noisy",
    "Uniform",
    "World",
    "car_driving",
    "catalogue",
    "flappy_bird",
    "from_gymnasium",
    "generate_map",
    "make",
]

register()
