"""Counsel: what to advise a person, when to stay silent, and what a piece of advice is worth.

Names are loaded when they are first used, so that ``counsel --help`` answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counsel.errors import CounselError
    from counsel.estimate.intervals import KL, PaperBonus, Theory
    from counsel.learning.bonuses import Bernstein, Freedman, Hoeffding
    from counsel.learning.euler import EULER
    from counsel.learning.files import resume, suspend
    from counsel.learning.learn import Record, learn
    from counsel.learning.move import Move
    from counsel.learning.plausible import Phases
    from counsel.learning.q_learning import QLearning
    from counsel.learning.reference import Fixed, as_if_all_listened
    from counsel.learning.reward_free import RFE
    from counsel.learning.rf_express import RFExpress
    from counsel.learning.structured import Structured
    from counsel.learning.thompson import Thompson
    from counsel.learning.uc_cfh import UCCFH
    from counsel.learning.ucb_ad import UCBAD
    from counsel.learning.ucbvi import UCBVI
    from counsel.learning.ucfh import UCFH
    from counsel.logs.fit import Fit, fit, load_fit
    from counsel.model.files import load, load_policy, save, save_policy
    from counsel.model.human import Human
    from counsel.model.kernel import Kernel
    from counsel.model.mdp import MDP
    from counsel.model.policy import HardPolicy, Mixture, Policy
    from counsel.model.problem import AdviceProblem
    from counsel.planning.best_action import always_best_action
    from counsel.planning.criticality import Criticality, criticality
    from counsel.planning.explain import Explanation, explain
    from counsel.planning.frontier import Frontier, Vertex, frontier
    from counsel.planning.occupancy import Evaluation, evaluate
    from counsel.planning.plan import Plan
    from counsel.planning.solve import solve
    from counsel.simulate.episodes import Counts, Episodes
    from counsel.simulate.log import save_log
    from counsel.simulate.simulator import Simulator

__version__ = "0.1.0"

_HOME = {
    "AdviceProblem": "counsel.model.problem",
    "Bernstein": "counsel.learning.bonuses",
    "CounselError": "counsel.errors",
    "Counts": "counsel.simulate.episodes",
    "Criticality": "counsel.planning.criticality",
    "EULER": "counsel.learning.euler",
    "Episodes": "counsel.simulate.episodes",
    "Evaluation": "counsel.planning.occupancy",
    "Explanation": "counsel.planning.explain",
    "Fit": "counsel.logs.fit",
    "Fixed": "counsel.learning.reference",
    "Freedman": "counsel.learning.bonuses",
    "Frontier": "counsel.planning.frontier",
    "HardPolicy": "counsel.model.policy",
    "Hoeffding": "counsel.learning.bonuses",
    "Human": "counsel.model.human",
    "KL": "counsel.estimate.intervals",
    "Kernel": "counsel.model.kernel",
    "MDP": "counsel.model.mdp",
    "Mixture": "counsel.model.policy",
    "Move": "counsel.learning.move",
    "PaperBonus": "counsel.estimate.intervals",
    "Phases": "counsel.learning.plausible",
    "Plan": "counsel.planning.plan",
    "Policy": "counsel.model.policy",
    "QLearning": "counsel.learning.q_learning",
    "RFE": "counsel.learning.reward_free",
    "RFExpress": "counsel.learning.rf_express",
    "Record": "counsel.learning.learn",
    "Simulator": "counsel.simulate.simulator",
    "Structured": "counsel.learning.structured",
    "Theory": "counsel.estimate.intervals",
    "Thompson": "counsel.learning.thompson",
    "UCBAD": "counsel.learning.ucb_ad",
    "UCBVI": "counsel.learning.ucbvi",
    "UCCFH": "counsel.learning.uc_cfh",
    "UCFH": "counsel.learning.ucfh",
    "Vertex": "counsel.planning.frontier",
    "always_best_action": "counsel.planning.best_action",
    "as_if_all_listened": "counsel.learning.reference",
    "criticality": "counsel.planning.criticality",
    "evaluate": "counsel.planning.occupancy",
    "explain": "counsel.planning.explain",
    "fit": "counsel.logs.fit",
    "frontier": "counsel.planning.frontier",
    "learn": "counsel.learning.learn",
    "load": "counsel.model.files",
    "load_fit": "counsel.logs.fit",
    "load_policy": "counsel.model.files",
    "resume": "counsel.learning.files",
    "save": "counsel.model.files",
    "save_log": "counsel.simulate.log",
    "save_policy": "counsel.model.files",
    "solve": "counsel.planning.solve",
    "suspend": "counsel.learning.files",
}

__all__ = [
    "EULER",
    "KL",
    "MDP",
    "RFE",
    "UCBAD",
    "UCBVI",
    "UCCFH",
    "UCFH",
    "AdviceProblem",
    "Bernstein",
    "CounselError",
    "Counts",
    "Criticality",
    "Episodes",
    "Evaluation",
    "Explanation",
    "Fit",
    "Fixed",
    "Freedman",
    "Frontier",
    "HardPolicy",
    "Hoeffding",
    "Human",
    "Kernel",
    "Mixture",
    "Move",
    "PaperBonus",
    "Phases",
    "Plan",
    "Policy",
    "QLearning",
    "RFExpress",
    "Record",
    "Simulator",
    "Structured",
    "Theory",
    "Thompson",
    "Vertex",
    "always_best_action",
    "as_if_all_listened",
    "criticality",
    "evaluate",
    "explain",
    "fit",
    "frontier",
    "learn",
    "load",
    "load_fit",
    "load_policy",
    "resume",
    "save",
    "save_log",
    "save_policy",
    "solve",
    "suspend",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'counsel' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
