"""The playground's game: a bird on a map, somebody at the controls, and an adviser.

A game is an episode like any other: what is advised and done goes through the desk and onto the
record, and the game is read back from it, so a page can be closed and opened again. A star is paid
on reaching it, and the game ends in the last column, so that nobody has to fly out of the map.
"""

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.model.human import draw_index
from counsel.planning.frontier import frontier
from counsel.service.core.adviser import NOBODY, Advising, Limit
from counsel.service.core.desk import Desk
from counsel.service.core.live_adviser import Episode, Live, Settings
from counsel.service.core.outcomes import Outcome
from counsel.service.core.people import listening
from counsel.service.core.person_counts import SILENCE, Happened, Seen
from counsel.service.core.plan_cache import PlanKey
from counsel.service.db.queries import SAME_STEP
from counsel.service.db.tables import decisions, episodes, outcomes, people
from counsel.service.errors import MissingError
from counsel.service.playground.flights import Move, crash_of, lands_on_star, place_of
from counsel.service.playground.maps import PEOPLE, SOURCE, play_world, simulated_problem
from counsel.service.playground.wording import advice_shown, kind_of, stars
from counsel.worlds.flappy_bird import next_states
from counsel.worlds.grid_map import STAR, WALL, GridMap

DRAWS = 400
"""Habits drawn to say how well the score alone is known."""


