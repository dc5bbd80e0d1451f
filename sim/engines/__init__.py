"""Engines: simulators of a tensor core that take the same steps and give the same answer.

==========  ==========================================  =======================================
name        simulator                                   needs
==========  ==========================================  =======================================
python      Amaranth's own                              nothing
compiled    C++ of the netlist, compiled                a C++ compiler; some seconds, cached
==========  ==========================================  =======================================
"""

from __future__ import annotations

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError
from sim.engines.amaranth import AmaranthEngine
from sim.engines.compiled import CompiledEngine, available, missing
from sim.engines.run import Engine, Pattern, Patterns, Run, always

__all__ = [
    "NAMES",
    "AmaranthEngine",
    "CompiledEngine",
    "Engine",
    "Pattern",
    "Patterns",
    "Run",
    "always",
    "available",
    "engine",
    "missing",
]

NAMES = ("auto", "python", "compiled")
"""What `engine` takes."""


def engine(config: TensorCoreConfig, name: str = "auto", long: bool = False) -> Engine:
    """Make an engine.

    Parameters
    ----------
    config
        The core.
    name
        ``python``, ``compiled``, or ``auto``: compiled if there is a C++ compiler, else python.
    long
        Whether it is to run some 100,000 steps and more, see `CompiledEngine`.

    Raises
    ------
    InputError
        Unknown name, or ``compiled`` without a C++ compiler that works.
    """
    if name not in NAMES:
        raise InputError(f"engine {name!r}: must be one of {', '.join(NAMES)}")
    if name == "python" or (name == "auto" and not available()):
        return AmaranthEngine(config)
    return CompiledEngine(config, long)
