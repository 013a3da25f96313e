"""Modules that are imported only when a test uses them."""

import sys

from tests.support.later import Later


def test_collecting_does_not_import_what_is_used_later():
    sys.modules.pop("this", None)
    later = Later("this")
    assert getattr(later, "__test__", False) is False  # what pytest asks of every name
    assert "this" not in sys.modules
