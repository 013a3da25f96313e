"""The problem is known: plans, budgets, the frontier, evaluation and explanations."""
