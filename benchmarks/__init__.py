"""Speed and memory against peers, measured side by side."""
