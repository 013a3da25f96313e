"""Games with people who tire: how rested they are taken to be, and what that changes."""

import numpy as np
import pytest

from counsel.learning.population import Limit
from counsel.service.core.export import export_person
from counsel.service.playground.game import GameSettings, Playground, player_name
from counsel.service.playground.rules import FADING, PEOPLE, playground_options
from tests.support import services

FREE = Limit(penalty=0.0)


@pytest.fixture
def desk(tmp_path):
    with services.open_desk(str(tmp_path / "counsel.db")) as found:
        yield found


@pytest.fixture
def playground(desk):
    return Playground(desk, np.random.default_rng(1))


def begin(playground, limit=FREE, *, map_="budget", person=None, tires=None):
    return playground.start(1, GameSettings(map_, limit, "me", person, tires))


def played(playground, game):
    """Play a game to its end, as advised where the player plays, and return all that was shown."""
    shown = [game]
    while not shown[-1]["over"]:
        last = shown[-1]
        action = None if last["person"] else last["advice"]["advice"] or "Down"
        shown.append(playground.move(1, last["id"], last["step"], action))
    return shown


def test_the_meter_falls_with_advice_and_rises_with_silence(playground, desk):
    shown = played(playground, begin(playground, tires=True))
    rested = [game["rest"]["rested"] for game in shown]
    assert rested[0] == 1.0
    assert shown[0]["rest"]["sentence"] == "Rested: advice moves you as well as ever."
    pieces = [game["advice"]["advice"] for game in shown[:-1]]
    assert any(pieces)
    silent = 3
    for piece, then in zip(pieces, rested[1:], strict=True):
        silent = 0 if piece else min(silent + 1, 3)
        assert then == FADING[silent]
    tired = next(game["rest"] for game in shown if game["rest"]["rested"] == 0.5)
    assert tired["sentence"] == ("Tired of advice: a piece moves you 50 % as well as when rested.")
    assert tired["level"] == "1 silent step since advice"
    log = b"".join(export_person(desk, 1, desk.person(1, player_name("me")))).decode()
    assert log.count("3 or more silent steps since advice") >= 1


def test_silence_that_lets_the_player_rest_says_so(playground):
    line = begin(playground, map_="three-phases", tires=True)["advice"]
    assert line["advice"] is None
    assert line["sentence"].startswith("Silent: letting you rest. Advice would gain 0.")
    assert line["sentence"].endswith(" of later listening.")
    assert line["gain"] < 0.0 < line["gain"] + line["burden"], "it would pay but for the burden"


def test_without_the_choice_nobody_is_taken_to_tire(playground):
    game = begin(playground)
    assert (game["tires"], game["rest"], game["advice"]["burden"]) == (False, None, None)


def test_a_simulated_person_is_known_to_tire_unless_the_watcher_says_otherwise(playground):
    known = begin(playground, person="tiring")
    assert (known["tires"], known["rest"]["rested"]) == (True, 1.0)
    blind = begin(playground, person="tiring", tires=False)
    assert (blind["tires"], blind["rest"]) == (False, None)
    assert [row["truth"] for row in known["listening"]] == list(PEOPLE["tiring"].lift)
    names = {row["name"]: row["tires"] for row in playground_options()["people"]}
    assert names == {"greedy": False, "safe": False, "deaf": False, "tiring": True}


def test_both_kinds_of_advisers_keep_their_own_games(playground):
    one, other = begin(playground, tires=True), begin(playground, tires=False)
    assert playground.show(1, one["id"])["tires"]
    assert not playground.show(1, other["id"])["tires"]


def test_a_hard_budget_holds_for_people_who_tire(playground):
    shown = played(playground, begin(playground, Limit(budget=2.0, hard=True), tires=True))
    assert shown[-1]["spent"] <= 2
    assert len(shown[-1]["card"]["learnt"]) == 3
