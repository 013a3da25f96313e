"""The game in the browser."""
