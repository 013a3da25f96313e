"""What callers and operators do with a service, and the site at which the service dies meanwhile.

Each operation can be done on its own once those before it are done, whichever process did them.
"""

import time
from contextlib import suppress
from functools import partial

import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.model.files import save
from counsel.service.api.auth import ApiKeyCheck
from counsel.service.core import model_uploads
from counsel.service.core.model_outlines import add_missing_outlines
from counsel.service.db import tables
from counsel.service.db.api_keys import KeyHolder
from counsel.service.process import ServiceProcess
from counsel.worlds.ward import ward
from tests.support.crashes import SCRUB, Operation

DESK, CORE, CLI = "service/core/desk.py:Desk", "service/core", "cli/service.py"


SHARED = {"pieces": 2, "per": 31_536_000}
"""A limit shared by all episodes, for so long that no new stretch begins meanwhile."""


def create(session, name, **settings):
    session.ask("POST", "/v1/advisers", {"name": name, "source": "ward", **settings})


def adviser(session, name, verb, path="", body=None, **more):
    """Ask for something of an adviser, by its name."""
    id_ = session.id_of(tables.advisers, name)
    return session.ask(verb, f"/v1/advisers/{id_ or 'none'}{path}", body, **more)


def start(session, name="always", person="ann", request="one"):
    """Start an episode, or return the one that this request has started."""
    headers = {"Idempotency-Key": request}
    return adviser(session, name, "POST", "/episodes", {"person": person}, headers=headers)["id"]


def advise(session, step, name="always", **which):
    at = {"step": step, "state": "deteriorating"}
    return session.ask("POST", f"/v1/episodes/{start(session, name, **which)}/advice", at)


def report(session, step, action, **more):
    outcome = {"advice_id": f"{start(session)}-{step}", "action": action, "reward": 1.0, **more}
    session.ask("POST", "/v1/outcomes", {"outcomes": [outcome]})


def end(session):
    session.ask("POST", f"/v1/episodes/{start(session)}/end", {"terminated": True})


def say_without(session):
    id_ = start(session, request="offline")
    shown = {"step": 0, "state": "critical", "advice": "call doctor", "at": 1.0}
    session.ask("POST", f"/v1/episodes/{id_}/reported", {"decisions": [shown]})


def erase(session, person):
    session.ask("DELETE", f"/v1/people/{person}", gone=True)


def upload(session, name="fitted"):
    path = session.folder / f"{time.monotonic_ns()}.npz"
    save(ward(), path)
    session.ask("POST", f"/v1/models?name={name}", content=path.read_bytes())


def upload_in_pieces(session, name):
    whole, model_uploads.PIECE = model_uploads.PIECE, 1000
    try:
        upload(session, name)
    finally:
        model_uploads.PIECE = whole


def forget_outlines(session):
    """Models of a database that had no outlines get them when a service starts."""
    with session.desk.engine.begin() as connection:
        connection.execute(sa.delete(tables.outlines))
    add_missing_outlines(session.desk)


def model(session, name, verb, body=None):
    id_ = session.id_of(tables.models, name)
    session.ask(verb, f"/v1/models/{id_ or 'none'}", body, gone=True)


def rename_model(session):
    """The name is the model's only: it is found by either."""
    name = "fitted" if session.id_of(tables.models, "fitted") else "renamed"
    model(session, name, "PATCH", {"name": "renamed"})


def add_key(session, name):
    session.command("add_key", role="advise", tenant="local", name=name, as_json=True)


def revoke_key(session):
    with suppress(CounselError):  # there is no valid key of this name any more
        session.command("revoke_key", id_=None, name="first", tenant="local")


def use_key(session):
    """Use a key for the first time, and wait until that is on record."""
    app = session.client.app
    check = ApiKeyCheck(session.desk, app.state.lanes, None, app.state.key_check.rates)
    check._note_use(KeyHolder(session.tenant, "advise", session.id_of(tables.keys, "first")))
    session.desk.catch_up()


def open_without_keys(session):
    ServiceProcess(session.url, auth=False).app()


def change_elsewhere(session):
    """Change settings as another service does, and wait until this one has taken them over."""
    id_ = session.id_of(tables.advisers, "edited")
    desk = session.desk
    live_adviser = desk.live(session.tenant, id_)
    settings = live_adviser.settings.changed(penalty=0.75).model_dump_json()
    with desk.engine.begin() as connection:
        mine = sa.update(tables.advisers).where(tables.advisers.c.id == id_)
        connection.execute(mine.values(settings=settings))
    deadline = time.monotonic() + 60.0
    while desk.live(session.tenant, id_).settings.penalty != 0.75:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    desk.catch_up()  # settings are in use a moment before the transaction that reads them commits


