"""CDS Hooks: discovery, cards and feedback after the specification, and what becomes of them."""

import csv
import io
import re

import jsonschema_rs
import numpy as np
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

import counsel
from counsel.service.api.app import make_app
from counsel.service.core.desk import Desk
from counsel.service.core.problem_sources import ProblemSources
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.api_keys import add_key, tenant_of
from counsel.service.db.engine import open_engine, write_transaction
from counsel.service.db.tables import advisers, episodes
from counsel.service.playground.rules import PROBLEMS_BY_PREFIX
from counsel.service.settings import ServiceSettings
from tests.support import cds_schemas

NOW = "2027-01-31T10:05:31Z"
HOOK_INSTANCE = "d1577c69-dfbe-44ad-ba6d-3e05e953b2ea"


def check(schema, body):
    """Check a body against a schema of the specification, formats included."""
    jsonschema_rs.validator_for(schema, validate_formats=True).validate(body)
    return body


LONG = "<b>[x](javascript:1)" + 180 * "y"


def two_actions(_):
    """A problem with two actions, one of which has a hostile and long label."""
    mdp = counsel.MDP([[0, 1], [0, 1]], reward=[0.0, 1.0], horizon=3, action_labels=("wait", LONG))
    return counsel.AdviceProblem(mdp, counsel.Human(np.full((2, 2), 0.5), 0.5))


class Hospital:
    """A desk, and a client of CDS Hooks that checks what it sends and receives."""

    def __init__(self, url, **settings):
        self.engine = open_engine(url)
        with write_transaction(self.engine) as connection:
            self.key = add_key(connection, tenant="clinic", role="advise", name="records")
            self.tenant = tenant_of(connection, "clinic")
        sources = ProblemSources(self.engine, PROBLEMS_BY_PREFIX | {"two actions": two_actions})
        self.desk = Desk(
            self.engine, sources, np.random.default_rng(0), settings=ServiceSettings(**settings)
        )
        self.client = TestClient(make_app(self.desk), raise_server_exceptions=False)

    def __enter__(self):
        self.client.__enter__()
        return self

    def __exit__(self, *fault):
        self.client.__exit__(*fault)
        self.desk.close()
        self.engine.dispose()

    def adviser(self, name="alerts", source="ward", **settings):
        return self.desk.create(self.tenant, name, AdviserSettings(source=source, **settings))

    def send(self, method, path, body=None, **headers):
        headers = {"Authorization": f"Bearer {self.key}"} | headers
        return self.client.request(method, path, json=body, headers=headers)

    def discover(self):
        answer = self.send("GET", "/cds-services")
        assert answer.status_code == 200, answer.text
        return check(cds_schemas.DISCOVERY, answer.json())["services"]

    def ask(self, adviser, state, **changes):
        """Call a service and return its cards and the decision behind them."""
        answer = self.send("POST", f"/cds-services/{adviser}", a_call(state, **changes))
        assert answer.status_code == 200, answer.text
        body = check(cds_schemas.ANSWER, answer.json())
        return body["cards"], body["extension"]["counsel"]

    def feedback(self, adviser, *items):
        body = check(cds_schemas.FEEDBACK, {"feedback": list(items)})
        return self.send("POST", f"/cds-services/{adviser}/feedback", body)

    def log(self, adviser):
        text = self.send("GET", f"/v1/advisers/{adviser}/log").text
        return list(csv.DictReader(io.StringIO(text)))


def a_call(state, *, encounter="89284", user="Practitioner/ann", hook="patient-view", **counsel):
    context = {"userId": user, "patientId": "1288992"}
    if encounter is not None:
        context["encounterId"] = encounter
    body = {
        "hook": hook,
        "hookInstance": counsel.pop("hook_instance", HOOK_INSTANCE),
        "fhirServer": "https://fhir.example.org",
        "fhirAuthorization": {
            "access_token": "secret",
            "token_type": "Bearer",
            "expires_in": 300,
            "scope": "user/Patient.read",
            "subject": "counsel",
        },
        "context": context,
        "prefetch": {"patient": {"resourceType": "Patient"}},
        "extension": {"counsel": {"state": state, **counsel}, "com.example.other": 1},
    }
    return check(cds_schemas.CALL, body)


