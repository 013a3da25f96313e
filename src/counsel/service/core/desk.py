"""The desk: where advice is requested, decided on, recorded and learnt from.

Everything is durable before it is answered. What an adviser has learnt is read from the log, which
this service and others on the same database write; a desk that is opened again reads the log from
the last snapshot on and knows the same.

A decision belongs to one step of one episode. Asked again for the same step, the desk gives the
same answer. Decisions are made under the database's lock with the cost so far in view, so a hard
budget is never exceeded, whichever service is asked. An expected budget is paced (``pacing.py``).

No data silences an adviser: one whose plan cannot be made still says what must be said.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import sqlalchemy as sa

from counsel._arrays import brief, index_in
from counsel.errors import CounselError
from counsel.learning.population import NOBODY, Limit
from counsel.model.problem import AdviceProblem
from counsel.service.core.audit import record
from counsel.service.core.decide import Decision, DecisionRequest
from counsel.service.core.episode import Episode, digest_of_request
from counsel.service.core.explained_plan import ExplainedPlan, explain_plan
from counsel.service.core.follower import Follower
from counsel.service.core.kept_plans import PlanKey
from counsel.service.core.keyed_locks import KeyedLocks
from counsel.service.core.learnt_counts import LearntCounts
from counsel.service.core.live_adviser import LiveAdviser, labels_of, make_population
from counsel.service.core.model_outlines import DamagedModelError
from counsel.service.core.outcomes import Outcome, OutcomeReceipt, OutcomeReport
from counsel.service.core.pacing import paced_budget
from counsel.service.core.plan_cache import PlanCache
from counsel.service.core.quotas import PeopleQuota, check_advisers
from counsel.service.core.settings import (
    UNREADABLE,
    AdviserSettings,
    read_stored,
    switch_stored,
)
from counsel.service.core.transactions import decide_all, end_all, record_all, start_episode
from counsel.service.db import queries
from counsel.service.db.api_keys import KeyHolder
from counsel.service.db.engine import read
from counsel.service.db.group_commit import Batch, Committer, Waiter
from counsel.service.db.tables import IS_KEPT, advisers, episodes, models
from counsel.service.errors import BusyError, ConflictError, NotFoundError
from counsel.service.settings import ServiceSettings

LOG = logging.getLogger("counsel.service")

CACHED_EPISODES = 100_000
"""Episodes kept in memory."""


class Desk:
    """Advises, records and learns, for all advisers of a database.

    ``problems`` returns the problem of a tenant's source: a world's name, or the id of a model.
    """

    def __init__(
        self,
        engine: sa.Engine,
        problems: Callable[[int, str], AdviceProblem],
        rng: np.random.Generator,
        *,
        settings: ServiceSettings | None = None,
        reading: sa.Engine | None = None,
    ) -> None:
        self.engine, self.problems, self._rng = engine, problems, rng
        self.reading = reading or engine
        self.settings = settings or ServiceSettings.from_environment()
        self._planning_rng = rng.spawn(1)[0]
        self._live: dict[str, LiveAdviser] = {}
        self._episodes: dict[str, Episode] = {}
        self._lock, self._loading = threading.Lock(), KeyedLocks()
        self.plans = PlanCache(self._make_plan, self._is_stale, self._tenant_of)
        self.people = PeopleQuota(self.reading, self.settings.people)
        self.learnt = LearntCounts(self._forget_person)
        with self.reading.connect() as connection:
            self.learnt.load(connection)
        batches: dict[str, Batch] = {
            "end": end_all,
            "decision": decide_all,
            "outcomes": record_all,
        }
        self.committer = Committer(engine, batches, self.learnt.read, self.settings.queue)
        self.unfinished_deletions = threading.Event()
        self._stopping = threading.Event()
        self.follower = Follower(self)

    def close(self) -> None:
        """Write what was submitted, save a snapshot, and stop, within ``stop_seconds``."""
        if self._stopping.is_set():
            return
        deadline = time.monotonic() + self.settings.stop_seconds
        self._stopping.set()
        self.follower.close(self.settings.stop_seconds / 4.0)
        self.plans.close(self.settings.stop_seconds / 4.0)
        try:
            if self.learnt.read_up_to > self.learnt.saved_up_to:
                self.save_snapshot().result(max(deadline - time.monotonic(), 0.1))
        except (sa.exc.SQLAlchemyError, TimeoutError) as fault:
            LOG.warning("no snapshot was saved: %s", brief(str(getattr(fault, "orig", fault))))
        self.committer.close(max(deadline - time.monotonic(), 0.1))

    # Advisers

    def create(
        self,
        tenant: int,
        name: str,
        settings: AdviserSettings,
        id_: str | None = None,
        *,
        holder: KeyHolder | None = None,
    ) -> str:
        """Create an adviser and return its id; one that exists under that id is left unchanged.

        ``holder`` has the key of whoever creates it; without, the service does.
        """
        id_ = id_ or uuid4().hex
        its_model = sa.select(models.c.id).where(models.c.id == settings.source)
        has_model = bool(read(self.engine, its_model))
        live = self.draft(id_, tenant, name, settings)
        row = {"id": id_, "tenant": tenant, "name": name, "created": time.time()}
        row |= {"settings": settings.model_dump_json()}

        def add(connection: sa.Connection) -> None:
            if connection.scalar(sa.select(advisers.c.id).where(advisers.c.id == id_)) is None:
                check_advisers(connection, tenant, self.settings)
                if has_model and connection.scalar(its_model) is None:
                    raise ConflictError(f"model {settings.source} was deleted meanwhile")
                connection.execute(sa.insert(advisers), row)
                details = {"name": name, "source": settings.source, "mode": settings.mode}
                by = holder or KeyHolder(tenant, "admin")
                record(connection, by, "adviser created", id_, details)

        self.committer.submit(add).result()
        self._live.setdefault(id_, live)
        return id_

    def set_mode(
        self, tenant: int, adviser: str, mode: str, *, holder: KeyHolder | None = None
    ) -> None:
        """Switch an adviser off, to shadow or live, though its plan may be impossible to make."""
        mine = _is_adviser(tenant, adviser)

        def change(connection: sa.Connection) -> tuple[AdviserSettings, str]:
            stored = connection.scalar(sa.select(advisers.c.settings).where(mine))
            if stored is None:
                raise NotFoundError(f"there is no adviser {adviser[:40]!r}")
            text = switch_stored(stored, mode)
            before, after = read_stored(stored).settings, read_stored(text).settings
            connection.execute(sa.update(advisers).where(mine).values(settings=text))
            if before.mode != mode:
                details = {"before": before.mode, "after": mode}
                by = holder or KeyHolder(tenant, "admin")
                record(connection, by, "adviser switched", adviser, details)
            return after, text

        settings, text = self.committer.submit(change).result()
        live = self._live.get(adviser)
        if live is not None:
            if settings.with_mode(live.settings.mode) == live.settings:
                live.stored = text
            live.settings = live.settings.with_mode(mode)  # anything else is taken over later

    def draft(self, id_: str, tenant: int, name: str, settings: AdviserSettings) -> LiveAdviser:
        """Return an adviser with these settings; those that make no sense are refused here."""
        problem = self.problems(tenant, settings.source)
        live = self._wake((id_, tenant, name), settings, problem)
        rng = np.random.default_rng(0)
        self.plans.run(partial(live.population.plan, NOBODY, settings.limit, rng), tenant)
        return live

    def put_to_use(self, live: LiveAdviser) -> None:
        """Put an adviser with other settings in the place of the one in use."""
        self._live[live.id] = live
        self.plans.drop(live.id)
        self._drop_episodes(lambda episode: episode.live.id == live.id)

    def note_archived(self, adviser: str, archived: float | None) -> None:
        """Take over when an adviser was archived, if it is in use here."""
        live = self._live.get(adviser)
        if live is not None:
            live.archived = archived

    def forget_adviser(self, adviser: str) -> None:
        """Forget an adviser that was deleted; call it where transactions run."""
        self._drop_episodes(lambda episode: episode.live.id == adviser)
        self._live.pop(adviser, None)
        self.plans.drop(adviser)
        self.learnt.forget_adviser(adviser)

    def live(self, tenant: int, adviser: str) -> LiveAdviser:
        """Return an adviser of a tenant, created here or by another service."""
        live = self._live.get(adviser)
        if live is None:
            mine = sa.select(advisers).where(_is_adviser(tenant, adviser))
            for row in read(self.engine, mine):
                with self._loading.hold(adviser):  # loading takes long
                    live = self._live.get(adviser)
                    if live is None:
                        try:
                            live = self._live[adviser] = self.wake_row(row)
                        except CounselError as fault:
                            self.plans.note_unusable(adviser, fault)
                            raise BusyError(f"the adviser cannot be used now: {fault}") from None
                        self.plans.drop(adviser)
                        if live.fault is not None:  # has it written into the log, and counted
                            self.plans.of(PlanKey(adviser, NOBODY, live.settings.limit))
        if live is None or live.tenant != tenant:
            raise NotFoundError(f"there is no adviser {adviser[:40]!r}")
        return live

    def in_use(self) -> dict[str, LiveAdviser]:
        """Return the advisers in use here by their ids."""
        return dict(self._live)

    # Episodes

    def start(
        self,
        tenant: int,
        adviser: str,
        person: str,
        limit: Limit | None = None,
        request: str | None = None,
    ) -> Episode:
        """Start an episode with a person, who is added if the tenant has nobody of that name.

        ``limit`` is what advice may cost, if that differs from the adviser's limit. A start that is
        sent again with the same ``request`` returns the same episode. It does not wait for a plan,
        so that what must be said is said though a plan takes long.
        """
        live = self.live(tenant, adviser)
        with self._lock:
            held_out = bool(self._rng.random() < live.settings.holdout)
        row = {
            "id": uuid4().hex,
            "adviser": adviser,
            "held_out": held_out,
            "mode": live.settings.mode,
            "limit": None if limit is None else json.dumps(asdict(limit)),
            "spent": 0,
            "started": time.time(),
            "request": None if request is None else digest_of_request(request),
        }
        if limit is None:
            self.plans.of(PlanKey(adviser, NOBODY, live.settings.limit))
        else:  # a limit that makes no sense is refused here
            self.plans.require(PlanKey(adviser, NOBODY, limit))
        self.people.refresh(tenant)
        episode: Episode = self.committer.submit(
            lambda connection: start_episode(connection, row, person, live, self.people.admit)
        ).result()
        self._cache_episode(episode)
        live.paced_episodes += episode.is_paced
        if live.settings.algorithm == "thompson":
            self.plans.renew(episode.plan_key)
        return episode

    def is_cached(self, episode: str) -> bool:
        """Whether an episode can be looked up without the database."""
        return episode in self._episodes

    def episode(self, tenant: int, id_: str) -> Episode:
        """Return an episode of a tenant, started here or by another service."""
        episode = self._episodes.get(id_)
        if episode is None:
            query = sa.select(episodes).join(advisers, advisers.c.id == episodes.c.adviser)
            mine = query.where(episodes.c.id == id_, advisers.c.tenant == tenant)
            for row in read(self.engine, mine):
                episode = Episode.from_row(row, self.live(tenant, row.adviser))
                self._cache_episode(episode)
        if episode is None or episode.live.tenant != tenant:
            raise NotFoundError(f"there is no episode {id_[:40]!r}")
        return episode

    def plan_of(self, episode: Episode) -> ExplainedPlan | None:
        """Return the last plan for an episode; None if one must be made first."""
        return self.plans.of(episode.plan_key)

    def must_wait(self, episode: Episode, state: int) -> bool:
        """Whether a decision waits for a plan that is not there: must-say advice needs none."""
        return state not in episode.live.population.must_say

    def request_plan(self, episode: Episode) -> "Future[ExplainedPlan]":
        """Have the plan that an episode needs made, without waiting."""
        return self.plans.request(episode.plan_key)

    def advise(self, tenant: int, episode: str, step: int, state: int) -> Decision:
        """Decide what to advise at a step, or to stay silent, and record the decision."""
        done: Future[Decision] = Future()
        begun = self.episode(tenant, episode)
        plan = self.plan_of(begun)
        if plan is None and self.must_wait(begun, state):
            plan = self.plans.wait_for(begun.plan_key)
        self.submit_request(begun, step, state, plan, done)
        return done.result()

    def submit_request(
        self, episode: Episode, step: int, state: int, plan: ExplainedPlan | None, done: Waiter
    ) -> None:
        """Request a decision by this plan without waiting; it becomes the result of ``done``."""
        mdp = episode.live.mdp
        step = index_in("step", step, mdp.horizon)
        state = index_in("state", state, mdp.n_states)
        with self._lock:
            draw = float(self._rng.random())
        request = DecisionRequest(episode, plan, step, state, draw, time.time())
        self.committer.enqueue("decision", request, done)

    def report(self, tenant: int, reported: Iterable[Outcome]) -> OutcomeReceipt:
        """Record outcomes, which may be late, repeated, corrected or out of order."""
        done: Future[OutcomeReceipt] = Future()
        located = [(*self.locate(tenant, outcome.decision), outcome) for outcome in reported]
        self.submit_outcomes(located, done)
        return done.result()

    def submit_outcomes(
        self, located: Iterable[tuple[Episode, int, Outcome]], done: Waiter
    ) -> None:
        """Record outcomes, each with its episode and step, without waiting for ``done``."""
        now, remembering = time.time(), dict[int, Episode]()
        rows = list[dict[str, Any]]()
        for episode, step, outcome in located:
            rows.append(outcome.to_row(episode, step, now))
            if episode.live.moves is not None:
                remembering[episode.number] = episode
        self.committer.enqueue("outcomes", OutcomeReport(rows, remembering), done, len(rows))

    def locate(self, tenant: int, decision: str) -> tuple[Episode, int]:
        """Return the episode and the step of a decision by its id."""
        episode, _, step = decision.rpartition("-")
        if step.isascii() and step.isdigit() and len(step) < 8:
            with suppress(NotFoundError):
                return self.episode(tenant, episode), int(step)
        raise NotFoundError(f"there is no decision {decision[:40]!r}")

    def end(self, tenant: int, episode: str, *, terminated: bool) -> None:
        """End an episode; ending it again changes nothing."""
        done: Future[None] = Future()
        self.submit_end(self.episode(tenant, episode), done, terminated=terminated)
        done.result()

    def submit_end(self, episode: Episode, done: Waiter, *, terminated: bool) -> None:
        """End an episode without waiting for ``done``."""
        end = {"which": episode.number, "at": time.time(), "is_terminated": terminated}
        self.committer.enqueue("end", end, done)

    # People

    def person(self, tenant: int, name: str) -> int:
        """Return the number of a person."""
        with self.engine.connect() as connection:
            number = queries.person_number(connection, tenant, name)
        if number is None:
            raise NotFoundError(f"there is no person {name[:40]!r}")
        return number

    # Learning

    def save_snapshot(self) -> "Future[None]":
        """Save what was learnt, so that the next start need not read the whole log."""
        return self.committer.submit(self.learnt.save)

    def catch_up(self) -> None:
        """Learn everything that is durable by now, from this service and others."""
        self.committer.submit(lambda _: None).result()

    def _forget_person(self, person: int, affected: list[str]) -> None:
        for adviser in affected:
            self.plans.refresh(adviser)
        self._drop_episodes(lambda episode: episode.person == person)

    def _drop_episodes(self, is_dropped: Callable[[Episode], bool]) -> None:
        with self._lock:
            kept = {id_: one for id_, one in self._episodes.items() if not is_dropped(one)}
            self._episodes = kept

    # Planning

    def _wake(
        self,
        row: tuple[str, int, str],
        settings: AdviserSettings,
        problem: AdviceProblem,
        fault: CounselError | None = None,
    ) -> LiveAdviser:
        """Put an adviser (id, tenant and name) to use, whatever is on record of its people."""
        population = make_population(settings, problem, self.learnt.of(row[0]))
        return LiveAdviser(*row, settings, population, problem, fault)

    def wake_row(self, row: sa.Row[Any]) -> LiveAdviser:
        """Return an adviser as its row in the database says, as far as that can be read.

        Where its model is damaged, or its settings are damaged or of another version of Counsel, it
        has a ``fault``, and what must be said.
        """
        settings, reason = read_stored(row.settings)
        fault = None if reason is None else CounselError(reason)
        if fault is not None and settings.source == UNREADABLE:
            raise fault
        try:
            problem = self.problems(row.tenant, settings.source)
        except DamagedModelError as damage:
            problem, fault = damage.problem, damage
        who = (row.id, row.tenant, row.name)
        try:
            live = self._wake(who, settings, problem, fault)
        except CounselError as misfit:  # e.g. with a world of another version
            labels = labels_of(problem.mdp)
            rest = settings.with_what_must_be_said(labels.states, labels.actions)
            live = self._wake(who, rest, problem, fault or misfit)
        live.stored, live.archived = row.settings, row.archived
        live.paced_episodes = row.paced_episodes
        return live

    def _tenant_of(self, key: PlanKey) -> int | None:
        live = self._live.get(key.adviser)
        return None if live is None else live.tenant

    def _make_plan(self, key: PlanKey) -> ExplainedPlan:
        live, limit, count = self._live.get(key.adviser), key.limit, 0
        if live is None:
            raise NotFoundError(f"there is no adviser {key.adviser!r}")
        if live.fault is not None:
            raise live.fault
        if limit.is_paced and limit.budget is not None and limit == live.settings.limit:
            with self.engine.connect() as connection:
                count, spent = queries.paced_counts(connection, key.adviser)
            last = self.plans.last(key)
            aim = paced_budget(limit.budget, count, spent, None if last is None else last.episodes)
            limit = replace(limit, budget=min(aim, live.most_cost))
        plan = live.population.plan(key.person, limit, self._planning_rng)
        return explain_plan(live.population, plan, count)

    def _is_stale(self, key: PlanKey, person_plan: ExplainedPlan) -> bool:
        live = self._live.get(key.adviser)
        if live is None:
            return False
        is_late = key.limit.is_paced and live.paced_episodes > person_plan.episodes
        return is_late or live.population.has_moved(person_plan.decisions, key.person)

    def _cache_episode(self, episode: Episode) -> None:
        with self._lock:
            while len(self._episodes) >= CACHED_EPISODES:
                del self._episodes[next(iter(self._episodes))]
            self._episodes[episode.id] = episode


def _is_adviser(tenant: int, adviser: str) -> sa.ColumnElement[bool]:
    """Return the condition that a row is this adviser, and is not being deleted."""
    return (advisers.c.id == adviser) & (advisers.c.tenant == tenant) & IS_KEPT
