"""The metrics: what is counted, by which labels, and that the sum is right."""

from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from counsel.service.api.app import make_app
from tests.support.services import open_desk


def numbers(client):
    """Return every sample of /metrics by name and labels."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def test_an_episode_is_counted_and_timed(tmp_path):
    with open_desk(str(tmp_path / "counsel.db")) as desk:
        app = make_app(desk, tenant=1)
        with TestClient(app, base_url="http://localhost") as client:
            new = {"name": "alerts", "source": "ward", "budget": 1, "hard": True}
            adviser = client.post("/v1/advisers", json=new).json()["id"]
            path = f"/v1/advisers/{adviser}/episodes"
            episode = client.post(path, json={"person": "ann"}).json()["id"]
            for step in range(3):
                body = {"step": step, "state": "deteriorating"}
                advised = client.post(f"/v1/episodes/{episode}/advice", json=body)
                assert advised.status_code == 200
            for action in ("assess", "assess", "call doctor"):
                outcome = {"advice_id": f"{episode}-0", "action": action}
                client.post("/v1/outcomes", json={"outcomes": [outcome]})
            client.post(f"/v1/episodes/{episode}/advice", json={"step": -1, "state": "stable"})
            samples = numbers(client)
    kinds = [samples["counsel_advice_total", ("kind", kind)] for kind in ("advice", "silence")]
    assert kinds == [1.0, 2.0]
    assert samples["counsel_outcomes_total",] == 3.0
    assert samples["counsel_corrections_total",] == 1.0
    assert samples["counsel_late_total",] == 0.0
    assert samples["counsel_errors_total", ("status", "4xx")] == 1.0
    assert samples["counsel_errors_total", ("status", "5xx")] == 0.0
    labels = (("method", "POST"), ("route", "/v1/episodes/{episode}/advice"))
    assert samples["counsel_request_seconds_count", *labels] == 4.0
    last = ("counsel_request_seconds_bucket", ("le", "+Inf"), *labels)
    assert samples[last] == 4.0
    assert samples["counsel_plan_seconds_count",] >= 1.0
    assert samples["counsel_commit_seconds_count",] == samples["counsel_commit_items_count",]
    assert samples["counsel_commit_items_sum",] >= 8.0
    assert samples["counsel_queue_items",] == 0.0
    assert samples["counsel_plans_failing",] == 0.0
    lanes = {labels[0][1] for name, *labels in samples if name == "counsel_lane_pending"}
    assert lanes == {"advising", "reading", "changing", "logins", "parsing"}
    assert not [name for name in samples if "ann" in str(name) or adviser in str(name)]


def test_what_a_shared_limit_does_is_counted(tmp_path):
    with open_desk(str(tmp_path / "counsel.db")) as desk:
        app = make_app(desk, tenant=1)
        with TestClient(app, base_url="http://localhost") as client:
            new = {"name": "phone", "source": "ward", "shared_limit": {"pieces": 1, "per": "week"}}
            adviser = client.post("/v1/advisers", json=new).json()["id"]
            path = f"/v1/advisers/{adviser}/episodes"
            episode = client.post(path, json={"person": "ann"}).json()["id"]
            for step in (0, 1, 2, 2):
                body = {"step": step, "state": "deteriorating"}
                client.post(f"/v1/episodes/{episode}/advice", json=body)
            samples = numbers(client)
    answers = ("given", "price", "used up")
    counted = [samples["counsel_shared_limit_total", ("answer", one)] for one in answers]
    assert counted == [1.0, 0.0, 2.0], "asked again for a step, the service counts nothing"


def test_gauges_show_what_waits_at_the_moment(tmp_path):
    with open_desk(str(tmp_path / "counsel.db")) as desk:
        app = make_app(desk, tenant=1)
        with TestClient(app, base_url="http://localhost") as client:
            app.state.lanes.reading.pending += 3
            assert numbers(client)["counsel_lane_pending", ("lane", "reading")] == 3.0
            app.state.lanes.reading.pending -= 3
            assert numbers(client)["counsel_lane_pending", ("lane", "reading")] == 0.0


def test_methods_of_attackers_do_not_become_labels(tmp_path):
    with open_desk(str(tmp_path / "counsel.db")) as desk:
        app = make_app(desk, tenant=1)
        with TestClient(app, base_url="http://localhost") as client:
            for number in range(20):
                client.request(f"M{number}", "/v1/people")
                client.get(f"/nowhere/{number}")
            samples = numbers(client)
    counted = [name for name in samples if name[0] == "counsel_request_seconds_count"]
    assert len(counted) == 2
