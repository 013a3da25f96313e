"""A service that dies before, during or after each of its commits.

Afterwards the record is that of before the request or of after it, never anything between. What was
acknowledged is there, and a caller who was not answered and asks again makes nothing double. The
reference is a service that nobody killed.
"""

import json

import pytest

from tests.support.crashes import AFTER, BEFORE, DURING, SCRUB, Service, sites_in_source
from tests.support.service_operations import OPERATIONS

pytestmark = pytest.mark.slow

MIGRATED = "service/db/engine.py:migrate"
BACKUPS = {"service/db/backup.py:_restore_dump"}
"""Sites that ``db/test_backup_killed.py`` is about."""


RECORDS = {}


@pytest.fixture
def reference(new_url, tmp_path):
    """The records after each operation of a service that nobody kills, and the sites it reached."""
    kind = new_url().partition(":")[0]
    if kind not in RECORDS:
        service = Service(new_url(), tmp_path)
        records, seen = [service.do(None)[0]], set()
        for number in range(len(OPERATIONS)):
            record, sites = service.do(number)
            records.append(record)
            seen |= set(sites)
        service.kill()
        RECORDS[kind] = records, seen
    return RECORDS[kind]


def test_every_function_that_commits_is_killed_here():
    killed = {operation.site for operation in OPERATIONS}
    assert SCRUB in killed
    killed |= {MIGRATED, "service/db/old_rows.py:_vacuum"} | BACKUPS
    assert sites_in_source() == killed - {SCRUB, ""}


def test_the_operations_reach_every_site(reference):
    _, seen = reference
    assert {operation.site for operation in OPERATIONS} <= seen | {""}


def test_the_budget_of_two_is_spent_and_not_exceeded(reference):
    records, _ = reference
    (spent,) = [json.loads(row)[3] for row in records[-1]["episodes"] if row.startswith('["hard"')]
    assert spent == 2


def test_the_shared_limit_of_two_is_used_and_not_exceeded(reference):
    records, _ = reference
    ((spent, seen),) = records[-1]["stretches"]
    assert spent == 2
    assert seen["offers"] == 4, "each step is an offer, counted once"


@pytest.mark.parametrize(
    ("new_url", "moment"),
    [
        *(("sqlite", moment) for moment in (BEFORE, DURING, AFTER)),
        ("postgresql", DURING),
        *(pytest.param("postgresql", end, marks=pytest.mark.long) for end in (BEFORE, AFTER)),
    ],
    indirect=["new_url"],
)
def test_a_service_that_dies_at_a_commit_loses_and_doubles_nothing(
    new_url, tmp_path, moment, reference
):
    records, _ = reference
    url = new_url()
    assert not Service(url, tmp_path, MIGRATED, moment).is_alive
    service = Service(url, tmp_path)
    assert service.do(None)[0] == records[0]
    for number, operation in enumerate(OPERATIONS):
        before, after = records[number], records[number + 1]
        if not operation.site:
            assert service.do(number)[0] == after
            continue
        assert service.do(number, operation.site, moment) is None, operation.site
        service.kill()
        service = Service(url, tmp_path)
        record, _ = service.do(None)
        assert record in (before, after), operation.site
        if operation.repeats or record != after:
            record, _ = service.do(number)
        assert record == after, operation.site
    service.kill()
