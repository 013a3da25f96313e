"""Counsel: what to advise a person, when to stay silent, and what a piece of advice is worth.

Names are loaded when they are first used, so that ``counsel --help`` answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counsel.baselines.bonuses import Bernstein, Freedman, Hoeffding
    from counsel.baselines.confidence_sets import Phases
    from counsel.baselines.euler import EULER
    from counsel.baselines.q_learning import QLearning
    from counsel.baselines.reference_advisers import Fixed, as_if_all_listened
    from counsel.baselines.rf_express import RFExpress
    from counsel.baselines.uc_cfh import UCCFH
    from counsel.baselines.ucbvi import UCBVI
    from counsel.baselines.ucfh import UCFH
    from counsel.errors import CounselError
    from counsel.estimate.bounds import KL, PaperBonus, Theory
    from counsel.learning.files import resume, suspend
    from counsel.learning.learn import Record, learn
    from counsel.learning.learner import Move
    from counsel.learning.rfe import RFE
    from counsel.learning.structured import Structured
    from counsel.learning.thompson import Thompson
    from counsel.learning.ucb_ad import UCBAD
    from counsel.logs.fit import Fit, fit, load_fit
    from counsel.model.files import load, load_policy, save, save_policy
    from counsel.model.human import Human
    from counsel.model.kernel import Kernel
    from counsel.model.mdp import MDP
    from counsel.model.mixture import Mixture
    from counsel.model.policy import Policy
    from counsel.model.problem import AdviceProblem
    from counsel.planning.best_action import always_best_action
    from counsel.planning.criticality import Criticality, criticality
    from counsel.planning.evaluate import Evaluation, evaluate
    from counsel.planning.explain import Explanation, explain
    from counsel.planning.frontier import Frontier, Vertex, frontier
    from counsel.planning.plan import Plan
    from counsel.planning.solve import solve
    from counsel.simulate.episodes import Counts, Episodes
    from counsel.simulate.save_log import save_log
    from counsel.simulate.simulator import Simulator

__version__ = "0.1.0"

_HOME = {
    "AdviceProblem": "counsel.model.problem",
    "Bernstein": "counsel.baselines.bonuses",
    "CounselError": "counsel.errors",
    "Counts": "counsel.simulate.episodes",
    "Criticality": "counsel.planning.criticality",
    "EULER": "counsel.baselines.euler",
    "Episodes": "counsel.simulate.episodes",
    "Evaluation": "counsel.planning.evaluate",
    "Explanation": "counsel.planning.explain",
    "Fit": "counsel.logs.fit",
    "Fixed": "counsel.baselines.reference_advisers",
    "Freedman": "counsel.baselines.bonuses",
    "Frontier": "counsel.planning.frontier",
    "Hoeffding": "counsel.baselines.bonuses",
    "Human": "counsel.model.human",
    "KL": "counsel.estimate.bounds",
    "Kernel": "counsel.model.kernel",
    "MDP": "counsel.model.mdp",
    "Mixture": "counsel.model.mixture",
    "Move": "counsel.learning.learner",
    "PaperBonus": "counsel.estimate.bounds",
    "Phases": "counsel.baselines.confidence_sets",
    "Plan": "counsel.planning.plan",
    "Policy": "counsel.model.policy",
    "QLearning": "counsel.baselines.q_learning",
    "RFE": "counsel.learning.rfe",
    "RFExpress": "counsel.baselines.rf_express",
    "Record": "counsel.learning.learn",
    "Simulator": "counsel.simulate.simulator",
    "Structured": "counsel.learning.structured",
    "Theory": "counsel.estimate.bounds",
    "Thompson": "counsel.learning.thompson",
    "UCBAD": "counsel.learning.ucb_ad",
    "UCBVI": "counsel.baselines.ucbvi",
    "UCCFH": "counsel.baselines.uc_cfh",
    "UCFH": "counsel.baselines.ucfh",
    "Vertex": "counsel.planning.frontier",
    "always_best_action": "counsel.planning.best_action",
    "as_if_all_listened": "counsel.baselines.reference_advisers",
    "criticality": "counsel.planning.criticality",
    "evaluate": "counsel.planning.evaluate",
    "explain": "counsel.planning.explain",
    "fit": "counsel.logs.fit",
    "frontier": "counsel.planning.frontier",
    "learn": "counsel.learning.learn",
    "load": "counsel.model.files",
    "load_fit": "counsel.logs.fit",
    "load_policy": "counsel.model.files",
    "resume": "counsel.learning.files",
    "save": "counsel.model.files",
    "save_log": "counsel.simulate.save_log",
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
