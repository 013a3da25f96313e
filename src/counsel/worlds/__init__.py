"""Named problems, the people in them, and the door to Gymnasium."""

from counsel.worlds.car_driving import car_driving
from counsel.worlds.catalogue import World, catalogue, make
from counsel.worlds.flappy_bird import flappy_bird
from counsel.worlds.grid_map import GridMap, generate_map
from counsel.worlds.people import Boltzmann, Noisy, Uniform

__all__ = [
    "Boltzmann",
    "GridMap",
    "Noisy",
    "Uniform",
    "World",
    "car_driving",
    "catalogue",
    "flappy_bird",
    "generate_map",
    "make",
]
