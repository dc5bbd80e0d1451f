"""The golden model without the rest of the project: numpy is all it takes."""

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
        if top in ("sim", "numpy") or top in sys.stdlib_module_names:
            return None
        raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Guard())
sys.path += [copy, numpy_place]
import numpy as np
from sim import golden

assert golden.__file__.startswith(copy), golden.__file__
x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(2, 32)
q = golden.quantize(x, "mixfp4")
for numerics in golden.NUMERICS:
    print(golden.gemm(q, q, numerics=numerics).view(np.uint32).ravel().tolist())
foreign = {name.partition(".")[0] for name in sys.modules} - {"sim", "numpy", "__main__"} - set(sys.stdlib_module_names)
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


def test_both_projects_agree():
    small = tomllib.loads((ROOT / "sim" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for key in ("version", "requires-python", "license"):
        assert small[key] == whole[key]
    assert set(small["dependencies"]) <= set(whole["dependencies"])