def accepted(card):
    return {
        "card": card["uuid"],
        "outcome": "accepted",
        "acceptedSuggestions": [{"id": card["suggestions"][0]["uuid"]}],
        "outcomeTimestamp": NOW,
    }


def overridden(card, **more):
    return {"card": card["uuid"], "outcome": "overridden", "outcomeTimestamp": NOW} | more


@pytest.fixture
def hospital(url):
    with Hospital(url) as hospital:
        yield hospital


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """A hospital for all tests that make an adviser of their own."""
    with Hospital(f"sqlite:///{tmp_path_factory.mktemp('ward') / 'ward.db'}") as hospital:
        yield hospital


def test_every_adviser_in_use_is_a_service(hospital):
    assert hospital.discover() == []
    first, second = hospital.adviser("alerts"), hospital.adviser("alarms", mode="off")
    archived = hospital.adviser("old")
    change = sa.update(advisers).where(advisers.c.id == archived).values(archived=1.0)
    with write_transaction(hospital.engine) as connection:
        connection.execute(change)
        stranger = add_key(connection, tenant="school", role="admin", name="stranger")
    services = hospital.discover()
    assert [(service["id"], service["title"]) for service in services] == [
        (first, "alerts"),
        (second, "alarms"),
    ]
    assert {service["hook"] for service in services} == {"patient-view"}
    assert "extension.counsel.state" in services[0]["usageRequirements"]
    others = hospital.send("GET", "/cds-services", Authorization=f"Bearer {stranger}")
    assert others.json() == {"services": []}


def test_a_service_is_listed_once_for_each_hook_and_answers_these_only(tmp_path):
    url = f"sqlite:///{tmp_path / 'ward.db'}"
    with Hospital(url, cds_hooks="order-select, com.example.round") as hospital:
        adviser = hospital.adviser(always=True)
        hooks = [(service["id"], service["hook"]) for service in hospital.discover()]
        assert hooks == [(adviser, "order-select"), (adviser, "com.example.round")]
        assert len(hospital.ask(adviser, "critical", hook="com.example.round")[0]) == 1
        other = hospital.send("POST", f"/cds-services/{adviser}", a_call("critical"))
        assert other.status_code == 400
        assert other.json()["detail"] == (
            "hook is 'patient-view'; it must be one of order-select, com.example.round"
        )


def test_without_hooks_there_are_no_services(tmp_path):
    with Hospital(f"sqlite:///{tmp_path / 'ward.db'}", cds_hooks="") as hospital:
        adviser = hospital.adviser()
        assert hospital.discover() == []
        refused = hospital.send("POST", f"/cds-services/{adviser}", a_call("critical"))
        assert (refused.status_code, "cds_hooks is empty" in refused.text) == (400, True)


def test_advice_is_a_card_and_its_acceptance_an_outcome(hospital):
    adviser = hospital.adviser(budget=1, hard=True)
    (card,), behind = hospital.ask(adviser, "deteriorating", step=5)
    assert (card["indicator"], card["source"]) == ("info", {"label": "alerts"})
    advice = card["suggestions"][0]["label"]
    assert card["summary"] == f"Advice: {advice}"
    assert "lift" in card["detail"]
    assert "gains" in card["detail"]
    others = {"carry on", "assess", "call doctor"} - {advice}
    assert {reason["code"] for reason in card["overrideReasons"]} == others
    for _ in range(2):  # feedback may be sent again
        answer = hospital.feedback(adviser, accepted(card))
        assert answer.json() == {"taken": 1, "corrected": 0, "pending": []}
    (row,) = hospital.log(adviser)
    assert (row["person"], row["step"], row["state"]) == ("Practitioner/ann", "5", "deteriorating")
    assert (row["advice"], row["action"]) == (advice, advice)
    assert behind == {"decision": f"{row['episode']}-5", "episode": row["episode"], "step": 5}


