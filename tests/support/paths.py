"""Where things lie in the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
REAL_LOG = SHARED / "data" / "chatgpt-advice.csv"
HEARTSTEPS = SHARED / "data" / "heartsteps-any.csv"
