"""What a tenant may have: counted cheaply, refused in a sentence."""

import pytest

from counsel.service.core import quotas
from counsel.service.core.erasure import erase_person
from counsel.service.core.problem_sources import add_model
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.api_keys import KeyHolder, tenant_of
from counsel.service.errors import ConflictError
from counsel.service.settings import ServiceSettings
from tests.support.services import open_desk

SETTINGS = AdviserSettings(source="ward", budget=1.0, hard=True)


@pytest.fixture
def desk(url):
    with open_desk(url) as found:
        found.settings = ServiceSettings(advisers=2, models=1, people=3)
        found.people = quotas.PeopleQuota(found.reading, found.settings.people)
        assert found.committer.submit(lambda c: tenant_of(c, "school")).result() == 2
        yield found


def test_advisers_and_models_beyond_the_quota_are_refused(desk):
    for _ in range(2):
        desk.create(1, "alerts", SETTINGS)
    what = "has 2 advisers and may have 2; delete some, or raise COUNSEL_ADVISERS"
    with pytest.raises(ConflictError, match=what):
        desk.create(1, "alerts", SETTINGS)
    desk.create(2, "alerts", SETTINGS)

    def add(tenant):
        return desk.committer.submit(
            lambda c: add_model(c, KeyHolder(tenant, "admin"), "m", b"x", desk.settings)
        )

    add(1).result()
    with pytest.raises(ConflictError, match=r"1 models and may have 1.*raise COUNSEL_MODELS"):
        add(1).result()
    add(2).result()


def test_people_beyond_the_quota_are_refused_and_known_ones_are_not(desk, monkeypatch):
    adviser, other = desk.create(1, "alerts", SETTINGS), desk.create(2, "alerts", SETTINGS)
    for name in ("ann", "bob", "cem", "ann"):
        desk.start(1, adviser, name)
    with pytest.raises(ConflictError, match=r"3 people and may have 3.*raise COUNSEL_PEOPLE"):
        desk.start(1, adviser, "dan")
    desk.start(1, adviser, "cem")
    desk.start(2, other, "dan")
    erase_person(desk, 1, "bob")
    monkeypatch.setattr(quotas, "FRESH_NEAR_QUOTA", -1.0)  # as if some seconds had passed
    desk.start(1, adviser, "dan")
    with pytest.raises(ConflictError, match="COUNSEL_PEOPLE"):
        desk.start(1, adviser, "eve")


def test_people_are_counted_once_for_many_starts(desk, monkeypatch):
    desk.people = quotas.PeopleQuota(desk.reading, 1000)
    adviser = desk.create(1, "alerts", SETTINGS)
    plain, counted = quotas._count, []

    def watched(connection, table, tenant):
        counted.append(table.name)
        return plain(connection, table, tenant)

    monkeypatch.setattr(quotas, "_count", watched)
    for number in range(20):
        desk.start(1, adviser, f"nurse {number}")
    assert counted == ["people"]
    assert desk.people._counts[1][1] == 20


def test_what_another_service_adds_is_counted_too(desk, url, monkeypatch):
    adviser = desk.create(1, "alerts", SETTINGS)
    desk.start(1, adviser, "ann")
    with open_desk(url) as other:
        for name in ("bob", "cem"):
            other.start(1, adviser, name)
    monkeypatch.setattr(quotas, "FRESH", -1.0)
    with pytest.raises(ConflictError, match="COUNSEL_PEOPLE"):
        desk.start(1, adviser, "dan")
