"""Step of a core: where its steps are, which registers load, and when a result leaves.

::

    step --> [Pipeline: (operands) (decoded) (tree) (sums) (factors) (terms)] --> [Single, Ring or Line] --> result

`Pipeline` takes steps to the accumulation loop, which is one of the other three: see `loop`. Each writes its registers
and gates into a module when it is told to ``advance``, and then says in ``enables`` what the elements have to know.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from hwgen.config import ELEMENT_REGISTERS, LOOP_REGISTERS, TensorCoreConfig
from hwgen.rtl.accumulate.exact import exact_registers

__all__ = ["Line", "Loop", "Pipeline", "Ring", "Single", "Step", "loop"]


class Step(NamedTuple):
    """A step at one place of the core.

    ``valid``: there is one. ``last``: its result leaves. ``first``: it takes ``c``, a view; others do not read it.
    ``sides``: codes and scales of ``a`` and ``b``.
    """

    valid: Value
    last: Value
    first: Value
    c: Any
    sides: dict[str, data.View]


def _delayed(m: Module, advance: Value, valid: Value, last: Value, name: str) -> tuple[Signal, Signal]:
    """``valid`` and ``last`` behind a register."""
    next_valid = Signal(name=f"{name}_valid")
    next_last = Signal(name=f"{name}_last", reset_less=True)
    with m.If(advance):
        m.d.sync += [next_valid.eq(valid), next_last.eq(last)]
    return next_valid, next_last


class Pipeline:
    """The registers before the accumulation loop, those that ``config.pipeline`` names.

    Attributes
    ----------
    loads : dict[str, Value]
        Whether a register loads in this cycle, by its name.
    enables : dict[str, Value]
        What the elements have to know, by the name of their input.
    """

    def __init__(self, config: TensorCoreConfig) -> None:
        self.registers = [name for name in config.pipeline if name not in LOOP_REGISTERS]
        self.loads: dict[str, Value] = {}
        self.enables: dict[str, Value] = {}

    def advance(self, m: Module, accept: Value, step: Step) -> Step:
        """Take a step through the registers, by one where ``accept`` is set; returns it behind them.

        But ``sides`` goes to the decoders only, which stand behind ``operands``, and ``first`` and ``c`` to the
        elements, which have the register ``terms`` of them themselves.
        """
        for register in self.registers:
            self.loads[register] = load = accept & step.valid
            first, c, sides = step.first, step.c, step.sides
            if register != "terms":
                first = Signal(name=f"{register}_first", reset_less=True)
                c = Signal(step.c.shape(), name=f"{register}_c", reset_less=True)
                if register == "operands":
                    sides = {
                        name: Signal.like(side, name=f"operands_{name}", reset_less=True)
                        for name, side in sides.items()
                    }
                with m.If(load):
                    if register == "operands":
                        m.d.sync += [sides[name].eq(side) for name, side in step.sides.items()]
                    m.d.sync += first.eq(step.first)
                    with m.If(step.first):
                        m.d.sync += c.eq(step.c)
            if register in ELEMENT_REGISTERS:
                self.enables[f"enable_{register}"] = load
            step = Step(*_delayed(m, accept, step.valid, step.last, register), first, c, sides)
        return step


class Loop(Protocol):
    """What `Single`, `Ring` and `Line` have in common.

    Attributes
    ----------
    accept : Value
        Steps before the loop move on.
    rotate : Value
        The result register loads.
    enables : dict[str, Value]
        What else the elements have to know, by the name of their input.
    leaving : Value
        What comes to the result register leaves the core.
    """

    accept: Value
    rotate: Value
    enables: dict[str, Value]
    leaving: Value

    def advance(self, m: Module, step: Step) -> None:
        """Take the step before the loop into it, and what is in it further."""


class Single:
    """A loop of one cycle: a step finds the result of the one before it in the result register.

    Parameters
    ----------
    config
        Tensor core configuration.
    moving
        No result stands in the way.
    """

    def __init__(self, config: TensorCoreConfig, moving: Value) -> None:
        self.config, self.moving = config, moving
        self.accept = moving
        self.enables: dict[str, Value] = {}

    def advance(self, m: Module, step: Step) -> None:
        """See `Loop`."""
        self.rotate, self.leaving = self.moving & step.valid, step.valid & step.last


class Ring:
    """A loop of T > 1 cycles: a ring of T slots, the last of them the result register.

    ::

        step --> enter? --> (aligned) --> (total) --> (normal) --> (result) --> result, where ``last`` is set
                   ^                                                   |
                   +---------------------------------------------------+

    It moves on when a step enters. While none comes it stands still, and its slots remain in their places; a
    gap costs nothing but its own cycles. Only when a result with ``last`` is still on its way it moves on
    without a step: bubbles, which change no slot, carry the result out and then bring the slots back to their
    places. A step that comes meanwhile has to wait, at most T - 1 cycles.

    Parameters
    ----------
    config
        Tensor core configuration.
    moving
        No result stands in the way.
    """

    def __init__(self, config: TensorCoreConfig, moving: Value) -> None:
        self.config, self.moving = config, moving
        self.accept = Signal(name="accept")

    def advance(self, m: Module, step: Step) -> None:
        """See `Loop`."""
        turns = self.config.interleave
        lasts = [Signal(name=f"{register}_last") for register in LOOP_REGISTERS if register in self.config.pipeline]
        bubbles = Signal(range(turns))  # modulo T: 0 is every slot in its place
        turned = bubbles.any()
        enter = Signal()
        rotate = Signal()
        m.d.comb += [
            enter.eq(step.valid & ~turned),
            rotate.eq(self.moving & (step.valid | turned | Cat(*lasts).any())),
            self.accept.eq(self.moving & ~(step.valid & turned)),
        ]
        leaving: Value = enter & step.last
        with m.If(rotate):
            for flag in lasts:
                m.d.sync += flag.eq(leaving)
                leaving = flag
            with m.If(~enter):
                m.d.sync += bubbles.eq(Mux(bubbles == turns - 1, 0, bubbles + 1))
        self.enables = {"enter": enter}
        self.rotate, self.leaving = rotate, leaving


class Line:
    """Exact accumulation: the accumulators, ``sum``, are not the results, which are rounded behind them.

    ::

        step --> ... --> (terms) --> (aligned) --> sum --> (total) --> (normal) --> result, where ``last`` is set

    Behind the accumulators only results move.

    Parameters
    ----------
    config
        Tensor core configuration.
    moving
        No result stands in the way.
    """

    def __init__(self, config: TensorCoreConfig, moving: Value) -> None:
        self.config, self.moving = config, moving
        self.accept = moving
        self.enables: dict[str, Value] = {}

    def advance(self, m: Module, step: Step) -> None:
        """See `Loop`; what the elements are told is what `ExactAccumulate` wants."""
        valid, last = step.valid, step.last
        for register in exact_registers(self.config):
            self.enables[f"enable_{register}"] = self.moving & valid
            if register == "aligned":
                valid, last = _delayed(m, self.moving, valid, last, register)
                continue
            leaving = valid & last if register == "sum" else valid
            valid = Signal(name=f"{register}_last")
            with m.If(self.moving):
                m.d.sync += valid.eq(leaving)
            if register == "sum":
                self.enables["complete"] = valid
        self.rotate, self.leaving = self.moving & valid, valid


def loop(config: TensorCoreConfig, moving: Value) -> Loop:
    """The accumulation loop of a core."""
    kind = Line if config.exact else Ring if config.interleave > 1 else Single
    return kind(config, moving)
