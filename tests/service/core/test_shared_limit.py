"""A limit shared by all episodes of an adviser: hard, per stretch of time; on both databases."""

import json
import threading

import numpy as np
import pytest
import sqlalchemy as sa

import counsel
from counsel.errors import CounselError
from counsel.service.core import explained_plan, transactions
from counsel.service.core.decide import DecisionRequest
from counsel.service.core.desk import Desk
from counsel.service.core.erasure import erase_person
from counsel.service.core.management import archive_adviser, delete_adviser, edit_adviser
from counsel.service.core.reported import ReportedDecision, record_decisions
from counsel.service.core.settings import AdviserSettings, SharedLimit
from counsel.service.core.shared_limit import stretch_start
from counsel.service.core.shared_price import rounded
from counsel.service.core.shared_use import describe_shared_limit
from counsel.service.core.summary import summarise
from counsel.service.db import stretch_queries
from counsel.service.db.api_keys import KeyHolder, tenant_of
from counsel.service.db.engine import open_engine, read, write_transaction
from counsel.service.db.tables import audit, decisions, episodes, stretches
from tests.support.each import each
from tests.support.timed_decisions import decide_at

WARD = counsel.make("ward")
STATES = WARD.mdp.state_labels
STABLE, WATCH, DETERIORATING, CRITICAL = map(
    STATES.index, ("stable", "watch", "deteriorating", "critical")
)
SOURCES = {
    "ward": WARD,
    "dear": counsel.AdviceProblem(WARD.mdp, WARD.human, cost=(2.0, 2.0, 3.0)),
    "fractions": counsel.AdviceProblem(WARD.mdp, WARD.human, cost=(0.1, 0.1, 0.1)),
    "tiring": counsel.make("ward/tiring"),
}
DAY = 86_400
MONDAY = 1_767_571_200.0
"""Monday, 5 January 2026, 00:00 UTC."""

ADMIN = KeyHolder(1, "admin")


def open_ward(url, seed=0):
    engine = open_engine(url)
    with engine.begin() as connection:
        tenant_of(connection, "local")
    return Desk(engine, lambda _, source: SOURCES[source], np.random.default_rng(seed))


@pytest.fixture
def desk(url):
    desk = open_ward(url)
    yield desk
    desk.close()
    desk.engine.dispose()


def settings(pieces=3, per="day", **changes):
    given = {"source": "ward", "knows_habit": True, "shared_limit": {"pieces": pieces, "per": per}}
    return AdviserSettings.checked(**given | changes)


def ask(desk, adviser, at, state=DETERIORATING, *, person="ann", step=0, episode=None, draw=0.5):
    """Decide on a step of a new episode at a given time."""
    episode = episode or desk.start(1, adviser, person)
    return decide_at(desk, episode, at, state, step=step, draw=draw)


def said(desk, adviser, per=DAY):
    """The cost of what was shown in each stretch, counted from the record."""
    live = desk.live(1, adviser)
    query = (
        sa.select(decisions)
        .join(episodes, episodes.c.number == decisions.c.episode)
        .where(episodes.c.adviser == adviser, decisions.c.shown, ~decisions.c.must)
        .where(decisions.c.advice.is_not(None))
    )
    spent = dict[int, float]()
    for row in read(desk.engine, query):
        start = stretch_start(row.at, per)
        cost = live.cost_of(row.step, row.state, row.advice)
        spent[start] = spent.get(start, 0) + cost
    return spent


def accounts(desk, adviser):
    rows = read(desk.engine, sa.select(stretches).where(stretches.c.adviser == adviser))
    return {row.start: row.spent for row in rows}


def test_no_stretch_exceeds_the_limit_and_the_account_is_that_of_the_record(desk):
    adviser = desk.create(1, "alerts", settings(pieces=3))
    rng = np.random.default_rng(1)
    for day in range(4):
        for hour in np.sort(rng.random(25)) * 24:
            state = int(rng.choice([STABLE, WATCH, DETERIORATING, CRITICAL]))
            ask(desk, adviser, MONDAY + day * DAY + 3600 * hour, state, draw=float(rng.random()))
    spent = said(desk, adviser)
    assert spent == accounts(desk, adviser)
    assert len(spent) == 4
    assert all(cost == 3 for cost in spent.values()), "there is enough to say every day"


