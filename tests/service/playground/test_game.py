"""The playground's games behind the page: rules, what is said, what is learnt and shown."""

import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import counsel
from counsel import CounselError
from counsel.learning.population import Limit
from counsel.service.core.export import export_person
from counsel.service.playground.game import GameSettings, Playground
from counsel.service.playground.rules import (
    FIXED_LIMITS,
    PEOPLE,
    player_problem,
    playground_options,
    simulated_problem,
)
from counsel.worlds.grid_map import MOVES, GridMap
from tests.support import services
from tests.support.later import Later

pd = Later("pandas")

TWO = Limit(budget=2, hard=True)


@pytest.fixture
def desk(tmp_path):
    with services.open_desk(str(tmp_path / "counsel.db")) as found:
        yield found


@pytest.fixture
def playground(desk):
    return Playground(desk, np.random.default_rng(1))


def begin(playground, *, map_="three-phases", adviser="aware", limit=TWO, person=None):
    limit = FIXED_LIMITS.get(adviser, limit)
    return playground.start(1, GameSettings(map_, limit, "me", person))


def played(playground, game, choose=lambda game: "Up"):
    """Play a game to its end and return all that was shown."""
    shown = [game]
    while not shown[-1]["over"]:
        last = shown[-1]
        action = None if last["person"] else choose(last)
        shown.append(playground.move(1, last["id"], last["step"], action))
    return shown


def flown(rows, start, actions):
    """Fly a map by hand, from the text alone: the cells, the stars, and how it ends."""
    row, column = start
    cells, stars = [(row, column)], 0
    for action in actions:
        row, column = row + MOVES[action], column + 1
        if not 0 <= row < len(rows):
            return cells, stars, "edge"
        if rows[row][column] == "#":
            return cells, stars, "wall"
        stars += rows[row][column] == "*"
        cells.append((row, column))
    return cells, stars, "through" if column == len(rows[0]) - 1 else None


@pytest.mark.slow
@pytest.mark.parametrize("map_", [one["name"] for one in playground_options()["maps"]])
def test_games_follow_the_map(playground, map_):
    rng = np.random.default_rng(3)
    told = next(one for one in playground_options()["maps"] if one["name"] == map_)
    for _ in range(8):
        shown = played(
            playground, begin(playground, map_=map_), lambda _: str(rng.choice([*MOVES]))
        )
        last = shown[-1]
        cells, stars, ending = flown(
            told["rows"], told["start"], [one["action"] for one in last["path"]]
        )
        assert (last["score"], last["ending"]) == (stars, ending)
        assert tuple(last["at"]) == cells[-1]
        assert [tuple(one["at"]) for one in last["path"]] == cells[: len(last["path"])]
        assert [one["step"] for one in shown] == list(range(len(shown)))


@pytest.mark.slow
def test_advice_is_within_the_budget_and_its_sentence_names_it(playground):
    spoken = 0
    for _ in range(5):
        for shown in played(
            playground, begin(playground), lambda one: one["advice"]["advice"] or "Up"
        ):
            assert shown["spent"] <= 2
            if shown["advice"] is None:
                continue
            advice, sentence = shown["advice"]["advice"], shown["advice"]["sentence"]
            spoken += advice is not None
            assert sentence.startswith("Silent: " if advice is None else f"{advice}. ")
            assert sentence.endswith(".")
    assert spoken > 0


@pytest.mark.parametrize(
    ("adviser", "speaks"), [("never", "never"), ("always", "always"), ("aware", "sometimes")]
)
def test_each_adviser_speaks_as_its_name_says(playground, adviser, speaks):
    shown = played(playground, begin(playground, adviser=adviser), lambda one: "Down")
    said = [one["advice"]["advice"] is not None for one in shown if one["advice"]]
    assert shown[0]["adviser"] == adviser
    assert {"never": not any(said), "always": all(said), "sometimes": True}[speaks]
    assert shown[-1]["card"]["pieces"] == sum(said)


def test_a_penalty_that_nothing_is_worth_is_silence_and_says_so(playground):
    shown = played(playground, begin(playground, limit=Limit(penalty=50.0)))
    assert all(one["advice"]["advice"] is None for one in shown if one["advice"])
    said = {one["advice"]["sentence"] for one in shown if one["advice"]}
    assert said <= {"Silent: you do well here."} | {
        one for one in said if one.endswith("less than its price.")
    }


