"""A service in a process of its own that dies at a chosen commit.

A *site* is a function that commits or has something committed, e.g.
``service/core/desk.py:Desk.create``. ``sites_in_source`` finds all of them in the source, so that
none can be forgotten; ``Service`` dies where one of them commits: before, during or after.
"""

import ast
import contextlib
import io
import json
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

import counsel

SOURCE = Path(counsel.__file__).parent
BEFORE, DURING, AFTER = "before", "during", "after"
KILLED = 99
"""The exit code of a process that died where it was to die."""

SCRUB = "service/core/deletion.py:scrub"
"""No commit, but what is acknowledged after it depends on it."""

HELPERS = {"write_transaction", "_connection"}
"""Functions that commit for those who call them."""


def sites_in_source() -> set[str]:
    """Return every function of the service that commits to the database."""
    found = set[str]()
    for path in [*sorted((SOURCE / "service").rglob("*.py")), SOURCE / "cli" / "service.py"]:
        if path.name == "group_commit.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, function in _functions(tree):
            if name not in HELPERS and any(map(_commits, _own_calls(function))):
                found.add(f"{path.relative_to(SOURCE)}:{name}")
    return found


def _functions(tree: ast.AST, prefix: str = "") -> Any:
    """Yield the functions of modules and classes; functions inside others belong to those."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node


def _own_calls(function: ast.AST) -> Any:
    return (node for node in ast.walk(function) if isinstance(node, ast.Call))


def _commits(call: ast.Call) -> bool:
    names = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    called = ast.unparse(call.func)
    return (
        called in ("write_transaction", "scrub")
        or (called == "_connection" and names.get("writes") == "True")
        or called.endswith(("committer.submit", "committer.enqueue", ".commit", "engine.begin"))
        or names.get("isolation_level") == "'AUTOCOMMIT'"
    )


# In the process that dies


@dataclass
class Trap:
    """Where and how this process is to die, and the sites that have committed."""

    site: str = ""
    moment: str = ""
    seen: set[str] = field(default_factory=set)
    sites: dict[int, str] = field(default_factory=dict)  # of submissions, by their future
    group: threading.local = field(default_factory=threading.local)

    def set_up(self) -> None:
        """Watch every commit of this process."""
        from sqlalchemy.engine.default import DefaultDialect

        from counsel.service.core import deletion
        from counsel.service.db.group_commit import Committer

        enqueue, transact, commit = Committer.enqueue, Committer._transact, DefaultDialect.do_commit
        scrub = deletion.scrub

        def watch_submission(
            committer: Any, kind: str, item: Any, done: Any, rows: int = 1
        ) -> None:
            self.sites[id(done)] = _site_of(sys._getframe(1))
            enqueue(committer, kind, item, done, rows)

        def watch_group(committer: Any, group: Any) -> Any:
            self.group.sites = {self.sites[id(submission.done)] for submission in group}
            try:
                return transact(committer, group)
            finally:
                del self.group.sites

        def watch_commit(dialect: Any, connection: Any) -> None:
            here = getattr(self.group, "sites", None) or {_site_of(sys._getframe(1))}
            self.seen |= here
            if self.site not in here:
                commit(dialect, connection)
                return
            if self.moment == BEFORE:
                os._exit(KILLED)
            if self.moment == DURING:
                _commit_in_part(lambda: commit(dialect, connection), connection)
            commit(dialect, connection)
            os._exit(KILLED)

        def watch_scrub(engine: sa.Engine) -> Any:
            self.seen.add(SCRUB)
            if self.site != SCRUB:
                return scrub(engine)
            if self.moment == BEFORE:
                os._exit(KILLED)
            if self.moment == DURING:
                sa.event.listen(engine, "before_cursor_execute", _die_at_checkpoint)
            scrub(engine)
            os._exit(KILLED)

        Committer.enqueue = watch_submission  # type: ignore[method-assign]
        Committer._transact = watch_group  # type: ignore[method-assign]
        DefaultDialect.do_commit = watch_commit  # type: ignore[method-assign]
        deletion.scrub = watch_scrub


def _die_at_checkpoint(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
    if statement in ("CHECKPOINT", "PRAGMA wal_checkpoint(TRUNCATE)"):
        os._exit(KILLED)


def _site_of(frame: Any) -> str:
    """Return the function of Counsel that commits, from the frames that lead there."""
    while frame is not None:
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_qualname
        if path.is_relative_to(SOURCE) and path.name != "group_commit.py" and name not in HELPERS:
            return f"{path.relative_to(SOURCE)}:{name.partition('.<locals>')[0]}"
        frame = frame.f_back
    return "elsewhere"


def _commit_in_part(commit: Callable[[], None], connection: Any) -> None:
    """Die in the middle of a commit.

    On SQLite half of what the commit writes into the write-ahead log is there; PostgreSQL is asked
    to commit by somebody who does not live to hear the answer.
    """
    driver = getattr(connection, "driver_connection", connection)
    if hasattr(driver, "pgconn"):
        driver.pgconn.send_query(b"COMMIT")
        while driver.pgconn.flush():
            pass
        os._exit(KILLED)
    files = {name: file for _, name, file in driver.execute("PRAGMA database_list").fetchall()}
    log = Path(f"{files['main']}-wal")
    before = log.read_bytes() if log.exists() else b""
    commit()
    after = log.read_bytes()
    rest = before.ljust(len(after), b"\0") if len(before) > len(after) else before
    written = [i for i in range(len(after)) if i >= len(rest) or after[i] != rest[i]]
    if written:  # a transaction that changed nothing writes nothing
        middle = (written[0] + written[-1]) // 2
        log.write_bytes(after[:middle] + rest[middle:])
    os._exit(KILLED)


class Session:
    """The service as its callers use it, in the process that may die."""

    def __init__(self, url: str, folder: Path) -> None:
        import numpy as np
        from starlette.testclient import TestClient

        from counsel.service.api.app import make_app
        from counsel.service.core.desk import Desk
        from counsel.service.core.erasure import finish_erasures
        from counsel.service.core.management import finish_deletions
        from counsel.service.core.model_outlines import add_missing_outlines
        from counsel.service.core.model_uploads import remove_abandoned
        from counsel.service.core.problem_sources import ProblemSources
        from counsel.service.db.api_keys import tenant_of
        from counsel.service.db.engine import open_engine

        self.url, self.folder = url, folder
        engine = open_engine(url)
        self.desk = Desk(engine, ProblemSources(engine, {}), np.random.default_rng(0))
        finish_erasures(self.desk)
        finish_deletions(self.desk)
        remove_abandoned(self.desk, time.time())
        add_missing_outlines(self.desk)
        with engine.begin() as connection:
            self.tenant = tenant_of(connection, "local")
        self.client = TestClient(
            make_app(self.desk, tenant=self.tenant),
            "http://localhost",
            raise_server_exceptions=False,
        )

    def ask(
        self, verb: str, path: str, body: Any = None, *, gone: bool = False, **more: Any
    ) -> Any:
        """Send a request that must succeed; ``gone`` accepts that its object is deleted."""
        answer = self.client.request(verb, path, json=body, **more)
        if gone and answer.status_code == 404:
            return None
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def id_of(self, table: sa.Table, name: str) -> Any:
        """Return the id of what has this name; None if nothing does."""
        with self.desk.engine.connect() as connection:
            return connection.scalar(sa.select(table.c.id).where(table.c.name == name))

    def command(self, command: str, **options: Any) -> None:
        """Run a command of ``counsel keys``."""
        from counsel.cli import service

        silence = io.StringIO()
        with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
            getattr(service, command)(database=self.url, **options)


@dataclass(frozen=True)
class Operation:
    """Something that a caller does, and the site at which the service dies meanwhile, if any.

    One that ``repeats`` is sent again by a caller who was not answered; of the others the caller
    looks first whether they were done.
    """

    site: str
    run: Callable[[Session], object]
    repeats: bool = True


def record_of(desk: Any) -> dict[str, Any] | None:
    """Return everything on record, without ids and times, and what was learnt from it."""
    from counsel.service.db import tables as t
    from counsel.service.db.model_queries import SIZE

    with desk.engine.connect() as connection:

        def rows(query: Any) -> list[Any]:
            return sorted(json.dumps(list(row), default=str) for row in connection.execute(query))

        played = t.episodes.join(t.advisers, t.advisers.c.id == t.episodes.c.adviser).join(
            t.people, t.people.c.id == t.episodes.c.person
        )
        episode = (t.advisers.c.name, t.people.c.name, t.episodes.c.request)
        at = t.decisions.c
        outcome = t.outcomes.c
        record = {
            "advisers": rows(
                sa.select(
                    t.advisers.c.name, t.advisers.c.settings, t.advisers.c.archived.is_not(None)
                )
            ),
            "people": rows(sa.select(t.people.c.name)),
            "models": rows(
                sa.select(t.models.c.name, SIZE, t.outlines.c.content).join(
                    t.outlines, t.outlines.c.model == t.models.c.id, isouter=True
                )
            ),
            "episodes": rows(
                sa.select(
                    *episode, t.episodes.c.spent, t.episodes.c.ended.is_not(None)
                ).select_from(played)
            ),
            "decisions": rows(
                sa.select(*episode, at.step, at.state, at.advice, at.shown, at.must).select_from(
                    played.join(t.decisions, at.episode == t.episodes.c.number)
                )
            ),
            "outcomes": rows(
                sa.select(
                    *episode, outcome.step, outcome.version, outcome.action, outcome.reward,
                    outcome.replaced_by.is_not(None),
                ).select_from(played.join(t.outcomes, outcome.episode == t.episodes.c.number))
            ),
            "stretches": sorted(
                [spent, _offers_without_times(seen)]
                for spent, seen in connection.execute(
                    sa.select(t.stretches.c.spent, t.stretches.c.seen)
                )
            ),
            "comments": rows(sa.select(t.remarks.c.comment)),
            "keys": rows(
                sa.select(
                    t.keys.c.name, t.keys.c.role, t.keys.c.revoked.is_not(None),
                    t.keys.c.expires.is_not(None),
                )
            ),
            "erasures": rows(sa.select(sa.func.count()).select_from(t.erasures)),
            "audit": rows(sa.select(t.audit.c.action)),
        }  # fmt: skip
        names = dict(connection.execute(sa.select(t.advisers.c.id, t.advisers.c.name)).all())
    desk.catch_up()
    record["learnt"] = sorted(
        f"{name} {sorted(desk.learnt.of(id_).everybody.cells.items(), key=str)}"
        for id_, name in names.items()
    )
    return json.loads(json.dumps(record))


def _offers_without_times(seen: str) -> dict[str, Any]:
    """Return the offers of a stretch, without when in the stretch they came."""
    numbers = json.loads(seen)
    return {"offers": numbers["offers"], "bids": numbers["bids"], "cost": sum(numbers["parts"])}


def _live(pipe: Any, url: str, folder: str, site: str, moment: str) -> None:
    """Do what the other end of the pipe asks for, until it hangs up or this process dies."""
    from tests.support.service_operations import OPERATIONS

    trap = Trap(site, moment)
    trap.set_up()
    session = Session(url, Path(folder))
    pipe.send("ready")
    with contextlib.suppress(EOFError), session.client:
        while True:
            number, trap.site, trap.moment = pipe.recv()
            if number is not None:
                OPERATIONS[number].run(session)
                trap.site = ""
            pipe.send((record_of(session.desk), sorted(trap.seen)))
    os._exit(0)


def forking() -> Any:
    """Return how processes are made: forked from one that has everything imported and compiled."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.service_operations", "tests.support.planned"])
    return context


class Service:
    """A service in a process of its own, on a database."""

    def __init__(self, url: str, folder: Path, site: str = "", moment: str = "") -> None:
        context = forking()
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, url, str(folder), site, moment)
        self._process = context.Process(target=_live, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self.is_alive = self._answer() == "ready"

    def _answer(self) -> Any:
        """Return the answer; None if the service died where it was to die."""
        try:
            assert self._pipe.poll(120), "the service does not answer"
            return self._pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            assert self._process.exitcode == KILLED, "the service failed"
            return None

    def do(self, number: int | None, site: str = "", moment: str = "") -> Any:
        """Do an operation, or none; return the record and the sites so far, None if it died."""
        self._pipe.send((number, site, moment))
        return self._answer()

    def kill(self) -> None:
        """End the process as ``kill -9`` does."""
        self._pipe.close()
        self._process.kill()
        self._process.join()
