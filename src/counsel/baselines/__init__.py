"""What the paper's learners are compared with, and advisers that do not learn."""
