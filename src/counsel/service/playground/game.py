"""The playground's game: a bird on a map, somebody at the controls, and an adviser.

A game is an episode like any other: advice and moves are recorded through the desk, and the game is
read back from the record, so a page can be closed and opened again. A star is paid on reaching it,
and the game ends in the last column, so that nobody has to fly out of the map.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.learning.population import NOBODY, Limit
from counsel.model.human import draw_index
from counsel.model.problem import AdviceProblem
from counsel.planning.frontier import frontier
from counsel.service.core.decide import index_of_advice
from counsel.service.core.desk import Desk
from counsel.service.core.episode import Episode
from counsel.service.core.explained_plan import ExplainedPlan
from counsel.service.core.level_moves import Happening, LevelMoves
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.core.outcomes import Outcome
from counsel.service.core.person_beliefs import lift_estimates
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.engine import read
from counsel.service.db.queries import LAST_OUTCOME
from counsel.service.db.tables import decisions, episodes, outcomes, people
from counsel.service.errors import BusyError, ConflictError, NotFoundError
from counsel.service.playground import rules
from counsel.service.playground.rules import PEOPLE, SOURCE, TIRING_SOURCE, Move
from counsel.service.playground.sentences import advice_line, rest_line, result_sentence
from counsel.worlds.flappy_bird import next_states
from counsel.worlds.grid_map import STAR, WALL, GridMap

DRAWS = 400
"""Habits that are drawn for the interval of the score without advice."""

SIMULATED = "simulated: "
"""What the names of simulated people begin with in the database."""


@dataclass(frozen=True, slots=True)
class GameSettings:
    """What is chosen for a game: the map, what advice may cost, and who plays.

    ``person`` is a simulated person who plays instead of the player. ``tires`` says whether the
    adviser takes the player to tire; by default it knows of simulated people whether they do.
    """

    map: str
    limit: Limit
    player: str
    person: str | None = None
    tires: bool | None = None


@dataclass(frozen=True, slots=True)
class _Game:
    """A game on record: its episode and its map."""

    episode: Episode
    map: str
    grid: GridMap

    @property
    def live(self) -> LiveAdviser:
        return self.episode.live

    def past_move(self, move: Move) -> dict[str, Any]:
        """Return a past move as the page shows it."""
        return {
            "step": move.step,
            "at": list(rules.place_of(self.grid, move.state)),
            "advice": self.live.action_name(move.advice),
            "action": self.live.action_name(move.action),
            "followed": None if move.advice is None else move.action == move.advice,
            "reward": move.reward,
        }

    def next_state(self, move: Move, action: int) -> int:
        """Return the state that an action leads to."""
        return int(next_states(self.grid)[move.state, action])


class Playground:
    """The games of a service; ``rng`` decides what simulated people do."""

    def __init__(self, desk: Desk, rng: np.random.Generator) -> None:
        self.desk, self._rng = desk, rng

    def start(self, tenant: int, settings: GameSettings) -> dict[str, Any]:
        """Start a game and return its state."""
        person = settings.person
        if person is not None and person not in PEOPLE:
            raise CounselError(f"person is {person[:40]!r}; it must be one of {', '.join(PEOPLE)}")
        tires = settings.tires
        if tires is None:
            tires = person is not None and PEOPLE[person].tires
        problem = rules.player_problem(settings.map)
        name = player_name(settings.player) if person is None else SIMULATED + person
        kind = _Kind(simulated=person is not None, tires=tires)
        adviser = self._adviser(tenant, settings.map, kind)
        episode = self.desk.start(tenant, adviser, name, settings.limit)
        self.desk.advise(tenant, episode.id, 0, draw_index(problem.mdp.start, self._rng))
        return self.show(tenant, episode.id)

    def move(self, tenant: int, id_: str, step: int, action: str | None) -> dict[str, Any]:
        """Make a move, the player's or the simulated person's, and return the game's state."""
        game = self._game(tenant, id_)
        now = self._moves(game)[-1]
        if now.step != step or now.action is not None:
            return self._show(game)  # sent twice, or late
        person = self._simulated_person(game.episode)
        if (action is None) != (person is not None):
            raise CounselError("give an action where you play, and none where you watch")
        if person is not None:
            truth = rules.simulated_problem(game.map, person)
            heard = index_of_advice(now.advice, truth)
            level = _true_level(truth, game.episode.id, self._recorded_moves(game.episode), step)
            chosen = draw_index(truth.law(step, now.state, heard, level), self._rng)
        elif action in game.live.actions:
            chosen = game.live.actions[action]
        else:
            names = ", ".join(game.live.actions)
            raise CounselError(f"action is {str(action)[:40]!r}; it must be one of {names}")
        reward = float(rules.lands_on_star(game.grid, now.state, chosen))
        then = game.next_state(now, chosen)
        id_ = game.episode.decision_id(step)
        with suppress(ConflictError):  # another move was faster, and a move cannot be corrected
            self.desk.report(tenant, [Outcome(id_, chosen, reward, then, version=1)])
        return self._show(game)

    def show(self, tenant: int, id_: str) -> dict[str, Any]:
        """Return the state of a game."""
        return self._show(self._game(tenant, id_))

    def _show(self, game: _Game) -> dict[str, Any]:
        episode, live, grid = game.episode, game.live, game.grid
        moves = self._moves(game)
        last, limit, kind = moves[-1], episode.limit, rules.kind_of(episode.limit)
        over = last.action is not None
        person_plan = self.desk.plans.wait_for(episode.plan_key)
        if person_plan is None:
            raise BusyError("no plan can be made at present; try again")
        state, ending = last.state, None
        if last.action is not None:
            state, ending = game.next_state(last, last.action), "through"
            if state == grid.rows * grid.columns:
                state, ending = last.state, rules.crash_of(grid, last.state, last.action)
        person = self._simulated_person(episode)
        estimates = lift_estimates(live, episode.person)
        truth = (None,) * len(estimates) if person is None else PEOPLE[person].lift
        results = self._results(episode)
        return {
            "id": episode.id,
            "map": game.map,
            "adviser": kind,
            "budget": None if kind == "never" else limit.budget,
            "penalty": limit.penalty,
            "person": person,
            "tires": live.moves is not None,
            "rest": self._rest(game, moves, is_watched=person is not None),
            "step": last.step + over,
            "horizon": grid.columns - 1,
            "at": list(rules.place_of(grid, state)),
            "over": over,
            "ending": ending,
            "score": sum(move.reward for move in moves),
            "path": [game.past_move(move) for move in moves if move.action is not None],
            "advice": None if over else advice_line(grid, live, person_plan, last, limit),
            "spent": sum(move.advice is not None for move in moves),
            "listening": [
                estimate | {"truth": lift} for estimate, lift in zip(estimates, truth, strict=True)
            ],
            "games": len(results) - over,
            "critical": _best_gains(grid, person_plan),
            "frontier": _frontier(live, person_plan, results),
            "card": self._card(game, moves) if over else None,
        }

    def _rest(self, game: _Game, moves: list[Move], *, is_watched: bool) -> dict[str, Any] | None:
        """Return how rested the player is taken to be at the next move; None if nobody tires."""
        live, last = game.live, moves[-1]
        if live.moves is None:
            return None
        happened = {move.step: Happening(move.advice, move.action, seen=True) for move in moves}
        step = last.step + (last.action is not None)
        level = live.moves.follow(game.episode.id, None, happened, step)[-1]
        return rest_line(live, level, is_watched=is_watched)

    def _adviser(self, tenant: int, map_: str, kind: "_Kind") -> str:
        """Return the adviser of a map: one for all players, one for all simulated people.

        There are others that take people to tire.
        """
        id_ = _adviser_id(tenant, map_, kind)
        try:
            self.desk.live(tenant, id_)
        except NotFoundError:
            settings = AdviserSettings(source=kind.source + map_, budget=2.0, hard=True)
            self.desk.create(tenant, _adviser_name(map_, kind), settings, id_)
        return id_

    def _game(self, tenant: int, id_: str) -> _Game:
        episode = self.desk.episode(tenant, id_)
        source = episode.live.settings.source
        map_ = source.removeprefix(SOURCE).removeprefix(TIRING_SOURCE)
        ids = (
            _adviser_id(tenant, map_, _Kind(simulated, tires))
            for simulated in (False, True)
            for tires in (False, True)
        )
        if episode.live.id not in ids:
            raise NotFoundError(f"there is no game {id_[:40]!r}")
        return _Game(episode, map_, GridMap.named(map_))

    def _moves(self, game: _Game) -> list[Move]:
        """Return the moves of a game, the last one open unless the game is over.

        A process may have been stopped before it asked for the next decision or ended the game:
        then that is done here.
        """
        episode, grid = game.episode, game.grid
        moves = self._recorded_moves(episode)
        if not moves:
            raise NotFoundError(f"there is no game {episode.id!r}")
        last = moves[-1]
        if last.action is None:
            return moves
        following = game.next_state(last, last.action)
        if following < grid.rows * (grid.columns - 1):
            self.desk.advise(game.live.tenant, episode.id, last.step + 1, following)
            return self._recorded_moves(episode)
        self.desk.end(game.live.tenant, episode.id, terminated=True)
        return moves

    def _recorded_moves(self, episode: Episode) -> list[Move]:
        query = (
            sa.select(decisions, outcomes.c.action, outcomes.c.reward, outcomes.c.seen)
            .join(outcomes, LAST_OUTCOME, isouter=True)
            .where(decisions.c.episode == episode.number)
            .order_by(decisions.c.step)
        )
        return [
            Move(
                row.step,
                row.state,
                row.advice if row.shown else None,
                json.loads(row.reason),
                row.action,
                row.reward or 0.0,
                heard=row.advice if row.shown and row.seen else None,
                level=row.level,
            )
            for row in read(self.desk.engine, query)
        ]

    def _simulated_person(self, episode: Episode) -> str | None:
        """Return the simulated person who plays, or None where a player does."""
        query = sa.select(people.c.name).where(people.c.id == episode.person)
        names = [row.name for row in read(self.desk.engine, query)]
        return next((person for person in PEOPLE if SIMULATED + person in names), None)

    def _results(self, episode: Episode) -> list[tuple[float, float]]:
        """Return the score and the pieces of all games this player has finished on this map."""
        query = (
            sa.select(sa.func.sum(outcomes.c.reward), episodes.c.spent)
            .join(outcomes, outcomes.c.episode == episodes.c.number)
            .where(
                outcomes.c.replaced_by.is_(None),
                episodes.c.person == episode.person,
                episodes.c.adviser == episode.live.id,
                episodes.c.ended.is_not(None),
            )
            .group_by(episodes.c.number, episodes.c.spent)
        )
        rows = read(self.desk.engine, query)
        return [(float(score or 0.0), float(pieces)) for score, pieces in rows]

    def _card(self, game: _Game, moves: list[Move]) -> dict[str, Any]:
        """Return what is shown when a game is over."""
        self.desk.catch_up()  # another process may have played it
        episode, live = game.episode, game.live
        score = sum(move.reward for move in moves)
        advised = [move for move in moves if move.advice is not None]
        alone = _score_alone(live, episode.person, game.grid, self._rng)
        earlier = live.population.counts.copy()
        for move in moves:
            cell = (move.state, move.heard, move.action or 0)
            earlier.add(episode.person, cell, -1, move.level)
        before = replace(live.population, counts=earlier).estimate(episode.person).lift
        after = live.population.estimate(episode.person).lift
        matched = [move for move in advised if move.action == move.advice]
        matched.sort(key=lambda move: -float(move.reason.get("gain") or 0.0))
        return {
            "score": score,
            "pieces": len(advised),
            "alone": alone,
            "learnt": [
                {"advice": name, "before": float(before[b]), "after": float(after[b])}
                for b, name in enumerate(live.action_names)
            ],
            "mattered": [move.step for move in matched[:3]],
            "sentence": result_sentence(score, len(advised), alone["estimate"]),
        }


