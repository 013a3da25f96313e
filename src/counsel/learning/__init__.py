"""The problem is unknown: learners that advise while they find out."""
