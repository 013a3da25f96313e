"""Tables of past decisions: read, check, fit, plan on and evaluate them.

``counsel.fit`` and ``counsel.load_fit`` are at the top of the package.
"""

from counsel.logs.binning import Bins
from counsel.logs.check import check_log
from counsel.logs.column_mapping import Columns
from counsel.logs.evaluate_log import evaluate_policy
from counsel.logs.fitted_model import Fit
from counsel.logs.plan import plan_advice
from counsel.logs.plan_table import plan_tables
from counsel.logs.read import read_log

__all__ = [
    "Bins",
    "Columns",
    "Fit",
    "check_log",
    "evaluate_policy",
    "plan_advice",
    "plan_tables",
    "read_log",
]