def player_name(player: str) -> str:
    """Return the name of a player in the database."""
    return f"player {player}"


class _Kind(NamedTuple):
    """Whom an adviser advises: players or simulated people, who may be taken to tire."""

    simulated: bool
    tires: bool

    @property
    def source(self) -> str:
        return TIRING_SOURCE if self.tires else SOURCE


def _true_level(truth: AdviceProblem, episode: str, moves: list[Move], step: int) -> int | None:
    """Return the level of a simulated person's memory, which the adviser may know nothing of."""
    if truth.memory is None:
        return None
    happened = {move.step: Happening(move.heard, move.action, seen=True) for move in moves}
    return LevelMoves(truth.memory).follow(episode, None, happened, step)[-1]


def _adviser_name(map_: str, kind: _Kind) -> str:
    name = f"Playground: {map_}{', simulated' if kind.simulated else ''}"
    return f"{name}, tiring" if kind.tires else name


def _adviser_id(tenant: int, map_: str, kind: _Kind) -> str:
    """Return the id of the adviser of a map, the same in every process."""
    text = f"{tenant} {_adviser_name(map_, kind)}"
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _best_gains(grid: GridMap, person_plan: ExplainedPlan) -> list[list[float]]:
    """Return what the best advice gains in each cell, top row first."""
    gains = np.zeros((grid.rows, grid.columns))
    for column in range(grid.columns - 1):
        cells = person_plan.gain[column, column * grid.rows : (column + 1) * grid.rows]
        gains[:, column] = cells.max(axis=1).clip(min=0.0)
    gains[grid.cells == WALL] = 0.0
    return np.round(gains, 3).tolist()  # type: ignore[no-any-return]


