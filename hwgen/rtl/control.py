"""Step of a core: where its steps are, which registers load, and when a result leaves.

::

    step --> [Pipeline: (operands) (decoded) (tree) (sums) (factors) (terms)] --> [Single, Ring or Line] --> result
                                                                                     ^ a first step
    addend --> [Addend: the elements' register of C] --------------------------------+

`Pipeline` takes steps to the accumulation loop, which is one of the other three: see `loop`. A first step meets C
there, and waits for it. Each writes its registers and gates into a module when it is told to ``advance``, and then
says in ``enables`` what the elements have to know.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from amaranth.hdl import Cat, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import data

from hwgen.config import ELEMENT_REGISTERS, LOOP_REGISTERS, TensorCoreConfig
from hwgen.rtl.accumulate.exact import exact_registers

__all__ = ["Addend", "Line", "Loop", "Pipeline", "Ring", "Single", "Step", "loop"]


class Step(NamedTuple):
    """A step at one place of the core.

    ``valid``: there is one. ``last``: its result leaves. ``first``: it takes C. ``sides``: codes and scales of ``a``
    and ``b``. ``before``: the step before the register that this one is behind, if there is one. ``half``: it is at
    half the rate; None without a slot.
    """

    valid: Value
    last: Value
    first: Value
    sides: dict[str, data.View]
    before: Step | None = None
    half: Value | None = None

    def delayed(self, m: Module, accept: Value, name: str) -> Step:
        """The step behind a register; its sides stay where they are."""
        valid = Signal(name=f"{name}_valid")
        last, first = (Signal(name=f"{name}_{flag}", reset_less=True) for flag in ("last", "first"))
        with m.If(accept):
            m.d.sync += [valid.eq(self.valid), last.eq(self.last), first.eq(self.first)]
        half = None
        if self.half is not None:
            half = rate_behind(m, accept & self.valid, self.half, name)  # as operands do, which it gates
        return Step(valid, last, first, self.sides, self._replace(before=None), half)

    def coming(self, accept: Value) -> tuple[Value, Value]:
        """``valid`` and ``first`` of the next cycle; only behind a register."""
        assert self.before is not None
        return Mux(accept, self.before.valid, self.valid), Mux(accept, self.before.first, self.first)


def rate_behind(m: Module, load: Value, half: Value, name: str) -> Value:
    """Whether a step is at half the rate, behind a register; inverted in it, since `changes` wants that after reset."""
    fp4 = Signal(name=f"{name}_fp4")
    with m.If(load):
        m.d.sync += fp4.eq(~half)
    return ~fp4


def changes(before: Value, held: Value) -> Value:
    """Whether what a register holds of steps at half the rate alone is another one once it loads.

    In steps of FP4 all of that is constant. So the first of them loads it, and then it stands still, and its clock.
    After reset nobody knows what is in the register: that counts as half the rate. Where no step comes out
    of a register, it is that of the step before, once more.

    Parameters
    ----------
    before, held
        Whether the step that comes, and the one whose values the register holds, are at half the rate.
    """
    return before | held


class Addend:
    """The register of C, one word in every element, right before the accumulation loop.

    It takes C when it is free, or when a step takes in the same cycle what it holds: a tile per cycle.

    Attributes
    ----------
    held : Value
        It holds the C of the next tile.
    coming : Value
        The same in the next cycle.
    """

    def __init__(self) -> None:
        self.held = Signal(name="addend_held")
        self.coming = Signal(name="addend_coming")

    def provides(self, first: Value, held: Value | None = None) -> Value:
        """Whether a step finds what it needs: C, if it is a first one. It is ``held`` if that is given."""
        return ~first | (self.held if held is None else held)

    def advance(self, m: Module, valid: Value, takes: Value) -> tuple[Value, Value]:
        """Load C where ``valid`` is set, once ``takes`` has made room; returns ``ready``, and what loads the register.

        ``takes``: a step takes C with it into the loop.
        """
        ready = ~self.held | takes
        m.d.comb += self.coming.eq(Mux(ready, valid, self.held))
        m.d.sync += self.held.eq(self.coming)
        return ready, ready & valid


class Pipeline:
    """The registers before the accumulation loop, those that ``config.pipeline`` names.

    Attributes
    ----------
    loads : dict[str, Value]
        Whether a register loads in this cycle, by its name.
    products : dict[str, Value]
        The same of what it holds of steps at half the rate alone, see `changes`; only with a slot.
    enables : dict[str, Value]
        What the elements have to know, by the name of their input.
    """

    def __init__(self, config: TensorCoreConfig) -> None:
        self.config = config
        self.registers = [name for name in config.pipeline if name not in LOOP_REGISTERS]
        self.loads: dict[str, Value] = {}
        self.products: dict[str, Value] = {}
        self.enables: dict[str, Value] = {}

    def advance(self, m: Module, accept: Value, step: Step) -> Step:
        """Take a step through the registers, by one where ``accept`` is set; returns it behind them.

        But ``sides`` goes to the decoders only, which stand behind ``operands``. Where the elements read ``first``,
        they have a register ``terms`` of it themselves; that of the core is for its control.
        """
        first, at_lanes, at_terms, before_factors = step.first, step.half, step.half, step.half
        for register in self.registers:
            self.loads[register] = load = accept & step.valid
            if register == "operands":
                sides = {
                    name: Signal.like(side, name=f"operands_{name}", reset_less=True)
                    for name, side in step.sides.items()
                }
                with m.If(load):
                    m.d.sync += [sides[name].eq(side) for name, side in step.sides.items()]
                step = step._replace(sides=sides)
            if register in ELEMENT_REGISTERS:
                self.enables[f"enable_{register}"] = load
            if register == "factors":
                before_factors = step.half
            before, step = step, step.delayed(m, accept, register)
            if before.half is not None and step.half is not None:
                moves = load if register == self.registers[0] else accept  # no step: nobody knows what is at the inputs
                self.products[register] = moves & changes(before.half, step.half)
                if register in ELEMENT_REGISTERS:
                    self.enables[f"enable_{register}_products"] = self.products[register]
            if register != "terms":
                first, at_terms = step.first, step.half
            if register not in ELEMENT_REGISTERS:
                at_lanes = step.half
        if at_lanes is not None and at_terms is not None:
            self.enables |= {"half": at_lanes, "half_terms": at_terms}
        if self.config.early_exponents and before_factors is not None:
            self.enables["half_exponents"] = before_factors
        if not self.config.foresees:
            self.enables["first"] = first
        return step


class Loop(Protocol):
    """What `Single`, `Ring` and `Line` have in common.

    Attributes
    ----------
    accept : Signal
        Steps before the loop move on.
    takes : Value
        A step takes C with it into the loop.
    rotate : Value
        The result register loads.
    enables : dict[str, Value]
        What else the elements have to know, by the name of their input.
    leaving : Value
        What comes to the result register leaves the core.
    """

    accept: Signal
    takes: Value
    rotate: Value
    enables: dict[str, Value]
    leaving: Value

    def advance(self, m: Module, step: Step, addend: Addend) -> None:
        """Take the step before the loop into it, with C if it is a first one, and what is in it further."""


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
        self.accept = Signal(name="accept")
        self.enables: dict[str, Value] = {}

    def advance(self, m: Module, step: Step, addend: Addend) -> None:
        """See `Loop`."""
        enter = Signal(name="enter")
        m.d.comb += [
            enter.eq(step.valid & addend.provides(step.first)),
            self.accept.eq(self.moving & (~step.valid | enter)),
        ]
        self.takes = self.moving & enter & step.first
        self.rotate, self.leaving = self.moving & enter, enter & step.last


class Ring:
    """A loop of T > 1 cycles: a ring of T slots, the last of them the result register.

    ::

        step --> enter? --> (aligned) --> (total) --> (normal) --> (result) --> result, where ``last`` is set
                   ^                                                   |
                   +---------------------------------------------------+

    It moves on when a step enters. While none comes it stands still, and its slots remain in their places; a
    gap costs nothing but its own cycles. Only when a result with ``last`` is still on its way it moves on
    without a step: bubbles, which change no slot, carry the result out and then bring the slots back to their
    places. A step that comes meanwhile has to wait, at most T - 1 cycles. A first step without C has not come yet.

    Whether a step enters, and takes C, is known a cycle ahead, where a register stands before the loop: ``entering``
    and ``taking`` then have the whole cycle for their way to the elements, each of which has registers for them.

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

    def advance(self, m: Module, step: Step, addend: Addend) -> None:
        """See `Loop`."""
        turns = self.config.interleave
        lasts = [Signal(name=f"{register}_last") for register in LOOP_REGISTERS if register in self.config.pipeline]
        bubbles = Signal(range(turns))  # modulo T: 0 is every slot in its place
        later = Signal(range(turns), name="bubbles_later")
        turned = bubbles.any()
        there = Signal()
        enter = Signal(name="enter")
        rotate = Signal()
        m.d.comb += [
            there.eq(step.valid & addend.provides(step.first)),
            later.eq(bubbles),
            rotate.eq(self.moving & (there | turned | Cat(*lasts).any())),
            self.accept.eq(self.moving & (~step.valid | enter)),
        ]
        self.takes = self.moving & enter & step.first
        leaving: Value = enter & step.last
        with m.If(rotate):
            for flag in lasts:
                m.d.sync += flag.eq(leaving)
                leaving = flag
            with m.If(~enter):
                m.d.comb += later.eq(Mux(bubbles == turns - 1, 0, bubbles + 1))
        m.d.sync += bubbles.eq(later)
        if not self.config.foresees:
            m.d.comb += enter.eq(there & ~turned)
            self.enables = {"enter": enter}
        else:
            entering = Signal()
            valid, first = step.coming(self.accept)
            provided = addend.provides(first, addend.coming)
            m.d.comb += entering.eq(valid & provided & ~later.any() & ~ResetSignal())
            m.d.sync += enter.eq(entering)
            self.enables = {"entering": entering, "taking": entering & first}
        if step.half is not None and "compared" in self.config.pipeline:
            held = rate_behind(m, rotate, step.half, "compared")
            self.enables["enable_products"] = rotate & changes(step.half, held)
        self.rotate, self.leaving = rotate, leaving


