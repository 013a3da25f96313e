"""Advice live: a service that advises, learns how each person listens, and keeps every decision."""
