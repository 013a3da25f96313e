"""The only place that imports Numba, and the threads that share a large step.

A kernel is a plain loop over arrays that the caller has checked. Kernels release the interpreter
lock, so a large step is cut into runs that ordinary threads execute. Each run writes its own part
of the output, so the result does not depend on the number of threads. (Numba's own thread pools are
not used: two Python threads may not enter them at once, which a service would do.)

Compiled kernels are cached on disk. Numba's cache checks only the file a kernel is defined in and
misses an edit in a kernel it calls, so each cache entry is stamped with the state of all kernel
files. Numba also numbers cache files, so two processes that compile at once may load each other's
code and crash; here a cache file is named after its key and written before it is listed. When
several processes need the same kernel, one compiles it and the others wait.

With ``NUMBA_DISABLE_JIT=1`` kernels run as plain Python and return the same results.
"""

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import lru_cache, partial, wraps
from itertools import pairwise
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

if sys.platform != "win32":
    import fcntl

_F = TypeVar("_F", bound=Callable[..., Any])
_R = TypeVar("_R")
PATIENCE = 60.0  # seconds; the process that compiles may have been stopped


def kernel(function: _F) -> _F:
    """Compile ``function`` on first use and cache the result on disk."""
    if getattr(numba.config, "DISABLE_JIT", 0):  # set from the environment
        return _quiet(function)
    return cast("_F", _compiled(function, forceinline=False))


def inlined(function: _F) -> _F:
    """Compile a small function into every kernel that calls it."""
    return cast("_F", _compiled(function, forceinline=True))


def _quiet(function: _F) -> _F:
    """Run a kernel as plain Python; wrapping integers and ``x / 0`` do not warn, as compiled."""

    @wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 (stands for its function)
        with np.errstate(all="ignore"):
            return function(*arguments, **named)

    return cast("_F", run)


@lru_cache(maxsize=1)
def source_stamp() -> tuple[tuple[str, float, int], ...]:
    """Return the name, modification time and size of every file of kernels."""
    folder = Path(__file__).parent
    files = sorted((path, path.stat()) for path in folder.glob("*/_*kernels.py"))
    return tuple((str(path.relative_to(folder)), at.st_mtime, at.st_size) for path, at in files)


def _compiled(function: Any, *, forceinline: bool) -> Any:  # noqa: ANN401 (stands for its function)
    def decorate(*, cache: bool) -> Any:  # noqa: ANN401
        options: Any = {"no_cfunc_wrapper": True}  # C code would call it: nobody does
        compiled: Any = numba.njit(
            cache=cache, nogil=True, error_model="numpy", forceinline=forceinline, **options
        )(function)
        if is_compiled(compiled):  # not with NUMBA_DISABLE_JIT
            compiled.get_call_template = partial(_resolve_call, compiled.get_call_template)
        return compiled

    try:
        compiled = decorate(cache=True)
    except RuntimeError:  # nowhere to write: compile anew in every process
        return decorate(cache=False)
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if file is not None:
        _stamp(file)
        compiled.compile = partial(_compile_alone, compiled.compile, f"{file._index_path}.lock")
    return compiled


def _resolve_call(resolve: Callable[..., _R], args: Iterable[Any], named: dict[str, Any]) -> _R:
    """Resolve a call in a kernel by the types of its arguments.

    Numba would compile the function that is called once more for every constant it is called with.
    """
    plain: Any = numba.types.unliteral
    return resolve([plain(kind) for kind in args], {name: plain(named[name]) for name in named})


def _stamp(file: Any) -> None:  # noqa: ANN401 (Numba's own)
    """Tie a cache file to the state of all kernel files, and save code with ``_save``."""
    file._source_stamp = source_stamp()
    # Numba checks the version before it unpickles an index and the stamp only afterwards; an index
    # of other kernel files may name classes that no longer exist.
    file._version = (file._version, file._source_stamp)
    file.save = partial(_save, file)


