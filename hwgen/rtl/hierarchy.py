"""Equal components become one Verilog module each.

Amaranth writes one module per instance, so that an 8 x 8 array would be 64 copies of an element.
Handed to a component as its ``platform``, a `ModuleSet` converts each distinct child once and gives
the parent instances of it; without one (in simulation) the parent holds the children themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Shape, ShapeCastable, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hwgen.config import TensorCoreConfig

__all__ = ["Block", "ModuleSet", "Part", "add_child", "held_apart"]

Interface = Any  # the members of a block, as attributes


class Part(wiring.Component):
    """A component that its class, a configuration and perhaps further arguments determine.

    Parameters
    ----------
    config
        What it is built for; equal ones give one module.
    members
        Members of the signature.

    Attributes
    ----------
    module_name : str
        Plain name of its Verilog module.
    latency : int
        Clock cycles from inputs to outputs without stalls; 0 is combinational.
    registers : bool
        Whether its module, children included, has registers, and with them ``clk`` and ``rst``.
    """

    module_name: str
    latency: int = 0
    registers: bool = False
    config: Any

    def __init__(self, config: Hashable, members: dict[str, wiring.Member]) -> None:
        self.config = config
        super().__init__(members)

    def held(self, m: Module, register: str, enable: str, values: dict[str, Value]) -> dict[str, Value]:
        """The values behind a pipeline register that the input ``enable`` loads; as they are without it."""
        if register not in self.config.pipeline:
            return values
        held: dict[str, Value] = {}
        with m.If(getattr(self, enable)):
            for name, value in values.items():
                held[name] = Signal(len(value), name=f"{register}_{name}", reset_less=True)
                m.d.sync += held[name].eq(value)
        return held


def held_apart(m: Module, value: Any, name: str, load: Value, of_half: Collection[str], load_of_half: Value) -> Any:
    """A record behind a register; fields ``of_half``, of steps at half the rate alone, have an enable of their own."""
    held = Signal.like(value, name=name, reset_less=True)
    fields = [field for field, _ in value.shape()]
    for enable, loaded in (
        (load, [field for field in fields if field not in of_half]),
        (load_of_half, [field for field in fields if field in of_half]),
    ):
        with m.If(enable):
            m.d.sync += [getattr(held, field).eq(getattr(value, field)) for field in loaded]
    return held


class Block(Part):
    """A component of a tensor core."""

    config: TensorCoreConfig


class ModuleSet:
    """The distinct modules of one design, leaves first.

    Parameters
    ----------
    convert
        ``convert(block, name, module_set)`` gives the text of one module.
    prefix
        Put before every module name but the top's.

    Attributes
    ----------
    texts : dict[str, str]
        Text by module name.
    instances : dict[str, dict[str, int]]
        For every module, how many instances of which modules it holds directly.
    """

    def __init__(self, convert: Callable[[Part, str, ModuleSet], str], prefix: str = "") -> None:
        self.convert = convert
        self.prefix = prefix
        self.texts: dict[str, str] = {}
        self.instances: dict[str, dict[str, int]] = {}
        self._modules: dict[tuple[Any, ...], tuple[str, Part]] = {}
        self._open: list[str] = []

    def add(self, kind: type[Part], config: Hashable, *further: str, name: str | None = None) -> tuple[str, Part]:
        """Convert ``kind(config, *further)`` unless it is there; returns the name of its module and the block."""
        key = (kind, config, *further)
        if key not in self._modules:
            block = kind(config, *further)  # type: ignore[arg-type]
            name = self.prefix + block.module_name if name is None else name
            assert name not in self.instances, f"two different modules {name}"
            self._modules[key] = (name, block)
            self.instances[name] = {}
            self._open.append(name)
            self.texts[name] = self.convert(block, name, self)
            self._open.pop()
        return self._modules[key]

    def instantiate(self, m: Module, name: str, kind: type[Part], config: Hashable, *further: str) -> Interface:
        """Add an instance of the module of ``kind(config, *further)`` to ``m``."""
        module, block = self.add(kind, config, *further)
        counts = self.instances[self._open[-1]]
        counts[module] = counts.get(module, 0) + 1
        interface = SimpleNamespace()
        ports: dict[str, Any] = {}
        for member_name, member in block.signature.members.items():
            # A plain signal under the layout: shaped ones bring a wire for each field into the Verilog.
            signal = Signal(Shape.cast(member.shape), name=f"{name}_{member_name}")
            ports[f"{'i' if member.flow == In else 'o'}_{member_name}"] = signal
            layout = member.shape
            setattr(interface, member_name, layout(signal) if isinstance(layout, ShapeCastable) else signal)
        if block.registers:
            ports |= {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        m.submodules[name] = Instance(module, **ports)
        return interface


def add_child(m: Module, platform: object, name: str, kind: type[Part], config: Hashable, *further: str) -> Interface:
    """Add ``kind(config, *further)`` to ``m`` as submodule ``name``; returns an object with its members."""
    if isinstance(platform, ModuleSet):
        return platform.instantiate(m, name, kind, config, *further)
    block = kind(config, *further)  # type: ignore[arg-type]
    m.submodules[name] = block
    return block
