"""What the command line prints: findings in a sentence, tables for people, records for scripts."""
