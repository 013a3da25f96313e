"""Atomic writes, ``.npz`` files with a header, and errors that name the file.

A file is written under a temporary name and moved to its place once complete, so a crash leaves the
old file or the new one. ``.npz`` files contain plain arrays and a JSON header (``format``,
``version`` and the writer's own keys); nothing in them is ever unpickled.
"""

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from counsel.errors import CounselError

VERSION = 1
"""Version of the file formats; files of other versions are refused."""

DAMAGED = (
    *(OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError),
    *(MemoryError, RuntimeError, struct.error, zipfile.BadZipFile, zlib.error),
)
"""Errors that NumPy, zipfile and JSON raise on a damaged file."""

_BAD_CONTENTS = (
    TypeError,
    IndexError,
    AttributeError,
    ValueError,
    ArithmeticError,
    NotImplementedError,
)


@contextmanager
def blaming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in errors about its contents."""
    try:
        yield
    except KeyError as missing:
        raise CounselError(
            f"{path} has no {missing}; the file is damaged or not Counsel's"
        ) from None
    except CounselError as fault:
        raise CounselError(f"{path}: {fault}") from None
    except _BAD_CONTENTS:
        raise CounselError(f"{path} contains unusable arrays; the file is damaged") from None


def make_folder(folder: Path) -> None:
    """Create a folder and its parents if they do not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise CounselError(f"cannot create the folder {folder}: {fault.strerror}") from None


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path; move the file to ``path`` once it is complete and on disk."""
    unfinished = path.with_name(f".counsel-{uuid4().hex}")
    try:
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except (OSError, ValueError) as fault:
        raise _cannot_write(path, fault) from None
    try:
        yield unfinished
        with unfinished.open("r+b") as stream:  # Windows syncs only what is open for writing
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except CounselError:  # what is written is at fault, not the writing
        raise
    except (OSError, ValueError) as fault:
        raise _cannot_write(path, fault) from None
    finally:
        unfinished.unlink(missing_ok=True)


def _cannot_write(path: Path, fault: Exception) -> CounselError:
    reason = getattr(fault, "strerror", None) or fault
    return CounselError(" ".join(f"cannot write {path}: {reason}".split()))


def write_npz(path: Path, kind: str, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write a header and arrays atomically."""
    if path.suffix != ".npz":
        raise CounselError(f"{path} must end in .npz")
    text = json.dumps({"format": kind, "version": VERSION, **header}).encode()
    with whole_file(path) as unfinished, unfinished.open("wb") as stream:
        np.savez(stream, header=np.frombuffer(text, dtype=np.uint8), **arrays)


def check_exists(path: str | os.PathLike[str]) -> None:
    """Raise unless the file or folder exists."""
    if not os.path.exists(path):
        raise CounselError(f"{path} does not exist")


def read_npz(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the header and the arrays of a Counsel file."""
    check_exists(path)
    try:
        with path.open("rb") as stream:
            return read_stream(stream, path, kind)
    except OSError:
        raise CounselError(f"{path} is truncated, damaged or not a Counsel file") from None


def read_stream(
    stream: BinaryIO, path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the header and the arrays of an open file; errors name it ``path``."""
    try:
        with np.load(stream, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile) or "header" not in file:
                raise CounselError(f"{path} is not a Counsel file: it has no header")
            header = json.loads(bytes(file["header"]).decode())
            if not isinstance(header, dict) or header.get("format") != kind:
                other = header.get("format") if isinstance(header, dict) else None
                raise CounselError(f"{path} has format {other!r}, not {kind!r}")
            if header.get("version") != VERSION:
                raise CounselError(
                    f"{path} has format version {header.get('version')}; this Counsel reads "
                    f"version {VERSION}: upgrade Counsel or save the file again"
                )
            return header, {name: file[name] for name in file.files if name != "header"}
    except CounselError:
        raise
    except DAMAGED:
        raise CounselError(f"{path} is truncated, damaged or not a Counsel file") from None