def test_the_reason_has_the_price_and_what_is_left(desk):
    adviser = desk.create(1, "alerts", settings(pieces=2))
    first, second, third = (ask(desk, adviser, MONDAY + 60 * i) for i in range(3))
    assert first.reason["shared_left"] == 1
    assert first.reason["shared_price"] == 0.0
    assert second.reason["shared_left"] == 0
    assert third.advice is None
    assert third.probability == 1.0
    assert third.reason["why"] == "the shared limit is used up until 00:00 UTC"
    assert third.reason["shared_left"] == 0
    assert third.reason["considered"] == first.advice
    after = ask(desk, adviser, MONDAY + DAY)
    assert after.advice is not None
    assert json.loads(json.dumps(after.reason)) == after.reason


@each(
    ("per", "at", "until"),
    [
        ("minute", MONDAY + 61, "00:02 UTC"),
        ("hour", MONDAY + 3601, "02:00 UTC"),
        ("week", MONDAY + 3 * DAY, "2026-01-12 00:00 UTC"),
        (7, MONDAY + 1, "00:00:01 UTC"),
        ("second", MONDAY + 0.5, "00:00:01 UTC"),
    ],
)
def test_stretches_follow_the_clock(per, at, until, tmp_path):
    desk = open_ward(f"sqlite:///{tmp_path / str(per)}.db")
    adviser = desk.create(1, "alerts", settings(1, per))
    ask(desk, adviser, at)
    why = ask(desk, adviser, at).reason["why"]
    if per == 7:  # counted from the first Monday of 1970
        start = stretch_start(at, 7)
        assert start <= at < start + 7
        assert (start - 4 * DAY) % 7 == 0
    else:
        assert why == f"the shared limit is used up until {until}"
    desk.close()
    desk.engine.dispose()


def test_a_piece_that_is_worth_more_to_others_is_kept_for_them(desk):
    adviser = desk.create(1, "alerts", settings(pieces=2))
    said_to = dict.fromkeys((WATCH, DETERIORATING), 0)
    for day in range(8):  # every third is in need of much
        for i in range(12):
            state = DETERIORATING if i % 3 == 1 else WATCH
            answer = ask(desk, adviser, MONDAY + day * DAY + 3600 * (8 + i), state, draw=i / 12)
            said_to[state] += day > 2 and answer.advice is not None
    assert said_to[DETERIORATING] >= 9
    assert said_to[WATCH] <= 1
    episode = desk.start(1, adviser, "ann")
    answer = ask(desk, adviser, MONDAY + 8 * DAY + 3600 * 8, WATCH, episode=episode)
    assert answer.advice is None
    assert answer.reason["why"] == "a piece of the shared limit is worth more to others"
    assert answer.reason["shared_price"] > answer.reason["criticality"] > 0.0
    assert answer.reason["shared_left"] == 2


def test_where_chance_decides_the_probability_is_on_record(desk):
    adviser = desk.create(1, "alerts", settings(pieces=2))
    for day in range(5):
        for i in range(12):
            ask(desk, adviser, MONDAY + day * DAY + 3600 * (8 + i))
    morning = MONDAY + 5 * DAY + 3600 * 8
    silent, spoken = (ask(desk, adviser, morning, draw=draw) for draw in (0.99, 0.01))
    assert silent.advice is None
    assert spoken.advice is not None
    assert 0.1 < spoken.probability < 0.4
    assert silent.probability == pytest.approx(1.0 - spoken.probability, abs=0.05)
    assert silent.reason["drawn"] == 0.99


