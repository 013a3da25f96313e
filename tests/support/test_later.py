"""Modules that are imported only when a test uses them."""

import sys

from tests.support.later import ASKED_BY_PYTEST, Later


def test_collecting_does_not_import_what_is_used_later():
    sys.modules.pop("this", None)
    later = Later("this")
    assert not any(hasattr(later, name) for name in ASKED_BY_PYTEST)
    assert "this" not in sys.modules
    assert Later("json").__name__ == "json"
