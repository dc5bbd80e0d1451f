"""RTL generator and hardware cost model for NVFP4 and MixFP4 tensor cores.

What scripts may rely on is in ``__all__`` here and in `sim.golden`, the golden model; docs/reference/python.md shows
it at work. Each name is imported when it is first used: to import ``hwgen`` takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "Estimate",
    "Flow",
    "InputError",
    "TensorCoreConfig",
    "ToolError",
    "default_library",
    "load_library",
    "measure_overhead",
    "named",
    "package_texts",
    "resolve",
]

__version__ = "0.2.0"

if TYPE_CHECKING:
    from hwgen.cells.libraries import path as default_library
    from hwgen.cells.reader import load as load_library
    from hwgen.config import TensorCoreConfig, named, resolve
    from hwgen.errors import InputError, ToolError
    from hwgen.measure.netlists.flow import Flow
    from hwgen.measure.overhead import measure as measure_overhead
    from hwgen.package.contents import texts as package_texts
    from hwgen.stats import Estimate

_SOURCES = {
    "Estimate": "hwgen.stats:Estimate",
    "Flow": "hwgen.measure.netlists.flow:Flow",
    "InputError": "hwgen.errors:InputError",
    "TensorCoreConfig": "hwgen.config:TensorCoreConfig",
    "ToolError": "hwgen.errors:ToolError",
    "default_library": "hwgen.cells.libraries:path",
    "load_library": "hwgen.cells.reader:load",
    "measure_overhead": "hwgen.measure.overhead:measure",
    "named": "hwgen.config:named",
    "package_texts": "hwgen.package.contents:texts",
    "resolve": "hwgen.config:resolve",
}


def __getattr__(name: str) -> Any:
    if name not in _SOURCES:
        raise AttributeError(f"module 'hwgen' has no attribute {name!r}")
    module, _, attribute = _SOURCES[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