def _compile_alone(compile_or_load: Callable[[object], object], path: str, sig: object) -> object:
    """Compile a kernel, or load it if another process compiled it in the meantime."""
    with global_compiler_lock, _alone(path):  # in this order: threads would wait for each other
        return compile_or_load(sig)


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    """Hold a file lock across processes; continue without it where the file cannot be locked."""
    if sys.platform == "win32":
        yield
        return
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # not writable, or a disk without locks
            os.makedirs(os.path.dirname(path), exist_ok=True)
            file = stack.enter_context(open(path, "ab"))
            patience = time.monotonic() + PATIENCE
            while time.monotonic() < patience:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(0.02)
                else:
                    stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
                    break
        yield


def stable_hash(key: object) -> int:
    """Return a hash of a key that is the same in every process."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8])


def _save(file: Any, key: object, data: object) -> None:  # noqa: ANN401 (Numba's own)
    """Save compiled code under a name derived from its key."""
    name = file._data_name(stable_hash(key))
    file._save_data(name, data)
    file._save_index(file._load_index() | {key: name})


def is_compiled(function: object) -> bool:
    """Return whether a function was compiled by ``numba.njit``."""
    return isinstance(function, Dispatcher)


def rebuilt(function: _F, **names: object) -> _F:
    """Compile a kernel anew with other global names; the result is not kept on disk."""
    source = getattr(function, "py_func", function)
    namespace = source.__globals__ | names
    copy = FunctionType(source.__code__, namespace, source.__name__, None, source.__closure__)
    return cast("_F", numba.njit(nogil=True, error_model="numpy")(copy))


@inlined
def as_int64(number: int) -> int:
    """Return a number as int64, so that callees are compiled for one type and no literal value."""
    return int(np.int64(number))


def _prefetcher(locality: int) -> Callable[[Any, Any], None]:
    """Return a function that asks the processor for an array's element and does not wait for it.

    ``locality`` is that of LLVM: 3 keeps the element in every cache, 0 in as few as possible. An
    index beyond the end does no harm. Without compilation nothing happens.
    """

    def ask(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        array_type, index_type = signature.args
        array = context.make_array(array_type)(context, builder, arguments[0])
        index = context.cast(builder, arguments[1], index_type, numba.types.intp)
        get_pointer: Any = cgutils.get_item_pointer
        place = get_pointer(context, builder, array_type, array, [index])
        number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        llvm = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        to_read, data = number(0), number(1)
        builder.call(llvm, [builder.bitcast(place, pointer), to_read, number(locality), data])
        return context.get_dummy_value()

    def prefetch(_context: object, array: Any, index: Any) -> Any:  # noqa: ANN401
        return numba.types.void(array, index), ask

    if getattr(numba.config, "DISABLE_JIT", 0):
        return lambda _array, _index: None
    return cast("Callable[[Any, Any], None]", intrinsic(prefetch))


prefetch = _prefetcher(3)
"""Ask for an element that will be read soon."""

stream = _prefetcher(0)
"""Ask for an element that is read once, so that it does not displace others from the caches."""


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=4)
def thread_pool(threads: int) -> Executor:
    """Return the shared pool of ``threads`` threads."""
    return ThreadPoolExecutor(threads, thread_name_prefix="counsel")


def split(begin: int, end: int, parts: int) -> list[tuple[int, int]]:
    """Split a range into ``parts`` runs of nearly equal length."""
    return list(pairwise(begin + (end - begin) * i // parts for i in range(parts + 1)))


def run_jobs(threads: int, jobs: Iterable[Callable[[], _R]]) -> list[_R]:
    """Run jobs on the shared threads, or here if there is to be one; return their results."""
    if threads == 1:
        return [job() for job in jobs]
    futures = [thread_pool(threads).submit(job) for job in jobs]
    return [future.result() for future in futures]


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork: a child that used the parent's pool would wait for ever.
    os.register_at_fork(after_in_child=thread_pool.cache_clear)
