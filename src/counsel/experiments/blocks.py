"""Verdicts on four disjoint blocks of seeds: a claim is published with the verdict of all four.

Every block is a whole reproduction in a folder of its own, ``block-0`` to ``block-3``, with other
seeds, other random maps and other people's luck. Where the four verdicts on a claim differ, the
published verdict is "cannot be told". ``verdicts.json`` keeps the values of every claim for each
seed, so that every verdict can be decided again without running anything.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from counsel._files import write_text
from counsel.errors import CounselError
from counsel.experiments.claim import Claim, Verdict, settle
from counsel.experiments.experiment import Size
from counsel.experiments.reproduce import CLAIMS, SILENT, Progress, reproduce

BLOCKS = 4
STRIDE = 1000  # the distance between the first seeds of two blocks
VERDICTS, KIND = "verdicts.json", "counsel-verdicts"
BY_BLOCK = ("verdict", "measured", "estimate", "interval", "note", "values")
"""The fields of a claim that differ between blocks."""


def reproduce_blocks(
    names: Sequence[str],
    size: Size,
    folder: Path,
    *,
    workers: int | None = None,
    progress: Progress = SILENT,
) -> list[dict[str, Any]]:
    """Reproduce experiments in four blocks of seeds, and write and return the published verdicts.

    ``verdicts.json`` holds the scale and a list of claims. Stored runs are not repeated.
    """
    if size.seeds is not None and size.seeds > STRIDE:
        raise CounselError(f"seeds is {size.seeds}; blocks of more than {STRIDE} seeds overlap")
    for block in range(BLOCKS):
        seeds = replace(size, first_seed=size.first_seed + block * STRIDE)
        reproduce(names, seeds, block_folder(folder, block), workers=workers, progress=progress)
    blocks = [
        json.loads((block_folder(folder, block) / CLAIMS).read_text(encoding="utf-8"))
        for block in range(BLOCKS)
    ]
    records = publish(blocks)
    write_verdicts(folder / VERDICTS, size.scale, records)
    return records


def write_verdicts(path: Path, scale: float, records: Sequence[dict[str, Any]]) -> None:
    """Write verdicts as JSON, one claim per line."""
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    head = f'"kind": "{KIND}", "scale": {scale:g}, "claims"'
    write_text(path, f"{{{head}: [\n{lines}\n]}}\n")


def block_folder(folder: Path, block: int) -> Path:
    """Return the folder of a block."""
    return folder / f"block-{block}"


def publish(blocks: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Join the claims of all blocks: what they share, the common verdict, and each block's own."""
    texts = [[(record["experiment"], record["claim"]) for record in block] for block in blocks]
    if any(others != texts[0] for others in texts):
        raise CounselError("the blocks hold different claims; finish all of them, then join them")
    records = []
    for same in zip(*blocks, strict=True):
        shared = {key: value for key, value in same[0].items() if key not in BY_BLOCK}
        own = [{key: record[key] for key in BY_BLOCK} for record in same]
        verdict = settle(Verdict(record["verdict"]) for record in own)
        records.append(shared | {"verdict": str(verdict), "blocks": own})
    return records


def claims_of(record: dict[str, Any]) -> list[Claim]:
    """Return the claim of a published record in each block, decided anew from its values."""
    return [Claim.from_record(record | block) for block in record["blocks"]]
