"""Parameters that docstrings share stand where the signature has them."""

from counsel._docstrings import share_parameters

SHARED = share_parameters({"rng": "The source of randomness.", "penalty": "The cost.\nPer piece."})


@SHARED
class Learner:
    """Learns something.

    Parameters
    ----------
    shape
        What is known.
    low, high
        Two ends.

        In two paragraphs.

    Raises
    ------
    ValueError
        Never.
    """

    def __init__(self, shape, *, penalty, low, high, rng=None, other=1):
        pass


def test_shared_parameters_are_added_in_the_order_of_the_signature():
    assert (
        Learner.__doc__
        == """Learns something.

Parameters
----------
shape
    What is known.
penalty
    The cost.
    Per piece.
low, high
    Two ends.

    In two paragraphs.
rng
    The source of randomness.

Raises
------
ValueError
    Never."""
    )


def test_own_words_come_before_shared_ones():
    @SHARED
    def play(policy, rng):
        """Play.

        Parameters
        ----------
        policy
            What to advise.
        rng
            Its own words.
        """

    assert "Its own words." in play.__doc__
    assert "source of randomness" not in play.__doc__


def test_nothing_happens_without_docstrings():
    def silent(rng):
        pass

    assert SHARED(silent).__doc__ is None
