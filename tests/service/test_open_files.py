"""The limit of open files, and how many connections it leaves room for."""

import sys

import pytest

from counsel.errors import CounselError
from counsel.service import open_files
from counsel.service.open_files import RESERVE, current_limit, raise_limit, room_for_connections

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")


@pytest.fixture
def limits():
    """The limits of this process, which are set back at the end."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield resource
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_is_raised_as_far_as_it_may(limits):
    _, hard = limits.getrlimit(limits.RLIMIT_NOFILE)
    limits.setrlimit(limits.RLIMIT_NOFILE, (512, hard))
    assert current_limit() == 512
    assert raise_limit() > 512
    if hard != limits.RLIM_INFINITY:
        assert raise_limit() == min(hard, open_files.MOST)


def test_connections_leave_files_for_the_database(limits):
    _, hard = limits.getrlimit(limits.RLIMIT_NOFILE)
    limits.setrlimit(limits.RLIMIT_NOFILE, (1024, hard))
    assert room_for_connections(256) == 1024 - RESERVE - 256


def test_a_limit_that_leaves_room_for_nobody_is_refused(monkeypatch):
    monkeypatch.setattr(open_files, "current_limit", lambda: 256)
    with pytest.raises(CounselError, match="the limit of open files is 256; raise it"):
        room_for_connections(64)
