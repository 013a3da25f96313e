"""Compiles the planner when it is imported: processes that are forked afterwards have it."""

from counsel.service.warm_up import compile_planner

compile_planner()
