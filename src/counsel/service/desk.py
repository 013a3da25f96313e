"""The desk: where advice is asked for, decided on, written down and learnt from.

Everything that is answered is durable first. What an adviser has learnt is read from the log, by
this service or by others on the same database, in the order of ``seq``; a desk that is opened again
reads it from the beginning and knows the same.

A decision belongs to one step of one episode. Asked again for the same step, the desk gives the
same answer. A hard budget is enforced by the database itself: a piece is spent only where one is
left, whoever asks.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np
import sqlalchemy as sa

from counsel._arrays import index_in
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.service.adviser import Adviser, Advising, Happened, Limit, advice_at
from counsel.service.store import Committer
from counsel.service.tables import advisers, decisions, episodes, outcomes, people

MODES = ("off", "shadow", "live")


class MissingError(CounselError):
    """There is no such thing, or it is somebody else's."""


class EndedError(CounselError):
    """It was there and is over."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How an adviser works.

    Attributes
    ----------
    source
        What its world is called, or the id of a model.
    penalty, budget, hard
        What advice may cost.
    algorithm
        "ucb-ad" or "thompson".
    mode
        "live" shows advice, "shadow" only writes down what it would say, "off" is silent.
    knows_habit
        Whether the world's person is known to act so when left alone.
    holdout
        The share of episodes that are kept silent, so that the worth of advice stays measurable.
    must_say
        Advice by state, both by label, that is given whatever the budget.
    """

    source: str
    penalty: float | None = None
    budget: float | None = None
    hard: bool = False
    algorithm: str = "ucb-ad"
    mode: str = "live"
    knows_habit: bool = False
    holdout: float = 0.0
    must_say: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise CounselError(f"mode is {self.mode!r}; it must be one of {', '.join(MODES)}")
        if not 0.0 <= self.holdout <= 1.0:
            raise CounselError(f"holdout is {self.holdout}; it must lie in [0, 1]")


