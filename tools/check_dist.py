"""Check the wheel and the sdist in a folder, then install and use the wheel.

    python tools/check_dist.py dist            # what `make dist` runs
    python tools/check_dist.py dist v0.1.0     # the release: the tag must match the version

The wheel must contain every file of ``src/counsel`` (pages, migrations and maps too) and no other
file. It is installed in an empty environment with the newest dependencies it allows, as by a user.
"""

import argparse
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
IN_SDIST = ("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "tests")
PATIENCE = 180  # seconds until the service answers: it may compile kernels first


def main() -> None:
    """Check the distributions in a folder and, if given, the tag."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("tag", nargs="?")
    arguments = parser.parse_args()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    if arguments.tag:
        check_tag(arguments.tag, version)
    wheel = arguments.folder / f"counsel-{version}-py3-none-any.whl"
    sdist = arguments.folder / f"counsel-{version}.tar.gz"
    if sorted(arguments.folder.iterdir()) != [wheel, sdist]:
        sys.exit(f"{arguments.folder} must hold {wheel.name} and {sdist.name} only")
    check_wheel(wheel)
    check_sdist(sdist)
    use(wheel.resolve(), version)
    report(f"{wheel.name} and {sdist.name} are complete, and the wheel works")


def check_tag(tag: str, version: str) -> None:
    """Require that a tag matches the version and that the changelog has its date."""
    if tag != f"v{version}":
        sys.exit(f"the tag is {tag}; it must be v{version}, the version in pyproject.toml")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        sys.exit(f"CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)'")


def package_files() -> set[str]:
    """Return the files of the package, relative to the folder ``counsel``."""
    folder = ROOT / "src" / "counsel"
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def check_wheel(wheel: Path) -> None:
    """Require that a wheel holds the files of the package, its metadata and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {f"counsel/{name}" for name in package_files()}
    if missing := sorted(expected - names):
        sys.exit(f"{wheel.name} lacks {', '.join(missing)}")
    if superfluous := sorted(names - expected):
        sys.exit(f"{wheel.name} must not hold {', '.join(superfluous)}")


def check_sdist(sdist: Path) -> None:
    """Require that an sdist holds what is needed to build, test and cite the package."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {f"src/counsel/{name}" for name in package_files()}
    folders = {name.partition("/")[0] for name in names}
    if missing := sorted((expected - names) | (set(IN_SDIST) - folders)):
        sys.exit(f"{sdist.name} lacks {', '.join(missing)}")


def use(wheel: Path, version: str) -> None:
    """Install a wheel in an empty environment, plan with it and start its service."""
    with tempfile.TemporaryDirectory(prefix="counsel-dist-") as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        programs = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        counsel = str(programs / "counsel")

        def run(*words: str) -> str:
            report("$", *words)
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"failed:\n{done.stdout}{done.stderr}")
            return done.stdout

        pip = (str(programs / "python"), "-m", "pip", "install", "--quiet")
        run(*pip, str(wheel))
        if run(counsel, "--version").split() != ["counsel", version]:
            sys.exit(f"counsel --version does not print counsel {version}")
        run(counsel, "worlds")
        report(run(counsel, "solve", "night-shift", "--budget", "2"))
        run(counsel, "solve", "flappy-bird/safe", "--penalty", "0.3")  # its map is a file
        run(*pip, f"{wheel}[service]")
        check_service(counsel, folder)


def check_service(counsel: str, folder: Path) -> None:
    """Start the service on a fresh database and fetch its pages."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    words = (counsel, "serve", "--no-auth", "--db", "counsel.db", "--port", str(port))
    report("$", *words)
    service = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        for path in ("healthz", "play", ""):
            fetch(f"http://127.0.0.1:{port}/{path}", service)
    finally:
        service.terminate()
        service.wait(60)


def fetch(address: str, service: "subprocess.Popen[bytes]") -> None:
    """Fetch a page as soon as the service answers."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(address) as answer:
                report(f"{answer.status} {address}")
                return
        except urllib.error.HTTPError as fault:
            sys.exit(f"{address}: {fault}")
        except OSError:
            if service.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the service does not answer at {address}")
            time.sleep(0.2)


def report(*words: str) -> None:
    """Print a line and flush it, also when output goes to a file."""
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
