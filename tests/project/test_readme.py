"""README keeps its promises: every command and every block of code in it runs."""

import json
import re
import subprocess
import sys
import time
import urllib.request

import pytest

from counsel.experiments.paper import EXPERIMENTS
from tests.support import pages, services
from tests.support.paths import ROOT
from tests.support.processes import started

README = ROOT / "README.md"


def recipe(target):
    """Return the lines of a target of the Makefile."""
    text = (ROOT / "Makefile").read_text()
    (lines,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    return [line.strip() for line in lines.splitlines()]


@pytest.mark.slow
def test_every_command_and_every_block_of_code_runs(command, tmp_path, monkeypatch):
    done = []

    def demo(words):
        (line,) = (line for line in recipe("demo") if line.startswith("$(BIN)/counsel"))
        ended = command(*line.split()[1:], "--episodes", "1000", cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert (tmp_path / "demo" / "index.html").stat().st_size > 0
        done.append("demo")

    def test(words):
        assert recipe("test") == ['$(PYTEST) -m "not slow and not docs"']  # it is what runs this
        done.append("test")

    def serve(words):
        port = services.free_port()
        line = [sys.executable, "-c", "from counsel.cli import main; main()", *words[1:]]
        with started([*line, "--port", str(port)], cwd=tmp_path, stdout=subprocess.PIPE) as begun:
            for page in ("play", ""):
                assert "<html" in fetched(f"http://127.0.0.1:{port}/{page}", begun)
            begun.terminate()
            begun.communicate(timeout=60)
        done.append("serve")

    def reproduce(words):
        # At full scale it takes minutes. All experiments together are run in test_reproduce.py:
        # here the command, as it stands, finds two.
        scale = ["--scale", "0.0005", "--seeds", "1", "--workers", "1"]
        few = {name: EXPERIMENTS[name] for name in ("budget-learning", "misjudged")}
        with monkeypatch.context() as patch:
            patch.setattr("counsel.experiments.reproduce.EXPERIMENTS", few)
            ended = command(*words[1:], *scale, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        claims = json.loads((tmp_path / "reproduction" / "claims.json").read_text())
        assert {claim["experiment"] for claim in claims} == set(few)
        assert (tmp_path / "reproduction" / "report.html").stat().st_size > 0
        done.append("reproduce")

    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    others = {
        "make demo": demo,
        "make test": test,
        "counsel serve --demo": serve,
        "counsel reproduce": reproduce,
    }
    pages.run(README, command, tmp_path, others)
    assert done == ["demo", "test", "serve", "reproduce"]
    assert all(block.why is None for block in pages.blocks(README))
    assert (tmp_path / "report.html").stat().st_size > 0


def fetched(address, begun):
    """Return a page as soon as it is there."""
    while begun.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return answer.read().decode()
        except OSError:
            time.sleep(0.1)
    raise AssertionError("it ended before it answered")


def test_links_and_pictures_lead_somewhere():
    for page in (README, ROOT / "CONTRIBUTING.md"):
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if not link.startswith("http"):
                assert (ROOT / link.partition("#")[0]).exists(), link
