"""A journal on disk: entries that wait to be delivered, kept through crashes.

One file has one JSON object per line. Any process may append, each under a lock; an entry that was
appended is on disk. Whoever delivers reads the file from the start, keeps the place that was
reached in a second file, and empties the journal once everything is delivered. Files can be read by
their owner only, since entries name people.

Whatever a crash leaves behind can be read again: an append that did not complete is taken back or,
if its process died, ends as a line that is no JSON and that nobody relied on.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from counsel._files import whole_file

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

Entry = dict[str, Any]

LOCK_SECONDS = 2.0
"""Seconds to wait for another process that appends."""

REMEMBERED = 10_000
"""Episodes started without the service, and conflicts with the record, that are remembered."""


class Line(NamedTuple):
    """A line of the journal: its text, its entry if it is one, and where the line ends."""

    text: str
    entry: Entry | None
    end: int


class Journal:
    """The journal in a folder, shared by all processes that use the folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal.jsonl"
        self._lock_path = folder / "journal.lock"
        self._file, self._end, self._entries = "", 0, list[Entry]()
        self._reading = threading.Lock()

    def append(self, entries: list[Entry]) -> None:
        """Append entries and wait until they are on disk; raises ``OSError`` if they are not."""
        lines = "".join(json.dumps(entry) + "\n" for entry in entries)
        with locked(self._lock_path, LOCK_SECONDS) as is_mine:
            if not is_mine:
                raise TimeoutError("another process does not release the journal")
            place = os.open(self.path, os.O_RDWR | os.O_CREAT | _BINARY, 0o600)
            try:
                size = os.lseek(place, 0, os.SEEK_END)
                before = "" if size else _first_line()
                if size and _byte_at(place, size - 1) != b"\n":
                    before = "\n"  # after a line whose process died
                try:
                    _write_all(place, (before + lines).encode())
                    os.fsync(place)
                except OSError:
                    with suppress(OSError):
                        os.ftruncate(place, size)
                    raise
            finally:
                os.close(place)

    def entries(self) -> list[Entry]:
        """Return the entries that are not delivered; reads only what is new in the file."""
        with self._reading:
            return self._read_on()

    def _read_on(self) -> list[Entry]:
        try:
            with self.path.open("rb") as stream:
                first = stream.readline()
                name = _name_of(first)
                if name != self._file:
                    self._file, self._end, self._entries = name, len(first), []
                stream.seek(self._end)
                content = stream.read()
        except FileNotFoundError:
            content, self._file, self._entries = b"", "", []
        except OSError:  # a disk that cannot be read must not keep anybody from being advised
            content = b""
        for line in _lines(content, self._end):
            self._end = line.end
            if line.entry is not None:
                self._entries.append(line.entry)
        return list(self._entries)

    @property
    def is_empty(self) -> bool:
        """Whether everything is delivered."""
        try:
            return self.path.stat().st_size == 0
        except OSError:
            return True

    def read(self) -> tuple[str, int, list[Line]]:
        """Return the file's name, which changes when it is emptied, where it begins, its lines."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return "", 0, []
        begin = content.find(b"\n") + 1 or len(content)
        return _name_of(content[:begin]), begin, list(_lines(content[begin:], begin))

    def empty(self, end: int) -> Line | None:
        """Empty the journal if all of it was read, up to ``end``.

        Returns a last line that a process began and did not complete, if there is one.
        """
        with locked(self._lock_path, LOCK_SECONDS) as is_mine:
            if not is_mine or self.is_empty:
                return None
            content = self.path.read_bytes()
            rest = content[end:]
            if b"\n" in rest:
                return None  # there are new lines
            os.truncate(self.path, 0)
        return Line(rest.decode("utf-8", "replace"), None, len(content)) if rest else None


class Progress:
    """What was delivered of a journal, stored beside it.

    ``episodes`` are the real ids of episodes that were started without the service. ``conflicts``
    are decisions on record as something else than what was shown, with what to do about each.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "progress.json"
        self.file, self.end = "", 0
        self.episodes, self.conflicts = dict[str, str](), dict[str, str]()
        self._read_at = -1

    def load(self) -> None:
        """Load the file if it has changed; one that cannot be read is as good as none.

        Delivering again from the start changes nothing that is on record.
        """
        try:
            written = self.path.stat().st_mtime_ns
            if written == self._read_at:
                return
            content = json.loads(self.path.read_text(encoding="utf-8"))
            self.file, self.end = str(content["file"]), int(content["end"])
            self.episodes, self.conflicts = dict(content["episodes"]), dict(content["conflicts"])
            self._read_at = written
        except (OSError, ValueError, KeyError, TypeError):
            self.file, self.end = "", 0

    def save(self) -> None:
        """Store it, whole or not at all."""
        for remembered in (self.episodes, self.conflicts):
            while len(remembered) > REMEMBERED:
                del remembered[next(iter(remembered))]
        content = {
            "file": self.file,
            "end": self.end,
            "episodes": self.episodes,
            "conflicts": self.conflicts,
        }
        write_private(self.path, json.dumps(content))

    def begin(self, file: str, begin: int) -> None:
        """Begin with a journal; the place reached in another one does not count."""
        if file != self.file:
            self.file, self.end = file, begin


def write_private(path: Path, text: str) -> None:
    """Write a text file atomically, which only its owner can read."""
    with whole_file(path) as unfinished:
        unfinished.chmod(0o600)
        unfinished.write_text(text, encoding="utf-8")


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[bool]:
    """Hold a lock among threads and processes; yields whether it was free in time."""
    place = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline, is_mine = time.monotonic() + seconds, _try_lock(place)
        while not is_mine and time.monotonic() < deadline:
            time.sleep(0.01)
            is_mine = _try_lock(place)
        yield is_mine
    finally:
        os.close(place)  # which releases the lock


def _try_lock(place: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(place, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


_BINARY = getattr(os, "O_BINARY", 0)


def _first_line() -> str:
    return json.dumps({"journal": uuid4().hex}) + "\n"


def _name_of(first: bytes) -> str:
    """Return the name in the first line of a journal, or the line itself if that is damaged."""
    try:
        return str(json.loads(first)["journal"])
    except (ValueError, KeyError, TypeError):
        return first.decode("utf-8", "replace")


def _lines(content: bytes, begin: int) -> Iterator[Line]:
    """Yield the complete lines of a part of the journal that begins somewhere."""
    end = begin
    for line in content.split(b"\n")[:-1]:
        end += len(line) + 1
        text = line.decode("utf-8", "replace")
        try:
            entry = json.loads(text)
        except ValueError:
            entry = None
        yield Line(text, entry if isinstance(entry, dict) else None, end)


def _byte_at(place: int, position: int) -> bytes:
    os.lseek(place, position, os.SEEK_SET)
    byte = os.read(place, 1)
    os.lseek(place, 0, os.SEEK_END)
    return byte


def _write_all(place: int, content: bytes) -> None:
    while content:
        content = content[os.write(place, content) :]
