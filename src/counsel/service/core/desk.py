"""The desk: where advice is asked for, decided on, written down and learnt from.

Everything that is answered is durable first. What an adviser has learnt is read from the log, by
this service or by others on the same database; a desk that is opened again reads it anew, from the
last snapshot on, and knows the same.

A decision belongs to one step of one episode. Asked again for the same step, the desk gives the
same answer. Whoever decides holds the database's lock and sees what was spent, so a hard budget is
never overspent, whoever asks.

A budget that is to be met on average is *paced*: with D pieces per episode, n episodes and m pieces
so far, plans aim at D + (D n − m) / w pieces, w being the episodes in which to make up for what was
off: ``WINDOW``, and at least twice as many as since the last plan, which keeps it steady however
rarely plans are made.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import asdict, replace
from uuid import uuid4

import numpy as np
import sqlalchemy as sa

from counsel._arrays import brief, index_in
from counsel.model.problem import AdviceProblem
from counsel.service.core.adviser import NOBODY, Advising, Limit
from counsel.service.core.decide import Ask, Said
from counsel.service.core.live_adviser import Episode, Live, Settings
from counsel.service.core.outcomes import Outcome
from counsel.service.core.person_counts import Seen, pack, unpack
from counsel.service.core.plan_cache import PlanKey, Plans
from counsel.service.core.transactions import begin, decide_all, report_all, to_episode
from counsel.service.db import queries as record
from counsel.service.db.group_commit import Batch, Committer, Waiter
from counsel.service.db.tables import advisers, episodes, erasures, outcomes, people, snapshots
from counsel.service.errors import MissingError

LOG = logging.getLogger("counsel.service")

WINDOW = 10
"""Episodes in which to make up for what a paced budget is off."""

SNAPSHOT_EVERY = 100_000
"""Outcomes after which what was learnt is kept, so that a restart need not read them all."""

REMEMBERED = 100_000
"""Episodes that are known without asking the database."""

LOOK_ROUND = 1.0
"""Seconds between looks at what other services have done."""


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
        self._planning_rng = rng.spawn(1)[0]
        self._live: dict[str, Live] = {}
        self._seen: dict[str, Seen] = {}
        self._episodes: dict[str, Episode] = {}
        self._read_up_to = self._erased_up_to = 0
        self._lock, self._waking = threading.Lock(), threading.Lock()
        self.plans = Plans(self._make_plan, self._is_stale)
        with engine.connect() as connection:
            self._remember(connection)
            self._follow(connection)()
        self._kept_up_to = self._read_up_to
        batches: dict[str, Batch] = {"decision": decide_all, "outcomes": report_all}
        self.committer = Committer(engine, batches, self._follow)
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._look_round, name="watcher", daemon=True)
        self._watcher.start()

    def close(self) -> None:
        """Write what was handed in, keep what was learnt, and stop."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._watcher.join()
        self.plans.close()
        try:
            if self._read_up_to > self._kept_up_to:
                self.keep().result()
        except sa.exc.SQLAlchemyError as fault:
            LOG.warning("no snapshot was kept: %s", brief(str(getattr(fault, "orig", fault))))
        self.committer.close()

    # Advisers

    def create(self, tenant: int, name: str, settings: Settings, id_: str | None = None) -> str:
        """Make an adviser and return its id; one that is there under that id stays as it is."""
        id_ = id_ or uuid4().hex
        live = self._wake(id_, tenant, name, settings)
        row = {
            "id": id_,
            "tenant": tenant,
            "name": name,
            "settings": json.dumps(asdict(settings)),
            "created": time.time(),
        }

        def add(connection: sa.Connection) -> None:
            if connection.scalar(sa.select(advisers.c.id).where(advisers.c.id == id_)) is None:
                connection.execute(sa.insert(advisers), row)

        self.committer.submit(add).result()
        self._live.setdefault(id_, live)
        return id_

    def set_mode(self, tenant: int, adviser: str, mode: str) -> None:
        """Switch an adviser off, to shadow or live."""
        live = self.live(tenant, adviser)
        changed = replace(live.settings, mode=mode)
        change = sa.update(advisers).where(advisers.c.id == adviser)
        values = {"settings": json.dumps(asdict(changed))}
        self.committer.submit(lambda c: c.execute(change.values(values))).result()
        live.settings = changed

    def live(self, tenant: int, adviser: str) -> Live:
        """Return an adviser of a tenant, made here or by another service."""
        live = self._live.get(adviser)
        if live is None:
            with self.engine.connect() as connection:
                row = connection.execute(
                    sa.select(advisers).where(advisers.c.id == adviser)
                ).first()
            if row is not None and row.tenant == tenant:
                with self._waking:  # which takes long, so that nobody else may wait for it
                    live = self._live.get(adviser)
                    if live is None:
                        settings = Settings(**json.loads(row.settings))
                        live = self._wake(adviser, tenant, row.name, settings)
                        self._live[adviser] = live
        if live is None or live.tenant != tenant:
            raise MissingError(f"there is no adviser {adviser[:40]!r}")
        return live

    # Episodes

    def start(self, tenant: int, adviser: str, person: str, limit: Limit | None = None) -> Episode:
        """Begin an episode with a person, who is made where there is none of that name.

        Parameters
        ----------
        tenant, adviser, person
            Whose, by whom, with whom.
        limit
            What advice may cost in this episode, where that is not as the adviser has it.
        """
        live = self.live(tenant, adviser)
        with self._lock:
            held_out = bool(self._rng.random() < live.settings.holdout)
        mode = live.settings.mode
        row = {
            "id": uuid4().hex,
            "adviser": adviser,
            "held_out": held_out,
            "mode": mode,
            "limit": None if limit is None else json.dumps(asdict(limit)),
            "spent": 0,
            "started": time.time(),
        }
        self.plans.of(PlanKey(adviser, NOBODY, limit or live.settings.limit))
        begun: Episode = self.committer.submit(
            lambda connection: begin(connection, row, (tenant, person), live)
        ).result()
        self._know(begun)
        live.episodes += begun.advised and live.settings.limit.paced
        if live.settings.algorithm == "thompson":
            self.plans.renew(PlanKey(adviser, begun.person, live.limit_in(begun)))
        return begun

    def knows(self, episode: str) -> bool:
        """Whether an episode is known without asking the database."""
        return episode in self._episodes

    def episode(self, tenant: int, episode: str) -> Episode:
        """Return an episode, begun here or by another service, of this tenant only."""
        found = self._episodes.get(episode)
        if found is None:
            query = (
                sa.select(episodes, advisers.c.tenant)
                .join(advisers, advisers.c.id == episodes.c.adviser)
                .where(episodes.c.id == episode)
            )
            with self.engine.connect() as connection:
                row = connection.execute(query).first()
            if row is not None and row.tenant == tenant:
                found = to_episode(row)
                live = self.live(tenant, row.adviser)
                self.plans.of(PlanKey(row.adviser, NOBODY, live.limit_in(found)))
                self._know(found)
        if found is None or self._live[found.adviser].tenant != tenant:
            raise MissingError(f"there is no episode {episode[:40]!r}")
        return found

    def advise(self, tenant: int, episode: str, step: int, state: int) -> Said:
        """Say what to advise at a step, or to stay silent; it is on record then."""
        done: Future[Said] = Future()
        self.ask(tenant, episode, step, state, done)
        return done.result()

    def ask(self, tenant: int, episode: str, step: int, state: int, done: Waiter) -> None:
        """Ask as ``advise`` does, without waiting: ``done`` is told what is said."""
        found = self.episode(tenant, episode)
        live = self.live(tenant, found.adviser)
        step = index_in("step", step, live.problem.horizon)
        state = index_in("state", state, live.problem.n_states)
        made = self.plans.of(PlanKey(found.adviser, found.person, live.limit_in(found)))
        with self._lock:
            luck = float(self._rng.random())
        asked = Ask(found, live, made, step, state, luck, time.time())
        self.committer.hand_in("decision", asked, done)

    def report(self, tenant: int, told: Iterable[Outcome]) -> None:
        """Take in outcomes, late, repeated or out of order; they are on record then."""
        done: Future[None] = Future()
        self.tell(tenant, told, done)
        done.result()

    def tell(self, tenant: int, told: Iterable[Outcome], done: Waiter) -> None:
        """Report without waiting: ``done`` is told when all are on record."""
        rows, now = [], time.time()
        for one in told:
            episode, step = self.cell(tenant, one.decision)
            one.check(self.live(tenant, episode.adviser).problem)
            rows.append(one.to_row(episode.number, step, now))
        self.committer.hand_in("outcomes", rows, done)

    def cell(self, tenant: int, decision: str) -> tuple[Episode, int]:
        """Return the episode and the step of a decision by its id."""
        episode, _, step = decision.rpartition("-")
        if not (step.isascii() and step.isdigit() and len(step) < 8):
            raise MissingError(f"there is no decision {decision[:40]!r}")
        try:
            return self.episode(tenant, episode), int(step)
        except MissingError:
            raise MissingError(f"there is no decision {decision[:40]!r}") from None

    def end(self, tenant: int, episode: str, *, terminated: bool) -> None:
        """End an episode; to end it again changes nothing."""
        done: Future[None] = Future()
        self.close_episode(tenant, episode, done, terminated=terminated)
        done.result()

    def close_episode(self, tenant: int, episode: str, done: Waiter, *, terminated: bool) -> None:
        """End an episode without waiting."""
        found = self.episode(tenant, episode)
        change = (
            sa.update(episodes)
            .where(episodes.c.number == found.number, episodes.c.ended.is_(None))
            .values(ended=time.time(), terminated=terminated)
        )

        def close(connection: sa.Connection) -> None:
            connection.execute(change)

        self.committer.hand_in("job", close, done)

    # People

    def person(self, tenant: int, name: str) -> int:
        """Return the number of a person."""
        query = sa.select(people.c.id).where(people.c.tenant == tenant, people.c.name == name)
        with self.engine.connect() as connection:
            found = connection.scalar(query)
        if found is None:
            raise MissingError(f"there is no person {name[:40]!r}")
        return int(found)

    def forget(self, tenant: int, name: str) -> None:
        """Delete a person with all their data; every service forgets them."""
        number = self.person(tenant, name)

        def erase(connection: sa.Connection) -> None:
            connection.execute(sa.delete(people).where(people.c.id == number))
            connection.execute(sa.delete(snapshots))
            connection.execute(sa.insert(erasures), {"person": number, "at": time.time()})

        self.committer.submit(erase).result()

    # Learning

    def keep(self) -> "Future[None]":
        """Keep what was learnt, so that the next start need not read it all."""

        def write(connection: sa.Connection) -> None:
            erased, _ = record.erased_since(connection, self._erased_up_to)
            known = connection.scalar(sa.select(sa.func.max(snapshots.c.up_to))) or 0
            if erased != self._erased_up_to or known >= self._read_up_to:
                return  # it holds somebody who is to be forgotten, or is there already
            row = {
                "up_to": self._read_up_to,
                "erased": self._erased_up_to,
                "content": pack(self._seen),
                "at": time.time(),
            }
            connection.execute(sa.delete(snapshots))
            connection.execute(sa.insert(snapshots), row)

        self._kept_up_to = self._read_up_to
        return self.committer.submit(write)

    def follow(self) -> None:
        """Learn what has become durable since, here or through other services."""
        self.committer.submit(lambda _: None).result()

    def _remember(self, connection: sa.Connection) -> None:
        """Begin with the last snapshot."""
        query = sa.select(snapshots).order_by(snapshots.c.up_to.desc()).limit(1)
        row = connection.execute(query).first()
        if row is not None:
            self._read_up_to, self._erased_up_to = row.up_to, row.erased
            for adviser, happened in unpack(row.content):
                self._seen.setdefault(adviser, Seen()).learn(happened)

    def _follow(self, connection: sa.Connection) -> Callable[[], None]:
        """Read what is new; what is returned learns it, and is called once that is durable."""
        read, happened = record.news(connection, self._read_up_to)
        erased, gone = record.erased_since(connection, self._erased_up_to)

        def learn() -> None:
            self._read_up_to, self._erased_up_to = read, erased
            for adviser, one in happened:
                self._seen.setdefault(adviser, Seen()).learn(one)
            for person in gone:
                self._drop(person)

        return learn

    def _drop(self, person: int) -> None:
        for adviser, seen in self._seen.items():
            if seen.forget(person):
                self.plans.refresh(adviser)
        with self._lock:
            for id_ in [id_ for id_, one in self._episodes.items() if one.person == person]:
                del self._episodes[id_]

    def _look_round(self) -> None:
        """See what other services on this database have changed, and keep snapshots."""
        while not self._stopping.wait(LOOK_ROUND):
            try:
                self.committer.submit(self._look).result()
                if self._read_up_to - self._kept_up_to >= SNAPSHOT_EVERY:
                    self.keep().result()
            except sa.exc.SQLAlchemyError as fault:
                told = brief(str(getattr(fault, "orig", fault)))
                LOG.warning("the database does not answer: %s", told)

    def _look(self, connection: sa.Connection) -> None:
        """Take over what others have changed of advisers; what is new is followed after it."""
        for row in connection.execute(sa.select(advisers)):
            live = self._live.get(row.id)
            if live is not None:
                live.settings = Settings(**json.loads(row.settings))
                live.episodes = row.paced_episodes
        last = connection.scalar(sa.select(sa.func.max(outcomes.c.seq))) or 0
        if last < self._read_up_to:
            # People were deleted, or the database has lost what it had acknowledged: count anew.
            for seen in self._seen.values():
                seen.clear()
            self._read_up_to = 0

    # Planning

    def _wake(self, id_: str, tenant: int, name: str, settings: Settings) -> Live:
        """Put an adviser to work; settings that make no sense are refused here."""
        seen = self._seen.setdefault(id_, Seen())
        live = Live(tenant, name, settings, self.problems(tenant, settings.source), seen)
        live.adviser.plan(NOBODY, settings.limit, np.random.default_rng(0))
        return live

    def _make_plan(self, key: PlanKey) -> Advising:
        live, limit, known = self._live[key.adviser], key.limit, 0
        if limit.paced and limit.budget is not None and limit == live.settings.limit:
            columns = (advisers.c.paced_episodes, advisers.c.paced_pieces)
            query = sa.select(*columns).where(advisers.c.id == key.adviser)
            with self.engine.connect() as connection:
                known, pieces = connection.execute(query).one()
            last = self.plans.last(key)
            window = max(WINDOW, 0 if last is None else 2 * (known - last.episodes))
            aim = limit.budget + (limit.budget * known - pieces) / window
            limit = replace(limit, budget=min(max(aim, 0.0), float(live.problem.horizon)))
        return live.adviser.plan(key.person, limit, self._planning_rng, known)

    def _is_stale(self, key: PlanKey, made: Advising) -> bool:
        live = self._live[key.adviser]
        late = key.limit.paced and live.episodes > made.episodes
        return late or live.adviser.moved(made, key.person)

    def _know(self, episode: Episode) -> None:
        with self._lock:
            while len(self._episodes) >= REMEMBERED:
                del self._episodes[next(iter(self._episodes))]
            self._episodes[episode.id] = episode