def wait_for_poll(session):
    before, deadline = session.desk.committer.transactions, time.monotonic() + 60.0
    while session.desk.committer.transactions == before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def doing(function, *arguments, **named):
    return partial(_call, function, arguments, named)


def _call(function, arguments, named, session):
    return function(session, *arguments, **named)


OPERATIONS = [
    Operation("service/process.py:ServiceProcess.app", open_without_keys),
    Operation(f"{DESK}.create", doing(create, "always", always=True), repeats=False),
    Operation("", doing(create, "hard", budget=2, hard=True, knows_habit=True)),
    Operation("", doing(create, "edited", penalty=0.1)),
    Operation(f"{DESK}.start", doing(start)),
    Operation(f"{DESK}.submit_request", doing(advise, 0)),
    Operation("", doing(create, "phone", knows_habit=True, shared_limit=SHARED)),
    Operation("", doing(start, "phone", request="shared")),
    *(
        Operation(f"{DESK}.submit_request", doing(advise, step, "phone", request="shared"))
        for step in range(4)
    ),
    Operation("", doing(start, "hard", request="all")),
    *(
        Operation(f"{DESK}.submit_request", doing(advise, step, "hard", request="all"))
        for step in range(4)
    ),
    Operation(f"{DESK}.submit_outcomes", doing(report, 0, "assess", comment="well done")),
    Operation(f"{DESK}.submit_outcomes", doing(report, 0, "call doctor", version=2)),
    Operation(f"{DESK}.submit_end", end),
    Operation("", doing(start, request="offline")),
    Operation(f"{CORE}/reported.py:record_decisions", say_without),
    Operation(f"{DESK}.save_snapshot", lambda session: session.desk.save_snapshot().result()),
    Operation(f"{DESK}.catch_up", lambda session: session.desk.catch_up()),
    Operation("service/core/follower.py:Follower._poll", wait_for_poll),
    Operation(
        "service/api/health.py:_SharedWrite._write", doing(lambda s: s.ask("GET", "/readyz"))
    ),
    Operation(f"{DESK}.set_mode", doing(adviser, "edited", "PATCH", body={"mode": "shadow"})),
    Operation(
        f"{CORE}/management.py:edit_adviser",
        doing(adviser, "edited", "PATCH", body={"penalty": 0.5}),
    ),
    Operation("service/core/follower.py:Follower._wake_anew", change_elsewhere),
    Operation(f"{CORE}/management.py:_set_archived", doing(adviser, "edited", "POST", "/archive")),
    Operation(f"{CORE}/management.py:_set_archived", doing(adviser, "edited", "POST", "/restore")),
    Operation(f"{CORE}/model_uploads.py:ModelUploads._add", upload, repeats=False),
    Operation(
        f"{CORE}/model_uploads.py:ModelUploads._add_piece",
        doing(upload_in_pieces, "large"),
        repeats=False,
    ),
    Operation(
        f"{CORE}/model_uploads.py:ModelUploads._add",
        doing(upload_in_pieces, "larger"),
        repeats=False,
    ),
    Operation(f"{CORE}/model_outlines.py:add_missing_outlines", forget_outlines),
    Operation(f"{CORE}/model_uploads.py:remove_pieces", doing(model, "large", "DELETE")),
    Operation(f"{CORE}/management.py:rename_model", rename_model),
    Operation(f"{CORE}/management.py:delete_model", doing(model, "renamed", "DELETE")),
    Operation(f"{CLI}:add_key", doing(add_key, "first"), repeats=False),
    Operation("service/api/auth.py:ApiKeyCheck._note_use", use_key),
    Operation(
        f"{CLI}:rotate_key",
        lambda s: s.command(
            "rotate_key", id_=s.id_of(tables.keys, "first"), overlap="1d", as_json=True
        ),
        repeats=False,
    ),
    Operation(f"{CLI}:revoke_key", revoke_key),
    *(
        operation
        for person, site in (
            ("bob", f"{CORE}/erasure.py:erase_person"),
            ("cem", f"{CORE}/deletion.py:_delete_episodes"),
            ("dee", SCRUB),
            ("eva", f"{CORE}/deletion.py:delete_for_good"),
        )
        for operation in (
            Operation("", doing(advise, 0, person=person, request=person)),
            Operation(site, doing(erase, person)),
        )
    ),
    *(
        operation
        for name, site in (
            ("late 1", f"{CORE}/management.py:delete_adviser"),
            ("late 2", f"{CORE}/deletion.py:_delete_episodes"),
            ("late 3", SCRUB),
            ("late 4", f"{CORE}/deletion.py:delete_for_good"),
        )
        for operation in (
            Operation("", doing(create, name, always=True)),
            Operation("", doing(start, name, "fay")),
            Operation("", doing(adviser, name, "POST", "/archive")),
            Operation(site, doing(adviser, name, "DELETE", "", {"confirm": name}, gone=True)),
        )
    ),
]
