"""Shared by all tests: Hypothesis profiles, the command line, and a PostgreSQL server."""

import contextlib
import gc
import io
import os
import signal
import subprocess
import sys
import threading
import uuid

import pytest
from hypothesis import seed, settings

# One thread for matrices, before NumPy is loaded: the matrices of tests are small, and threads that
# wait cost more than they compute. No last digit depends on the number of cores then, either.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Services of tests may have to compile the planner first, on a machine that does other things too.
os.environ["COUNSEL_REQUEST_SECONDS"] = os.environ["COUNSEL_READING_SECONDS"] = "300"

from tests.support import postgres, required, services
from tests.support.each import FUZZ_SEED
from tests.support.few_draws import draw_less

# The verdict never depends on luck: examples are drawn from the name of the test. `make fuzz` draws
# others, by a seed that it prints.
settings.register_profile("test", max_examples=50, derandomize=True, deadline=None, database=None)
settings.register_profile("fuzz", max_examples=400, derandomize=True, deadline=None, database=None)
settings.load_profile("test" if FUZZ_SEED is None else "fuzz")

# What a shell starts in the background ignores Ctrl-C, and so would the processes that tests start
# and interrupt.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What is imported stays: the collector need not look through it again and again.
gc.disable()

SLOW_FIXTURES = {"server", "chromium", "everything"}
"""They need what a newcomer may not have installed, or run a whole reproduction."""


def pytest_collection_modifyitems(items):
    """Put tests into the slow tier by what they ask for; seed those that are fuzzed."""
    for item in items:
        chosen = getattr(item, "callspec", None)
        databases = [chosen.params.get(name) for name in ("url", "new_url")] if chosen else []
        is_long = item.get_closest_marker("long") is not None
        if is_long or SLOW_FIXTURES & set(item.fixturenames) or "postgresql" in databases:
            item.add_marker(pytest.mark.slow)
        drawn = getattr(item.obj, "is_hypothesis_test", False)
        if drawn or hasattr(item.obj, "fresh_seeds"):
            item.add_marker(pytest.mark.fuzzed)
        if drawn and FUZZ_SEED is not None:
            seed(FUZZ_SEED)(item.obj)


def pytest_collection_finish():
    """Collect what tests leave behind, and nothing that was there before them."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def command():
    """Run ``counsel`` as ``subprocess.run`` would, in this process: a second of imports is saved.

    What belongs to a process of its own (signals, pipes, terminals) is tested with one.
    """
    from counsel import cli

    def run(*words, cwd="."):
        said, told = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.chdir(cwd):
            patch.setattr(cli.app, "_prepare_streams", lambda: None)  # it is about the process
            patch.setattr(sys, "argv", ["counsel", *map(str, words)])
            patch.setattr(sys, "stdout", said)
            patch.setattr(sys, "stderr", told)
            with pytest.raises(SystemExit) as end:
                cli.main()
        return subprocess.CompletedProcess(words, end.value.code, said.getvalue(), told.getvalue())

    return run


@pytest.fixture
def few_draws(monkeypatch):
    """Draw less where logs are fitted, planned on and judged, for tests of anything else."""
    draw_less(monkeypatch)


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server, required where the continuous integration runs."""
    try:
        with postgres.running() as found:
            yield found
    except postgres.NoServerError as reason:
        required.leave_out(str(reason))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """A fresh database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'counsel.db'}"
        return
    found = request.getfixturevalue("server")
    name = f"test_{uuid.uuid4().hex}"
    with found.connect() as database:
        database.execute(f"create database {name}")
    yield found.url(database=name)


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request, tmp_path):
    """A function that makes a fresh database, of each kind."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path / uuid.uuid4().hex}.db"
    server = request.getfixturevalue("server")

    def new():
        name = f"test_{uuid.uuid4().hex}"
        with server.connect() as database:
            database.execute(f"create database {name}")
        return server.url(database=name)

    return new


@pytest.fixture(scope="session")
def chromium():
    """The path of Chromium, required where the continuous integration runs."""
    return required.program("chromium")


@pytest.fixture(scope="module")
def browser(chromium):
    """A browser for the tests of a file; while it is open no other event loop runs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        found = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def open_page(browser):
    """Open pages that may not complain, show dialogs or ask other hosts."""
    contexts, faults = [], []

    def complain(message):
        known = "Failed to load resource" in message.text  # a refused request, told by the page
        if message.type == "error" and not known:
            faults.append(message.text)

    def opened(address, *, width=1280, height=800, scheme="light", **options):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            accept_downloads=True,
            **options,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", complain)
        page.on("pageerror", lambda fault: faults.append(str(fault)))
        page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        page.on(
            "request",
            lambda request: (
                request.url.startswith((address, "data:", "blob:")) or faults.append(request.url)
            ),
        )
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not faults


@pytest.fixture
def address(tmp_path):
    """The address of a fresh service that asks for no key."""
    with services.serving(tmp_path / "counsel.db") as found:
        yield found