def test_silence_is_no_card_and_its_outcome_can_be_reported(ward):
    adviser = ward.adviser(budget=0, hard=True)
    cards, behind = ward.ask(adviser, "critical")
    assert cards == []
    outcome = {"advice_id": behind["decision"], "action": "assess"}
    assert ward.send("POST", "/v1/outcomes", {"outcomes": [outcome]}).json()["taken"] == 1
    assert [row["action"] for row in ward.log(adviser)] == ["assess"]


@pytest.mark.parametrize("settings", [{"mode": "off"}, {"mode": "shadow"}, {"holdout": 1.0}])
def test_what_is_not_shown_is_no_card(ward, settings):
    assert ward.ask(ward.adviser(always=True, **settings), "critical")[0] == []


def test_what_must_be_said_is_critical_and_said_in_every_call(ward):
    adviser = ward.adviser(budget=0, hard=True, must_say={"critical": "call doctor"})
    horizon = ward.desk.live(ward.tenant, adviser).mdp.horizon
    cards = []
    for call in range(3 * horizon):
        (card,), behind = ward.ask(adviser, "critical", hook_instance=a_uuid(call))
        assert card["indicator"] == "critical"
        assert card["suggestions"][0]["label"] == "call doctor"
        assert "this must be said" in card["detail"]
        assert behind["step"] == call % horizon
        assert ward.feedback(adviser, accepted(card)).json()["taken"] == 1
        cards.append(card["uuid"])
    assert len(set(cards)) == 3 * horizon
    mine = sa.select(sa.func.count()).where(episodes.c.adviser == adviser)
    with ward.engine.connect() as connection:
        assert connection.scalar(mine) == 3


def a_uuid(number):
    return f"d1577c69-dfbe-44ad-ba6d-{number:012x}"


def test_a_chart_that_is_opened_again_takes_nothing_from_the_budget(ward):
    adviser = ward.adviser(budget=1, hard=True, always=False)
    first = ward.ask(adviser, "deteriorating")
    for call in range(10):
        assert ward.ask(adviser, "deteriorating", hook_instance=a_uuid(call)) == first
    _, changed = ward.ask(adviser, "stable")
    assert changed["step"] == 1
    assert changed["episode"] == first[1]["episode"]
    assert ward.ask(adviser, "deteriorating")[1]["step"] == 2


def test_an_episode_is_named_by_the_caller_or_the_encounter_or_the_call(ward):
    adviser = ward.adviser()

    def episode(**changes):
        return ward.ask(adviser, "stable", **changes)[1]["episode"]

    by_encounter = episode()
    assert episode(hook_instance=a_uuid(1)) == by_encounter
    assert episode(encounter="other") != by_encounter
    assert episode(user="Practitioner/bob") != by_encounter
    by_caller = episode(episode="shift 7")
    assert episode(episode="shift 7", encounter="other") == by_caller != by_encounter
    by_call = episode(encounter=None)
    assert episode(encounter=None) == by_call
    assert episode(encounter=None, hook_instance=a_uuid(1)) != by_call


def test_an_encounter_goes_on_after_its_episode_was_ended(ward):
    adviser = ward.adviser()
    _, first = ward.ask(adviser, "stable")
    ward.desk.end(ward.tenant, first["episode"], terminated=True)
    _, second = ward.ask(adviser, "stable")
    assert second["episode"] != first["episode"]
    assert second["step"] == 0
    late = ward.send("POST", f"/cds-services/{adviser}", a_call("stable", step=1))
    assert late.status_code == 409  # a step that is given is one of the first episode


def test_an_erased_person_begins_again(ward):
    from counsel.service.core.erasure import erase_person

    adviser = ward.adviser()
    _, first = ward.ask(adviser, "stable")
    erase_person(ward.desk, ward.tenant, "Practitioner/ann")
    _, second = ward.ask(adviser, "stable")
    assert second["episode"] != first["episode"]


def test_a_step_of_1_0_is_1(ward):  # JSON does not tell them apart
    assert ward.ask(ward.adviser(), "stable", step=1.0)[1]["step"] == 1


REASON = {"code": "allergy", "system": "https://example.org/reasons"}


