"""Experiments as data: runs with settings, their rows on disk, pictures and claims from rows."""
