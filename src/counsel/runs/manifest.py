"""The manifest of a run: settings, hash of the problem, versions and result, in one JSON file."""

import hashlib
import json
import platform
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import layers
from counsel._files import blaming, write_text
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.runs.spec import Spec

MANIFEST = "manifest.json"

ADDED = {"random_rewards": False}  # settings that manifests of older runs lack

PACKAGES = ("counsel", "numpy", "scipy", "numba", "pyarrow", "highspy")
"""Packages whose versions may affect results."""


def read_spec(folder: Path) -> Spec:
    """Return the settings of the run in a folder."""
    if not (folder / MANIFEST).exists():
        raise CounselError(f"{folder} contains no run to resume")
    with blaming(folder / MANIFEST):
        return Spec(**read_manifest(folder)["settings"])


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of the run in a folder."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        names = {field.name for field in fields(Spec)}
        settings = ADDED | manifest["settings"]
        if set(settings) == names and isinstance(manifest["problem"], str):
            return {**manifest, "settings": settings}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise CounselError(f"{folder / MANIFEST} is not the manifest of a run; choose another folder")


def problem_fingerprint(problem: AdviceProblem) -> str:
    """Return a hash of all numbers of a problem, and of the name of its law of rewards."""
    mdp, human, kernel = problem.mdp, problem.human, problem.mdp.kernel
    arrays: list[NDArray[Any]] = [kernel.row, kernel.indptr, kernel.next_state, kernel.probability]
    arrays += [layers(mdp.reward), layers(mdp.allowed), mdp.start]
    if human.memory is None:
        arrays += [human.policy, human.adherence, human.groups]
    else:
        memory = human.memory
        arrays += [human.policy, human.level_adherence, human.groups, memory.after]
        arrays.append(np.array(memory.start))
    digest = hashlib.sha256(f"{problem.horizon}".encode())
    if problem.reward_range is not None:
        law = getattr(problem.reward_law, "__qualname__", "")
        digest.update(f"{problem.reward_range}{law}".encode())
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_manifest(
    folder: Path, spec: Spec, problem: AdviceProblem, result: dict[str, Any]
) -> None:
    """Write the manifest of a run."""
    manifest = {
        "kind": "counsel-run",
        "format": 1,
        "settings": spec.settings(),
        "problem": problem_fingerprint(problem),
        "versions": versions(),
        "result": result,
    }
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that may affect results."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # pyarrow is optional
            continue
    return installed | {"python": platform.python_version()}