def test_what_is_not_shown_is_not_charged(desk):
    at = MONDAY
    shadow = desk.create(1, "shadow", settings(pieces=1, mode="shadow"))
    assert [ask(desk, shadow, at + i).advice is not None for i in range(3)] == [True] * 3
    silent = desk.create(1, "silent", settings(pieces=1, holdout=1.0))
    assert [ask(desk, silent, at + i).advice is not None for i in range(3)] == [True] * 3
    assert accounts(desk, shadow) == accounts(desk, silent) == {}
    must = desk.create(1, "must", settings(pieces=1, must_say={"critical": "call doctor"}))
    assert ask(desk, must, at).shown_advice is not None
    for i in range(3):
        answer = ask(desk, must, at + i, CRITICAL)
        assert answer.must
        assert answer.shown_advice is not None
    assert accounts(desk, must) == {int(at): 1.0}
    episode = desk.start(1, must, "ann")
    record_decisions(desk, 1, episode.id, [ReportedDecision(0, DETERIORATING, 2, at)])
    assert accounts(desk, must) == {int(at): 1.0}


def test_a_step_that_is_asked_for_again_is_free(desk):
    adviser = desk.create(1, "alerts", settings(pieces=2))
    episode = desk.start(1, adviser, "ann")
    answers = [ask(desk, adviser, MONDAY + i, episode=episode) for i in range(4)]
    assert len({answer.advice for answer in answers}) == 1
    assert accounts(desk, adviser) == {int(MONDAY): 1.0}


def test_a_hard_budget_and_a_shared_limit_hold_together(desk):
    adviser = desk.create(1, "alerts", settings(pieces=3, budget=1, hard=True))
    for i in range(5):
        episode = desk.start(1, adviser, "ann")
        answers = [
            ask(desk, adviser, MONDAY + i, episode=episode, step=step, draw=0.0)
            for step in range(3)
        ]
        assert sum(answer.advice is not None for answer in answers) <= 1
    assert said(desk, adviser) == {int(MONDAY): 3}


def test_a_penalty_is_paid_besides_the_price(desk):
    critical = ask(desk, desk.create(1, "free", settings(9)), MONDAY, WATCH).reason["criticality"]
    paying = desk.create(1, "paying", settings(9, penalty=0.9 * critical))
    assert ask(desk, paying, MONDAY, WATCH).advice is not None
    (row,) = read(desk.engine, sa.select(stretches).where(stretches.c.adviser == paying))
    ((bid, _),) = json.loads(row.seen)["bids"].items()
    assert float(bid) == pytest.approx(0.1 * critical, rel=0.06)


@each("source", ["dear", "fractions"])
def test_a_piece_counts_by_its_cost(source, tmp_path):
    desk = open_ward(f"sqlite:///{tmp_path / source}.db")
    pieces = {"dear": 7, "fractions": 0.7}[source]
    adviser = desk.create(1, "alerts", settings(pieces, source=source))
    answers = [ask(desk, adviser, MONDAY + i, draw=0.0) for i in range(12)]
    (spent,) = said(desk, adviser).values()
    assert pieces - 3 < spent <= pieces + 1e-9
    assert accounts(desk, adviser)[int(MONDAY)] == pytest.approx(spent)
    if source == "dear":
        assert answers[-1].reason["why"] == "it costs more than is left of the shared limit"
        use = summarise(desk, 1, adviser)["shared_limit"]
        assert use["unit"] == "cost"
    else:
        assert sum(answer.advice is not None for answer in answers) == 7, "0.1 seven times is 0.7"
    desk.close()
    desk.engine.dispose()


def test_people_who_tire_bid_by_their_level(desk):
    adviser = desk.create(1, "alerts", settings(20, source="tiring"))
    for i in range(4):
        episode = desk.start(1, adviser, f"nurse {i}")
        for step in range(4):
            ask(desk, adviser, MONDAY + 10 * i + step, episode=episode, step=step)
    (row,) = read(desk.engine, sa.select(stretches).where(stretches.c.adviser == adviser))
    assert len(json.loads(row.seen)["bids"]) > 1
    assert sum(said(desk, adviser).values()) <= 20


def test_a_trial_keeps_to_the_limit(desk):
    schedule = {"deteriorating": {"call doctor": 1.0}}
    adviser = desk.create(1, "trial", settings(2, explore=1.0, schedule=schedule))
    answers = [ask(desk, adviser, MONDAY + i) for i in range(4)]
    assert [answer.advice is not None for answer in answers] == [True, True, False, False]
    assert [answer.probability for answer in answers] == [1.0] * 4


