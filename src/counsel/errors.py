"""The one exception Counsel raises for what a caller can put right.

The message is one sentence: the field, the place, the value, and what to do.
"""


class CounselError(ValueError):
    """Something in the input is wrong; the message names the field, the index and the number."""
