"""Changes of advisers and models: edited, archived, restored, renamed and deleted.

Settings that make no sense are refused before anything is written: a plan is made with them, as for
a new adviser. An adviser that is *archived* starts no episodes and is not listed; it still answers
for episodes under way, and its log can be exported. Only an archived adviser can be deleted, by
somebody who writes its name (``deletion.py``).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.service.core.audit import record
from counsel.service.core.deletion import delete_for_good
from counsel.service.core.desk import Desk
from counsel.service.core.listings import count_users
from counsel.service.core.model_uploads import remove_pieces
from counsel.service.core.settings import read_stored
from counsel.service.db.api_keys import KeyHolder
from counsel.service.db.engine import read
from counsel.service.db.tables import DELETING, advisers, episodes, models, snapshots
from counsel.service.errors import ConflictError, NotFoundError

FIXED_ONCE_USED = {
    "holdout": "the probabilities in the log",
    "memory_across": "the levels on record",
}
"""Settings that stay as they are once there are episodes, and what depends on them."""

ATTEMPTS = 5
"""How often a change is made again because somebody else changed the same adviser meanwhile."""


def edit_adviser(desk: Desk, holder: KeyHolder, adviser: str, changes: Mapping[str, Any]) -> None:
    """Change settings of an adviser, at once here and within a second in other services."""
    for _ in range(ATTEMPTS):
        row = _find(desk, holder, adviser)
        before, fault = read_stored(row.settings)
        if fault is not None and set(changes) != {"mode"}:
            raise ConflictError(f"only the mode can be changed: {fault}")
        settings = before.changed(**changes)
        old = before.model_dump()
        new = {name: x for name, x in settings.model_dump().items() if x != old[name]}
        if set(new) <= {"mode"}:
            desk.set_mode(holder.tenant, adviser, settings.mode, holder=holder)
            return
        for name, why in FIXED_ONCE_USED.items():
            if name in new:
                _check_no_episodes(desk, adviser, f"{name} is {getattr(before, name)}", why)
        live = desk.draft(adviser, holder.tenant, row.name, settings)
        values: dict[str, Any] = {"settings": settings.model_dump_json()}
        if settings.limit != before.limit:  # what was spent on the old budget is no debt
            values |= {"paced_episodes": 0, "paced_pieces": 0}
        else:
            live.paced_episodes = row.paced_episodes
        live.archived = row.archived
        note = _noting(holder, "adviser edited", adviser, new)
        if desk.committer.submit(_replacing(row, values, note)).result():
            desk.put_to_use(live)
            return
    raise ConflictError(f"adviser {adviser[:40]!r} is being changed by others; try again")


def _replacing(
    row: sa.Row[Any], values: Mapping[str, Any], note: Callable[[sa.Connection], None]
) -> Callable[[sa.Connection], bool]:
    """Return a job that updates a row, and returns whether the row was still the same."""
    is_same = (advisers.c.id == row.id) & (advisers.c.settings == row.settings)

    def change(connection: sa.Connection) -> bool:
        done = connection.execute(sa.update(advisers).where(is_same).values(**values))
        if done.rowcount:
            note(connection)
        return bool(done.rowcount)

    return change


def _check_no_episodes(desk: Desk, adviser: str, setting: str, why: str) -> None:
    some = sa.select(episodes.c.number).where(episodes.c.adviser == adviser).limit(1)
    if read(desk.reading, some):
        raise ConflictError(
            f"{setting} and stays so: {why} depend on it, and there are episodes; create another "
            "adviser"
        )


def archive_adviser(desk: Desk, holder: KeyHolder, adviser: str) -> sa.Row[Any]:
    """Let an adviser start no more episodes, and return its row."""
    return _set_archived(desk, holder, adviser, is_archived=True)


def restore_adviser(desk: Desk, holder: KeyHolder, adviser: str) -> sa.Row[Any]:
    """Let an archived adviser start episodes again, and return its row."""
    return _set_archived(desk, holder, adviser, is_archived=False)


def _set_archived(desk: Desk, holder: KeyHolder, adviser: str, *, is_archived: bool) -> sa.Row[Any]:
    mine = (advisers.c.id == adviser) & (advisers.c.tenant == holder.tenant)
    action = "adviser archived" if is_archived else "adviser restored"

    def change(connection: sa.Connection) -> sa.Row[Any]:
        row = connection.execute(sa.select(advisers).where(mine)).first()
        if row is None or row.archived == DELETING:
            raise NotFoundError(f"there is no adviser {adviser[:40]!r}")
        if (row.archived is not None) != is_archived:
            at = time.time() if is_archived else None
            connection.execute(sa.update(advisers).where(mine).values(archived=at))
            record(connection, holder, action, adviser)
        return connection.execute(sa.select(advisers).where(mine)).one()

    row = desk.committer.submit(change).result()
    desk.note_archived(adviser, row.archived)
    return row


def delete_adviser(desk: Desk, holder: KeyHolder, adviser: str, name: str) -> list[str]:
    """Delete an archived adviser with its episodes, if ``name`` is its name.

    Returns what an operator has to see to.
    """
    mine = (advisers.c.id == adviser) & (advisers.c.tenant == holder.tenant)

    def begin(connection: sa.Connection) -> None:
        row = connection.execute(sa.select(advisers).where(mine)).first()
        if row is None:
            raise NotFoundError(f"there is no adviser {adviser[:40]!r}")
        if row.archived is None:
            raise ConflictError(f"adviser {row.name[:40]!r} is in use; archive it first")
        if row.name != name:
            raise CounselError(
                f"confirm is {name[:40]!r}; to delete the adviser with all its episodes, give its "
                f"name, {row.name[:40]!r}"
            )
        if row.archived != DELETING:
            connection.execute(sa.update(advisers).where(mine).values(archived=DELETING))
            record(connection, holder, "adviser deleted", adviser, {"name": name})
        connection.execute(sa.delete(snapshots))
        desk.forget_adviser(adviser)

    desk.committer.submit(begin).result()
    return _delete(desk, [adviser])


def finish_deletions(desk: Desk) -> None:
    """Finish what was interrupted: advisers that are being deleted and still have a row."""
    left = read(desk.reading, sa.select(advisers.c.id).where(advisers.c.archived == DELETING))
    if left:
        _delete(desk, [row.id for row in left])


def _delete(desk: Desk, ids: Sequence[str]) -> list[str]:
    theirs = [episodes.c.adviser == adviser for adviser in ids]

    def finish(connection: sa.Connection) -> None:
        connection.execute(sa.delete(advisers).where(advisers.c.id.in_(ids)))
        for adviser in ids:
            desk.forget_adviser(adviser)  # outcomes may have arrived meanwhile

    return delete_for_good(desk, theirs, finish)


def rename_model(desk: Desk, holder: KeyHolder, model: str, name: str) -> None:
    """Give a model another name."""
    mine = (models.c.id == model) & (models.c.tenant == holder.tenant)

    def change(connection: sa.Connection) -> None:
        row = connection.execute(sa.select(models.c.name).where(mine)).first()
        if row is None:
            raise NotFoundError(f"there is no model {model[:40]!r}")
        if row.name != name:
            connection.execute(sa.update(models).where(mine).values(name=name))
            record(connection, holder, "model renamed", model, {"name": name})

    desk.committer.submit(change).result()


def delete_model(desk: Desk, holder: KeyHolder, model: str) -> None:
    """Delete a model that no adviser uses."""
    mine = (models.c.id == model) & (models.c.tenant == holder.tenant)

    def delete(connection: sa.Connection) -> None:
        if connection.scalar(sa.select(models.c.id).where(mine)) is None:
            raise NotFoundError(f"there is no model {model[:40]!r}")
        users = count_users(connection, holder.tenant).get(model, 0)
        if users:
            those = "1 adviser" if users == 1 else f"{users:,} advisers"
            raise ConflictError(
                f"model {model} is the source of {those}, archived ones included; delete them first"
            )
        connection.execute(sa.delete(models).where(mine))
        record(connection, holder, "model deleted", model)

    desk.committer.submit(delete).result()
    remove_pieces(desk, model)


def _noting(
    holder: KeyHolder, action: str, target: str, details: Mapping[str, Any]
) -> Callable[[sa.Connection], None]:
    return lambda connection: record(connection, holder, action, target, details)


def _find(desk: Desk, holder: KeyHolder, adviser: str) -> sa.Row[Any]:
    mine = (advisers.c.id == adviser) & (advisers.c.tenant == holder.tenant)
    for row in read(desk.engine, sa.select(advisers).where(mine)):
        if row.archived != DELETING:
            found: sa.Row[Any] = row
            return found
    raise NotFoundError(f"there is no adviser {adviser[:40]!r}")
