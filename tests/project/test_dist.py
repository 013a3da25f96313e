"""A wheel that lacks a file or has one too many is refused, and so is a tag of another version."""

import importlib.util
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def check_dist():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("check_dist", ROOT / "tools" / "check_dist.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wheel_of(names, folder):
    path = folder / "counsel-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in [*names, "counsel-0.dist-info/METADATA"]:
            archive.writestr(name, "")
    return path


def test_a_wheel_has_the_files_of_the_package_and_no_others(check_dist, tmp_path):
    names = {f"counsel/{name}" for name in check_dist.package_files()}
    assert {"counsel/__init__.py", "counsel/py.typed"} <= names
    check_dist.check_wheel(wheel_of(names, tmp_path))
    with pytest.raises(SystemExit, match=r"lacks counsel/py\.typed"):
        check_dist.check_wheel(wheel_of(names - {"counsel/py.typed"}, tmp_path))
    with pytest.raises(SystemExit, match=r"must not hold tests/planning/test_solve\.py"):
        check_dist.check_wheel(wheel_of(names | {"tests/planning/test_solve.py"}, tmp_path))


def test_a_tag_matches_the_version_and_the_changelog_has_its_date(
    check_dist, tmp_path, monkeypatch
):
    monkeypatch.setattr(check_dist, "ROOT", tmp_path)
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n## 1.2.3 (2027-01-31)\n")
    check_dist.check_tag("v1.2.3", "1.2.3")
    with pytest.raises(SystemExit, match=r"the tag is v1\.2\.4; it must be v1\.2\.3"):
        check_dist.check_tag("v1.2.4", "1.2.3")
    changelog.write_text("# Changelog\n\n## 1.2.3 (unreleased)\n")
    with pytest.raises(SystemExit, match="has no heading"):
        check_dist.check_tag("v1.2.3", "1.2.3")
