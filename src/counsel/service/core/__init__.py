"""Decisions, outcomes and beliefs: what the service does between request and database."""