def test_people_who_come_within_seconds_use_the_limit_every_day(desk):
    adviser, rng = desk.create(1, "alerts", settings(pieces=4)), np.random.default_rng(2)
    for day in range(3):
        eight = MONDAY + day * DAY + 8 * 3600
        for i in range(30):
            ask(desk, adviser, eight + i, person=f"nurse {i}", draw=float(rng.random()))
        with desk.engine.connect() as connection:
            use = describe_shared_limit(connection, desk.live(1, adviser), eight + 30)
        assert use["shared_limit"]["expected"] < 35.0
    assert min(said(desk, adviser).values()) >= 3
    assert max(said(desk, adviser).values()) <= 4


def test_many_requests_in_one_transaction_keep_to_the_limit(desk):
    adviser = desk.create(1, "alerts", settings(pieces=3))
    begun = [desk.start(1, adviser, f"nurse {i}") for i in range(20)]
    plan = desk.plans.require(begun[0].plan_key)
    requests = [DecisionRequest(one, plan, 0, DETERIORATING, 0.0, MONDAY) for one in begun]
    with write_transaction(desk.engine) as connection:
        answers = transactions.decide_all(connection, [*requests, *requests])
    assert answers[:20] == answers[20:], "a step is decided only once"
    assert [answer.advice is not None for answer in answers[:4]] == [True, True, True, False]
    assert said(desk, adviser) == accounts(desk, adviser) == {int(MONDAY): 3}


@pytest.fixture
def statements(desk):
    """Statements of this thread, as they are executed; the desk's own threads have others."""
    seen, this_thread = [], threading.get_ident()

    def note(_connection, _cursor, statement, *_):
        if threading.get_ident() == this_thread:
            seen.append(" ".join(statement.split()[:3]).replace("FROM", "").strip())

    sa.event.listen(desk.engine, "before_cursor_execute", note)
    yield seen
    sa.event.remove(desk.engine, "before_cursor_execute", note)


def test_a_limit_takes_one_query_and_one_update_and_none_without(desk, statements):
    taken = {}
    for name, changes in (("free", {"shared_limit": None}), ("shared", {})):
        adviser = desk.create(1, name, settings(pieces=100, **changes))
        begun = [desk.start(1, adviser, f"nurse {i}") for i in range(10)]
        plan = desk.plans.require(begun[0].plan_key)
        for i, group in enumerate((begun[:2], begun[2:])):
            requests = [
                DecisionRequest(one, plan, 0, DETERIORATING, 0.0, MONDAY + i) for one in group
            ]
            with write_transaction(desk.engine) as connection:
                before = len(statements)
                transactions.decide_all(connection, requests)
                taken[name, i] = statements[before:]
    assert not [one for group in (0, 1) for one in taken["free", group] if "stretches" in one]
    more = len(taken["shared", 1]) - len(taken["free", 1])
    assert more == 2
    assert taken["shared", 1][-1] == "UPDATE stretches SET"


def test_without_criticality_the_bid_is_what_advice_gains_beyond_its_price(desk, monkeypatch):
    monkeypatch.setattr(explained_plan, "RANKED", 0)
    for name, changes in {
        "free": {},
        "penalty": {"penalty": 0.02},
        "hard": {"budget": 2, "hard": True},
        "dear": {"source": "dear", "penalty": 0.01},
        "dear and hard": {"source": "dear", "budget": 4, "hard": True},
        "tiring": {"source": "tiring"},
        "tiring and hard": {"source": "tiring", "budget": 2, "hard": True},
    }.items():
        adviser = desk.create(1, name, settings(pieces=50, **changes))
        reason = ask(desk, adviser, MONDAY).reason
        assert reason["criticality"] is None
        (row,) = read(desk.engine, sa.select(stretches).where(stretches.c.adviser == adviser))
        ((bid, _),) = json.loads(row.seen)["bids"].items()
        worth = (reason["gain"] - reason["price"]) / reason.get("cost", 1)
        assert float(bid) == rounded(worth), name


