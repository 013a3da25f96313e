"""``counsel reproduce`` and ``counsel figures``: what they print, write and refuse."""

import json

import pytest

SMALL = ("--scale", "0.0005", "--seeds", "1", "--workers", "1")


@pytest.fixture(scope="module")
def made(command, tmp_path_factory):
    """A folder in which one experiment was reproduced, and what the command printed."""
    folder = tmp_path_factory.mktemp("made")
    ended = command("reproduce", "budget-learning", *SMALL, "-o", "out", cwd=folder)
    return folder, ended


@pytest.mark.slow
def test_reproduce_prints_every_claim_and_what_to_open(made):
    folder, ended = made
    assert (ended.returncode, ended.stderr) == (0, "")
    claims = json.loads((folder / "out" / "claims.json").read_text())
    assert {claim["experiment"] for claim in claims} == {"budget-learning"}
    paper = [claim["verdict"] for claim in claims if claim["source"] == "paper"]
    first = f"{paper.count('holds')} of {len(paper)} claims of the paper hold."
    assert ended.stdout.splitlines()[0] == first
    assert {claim["verdict"] for claim in claims} == {"cannot be told"}  # one seed tells nothing
    assert "10 runs done, 0 done before" in ended.stdout
    assert ended.stdout.endswith("Next: open out/report.html in a browser\n")
    assert (folder / "out" / "report.html").exists()


@pytest.mark.slow
def test_the_same_command_again_does_nothing_twice_and_figures_says_the_same(command, made):
    folder, first = made
    again = command("reproduce", "budget-learning", *SMALL, "-o", "out", cwd=folder)
    assert "0 runs done, 10 done before" in again.stdout
    drawn = command("figures", "out", "--json", cwd=folder)
    told = json.loads(drawn.stdout)
    assert told["claims"] == json.loads((folder / "out" / "claims.json").read_text())
    assert told["unfinished"] == {}
    plain = command("figures", "out", cwd=folder)
    assert plain.stdout.splitlines()[0] == first.stdout.splitlines()[0]


def test_what_cannot_be_reproduced_is_refused_in_one_line(command, tmp_path):
    for words, what in (
        (("reproduce", "nothing"), "nothing"),
        (("reproduce", "budget-learning", "--workers", "0"), "not 0"),
        (("figures", "nowhere"), "nowhere"),
    ):
        ended = command(*words, cwd=tmp_path)
        assert ended.returncode == 2
        assert what in ended.stderr
        assert ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
