"""From counts to beliefs, for learners and for logs."""
