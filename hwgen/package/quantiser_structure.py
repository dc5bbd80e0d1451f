"""What a quantiser is made of, read from its elaborated RTL: modules, ports, registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from amaranth.hdl import Fragment, Shape

from hwgen.config.quantiser import QUANTISER_REGISTERS, QuantiserConfig
from hwgen.rtl.hierarchy import ModuleSet, Part
from hwgen.rtl.quantiser.quantiser import Quantiser

__all__ = ["RESULT", "Unit", "units"]

RESULT = "result"
"""The register that every quantiser has."""


@dataclass(frozen=True)
class Unit:
    """One module of a quantiser.

    Parameters
    ----------
    count
        Instances of it.
    ports
        Widths of its ports in bits, by name.
    registers
        Flip-flops of each pipeline register that it has, by name.
    """

    count: int
    ports: Mapping[str, int]
    registers: Mapping[str, int]


def _registers(fragment: Fragment) -> dict[str, int]:
    """Flip-flops by pipeline register, whose name their own names begin with; others are those of the result."""
    found: Counter[str] = Counter()
    loaded = (signal for statement in fragment.statements.get("sync", ()) for signal in statement._lhs_signals())
    for signal in {id(signal): signal for signal in loaded}.values():
        register = signal.name.partition("_")[0]
        found[register if register in QUANTISER_REGISTERS else RESULT] += len(signal)
    order = (*QUANTISER_REGISTERS, RESULT)
    return {register: found[register] for register in order if register in found}


def units(config: QuantiserConfig) -> dict[str, Unit]:
    """Modules of a quantiser by plain name; the top one is ``quantiser``.

    Parameters
    ----------
    config
        The quantiser.
    """
    ports: dict[str, dict[str, int]] = {}
    registers: dict[str, dict[str, int]] = {}

    def convert(block: Part, name: str, modules: ModuleSet) -> str:
        registers[name] = _registers(Fragment.get(block, modules))
        members = block.signature.flatten(block)
        ports[name] = {"__".join(map(str, path)): Shape.cast(member.shape).width for path, member, _ in members}
        return ""

    modules = ModuleSet(convert)
    top, _ = modules.add(Quantiser, config)
    counts = {top: 1, **modules.instances[top]}
    return {name: Unit(count, ports[name], registers[name]) for name, count in counts.items()}