def test_two_services_with_other_clocks_keep_one_account(url):
    one, other = open_ward(url), open_ward(url, seed=1)
    adviser = one.create(1, "alerts", settings(pieces=5))
    for i in range(30):  # the other clock is 40 s behind: at midnight it is still yesterday there
        at = MONDAY + DAY - 60 + 4 * i
        ask(one, adviser, at, draw=0.0)
        ask(other, adviser, at - 40, draw=0.0)
    assert said(one, adviser) == accounts(other, adviser)
    assert said(one, adviser) == {int(MONDAY): 5, int(MONDAY + DAY): 5}
    for desk in (one, other):
        desk.close()
        desk.engine.dispose()


def test_a_stretch_that_is_no_longer_kept_is_closed(desk, monkeypatch):
    monkeypatch.setattr(stretch_queries, "KEPT", 3)
    adviser = desk.create(1, "alerts", settings(1, "second"))
    for i in range(stretch_queries.KEPT):
        assert ask(desk, adviser, MONDAY + i).advice is not None
    late = ask(desk, adviser, MONDAY - 1)
    assert late.advice is None
    assert late.reason["why"] == "the shared limit is used up until 00:00:00 UTC"
    assert int(MONDAY) - 1 not in accounts(desk, adviser)


def test_only_the_last_stretches_are_kept(desk):
    adviser = desk.create(1, "alerts", settings(1, "second"))
    episode = desk.start(1, adviser, "ann")
    for i in range(stretch_queries.KEPT + 5):
        at = MONDAY + i
        episode = desk.start(1, adviser, "ann") if i % WARD.mdp.horizon == 0 else episode
        ask(desk, adviser, at, episode=episode, step=i % WARD.mdp.horizon)
    assert len(accounts(desk, adviser)) == stretch_queries.KEPT
    assert max(accounts(desk, adviser)) == int(MONDAY) + stretch_queries.KEPT + 4


def test_a_changed_limit_holds_for_what_was_spent(desk):
    adviser = desk.create(1, "alerts", settings(pieces=4))
    for i in range(3):
        ask(desk, adviser, MONDAY + i)
    edit_adviser(desk, ADMIN, adviser, {"shared_limit": {"pieces": 2, "per": "day"}})
    answer = ask(desk, adviser, MONDAY + 5)
    assert answer.advice is None
    assert answer.reason["shared_left"] == 0
    edit_adviser(desk, ADMIN, adviser, {"shared_limit": {"pieces": 4.0, "per": "day"}})
    assert ask(desk, adviser, MONDAY + 6, draw=0.0).advice is not None
    assert ask(desk, adviser, MONDAY + 7).advice is None
    edit_adviser(desk, ADMIN, adviser, {"shared_limit": None})
    answer = ask(desk, adviser, MONDAY + 8)
    assert answer.advice is not None
    assert "shared_left" not in answer.reason
    rows = read(desk.engine, sa.select(audit).where(audit.c.action == "adviser edited"))
    assert [json.loads(row.details) for row in rows] == [
        {"shared_limit": {"pieces": 2.0, "per": "day"}},
        {"shared_limit": {"pieces": 4.0, "per": "day"}},
        {"shared_limit": None},
    ]


def test_a_change_of_something_else_does_not_touch_the_limit(desk):
    adviser = desk.create(1, "alerts", settings(pieces=4))
    edit_adviser(desk, ADMIN, adviser, {"penalty": 0.01})
    (row,) = read(desk.engine, sa.select(audit).where(audit.c.action == "adviser edited"))
    assert json.loads(row.details) == {"penalty": 0.01}
    assert desk.live(1, adviser).settings.shared_limit == SharedLimit(pieces=4, per="day")


def test_erasing_a_person_keeps_the_account_and_deleting_an_adviser_takes_it(desk):
    adviser = desk.create(1, "alerts", settings(pieces=2))
    for person in ("ann", "bob"):
        ask(desk, adviser, MONDAY, person=person)
    erase_person(desk, 1, "ann")
    assert accounts(desk, adviser) == {int(MONDAY): 2.0}
    assert ask(desk, adviser, MONDAY + 1, person="cem").advice is None, "ann's piece was said"
    archive_adviser(desk, ADMIN, adviser)
    delete_adviser(desk, ADMIN, adviser, "alerts")
    assert accounts(desk, adviser) == {}


