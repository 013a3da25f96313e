from counsel.simulate.environment import Environment as Environment
from counsel.simulate.episodes import Counts as Counts
from counsel.simulate.episodes import Episodes as Episodes
