"""Runs as data: settings in, rows and files out."""
