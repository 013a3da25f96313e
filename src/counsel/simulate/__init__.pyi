from counsel.model.rewards import RewardCells as RewardCells
from counsel.model.rewards import bernoulli as bernoulli
from counsel.model.team_policy import TeamPolicy as TeamPolicy
from counsel.simulate.environment import Environment as Environment
from counsel.simulate.episodes import Counts as Counts
from counsel.simulate.episodes import Episodes as Episodes
from counsel.simulate.team import TeamEvaluation as TeamEvaluation
