"""What is built holds what is tracked, and works where nothing else of the checkout is."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import equirecourse

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="what is tracked is known in a checkout only")


@pytest.fixture(scope="module")
def tracked():
    """The files of the package, by their paths from ``src``."""
    listed = subprocess.run(["git", "ls-files", "-z", "src"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {path.removeprefix("src/") for path in listed.stdout.split("\0") if path}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with wheel and sdist."""
    folder = tmp_path_factory.mktemp("built")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "--directory", folder], cwd=ROOT, check=True)
    return folder


def test_the_wheel_holds_the_tracked_files(built, tracked):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        assert {name for name in wheel.namelist() if not name.startswith("equirecourse-")} == tracked


def test_the_sdist_holds_the_tracked_files(built, tracked):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        names = {"/".join(member.name.split("/")[1:]) for member in sdist.getmembers() if member.isfile()}
    assert {name.removeprefix("src/") for name in names if name.startswith("src/")} == tracked


def test_the_version_is_the_same_everywhere(built):
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    (wheel,) = built.glob("*.whl")
    assert (cited, wheel.name.split("-")[1]) == (equirecourse.__version__, equirecourse.__version__)


def test_the_package_under_test_is_that_of_this_checkout(tracked):
    # A wheel that was installed before the last change would be tested in its place.
    package = Path(equirecourse.__file__).parents[1]
    missing = [name for name in sorted(tracked) if not (package / name).is_file()]
    differing = [
        name
        for name in sorted(tracked - {*missing})
        if (package / name).read_bytes() != (ROOT / "src" / name).read_bytes()
    ]
    assert (missing, differing) == ([], [])


def lend_caches(packages):
    """Copy bytecode and compiled functions from here to installed packages; to make them again takes half a minute.

    Python and numba read a cache only if time and size of its source are those it was made from. Our own files were
    unpacked at another time: where they are the same as here, they get the time from here.
    """
    ours = Path(equirecourse.__file__).parent
    for source, target in ((Path(sysconfig.get_path("purelib")), packages), (ours, packages / "equirecourse")):
        for cache in source.rglob("__pycache__"):
            if (package := target / cache.parent.relative_to(source)).is_dir():
                shutil.copytree(cache, package / "__pycache__", dirs_exist_ok=True)
    for file in ours.rglob("*.py"):
        installed = packages / "equirecourse" / file.relative_to(ours)
        if installed.is_file() and installed.read_bytes() == file.read_bytes():
            shutil.copystat(file, installed)


def test_the_wheel_works_in_an_environment_of_its_own(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    python = venv / "bin" / "python"
    subprocess.run([ROOT / "tools" / "install.sh", python, wheel], check=True)
    lend_caches(Path(sysconfig.get_path("purelib", vars={"base": venv, "platbase": venv})))
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, ROOT / "tools" / "smoke.py"], cwd=tmp_path, env=own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