def test_an_overridden_card_says_what_was_done_instead(hospital):
    adviser = hospital.adviser(always=True)
    (card,), _ = hospital.ask(adviser, "critical")
    other = card["overrideReasons"][0]
    assert other == {
        "code": other["code"],
        "system": "urn:counsel:action",
        "display": f"Did instead: {other['code']}",
    }
    why = {"reason": other, "userComment": "=HYPERLINK(1)"}
    assert hospital.feedback(adviser, overridden(card, overrideReason=why)).json()["taken"] == 1
    (row,) = hospital.log(adviser)
    assert (row["action"], row["reason_code"]) == (other["code"], "")
    assert row["comment"] == "=HYPERLINK(1)"
    # The card is acted upon later: a correction, with a reason of the hospital's own.
    extension = {"counsel": {"action": "carry on", "reward": -0.5, "next_state": "stable"}}
    item = overridden(card, overrideReason={"reason": REASON}, extension=extension)
    assert hospital.feedback(adviser, item).json()["corrected"] == 1
    (row,) = hospital.log(adviser)
    assert (row["action"], row["reason_code"], row["comment"]) == ("carry on", "allergy", "")
    assert (row["reward"], row["next_state"], row["version"]) == ("-0.5", "stable", "2")


def test_of_two_actions_an_overridden_card_leaves_one(ward):
    adviser = ward.adviser(source="two actions", always=True)
    (card,), _ = ward.ask(adviser, "0")
    assert card["suggestions"][0]["label"] == LONG
    assert card["summary"] == f"Advice: {LONG}"[:138] + "…"
    item = overridden(card, overrideReason={"reason": REASON, "userComment": "not now"})
    assert ward.feedback(adviser, item).json()["pending"] == []
    (row,) = ward.log(adviser)
    assert (row["advice"], row["action"]) == (LONG, "wait")
    assert (row["reason_code"], row["comment"]) == ("allergy", "not now")


def test_nothing_is_recorded_where_nobody_knows_what_was_done(ward):
    adviser = ward.adviser(always=True)
    (first,), _ = ward.ask(adviser, "critical")
    (second,), _ = ward.ask(adviser, "deteriorating")
    answer = ward.feedback(adviser, overridden(first), accepted(second))
    assert (answer.status_code, answer.json()["taken"]) == (200, 1)
    (pending,) = answer.json()["pending"]
    assert pending["card"] == first["uuid"]
    assert "extension.counsel.action" in pending["detail"]
    assert [row["step"] for row in ward.log(adviser)] == ["1"]
    item = overridden(first, extension={"counsel": {"action": "assess"}})
    assert ward.feedback(adviser, item).json() == {"taken": 1, "corrected": 0, "pending": []}
    assert [row["step"] for row in ward.log(adviser)] == ["0", "1"]


def test_texts_in_cards_are_markdown_and_short():
    from counsel.service.api.cds_hooks import _escaped, _shortened

    assert _escaped("<b> [x](y) a_b & *c*") == r"\<b\> \[x\](y) a\_b \& \*c\*"
    assert _shortened("a\n b") == "a b"
    assert len(_shortened(300 * "x")) == 139


def test_ids_of_cards_are_uuids_that_lead_back():
    from counsel.service.core.cards import card_uuid, suggestion_uuid

    decision = "0123456789ab4def8123456789abcdef-77"
    assert card_uuid(decision) == "01234567-89ab-84de-8f81-23456780004d"
    assert suggestion_uuid(decision) == "01234567-89ab-84de-9f81-23456780004d"


def without(body, *path):
    """Return a copy of a body without one field."""
    name, *rest = path
    inner = {} if not rest else {name: without(body[name], *rest)}
    return {key: value for key, value in body.items() if key != name} | inner