@dataclass(frozen=True, slots=True)
class Said:
    """An answer: advice by its number, or None for silence, and why."""

    id: str
    advice: int | None
    shown: bool
    probability: float
    reason: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a decision."""

    decision: str
    action: int
    reward: float | None = None
    next_state: int | None = None
    seen: bool = True
    reason_code: str | None = None
    comment: str | None = None


@dataclass(slots=True)
class _Live:
    """An adviser at work."""

    tenant: int
    settings: Settings
    problem: AdviceProblem
    adviser: Adviser
    plans: dict[int, Advising] = field(default_factory=dict)


@dataclass(slots=True)
class _Episode:
    """An episode as far as it is known here."""

    adviser: str
    person: int
    held_out: bool
    ended: bool


class Desk:
    """Advises, writes down and learns, for all advisers of a database.

    Parameters
    ----------
    engine
        A database that was opened.
    problems
        Returns the problem of a source: a world's name, or the id of a model of a tenant.
    rng
        Where chance comes from: holdouts, random cells, Thompson.
    """

    def __init__(
        self,
        engine: sa.Engine,
        problems: Callable[[int, str], AdviceProblem],
        rng: np.random.Generator,
    ) -> None:
        self.engine, self.problems, self._rng = engine, problems, rng
        self.committer = Committer(engine)
        self._live: dict[str, _Live] = {}
        self._episodes: dict[str, _Episode] = {}
        self._read_up_to = 0
        self._lock = threading.RLock()
        with engine.connect() as connection:
            for row in connection.execute(sa.select(advisers)):
                self._wake(row.id, row.tenant, Settings(**json.loads(row.settings)))
        self.follow()

    def close(self) -> None:
        """Write what was handed in, and stop."""
        self.committer.close()

    def create(self, tenant: int, name: str, settings: Settings) -> str:
        """Make an adviser and return its id."""
        id_ = uuid4().hex
        self._wake(id_, tenant, settings)
        row = {
            "id": id_,
            "tenant": tenant,
            "name": name,
            "settings": json.dumps(asdict(settings)),
            "created": time.time(),
        }
        self.committer.submit(lambda c: c.execute(sa.insert(advisers), row)).result()
        return id_

    def start(self, tenant: int, adviser: str, person: str) -> str:
        """Begin an episode with a person, who is made where there is none of that name."""
        live = self._of(tenant, adviser)
        with self._lock:
            held_out = bool(self._rng.random() < live.settings.holdout)
        id_, now = uuid4().hex, time.time()

        def begin(connection: sa.Connection) -> int:
            who = sa.select(people.c.id).where(people.c.tenant == tenant, people.c.name == person)
            found: Any = connection.scalar(who)
            if found is None:
                row = {"tenant": tenant, "name": person, "created": now}
                connection.execute(sa.insert(people), row)
                found = connection.scalar(who)
            connection.execute(
                sa.insert(episodes),
                {
                    "id": id_,
                    "adviser": adviser,
                    "person": found,
                    "held_out": held_out,
                    "spent": 0,
                    "started": now,
                },
            )
            return int(found)

        number = self.committer.submit(begin).result()
        self._episodes[id_] = _Episode(adviser, number, held_out, ended=False)
        return id_

    def advise(self, tenant: int, episode: str, step: int, state: int) -> "Future[Said]":
        """Say what to advise at a step, or to stay silent; done when it is on record."""
        found = self._episode(tenant, episode)
        live = self._live[found.adviser]
        step = index_in("step", step, live.problem.horizon)
        state = index_in("state", state, live.problem.n_states)
        if found.ended:
            raise EndedError(f"episode {episode[:40]} has ended; start another")
        made = self._plan(live, found.person)
        id_, now = uuid4().hex, time.time()
        with self._lock:
            luck = float(self._rng.random())

        def decide(connection: sa.Connection) -> Said:
            again = connection.execute(
                sa.select(decisions).where(decisions.c.episode == episode, decisions.c.step == step)
            ).first()
            if again is not None:
                return _said(again, live.problem.defer)
            said = self._decide(connection, live, found, made, (episode, step, state), luck)
            row = {
                "id": id_,
                "episode": episode,
                "step": step,
                "state": state,
                "advice": live.problem.defer if said.advice is None else said.advice,
                "shown": said.shown,
                "probability": said.probability,
                "reason": json.dumps(said.reason),
                "at": now,
            }
            connection.execute(sa.insert(decisions), row)
            return Said(id_, said.advice, said.shown, said.probability, said.reason)

        return self.committer.submit(decide)

    def report(self, tenant: int, told: Iterable[Outcome]) -> None:
        """Take in outcomes, late, repeated or out of order; return when they are on record."""
        rows = [asdict(one) | {"at": time.time()} for one in told]
        known = self._decisions(tenant, [row["decision"] for row in rows])
        for row in rows:
            problem = known[row["decision"]].problem
            index_in("action", row["action"], problem.n_actions)
            if row["next_state"] is not None:
                index_in("next_state", row["next_state"], problem.n_states)
            if row["reward"] is not None and not np.isfinite(row["reward"]):
                raise CounselError(f"reward is {row['reward']}; give a finite number")
        for done in [self.committer.add(outcomes, row) for row in rows]:
            done.result()
        self.follow()

    def end(self, tenant: int, episode: str, *, terminated: bool) -> None:
        """End an episode; to end it again changes nothing."""
        found = self._episode(tenant, episode)

        def close(connection: sa.Connection) -> None:
            connection.execute(
                sa.update(episodes)
                .where(episodes.c.id == episode, episodes.c.ended.is_(None))
                .values(ended=time.time(), terminated=terminated)
            )

        self.committer.submit(close).result()
        found.ended = True

    def follow(self) -> int:
        """Learn from outcomes that have become durable since; return how many."""
        with self._lock:
            shown = decisions.c.shown & outcomes.c.seen
            query = (
                sa.select(
                    outcomes.c.seq,
                    outcomes.c.action,
                    decisions.c.state,
                    decisions.c.advice,
                    shown.label("shown"),
                    episodes.c.adviser,
                    episodes.c.person,
                )
                .join(decisions, decisions.c.id == outcomes.c.decision)
                .join(episodes, episodes.c.id == decisions.c.episode)
                .where(outcomes.c.seq > self._read_up_to)
                .order_by(outcomes.c.seq)
            )
            count = 0
            with self.engine.connect() as connection:
                for row in connection.execute(query):
                    live = self._live.get(row.adviser)
                    if live is not None:
                        advice = row.advice if row.shown else live.problem.defer
                        live.adviser.learn([Happened(row.person, row.state, advice, row.action)])
                    self._read_up_to = row.seq
                    count += 1
            return count

    def adviser(self, tenant: int, adviser: str) -> Adviser:
        """Return what an adviser has learnt."""
        return self._of(tenant, adviser).adviser

    def settings(self, tenant: int, adviser: str) -> Settings:
        """Return how an adviser works."""
        return self._of(tenant, adviser).settings

    def problems_of(self, tenant: int, ids: list[str]) -> dict[str, AdviceProblem]:
        """Return the problem of each decision."""
        return {one: live.problem for one, live in self._decisions(tenant, ids).items()}

    def adviser_of(self, tenant: int, episode: str) -> str:
        """Return the id of the adviser of an episode."""
        return self._episode(tenant, episode).adviser

    def _wake(self, id_: str, tenant: int, settings: Settings) -> None:
        """Put an adviser to work."""
        problem = self.problems(tenant, settings.source)
        states, actions = problem.mdp.state_labels or (), problem.mdp.action_labels or ()
        must = dict[int, int]()
        for state, advice in settings.must_say.items():
            if state not in states or advice not in actions:
                raise CounselError(
                    f"must_say has {state!r}: {advice!r}; give labels of a state and an action"
                )
            must[states.index(state)] = actions.index(advice)
        limit = Limit(settings.penalty, settings.budget, settings.hard)
        made = Adviser(problem, limit, settings.algorithm, settings.knows_habit, must)
        made.plan(-1, np.random.default_rng(0))  # a limit that makes no sense is refused here
        self._live[id_] = _Live(tenant, settings, problem, made)

    def _of(self, tenant: int, adviser: str) -> _Live:
        live = self._live.get(adviser)
        if live is None or live.tenant != tenant:
            raise MissingError(f"there is no adviser {adviser[:40]!r}")
        return live

    def _episode(self, tenant: int, episode: str) -> _Episode:
        """Return an episode, begun here or by another service, of this tenant only."""
        found = self._episodes.get(episode)
        if found is None:
            with self.engine.connect() as connection:
                row = connection.execute(
                    sa.select(episodes).where(episodes.c.id == episode)
                ).first()
            if row is not None:
                found = _Episode(row.adviser, row.person, row.held_out, row.ended is not None)
                self._episodes[episode] = found
        if found is None or self._live[found.adviser].tenant != tenant:
            raise MissingError(f"there is no episode {episode[:40]!r}")
        return found

    def _decisions(self, tenant: int, ids: list[str]) -> dict[str, _Live]:
        """Return the adviser of each decision; raise where one is not of this tenant."""
        query = (
            sa.select(decisions.c.id, episodes.c.adviser)
            .join(episodes, episodes.c.id == decisions.c.episode)
            .where(decisions.c.id.in_(ids))
        )
        with self.engine.connect() as connection:
            found = {row.id: self._live.get(row.adviser) for row in connection.execute(query)}
        known = dict[str, _Live]()
        for one in ids:
            live = found.get(one)
            if live is None or live.tenant != tenant:
                raise MissingError(f"there is no decision {one[:40]!r}")
            known[one] = live
        return known

    def _plan(self, live: _Live, person: int) -> Advising:
        """Return the plan for a person, made anew where enough has been seen since."""
        with self._lock:
            made = live.plans.get(person)
            if made is None or live.adviser.moved(made, person):
                made = live.adviser.plan(person, self._rng)
                live.plans[person] = made
            return made

    def _decide(  # noqa: PLR0913 (all that a decision rests on)
        self,
        connection: sa.Connection,
        live: _Live,
        found: _Episode,
        made: Advising,
        at: tuple[str, int, int],
        luck: float,
    ) -> Said:
        """Decide on one step, and spend a piece where something is shown."""
        episode, step, state = at
        defer, must = live.problem.defer, live.adviser.must_say.get(state)
        row = sa.select(episodes.c.spent).where(episodes.c.id == episode)
        spent = int(connection.scalar(row) or 0)
        shows = live.settings.mode == "live" and not found.held_out
        if live.settings.mode == "off":
            why = {"why": "the adviser is off"}
            return Said("", None, shown=False, probability=1.0, reason=why)
        if must is not None:
            return Said("", must, shows, 1.0, _why(made, at, must) | {"why": "this must be said"})
        chances = advice_at(made.plan, step, state, spent)
        advice, probability = defer, 1.0
        for option, chance in chances.items():
            advice, probability = option, chance
            luck -= chance
            if luck < 0.0:
                break
        reason = {"spent": spent} | _why(made, at, None if advice == defer else advice)
        if advice == defer:
            return Said("", None, shows, probability, reason)
        if shows and not _spend(connection, episode, live.settings):
            reason["why"] = "the budget is spent"
            return Said("", None, shown=True, probability=1.0, reason=reason)
        if found.held_out:
            reason["why"] = "this episode is kept silent to measure what advice is worth"
        return Said("", advice, shows, probability, reason)


def _spend(connection: sa.Connection, episode: str, settings: Settings) -> bool:
    """Spend a piece of advice; False where a hard budget has none left."""
    change = sa.update(episodes).where(episodes.c.id == episode)
    if settings.hard and settings.budget is not None:
        change = change.where(episodes.c.spent < int(settings.budget))
    return bool(connection.execute(change.values(spent=episodes.c.spent + 1)).rowcount)


def _why(made: Advising, at: tuple[str, int, int], advice: int | None) -> dict[str, Any]:
    """Return the numbers behind a decision: of what is advised, or of the best that is not."""
    _, step, state = at
    gain = made.gain[step, state]
    looked_at = int(gain.argmax()) if advice is None else advice
    price = float(made.plan.price)
    why = "what it gains exceeds what a piece is worth elsewhere"
    if advice is None:
        why = "no advice helps here"
        if gain[looked_at] > 0.0:
            why = "a piece of advice is worth more elsewhere"
    return {
        "why": why,
        "considered": looked_at,
        "lift": float(made.problem.lift[step, state, looked_at]),
        "advantage": float(np.nan_to_num(made.advantage[step, state, looked_at])),
        "gain": float(gain[looked_at]),
        "price": price if np.isfinite(price) else None,
    }


def _said(row: sa.Row[Any], defer: int) -> Said:
    """Return the answer that is on record."""
    advice = None if row.advice == defer else int(row.advice)
    return Said(row.id, advice, row.shown, row.probability, json.loads(row.reason))
