"""Verdicts on four blocks of seeds: joined, published, and the same again from saved values."""

import json

import pytest

import counsel
from counsel.experiments import blocks
from counsel.experiments.claim import Claim, Verdict, settle
from counsel.experiments.experiment import Size
from counsel.experiments.paper import EXPERIMENTS, fatigue
from counsel.experiments.paper.scaling_runs import FEWER_SEEDS
from tests.support.paths import ROOT

FILE = json.loads((ROOT / "docs" / "reference" / "verdicts.json").read_text(encoding="utf-8"))
PUBLISHED = FILE["claims"]


def record(values, text="It is small.", experiment="worlds"):
    return {"experiment": experiment} | Claim.median(text, "x", values, below=1.0).record()


def test_four_blocks_that_agree_have_their_verdict_and_others_none():
    small, large, mixed = [0.0] * 12, [2.0] * 12, [0.0, 2.0] * 6
    for values, verdict in (
        ([small] * 4, "holds"),
        ([large] * 4, "does not hold"),
        ([mixed] * 4, "cannot be told"),
        ([small, small, small, mixed], "cannot be told"),
        ([small, large, small, large], "cannot be told"),
    ):
        (joined,) = blocks.publish([[record(block)] for block in values])
        assert joined["verdict"] == verdict
        assert [block["values"] for block in joined["blocks"]] == values
        assert [claim.verdict for claim in blocks.claims_of(joined)] == [
            Verdict(block["verdict"]) for block in joined["blocks"]
        ]


def test_blocks_with_different_claims_cannot_be_joined():
    one, other = record([0.0] * 12), record([0.0] * 12, "Another.")
    for second in ([other], [one, other], []):
        with pytest.raises(counsel.CounselError, match="blocks hold different claims"):
            blocks.publish([[one], second])


def test_blocks_that_would_overlap_are_refused(tmp_path):
    with pytest.raises(counsel.CounselError, match="blocks of more than 1000 seeds overlap"):
        blocks.reproduce_blocks(["worlds"], Size(seeds=1001), tmp_path)
    assert list(tmp_path.iterdir()) == []


# What is published.


def test_every_published_verdict_follows_from_the_saved_values():
    assert PUBLISHED
    for saved in PUBLISHED:
        assert len(saved["blocks"]) == blocks.BLOCKS
        verdicts = []
        for claim, block in zip(blocks.claims_of(saved), saved["blocks"], strict=True):
            assert claim.verdict == block["verdict"]
            assert claim.measured == block["measured"]
            assert claim.stated == saved["stated"]
            verdicts.append(claim.verdict)
        # The four blocks agree, or the published verdict is that it cannot be told.
        assert saved["verdict"] == settle(verdicts)
        assert len(set(verdicts)) == 1 or saved["verdict"] == "cannot be told"


def test_published_blocks_have_different_seeds_and_as_many_as_each_experiment_needs():
    for saved in PUBLISHED:
        values = [tuple(block["values"]) for block in saved["blocks"]]
        if saved["statistic"]["kind"] == "exact":
            assert len(set(values)) == 1
        elif FILE["scale"] == 1.0:
            enough = {EXPERIMENTS[saved["experiment"]].seeds}
            # Stopping times, and Q-learning with its own constants, are run with fewer seeds.
            enough |= {FEWER_SEEDS} if saved["experiment"] == "scaling" else set()
            # Nothing is learnt for the plans of fatigue; its learners have fewer seeds.
            is_learnt = saved["experiment"] == "fatigue" and "UCB-AD" in saved["claim"]
            enough |= {fatigue.LEARNT, fatigue.LEARNT_MAPS} if is_learnt else set()
            sizes = {len(block) for block in values}
            assert len(sizes) == 1
            assert sizes <= enough
    # Chance differs between blocks: of most claims no two blocks have the same values.
    differ = [len({tuple(b["values"]) for b in saved["blocks"]}) == 4 for saved in PUBLISHED]
    assert sum(differ) > len(PUBLISHED) / 2


@pytest.mark.slow
def test_four_blocks_run_and_say_what_their_folders_say(tmp_path):
    names, size = ["misjudged"], Size(0.01, 8)
    records = blocks.reproduce_blocks(names, size, tmp_path, workers=1)
    saved = json.loads((tmp_path / "verdicts.json").read_text(encoding="utf-8"))
    assert saved == {"kind": "counsel-verdicts", "scale": 0.01, "claims": records}
    for block in range(4):
        folder = tmp_path / f"block-{block}"
        claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
        assert [c["values"] for c in claims] == [r["blocks"][block]["values"] for r in records]
        assert json.loads((folder / "manifest.json").read_text())["first_seed"] == 1000 * block
        maps = {path.stem for path in (folder / "runs" / "misjudged").glob("maps-safe*")}
        assert maps == {f"maps-safe#{1000 * block + seed}" for seed in range(8)}
    for saved in records:
        verdicts = {claim.verdict for claim in blocks.claims_of(saved)}
        assert len(verdicts) == 1 or saved["verdict"] == "cannot be told"
    # Eight maps cannot show that a share is at least 80 %.
    shares = [record for record in records if record["statistic"]["kind"] == "share"]
    assert shares
    assert all(record["verdict"] != "holds" for record in shares)
    again = blocks.reproduce_blocks(names, size, tmp_path, workers=1)
    assert again == records
