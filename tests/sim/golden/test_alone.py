"""The golden model without the rest of the project: numpy is all it takes, and it shares no file with hwgen."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]

# Only the copy, numpy and Python's own modules can be imported, whatever the environment has.
CHILD = """
import importlib.abc, sys
copy, numpy_place = sys.argv[1:]

class Guard(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in ("hwgen_golden", "numpy") or top in sys.stdlib_module_names:
            return None
        raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Guard())
sys.path += [copy, numpy_place]
import numpy as np
import hwgen_golden as golden

assert golden.__file__.startswith(copy), golden.__file__
x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(2, 32)
q = golden.quantize(x, "mixfp4")
for numerics in golden.NUMERICS:
    print(golden.gemm(q, q, numerics=numerics).view(np.uint32).ravel().tolist())
ours = {"hwgen_golden", "numpy", "__main__", *sys.stdlib_module_names}
foreign = {name.partition(".")[0] for name in sys.modules} - ours
assert not foreign, foreign
"""


def test_the_package_alone_needs_only_numpy(tmp_path):
    project = tomllib.loads((ROOT / "sim" / "pyproject.toml").read_text(encoding="utf-8"))
    for package, directory in project["tool"]["setuptools"]["package-dir"].items():
        shutil.copytree(ROOT / "sim" / directory, tmp_path.joinpath(*package.split(".")))
    # Without site, nothing that is installed beside numpy gets in by itself.
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", CHILD, tmp_path, Path(np.__file__).parents[1]]
    done = subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr

    from sim import golden

    x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(2, 32)
    q = golden.quantize(x, "mixfp4")
    expected = [golden.gemm(q, q, numerics=numerics).view(np.uint32).ravel().tolist() for numerics in golden.NUMERICS]
    assert done.stdout.splitlines() == list(map(str, expected))


def installed(project, copied, tmp_path):
    """Paths of all files that a distribution puts among the packages."""
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir(parents=True)
    for name in copied:
        path = project / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source)
    build = "import setuptools; setuptools.setup()"
    command = [sys.executable, "-c", build, "--quiet", "build", "--build-lib", str(out)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}


def test_no_file_is_owned_by_two_distributions(tmp_path):
    whole = installed(ROOT, ["pyproject.toml", "README.md", "hwgen", "sim", "reports"], tmp_path / "hwgen")
    small = installed(ROOT / "sim", ["pyproject.toml", "golden"], tmp_path / "golden")
    modules = {path.name for path in (ROOT / "sim" / "golden").glob("*.py")}
    assert small == {f"hwgen_golden/{name}" for name in modules}
    assert {f"sim/golden/{name}" for name in modules} <= whole
    assert {"hwgen/__main__.py", "sim/steps.py"} <= whole
    assert not whole & small


def test_both_projects_agree():
    """Their versions are held by tests/test_distribution.py."""
    small = tomllib.loads((ROOT / "sim" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for key in ("requires-python", "license"):
        assert small[key] == whole[key]
    assert set(small["dependencies"]) <= set(whole["dependencies"])
