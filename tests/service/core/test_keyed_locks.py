"""A lock for each key: who needs something else does not wait."""

import threading

from counsel.service.core.keyed_locks import KeyedLocks


def test_only_those_with_the_same_key_wait():
    locks, inside = KeyedLocks(), []

    def enter():
        with locks.hold("a"):
            inside.append("a")

    other = threading.Thread(target=enter)
    with locks.hold("a"):
        other.start()
        with locks.hold("b"):
            inside.append("b")
        assert inside == ["b"]
    other.join(60)
    assert inside == ["b", "a"]
    assert not locks._locks
