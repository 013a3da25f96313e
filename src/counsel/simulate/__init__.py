"""Episodes in bulk."""