def test_a_move_sent_twice_or_late_changes_nothing(playground):
    game = begin(playground)
    once = playground.move(1, game["id"], 0, "Up")
    for again in (
        playground.move(1, game["id"], 0, "Down"),
        playground.move(1, game["id"], 5, "Down"),
        playground.show(1, game["id"]),
    ):
        for name in ("step", "at", "path", "score", "spent", "over"):
            assert again[name] == once[name]
        assert again["advice"]["advice"] == once["advice"]["advice"]
    last = played(playground, once)[-1]
    again = playground.move(1, game["id"], last["step"], "Up")
    assert again["path"] == last["path"]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"map_": "../../etc/passwd"}, "map is '../../etc/passwd'"),
        ({"person": "nobody"}, "person is 'nobody'"),
        ({"limit": Limit(budget=1.5, hard=True)}, "budget"),
    ],
)
def test_games_that_make_no_sense_are_refused(playground, changes, what):
    with pytest.raises(CounselError, match=what):
        begin(playground, **changes)


def test_moves_that_make_no_sense_are_refused_and_not_written(playground, desk):
    game, watched = begin(playground), begin(playground, person="greedy")
    for id_, action, what in (
        (game["id"], None, "give an action where you play"),
        (game["id"], "Sideways", "action is 'Sideways'"),
        (watched["id"], "Up", "none where you watch"),
        ("none", "Up", "no episode"),
    ):
        with pytest.raises(CounselError, match=what):
            playground.move(1, id_, 0, action)
    with pytest.raises(CounselError, match="there is no"):
        playground.show(2, game["id"])
    assert playground.show(1, game["id"])["path"] == []


def test_an_episode_of_another_adviser_is_no_game(playground, desk):
    from counsel.service.core.settings import AdviserSettings

    adviser = desk.create(1, "alerts", AdviserSettings(source="ward", budget=1.0))
    episode = desk.start(1, adviser, "ann").id
    with pytest.raises(CounselError, match="there is no game"):
        playground.show(1, episode)


@pytest.mark.slow
@pytest.mark.parametrize("person", PEOPLE)
def test_simulated_people_act_as_their_habit_and_lift_say(playground, person):
    """Watched under an adviser that always speaks, who can be told from the record."""
    taken, expected, variance = 0, 0.0, 0.0
    truth = simulated_problem("three-phases", person)
    names = list(MOVES)
    grid = GridMap.named("three-phases")
    for _ in range(4):
        last = played(playground, begin(playground, adviser="always", person=person))[-1]
        for one in last["path"]:
            state = grid.state(*one["at"])
            level = 0 if PEOPLE[person].tires and one["step"] else None  # advised just before
            law = truth.law(one["step"], state, names.index(one["advice"]), level)
            match = law[names.index(one["advice"])]
            taken, expected = taken + one["followed"], expected + match
            variance += match * (1 - match)
    assert abs(taken - expected) < 4 * np.sqrt(variance) + 1e-9


@pytest.mark.slow
def test_what_is_believed_of_a_watched_person_comes_near_the_truth(playground):
    for _ in range(10):
        last = played(playground, begin(playground, adviser="always", person="safe"))[-1]
    for one in last["listening"]:
        if one["pieces"] >= 15:
            assert one["low"] - 0.1 <= one["truth"] <= one["high"] + 0.1, one
    assert sum(one["pieces"] >= 15 for one in last["listening"]) >= 2


def test_players_and_simulated_people_are_learnt_apart(playground, desk):
    played(playground, begin(playground))
    played(playground, begin(playground, person="deaf"))
    ids = {live.name: id_ for id_, live in desk._live.items()}
    assert set(ids) == {"Playground: three-phases", "Playground: three-phases, simulated"}
    assert all(len(desk.learnt.of(id_).people) == 1 for id_ in ids.values())


@pytest.mark.slow
def test_the_card_says_what_would_have_been_without_advice(playground, desk):
    """Somebody who always goes up and then down, told from hundreds of silent moves."""

    def zigzag(game):
        return ("Up", "Down")[game["step"] % 2]

    for _ in range(15):
        last = played(playground, begin(playground, adviser="never"), zigzag)[-1]
    told = next(one for one in playground_options()["maps"] if one["name"] == "three-phases")
    _, stars, _ = flown(told["rows"], told["start"], [one["action"] for one in last["path"]])
    alone = last["card"]["alone"]
    assert alone["low"] <= alone["estimate"] <= alone["high"]
    # Five decisions of the prior in each cell still count for a quarter.
    assert abs(alone["estimate"] - stars) < 0.4 * stars + 0.5
    assert "without advice" in last["card"]["sentence"]
    assert last["frontier"]["you"] == {"pieces": 0.0, "value": stars, "games": 15}


