"""Named problems, the people in them, and conversion from and to Gymnasium."""

from counsel.worlds.advice_env import AdviceEnv, register
from counsel.worlds.advice_wrapper import AdviceWrapper
from counsel.worlds.car_driving import make_car_driving
from counsel.worlds.catalogue import World, list_worlds, make
from counsel.worlds.flappy_bird import make_flappy_bird
from counsel.worlds.grid_map import GridMap, generate_map
from counsel.worlds.gymnasium_problem import from_gymnasium
from counsel.worlds.people import Boltzmann, Noisy, Uniform

__all__ = [
    "AdviceEnv",
    "AdviceWrapper",
    "Boltzmann",
    "GridMap",
    "Noisy",
    "Uniform",
    "World",
    "from_gymnasium",
    "generate_map",
    "list_worlds",
    "make",
    "make_car_driving",
    "make_flappy_bird",
]

register()