class Playground:
    """Games of a service.

    Parameters
    ----------
    desk
        Where advice is decided on.
    rng
        What simulated people draw from.
    """

    def __init__(self, desk: Desk, rng: np.random.Generator) -> None:
        self.desk, self._rng = desk, rng

    def start(  # noqa: PLR0913 (what is chosen on the page)
        self, tenant: int, map_: str, adviser: str, limit: Limit, player: str, person: str | None
    ) -> dict[str, Any]:
        """Begin a game and return how it stands."""
        if person is not None and person not in PEOPLE:
            raise CounselError(f"person is {person[:40]!r}; it must be one of {', '.join(PEOPLE)}")
        play_world(map_)  # a map that there is not is refused
        asked = {
            "aware": limit,
            "always": Limit(always=True),
            "never": Limit(budget=0.0, hard=True),
        }
        who = f"player {player}" if person is None else f"simulated: {person}"
        id_ = self._adviser(tenant, map_, watched=person is not None)
        begun = self.desk.start(tenant, id_, who, asked[adviser])
        first = draw_index(play_world(map_).mdp.start, self._rng)
        self.desk.advise(tenant, begun.id, 0, first)
        return self.show(tenant, begun.id)

    def move(self, tenant: int, game: str, step: int, action: str | None) -> dict[str, Any]:
        """Play a step, as the player says or as the simulated person does; show what became."""
        episode, live, map_ = self._game(tenant, game)
        grid = GridMap.named(map_)
        now = self._moves(tenant, episode, grid)[-1]
        if now.step != step or now.action is not None:
            return self.show(tenant, game)  # sent twice, or late
        person = self._simulated(episode)
        if (action is None) != (person is not None):
            raise CounselError("give an action where you play, and none where you watch")
        if person is not None:
            truth = simulated_problem(map_, person)
            heard = live.problem.defer if now.advice is None else now.advice
            chosen = draw_index(truth.law(step, now.state, heard), self._rng)
        elif action in live.actions:
            chosen = live.actions[action]
        else:
            raise CounselError(
                f"action is {str(action)[:40]!r}; it must be one of {', '.join(live.actions)}"
            )
        then = int(next_states(grid)[now.state, chosen])
        reward = float(lands_on_star(grid, now.state, chosen))
        self.desk.report(tenant, [Outcome(f"{game}-{step}", chosen, reward, then)])
        return self.show(tenant, game)

    def show(self, tenant: int, game: str) -> dict[str, Any]:
        """Return how a game stands."""
        episode, live, map_ = self._game(tenant, game)
        grid = GridMap.named(map_)
        moves = self._moves(tenant, episode, grid)
        last = moves[-1]
        over = last.action is not None
        limit = live.limit_in(episode)
        made = self.desk.plans.of(PlanKey(episode.adviser, episode.person, limit))
        at, ending = last.state, None
        if last.action is not None:
            then = int(next_states(grid)[last.state, last.action])
            out = then == grid.rows * grid.columns
            at = last.state if out else then
            ending = crash_of(grid, last.state, last.action) if out else "through"
        person = self._simulated(episode)
        heard = listening(live, episode.person)
        truth = (None,) * len(heard) if person is None else PEOPLE[person].lift
        record = self._finished(episode)
        spent = sum(move.advice is not None for move in moves)
        score = sum(move.reward for move in moves)
        shown = {
            "id": game,
            "map": map_,
            "adviser": kind_of(limit),
            "budget": None if limit.budget is None or kind_of(limit) == "never" else limit.budget,
            "penalty": limit.penalty,
            "person": person,
            "step": last.step + over,
            "horizon": grid.columns - 1,
            "at": list(place_of(grid, at)),
            "over": over,
            "ending": ending,
            "score": score,
            "path": [_past(grid, live, move) for move in moves if move.action is not None],
            "advice": None if over else advice_shown(grid, live, made, last, limit),
            "spent": spent,
            "listening": [one | {"truth": true} for one, true in zip(heard, truth, strict=True)],
            "games": len(record) - over,
            "critical": _critical(grid, made),
            "frontier": _frontier(live, made, record),
            "card": None,
        }
        if over:
            shown["card"] = self._card(episode, live, grid, moves)
        return shown

    def _adviser(self, tenant: int, map_: str, *, watched: bool) -> str:
        """Return the adviser of a map, one for all who play and one for all who are simulated."""
        name, id_ = _name(map_, watched=watched), _id(tenant, map_, watched=watched)
        try:
            self.desk.live(tenant, id_)
        except MissingError:
            settings = Settings(SOURCE + map_, budget=2.0, hard=True)
            self.desk.create(tenant, name, settings, id_)
        return id_

    def _game(self, tenant: int, game: str) -> tuple[Episode, Live, str]:
        episode = self.desk.episode(tenant, game)
        live = self.desk.live(tenant, episode.adviser)
        map_ = live.settings.source.removeprefix(SOURCE)
        if episode.adviser not in (_id(tenant, map_, watched=one) for one in (False, True)):
            raise MissingError(f"there is no game {game[:40]!r}")
        return episode, live, map_

    def _moves(self, tenant: int, episode: Episode, grid: GridMap) -> list[Move]:
        """Return the moves of a game, the last one open unless it is over.

        Whoever was to ask for the next one, or to end it, may have been stopped before: then that
        is done here.
        """
        moves = self._recorded(episode)
        if not moves:
            raise MissingError(f"there is no game {episode.id!r}")
        last = moves[-1]
        if last.action is None:
            return moves
        then = int(next_states(grid)[last.state, last.action])
        if then < grid.rows * (grid.columns - 1):
            self.desk.advise(tenant, episode.id, last.step + 1, then)
            return self._recorded(episode)
        self.desk.end(tenant, episode.id, terminated=True)
        return moves

    def _recorded(self, episode: Episode) -> list[Move]:
        query = (
            sa.select(decisions, outcomes.c.action, outcomes.c.reward, outcomes.c.seen)
            .join(outcomes, SAME_STEP, isouter=True)
            .where(decisions.c.episode == episode.number)
            .order_by(decisions.c.step)
        )
        with self.desk.engine.connect() as connection:
            rows = connection.execute(query).all()
        return [
            Move(
                row.step,
                row.state,
                row.advice if row.shown else None,
                json.loads(row.reason),
                row.action,
                row.reward or 0.0,
                heard=SILENCE if row.advice is None or not (row.shown and row.seen) else row.advice,
            )
            for row in rows
        ]

    def _simulated(self, episode: Episode) -> str | None:
        """Return who plays, where that is nobody real."""
        query = sa.select(people.c.name).where(people.c.id == episode.person)
        with self.desk.engine.connect() as connection:
            name = str(connection.scalar(query))
        known = name.removeprefix("simulated: ")
        return known if known != name and known in PEOPLE else None

    def _finished(self, episode: Episode) -> list[tuple[float, float]]:
        """Return pieces and score of all games this player has finished on this map."""
        query = (
            sa.select(episodes.c.spent, sa.func.sum(outcomes.c.reward))
            .join(outcomes, outcomes.c.episode == episodes.c.number)
            .where(
                episodes.c.person == episode.person,
                episodes.c.adviser == episode.adviser,
                episodes.c.ended.is_not(None),
            )
            .group_by(episodes.c.number, episodes.c.spent)
        )
        with self.desk.engine.connect() as connection:
            return [(float(x), float(y or 0.0)) for x, y in connection.execute(query)]

    def _card(
        self, episode: Episode, live: Live, grid: GridMap, moves: list[Move]
    ) -> dict[str, Any]:
        """Return what is shown when a game is over."""
        self.desk.follow()  # another process may have played it
        score, pieces = sum(one.reward for one in moves), [m for m in moves if m.advice is not None]
        alone = _alone(live, episode.person, grid, self._rng)
        seen, before = live.adviser.seen, Seen()
        with seen.lock:
            for person, counts in seen.people.items():
                for cell, times in counts.cells.items():
                    before.learn(Happened(person, *cell, times))
        for one in moves:
            before.learn(Happened(episode.person, one.state, one.heard, one.action or 0, -1))
        was = replace(live.adviser, seen=before).believe(episode.person).lift
        now = live.adviser.believe(episode.person).lift
        taken = sorted(
            (one for one in pieces if one.action == one.advice),
            key=lambda one: -float(one.reason.get("gain") or 0.0),
        )
        count = f"{len(pieces)} piece{'' if len(pieces) == 1 else 's'} of advice"
        with_ = f"with {count}" if pieces else "without advice"
        return {
            "score": score,
            "pieces": len(pieces),
            "alone": alone,
            "learnt": [
                {"advice": name, "before": float(was[b]), "after": float(now[b])}
                for b, name in enumerate(live.action_names)
            ],
            "mattered": [one.step for one in taken[:3]],
            "sentence": (
                f"{stars(score)} {with_}. Alone it would have been about {alone['estimate']:.1f}."
            ),
        }


