"""The route of the audit trail: who did it, page by page, for one tenant's admins."""

import pytest
from starlette.testclient import TestClient

from counsel.service.api.app import make_app
from counsel.service.db.api_keys import add_key, holder_of
from counsel.service.db.engine import write_transaction
from tests.support.services import open_desk


@pytest.fixture
def desk(tmp_path):
    with open_desk(str(tmp_path / "counsel.db")) as desk:
        yield desk


@pytest.fixture
def client(desk):
    with TestClient(make_app(desk)) as client:
        yield client


def key(desk, tenant, role):
    with write_transaction(desk.engine) as connection:
        return add_key(connection, tenant=tenant, role=role, name=f"{role} of {tenant}")


def bearing(key):
    return {"Authorization": f"Bearer {key}"}


def test_admins_see_who_changed_what_in_their_tenant(desk, client):
    mine, others = key(desk, "clinic", "admin"), key(desk, "school", "admin")
    new = {"name": "alerts", "source": "ward", "budget": 1}
    adviser = client.post("/v1/advisers", json=new, headers=bearing(mine)).json()["id"]
    for mode in ("shadow", "off"):
        client.patch(f"/v1/advisers/{adviser}", json={"mode": mode}, headers=bearing(mine))
    rows = client.get("/v1/audit", headers=bearing(mine)).json()
    actions = ["adviser created", "adviser switched", "adviser switched"]
    assert [row["action"] for row in rows] == actions
    with desk.engine.connect() as connection:
        id_ = holder_of(connection, mine).key
    assert {(row["key"], row["key_name"]) for row in rows} == {(id_, "admin of clinic")}
    assert client.get("/v1/audit", headers=bearing(others)).json() == []
    reader = key(desk, "clinic", "advise")
    assert client.get("/v1/audit", headers=bearing(reader)).status_code == 403

    page = client.get("/v1/audit?limit=2", headers=bearing(mine))
    assert page.json() == rows[:2]
    link = page.headers["Link"].removeprefix("<").partition(">")[0]
    rest = client.get(link, headers=bearing(mine))
    assert rest.json() == rows[2:]
    assert "Link" not in rest.headers


@pytest.mark.parametrize("query", ["after=-1", "after=x", f"after={2**63}", "limit=0"])
def test_pages_that_make_no_sense_are_refused(desk, client, query):
    answer = client.get(f"/v1/audit?{query}", headers=bearing(key(desk, "clinic", "admin")))
    assert answer.status_code == 422


def test_without_keys_there_is_a_row_and_no_key(desk):
    with TestClient(make_app(desk, tenant=1), base_url="http://localhost") as client:
        new = {"name": "alerts", "source": "ward", "budget": 1}
        assert client.post("/v1/advisers", json=new).status_code == 201
        (row,) = client.get("/v1/audit").json()
    assert (row["action"], row["key"], row["key_name"]) == ("adviser created", None, None)
