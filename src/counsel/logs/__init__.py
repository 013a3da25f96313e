"""Tables of real decisions: read, checked, made into problems, planned on and evaluated."""

from counsel.logs.check import check_log
from counsel.logs.evaluate_log import evaluate
from counsel.logs.fit import fit, load_fit
from counsel.logs.plan import plan, plan_tables
from counsel.logs.read import read_log
from counsel.logs.schema import Bins, Columns

__all__ = [
    "Bins",
    "Columns",
    "check_log",
    "evaluate",
    "fit",
    "load_fit",
    "plan",
    "plan_tables",
    "read_log",
]
