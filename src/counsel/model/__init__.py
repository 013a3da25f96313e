"""What the problem is: a world, a person, how much that person listens, and policies of advice."""