@pytest.mark.parametrize(
    ("body", "status", "what"),
    [
        (without(a_call("stable"), "extension"), 422, "extension.counsel.state is missing; give"),
        (without(a_call("stable"), "extension", "counsel"), 422, "extension.counsel.state is miss"),
        (
            without(a_call("stable"), "extension", "counsel", "state"),
            422,
            "extension.counsel.state is missing",
        ),
        (a_call("asleep"), 400, "extension.counsel.state is 'asleep'; it must be one of stable"),
        (a_call("stable") | {"extension": 3}, 422, "extension"),
        (a_call("stable", step=True), 422, "step"),
        (a_call("stable", step=99), 400, "step is 99"),
        (without(a_call("stable"), "context", "userId"), 422, "context.userId is missing; give it"),
        (without(a_call("stable"), "context"), 422, "context is missing; give it"),
        (without(a_call("stable"), "hookInstance"), 422, "hookInstance is missing; give it"),
        (without(a_call("stable"), "hook"), 422, "hook is missing; give it"),
        (a_call("stable") | {"context": {"userId": "a\x00b"}}, 422, "userId"),
        ([], 422, "body"),
        ("text", 422, "body"),
    ],
)
def test_a_call_that_cannot_be_answered_is_refused_in_a_sentence(ward, body, status, what):
    adviser = ward.adviser()
    answer = ward.send("POST", f"/cds-services/{adviser}", body)
    assert answer.status_code == status, answer.text
    assert what in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]


NO_CARD = {"uuid": "0a234567-89ab-84de-8f81-23456780004d", "suggestions": [{"uuid": "x"}]}


@pytest.mark.parametrize(
    ("change", "status", "what"),
    [
        ({"card": NO_CARD["uuid"]}, 404, "there is no card '0a234567"),
        ({"card": "4"}, 404, "there is no card '4'"),
        ({"outcome": "ignored"}, 422, "outcome"),
        ({"outcomeTimestamp": "yesterday"}, 422, "outcomeTimestamp"),
        ({"outcomeTimestamp": 1}, 422, "outcomeTimestamp"),
        ({"acceptedSuggestions": None}, 400, "acceptedSuggestions"),
        ({"acceptedSuggestions": [{"id": NO_CARD["uuid"]}]}, 400, "must be the card's suggestion"),
        ({"extension": {"counsel": {"action": "sing"}}}, 400, "extension.counsel.action is 'sing'"),
        ({"extension": {"counsel": {"action": "carry on"}}}, 400, "but the card was accepted"),
        ({"extension": {"counsel": {"next_state": "x"}}}, 400, "extension.counsel.next_state is"),
        ({"extension": {"counsel": {"reward": 1e300}}}, 422, "reward"),
        (
            {"outcome": "overridden", "overrideReason": {"userComment": 1001 * "x"}},
            422,
            "userComment",
        ),
        (
            {
                "outcome": "overridden",
                "overrideReason": {"reason": REASON | {"code": 101 * "x"}},
                "extension": {"counsel": {"action": "assess"}},
            },
            400,
            "overrideReason.reason.code has 101 characters; it may have 100",
        ),
        (
            {
                "outcome": "overridden",
                "overrideReason": {"reason": {"system": "urn:counsel:action", "code": "sing"}},
            },
            400,
            "overrideReason.reason.code is 'sing'; it must be one of",
        ),
    ],
)
def test_feedback_that_makes_no_sense_is_refused_in_a_sentence(ward, change, status, what):
    adviser = ward.adviser(always=True)
    (card,), _ = ward.ask(adviser, "critical")
    assert card["suggestions"][0]["label"] != "carry on"
    body = {"feedback": [accepted(card) | change]}
    answer = ward.send("POST", f"/cds-services/{adviser}/feedback", body)
    assert answer.status_code == status, answer.text
    assert what in answer.json()["detail"]
    assert ward.log(adviser) == []


def test_cards_of_another_adviser_and_of_silence_are_not_known(ward):
    adviser, other = ward.adviser(always=True), ward.adviser(always=True)
    (card,), _ = ward.ask(adviser, "critical")
    assert ward.feedback(other, accepted(card)).status_code == 404
    quiet = ward.adviser(budget=0, hard=True)
    _, behind = ward.ask(quiet, "critical")
    from counsel.service.core.cards import card_uuid

    item = overridden({"uuid": card_uuid(behind["decision"])})
    assert ward.feedback(quiet, item).status_code == 404
    assert ward.send("POST", "/cds-services/nobody", a_call("stable")).status_code == 404
    assert ward.feedback("nobody").status_code == 404