def _frontier(
    live: LiveAdviser, person_plan: ExplainedPlan, results: list[tuple[float, float]]
) -> dict[str, Any]:
    """Return stars against pieces for this player as believed, and the player's average."""
    likely = replace(person_plan.estimate, planned_lift=person_plan.estimate.lift)
    vertices = frontier(live.population.problem(likely)).vertices
    you = None
    if results:
        score, pieces = np.array(results).mean(axis=0)
        you = {"pieces": float(pieces), "value": float(score), "games": len(results)}
    return {
        "pieces": [round(vertex.advice_count, 4) for vertex in vertices],
        "value": [round(vertex.value, 4) for vertex in vertices],
        "you": you,
    }


def _score_alone(
    live: LiveAdviser, person: int, grid: GridMap, rng: np.random.Generator
) -> dict[str, float]:
    """Return the expected score without advice, with an interval over plausible habits.

    Habits are drawn from the Dirichlet distribution with the free choices as counts, plus the prior
    as one more; the interval is the middle 95 % of the scores.
    """
    own, _ = live.population.counts_of(person)
    estimate = live.population.estimate(person)
    prior = live.population.estimate(NOBODY).habit
    weight = own.silent + own.refusing + prior
    drawn = rng.standard_gamma(np.maximum(weight, 1e-3), size=(DRAWS, *weight.shape))
    drawn /= drawn.sum(axis=2, keepdims=True)
    habits = np.concatenate((estimate.habit[None], drawn))
    following, is_star = next_states(grid), np.append(grid.cells.T.reshape(-1) == STAR, 0)
    value = np.zeros((len(habits), live.mdp.n_states))
    for _ in range(grid.columns - 1):
        value = (habits * (is_star + value)[:, following]).sum(axis=2)
        value[:, -1] = 0.0
    scores = value[:, grid.state(grid.start_row, 0)]
    low, high = np.quantile(scores[1:], (0.025, 0.975))
    return {"estimate": float(scores[0]), "low": float(low), "high": float(high)}