class Line:
    """Exact accumulation: the accumulators, ``sum``, are not the results, which are rounded behind them.

    ::

        step --> ... --> (terms) --> (aligned) --> sum --> (resolved) --> (total) --> (normal) --> result, if ``last``

    Behind the accumulators only results move. What stands before them waits with a first step that has no C yet.

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
        self.enables: dict[str, Value] = {}

    def advance(self, m: Module, step: Step, addend: Addend) -> None:
        """See `Loop`; what the elements are told is what `ExactAccumulate` wants."""
        if "aligned" in self.config.pipeline:
            self.enables["enable_aligned"] = self.accept & step.valid
            step = step.delayed(m, self.accept, "aligned")
        enter = Signal(name="enter")
        m.d.comb += [
            enter.eq(step.valid & addend.provides(step.first)),
            self.accept.eq(self.moving & (~step.valid | enter)),
        ]
        self.takes = self.moving & enter & step.first
        moves, leaving = enter, enter & step.last
        for register in exact_registers(self.config):
            if register == "aligned":
                continue
            self.enables[f"enable_{register}"] = self.moving & moves
            moves = Signal(name=f"{register}_last")
            with m.If(self.moving):
                m.d.sync += moves.eq(leaving)
            leaving = moves
            if register == "sum":
                self.enables["complete"] = moves
        self.rotate, self.leaving = self.moving & moves, moves


def loop(config: TensorCoreConfig, moving: Value) -> Loop:
    """The accumulation loop of a core."""
    kind = Line if config.exact else Ring if config.interleave > 1 else Single
    return kind(config, moving)