def test_a_service_that_starts_again_finds_the_account_and_the_price(url):
    desk = open_ward(url)
    adviser = desk.create(1, "alerts", settings(pieces=2))
    for day in range(3):
        for i in range(8):
            ask(desk, adviser, MONDAY + day * DAY + 3600 * (8 + i), (WATCH, DETERIORATING)[i % 2])
    live, now = desk.live(1, adviser), MONDAY + 3 * DAY
    with desk.engine.connect() as connection:
        before = describe_shared_limit(connection, live, now)
    desk.close()
    desk.engine.dispose()
    desk = open_ward(url, seed=5)
    with desk.engine.connect() as connection:
        after = describe_shared_limit(connection, desk.live(1, adviser), now)
    assert after == before
    use = before["shared_limit"]
    assert (use["spent"], use["left"]) == (0, 2)
    assert use["price"] > 0.0
    assert use["expected"] == pytest.approx(8.0, rel=0.2)
    assert [one["spent"] for one in use["stretches"]] == [2, 2, 2, 0]
    assert [one["offered"] for one in use["stretches"]] == [8.0, 8.0, 8.0, 0.0]
    assert use["stretches"][-1]["price"] is None
    desk.close()
    desk.engine.dispose()


def test_without_a_limit_there_is_no_account_and_no_field(desk):
    adviser = desk.create(1, "alerts", AdviserSettings(source="ward", knows_habit=True))
    answer = ask(desk, adviser, MONDAY)
    assert not any(name.startswith("shared") for name in answer.reason)
    assert "shared_limit" not in summarise(desk, 1, adviser)
    assert accounts(desk, adviser) == {}


@each(
    ("limit", "sentence"),
    [
        ({"pieces": 0, "per": "day"}, "shared_limit.pieces is 0; it must be greater than 0"),
        ({"pieces": -1, "per": "day"}, "shared_limit.pieces is -1; it must be greater than 0"),
        ({"pieces": float("nan"), "per": "day"}, "shared_limit.pieces is nan; it must be a finite"),
        ({"pieces": 1, "per": {}}, "it must be second, minute, hour, day, week or a whole number"),
        ({"pieces": 1e10, "per": "day"}, "it must be less than or equal to 1000000000"),
        ({"pieces": 1, "per": "month"}, "shared_limit.per is 'month'; it must be second, minute"),
        ({"pieces": 1, "per": 0}, "shared_limit.per is 0; it must be second, minute"),
        ({"pieces": 1, "per": 0.5}, "shared_limit.per is 0.5; it must be second, minute"),
        ({"pieces": 1, "per": True}, "shared_limit.per is True; it must be second, minute"),
        ({"pieces": 1}, "shared_limit.per is missing; give it"),
        ({"pieces": 1, "per": "day", "from": 8}, "shared_limit.from is 8; there is no such field"),
        ("10 a day", "shared_limit is '10 a day'; it must be an object"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_in_one_sentence(limit, sentence):
    with pytest.raises(CounselError) as fault:
        AdviserSettings.checked(source="ward", shared_limit=limit)
    assert sentence in str(fault.value)
    assert "\n" not in str(fault.value)


@each(
    ("changes", "sentence"),
    [
        ({"always": True}, "shared_limit is 3 per day, but always advising pays no price"),
        ({"budget": 1.5}, "what the limit withholds would be owed to the budget; give hard, or"),
        (
            {"source": "dear", "shared_limit": {"pieces": 1.5, "per": 60}},
            r"shared_limit is 1.5 per 60 seconds, less than any advice costs (2)",
        ),
    ],
)
def test_a_limit_that_contradicts_other_settings_is_refused(changes, sentence, tmp_path):
    desk = open_ward(f"sqlite:///{tmp_path / 'counsel.db'}")
    with pytest.raises(CounselError) as fault:
        desk.create(1, "alerts", settings(**changes))
    assert sentence in str(fault.value)
    desk.close()
    desk.engine.dispose()


def test_whole_numbers_of_seconds_may_be_floats_as_json_has_them():
    assert settings(2, 60.0).shared_limit.seconds == 60
    assert str(settings(2.5, 90).shared_limit) == "2.5 per 90 seconds"
    stored = settings(2, "week").model_dump_json()
    assert AdviserSettings.model_validate_json(stored) == settings(2, "week")
