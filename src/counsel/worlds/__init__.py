"""Named problems to try things on."""

from counsel.worlds.catalogue import CATALOGUE, make

__all__ = ["CATALOGUE", "make"]
