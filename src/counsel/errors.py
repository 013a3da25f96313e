"""The one exception Counsel raises for what a caller can put right.

The message is one sentence: the field, the place, the value, and what to do.
"""


class CounselError(ValueError):
    """Something in the input is wrong; the message names the field, the index and the number.

    It is a ``ValueError``, and the only exception Counsel raises for what a caller can put right.

    Examples
    --------
    >>> import counsel
    >>> try:
    ...     counsel.Human([[0.5, 0.5], [0.7, 0.2]], adherence=0.8)
    ... except counsel.CounselError as error:
    ...     print(error)
    policy[s=1] sums to 0.9; a row of probabilities must sum to 1
    """