def _name(map_: str, *, watched: bool) -> str:
    return f"Playground: {map_}{', simulated' if watched else ''}"


def _id(tenant: int, map_: str, *, watched: bool) -> str:
    """Return the id of the adviser of a map, one and the same in every process."""
    text = f"{tenant} {_name(map_, watched=watched)}"
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _past(grid: GridMap, live: Live, move: Move) -> dict[str, Any]:
    advice = None if move.advice is None else live.action_names[move.advice]
    return {
        "step": move.step,
        "at": list(place_of(grid, move.state)),
        "advice": advice,
        "action": live.action_names[move.action or 0],
        "followed": None if advice is None else move.action == move.advice,
        "reward": move.reward,
    }


def _critical(grid: GridMap, made: Advising) -> list[list[float]]:
    """Return what the best advice is worth in each cell, top row first."""
    here = np.zeros((grid.rows, grid.columns))
    for column in range(grid.columns - 1):
        cells = made.gain[column, column * grid.rows : (column + 1) * grid.rows]
        here[:, column] = cells.max(axis=1).clip(min=0.0)
    here[grid.cells == WALL] = 0.0
    return np.round(here, 3).tolist()  # type: ignore[no-any-return]


def _frontier(live: Live, made: Advising, record: list[tuple[float, float]]) -> dict[str, Any]:
    """Return stars against pieces for this player as believed, and where they are on average."""
    likely = replace(made.believed, optimistic=made.believed.lift)
    points = frontier(live.adviser.believed_problem(likely)).vertices
    you = None
    if record:
        pieces, scores = np.array(record).mean(axis=0)
        you = {"pieces": float(pieces), "value": float(scores), "games": len(record)}
    return {
        "pieces": [round(one.advice_count, 4) for one in points],
        "value": [round(one.value, 4) for one in points],
        "you": you,
    }


def _alone(live: Live, person: int, grid: GridMap, rng: np.random.Generator) -> dict[str, float]:
    """Return the expected score without advice, with the middle 95 % over habits not ruled out.

    Habits are drawn from the Dirichlet distribution with the free choices as counts, and the prior
    as one more.
    """
    problem = live.problem
    own, _ = live.adviser.seen.tables(person, problem.n_states, problem.n_actions)
    believed = live.adviser.believe(person)
    prior = live.adviser.believe(NOBODY).habit
    weight = own.silent + own.refusing + prior
    drawn = rng.standard_gamma(np.maximum(weight, 1e-3), size=(DRAWS, *weight.shape))
    drawn /= drawn.sum(axis=2, keepdims=True)
    habits = np.concatenate((believed.habit[None], drawn))
    then, star = next_states(grid), np.append(grid.cells.T.reshape(-1) == STAR, 0)
    value = np.zeros((len(habits), problem.n_states))
    for _ in range(grid.columns - 1):
        value = (habits * (star + value)[:, then]).sum(axis=2)
        value[:, -1] = 0.0
    scores = value[:, grid.state(grid.start_row, 0)]
    low, high = np.quantile(scores[1:], (0.025, 0.975))
    return {"estimate": float(scores[0]), "low": float(low), "high": float(high)}
