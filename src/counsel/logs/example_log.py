"""A small log for examples."""

from typing import Any


def alarm_log() -> Any:  # noqa: ANN401 (pyarrow ships no types)
    """Return 400 episodes of one decision, half of them at an alarm, half of them with advice.

    One person in four checks without advice, three in four with advice; a check pays at an alarm.
    """
    import pyarrow as pa

    return pa.table(
        {
            "episode": range(400),
            "step": [0] * 400,
            "state": ["alarm"] * 200 + ["quiet"] * 200,
            "advice": (4 * [None] + 4 * ["check"]) * 50,
            "action": ["check", "wait", "wait", "wait", "check", "check", "check", "wait"] * 50,
            "reward": [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0] * 25 + [0.5] * 200,
        }
    )