def test_the_card_says_what_was_learnt_in_this_game(playground):
    before = begin(playground, adviser="always")
    shown = played(playground, before, lambda one: one["advice"]["advice"])
    card = shown[-1]["card"]
    for was, one, now in zip(
        before["listening"], card["learnt"], shown[-1]["listening"], strict=True
    ):
        assert one["before"] == pytest.approx(was["estimate"])
        assert one["after"] == pytest.approx(now["estimate"])
    assert any(one["after"] > one["before"] + 0.1 for one in card["learnt"])
    assert len(card["mattered"]) == min(3, len(shown) - 1)


def test_the_heat_map_is_nothing_in_walls_and_the_frontier_is_concave(playground):
    game = begin(playground)
    cells = np.array(game["critical"])
    grid = GridMap.named("three-phases")
    assert cells.shape == grid.cells.shape
    assert (cells >= 0.0).all()
    assert (cells[grid.cells == 2] == 0.0).all()
    assert cells.max() > 0.0
    pieces, value = np.array(game["frontier"]["pieces"]), np.array(game["frontier"]["value"])
    assert (np.diff(pieces) >= 0.0).all()
    far = np.diff(pieces) > 0.01  # what is shown has four digits
    slopes = np.diff(value)[far] / np.diff(pieces)[far]
    assert (np.diff(slopes) < 0.02).all()


@pytest.mark.slow
def test_the_log_of_a_player_can_be_fitted(playground, desk, tmp_path, few_draws):
    rng = np.random.default_rng(4)
    moves = 0
    for adviser in ("aware", "always", "never"):
        for _ in range(3):
            game = begin(playground, adviser=adviser)
            shown = played(playground, game, lambda _: str(rng.choice([*MOVES])))
            moves += len(shown[-1]["path"])
    content = b"".join(export_person(desk, 1, desk.person(1, "player me")))
    rows = pd.read_csv(io.BytesIO(content))
    assert len(rows) == moves
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    assert counsel.fit(path).check.rows == moves


def test_a_stranger_is_taken_for_somebody_who_dodges_walls(playground):
    prior = player_problem("three-phases").policy[0]
    np.testing.assert_allclose(prior.sum(axis=1), 1.0)
    assert prior.min() >= 0.1 - 1e-12


def test_a_game_that_was_interrupted_goes_on(playground, desk, monkeypatch):
    """Found by an attack: a fault between a move and the next question ended the game for good."""
    game = begin(playground)
    plain = desk.advise

    def fail(*_):
        raise CounselError("away")

    monkeypatch.setattr(desk, "advise", fail)
    with pytest.raises(CounselError, match="away"):
        playground.move(1, game["id"], 0, "Up")
    monkeypatch.setattr(desk, "advise", plain)
    again = playground.move(1, game["id"], 0, "Down")
    assert (again["over"], again["step"], again["path"][0]["action"]) == (False, 1, "Up")
    assert playground.move(1, game["id"], 1, "Down")["step"] == 2


def test_two_moves_of_one_step_at_once_leave_one_story(playground):
    """Found by an attack: the record had one move and went on from where the other led."""
    for _ in range(10):
        game = begin(playground)
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(playground.move, 1, game["id"], 0, one) for one in ("Up", "Down")]
            shown = [one.result() for one in both]
        assert shown[0]["path"] == shown[1]["path"]
        last = playground.show(1, game["id"])
        row = game["at"][0] + MOVES[last["path"][0]["action"]]
        assert last["at"] == [row, 1]


def test_episodes_begun_otherwise_are_no_games(playground, desk):
    from counsel.service.core.settings import AdviserSettings

    game = begin(playground)
    adviser = desk.episode(1, game["id"]).live.id
    empty = desk.start(1, adviser, "simulated: nobody").id
    own = desk.create(
        1, "own", AdviserSettings(source="play/budget", budget=1.0, algorithm="thompson")
    )
    other = desk.start(1, own, "ann").id
    desk.advise(1, other, 0, 3)
    for id_ in (empty, other):
        with pytest.raises(CounselError, match="there is no game"):
            playground.show(1, id_)


def test_what_another_process_played_is_on_the_card(playground, desk):
    """Found by an attack: before it had followed, it took away what it had not counted."""
    with services.open_desk(str(desk.engine.url.database)) as other:
        shown = played(playground, begin(playground, adviser="always"))[-1]
        there = Playground(other, np.random.default_rng(6)).show(1, shown["id"])
    assert there["card"]["learnt"] == shown["card"]["learnt"]
