"""Exports of logs whose texts are hostile: exact for `counsel fit`, harmless in a spreadsheet."""

import csv
import io

import numpy as np
import pytest

import counsel
from counsel.service.core.desk import Desk
from counsel.service.core.export import FORMULAS, export_log, export_person
from counsel.service.core.outcomes import Outcome
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.api_keys import tenant_of
from counsel.service.db.engine import open_engine, write_transaction
from tests.support.later import Later

pd = Later("pandas")

STATES = ("=1+1", "@calm", 'quiet, "so"')
ACTIONS = ("-go", "+stop")
PEOPLE = ("@SUM(A1:A9)", "=cmd|' /C calc'!A0", "\r=2", "\n=2", "＝2", "plain", "'=1")
REMARKS = (
    ("=HYPERLINK(1)", "-2+3+cmd|' /C calc'!A0"),
    ("@x", '=IMPORTXML(CONCAT("http://", A1))'),
    ("+1", "\t=1"),
    (None, None),
    ("code", 'said "no", twice\nand left'),
    ("－1", "＋1"),
    ("-", "- a list"),
)


def hostile_problem(_):
    mdp = counsel.MDP(
        [[1, 2], [0, 2], [2, 1]],
        reward=[0.0, 1.0, -0.5],
        horizon=4,
        state_labels=STATES,
        action_labels=ACTIONS,
    )
    return counsel.AdviceProblem(mdp, counsel.Human(np.full((3, 2), 0.5), 0.5))


@pytest.fixture
def desk(tmp_path):
    engine = open_engine(str(tmp_path / "counsel.db"))
    with write_transaction(engine) as connection:
        assert tenant_of(connection, "local") == 1
    desk = Desk(engine, lambda _, source: hostile_problem(source), np.random.default_rng(0))
    yield desk
    desk.close()
    engine.dispose()


@pytest.fixture
def adviser(desk):
    """An adviser whose log has all of these texts."""
    adviser = desk.create(1, "=1+1", AdviserSettings(source="hostile", always=True))
    for person, (code, comment) in zip(PEOPLE, REMARKS, strict=True):
        episode = desk.start(1, adviser, person).id
        for step in range(3):
            decision = desk.advise(1, episode, step, step)
            outcome = Outcome(decision.id, step % 2, -0.5, reason_code=code, comment=comment)
            desk.report(1, [outcome])
        desk.end(1, episode, terminated=False)
    return desk.live(1, adviser)


def rows_of(parts):
    """Return the rows of a CSV file, with line breaks in texts as they are."""
    text = b"".join(parts).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_is_exact_and_can_be_fitted(desk, adviser, tmp_path, few_draws):
    content = b"".join(export_log(desk, adviser, "csv"))
    rows = rows_of([content])
    assert [row["person"] for row in rows[::3]] == list(PEOPLE)
    assert [row["reason_code"] for row in rows[::3]] == [code or "" for code, _ in REMARKS]
    assert [row["comment"] for row in rows[::3]] == [comment or "" for _, comment in REMARKS]
    assert {row["state"] for row in rows} == set(STATES)
    assert {row["action"] for row in rows} == set(ACTIONS)
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    fit = counsel.fit(path)
    assert set(fit.problem.mdp.action_labels) == set(ACTIONS)
    assert set(STATES) <= set(fit.problem.mdp.state_labels)
    table = tmp_path / "log.parquet"
    table.write_bytes(b"".join(export_log(desk, adviser, "parquet")))
    for name in ("person", "state", "action", "reason_code", "comment"):
        values = pd.read_parquet(table)[name].astype(object)
        assert [value or "" for value in values.where(values.notna(), "")] == [
            row[name] for row in rows
        ]


def test_no_text_is_a_formula_in_csv_for_spreadsheets(desk, adviser):
    exact = rows_of(export_log(desk, adviser, "csv"))
    rows = rows_of(export_log(desk, adviser, "spreadsheet"))
    assert len(rows) == len(exact) == 3 * len(PEOPLE)
    guarded = 0
    for row, plain in zip(rows, exact, strict=True):
        for name, text in row.items():
            if name == "reward":
                assert text == "-0.5"  # a number
                continue
            assert not text.startswith(FORMULAS), (name, text)
            assert text in (plain[name], f"'{plain[name]}")
            guarded += text != plain[name]
    assert guarded > 50


@pytest.mark.parametrize("person", PEOPLE)
def test_the_log_of_one_person_is_guarded_alike(desk, adviser, person):
    number = desk.person(1, person)
    exact = rows_of(export_person(desk, 1, number))
    rows = rows_of(export_person(desk, 1, number, "spreadsheet"))
    assert {row["person"] for row in exact} == {person}
    assert {row["person"] for row in rows} == {
        f"'{person}" if person.startswith(FORMULAS) else person
    }