def test_a_card_that_is_not_known_once_kept_the_others_of_its_request_off_the_record(ward):
    adviser = ward.adviser(always=True)
    (card,), _ = ward.ask(adviser, "critical")
    answer = ward.feedback(adviser, overridden(NO_CARD), accepted(card))
    assert answer.status_code == 200
    assert answer.json()["taken"] == 1
    (pending,) = answer.json()["pending"]
    assert pending["card"] == NO_CARD["uuid"]
    assert "there is no card" in pending["detail"]
    assert len(ward.log(adviser)) == 1


def preflight(hospital, origin, path="/cds-services"):
    headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    headers["Access-Control-Request-Headers"] = "authorization,content-type"
    return hospital.client.options(path, headers=headers)


def test_pages_of_named_origins_may_call_cds_hooks_and_nothing_else(tmp_path):
    ours, theirs = "https://records.example.org", "https://evil.example.org"
    with Hospital(f"sqlite:///{tmp_path / 'a.db'}", cds_origins=f"{ours}, https://b") as hospital:
        allowed = preflight(hospital, ours)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == ours
        assert "POST" in allowed.headers["access-control-allow-methods"]
        assert "authorization" in allowed.headers["access-control-allow-headers"].lower()
        assert "access-control-allow-credentials" not in allowed.headers
        assert allowed.headers["x-content-type-options"] == "nosniff"
        answer = hospital.send("GET", "/cds-services", Origin=ours)
        assert answer.headers["access-control-allow-origin"] == ours
        refused = hospital.client.get("/cds-services", headers={"Origin": ours})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == ours  # a page can read why
        assert preflight(hospital, theirs).status_code == 400
        answer = hospital.send("GET", "/cds-services", Origin=theirs)
        assert "access-control-allow-origin" not in answer.headers
        for path in ("/v1/advisers", "/cds-services-of-others"):
            assert preflight(hospital, ours, path).status_code in (404, 405)
            headers = hospital.send("GET", path, Origin=ours).headers
            assert "access-control-allow-origin" not in headers


def test_no_page_of_another_origin_may_call_unless_it_is_named(ward):
    assert preflight(ward, "https://records.example.org").status_code == 405
    answer = ward.send("GET", "/cds-services", Origin="https://records.example.org")
    assert not [name for name in answer.headers if re.match("access-control", name)]


def test_calls_at_the_same_moment_take_steps_of_their_own(ward):
    from concurrent.futures import ThreadPoolExecutor

    adviser = ward.adviser()
    states = ["stable", "critical", "stable", "critical"]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda state: ward.ask(adviser, state)[1], states))
    assert len({answer["episode"] for answer in answers}) == 1
    steps = {"stable": set(), "critical": set()}
    for state, answer in zip(states, answers, strict=True):
        steps[state].add(answer["step"])
    assert not steps["stable"] & steps["critical"]


def counted(ward, name):
    """Return a counter of the service."""
    lines = ward.client.get("/metrics").text.splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + " "))


def test_calls_and_feedback_are_counted_as_advice_and_outcomes_are(ward):
    names = ["counsel_outcomes_total", "counsel_corrections_total"]
    names += [f'counsel_shared_limit_total{{answer="{a}"}}' for a in ("given", "used up")]
    before = [counted(ward, name) for name in names]
    limit = {"pieces": 1, "per": "week"}
    adviser = ward.adviser(shared_limit=limit, knows_habit=True)
    (card,), _ = ward.ask(adviser, "deteriorating", encounter="one")
    assert ward.ask(adviser, "deteriorating", encounter="two")[0] == []
    assert ward.feedback(adviser, accepted(card)).json()["corrected"] == 0
    other = {"extension": {"counsel": {"action": "assess"}}}
    assert ward.feedback(adviser, overridden(card, **other)).json()["corrected"] == 1
    after = [counted(ward, name) for name in names]
    assert [new - old for old, new in zip(before, after, strict=True)] == [2, 1, 1, 1]
