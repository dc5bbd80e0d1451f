"""A mapped design closed at a clock: sizes, buffers, and the wires of a placement that follows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hwgen.cells.library import Library
from hwgen.closure.buffering import insert_buffers
from hwgen.closure.classes import applied, classes
from hwgen.closure.repeaters import insert_repeaters
from hwgen.closure.sizing import Sized, area_cost, size
from hwgen.errors import InputError
from hwgen.layout import Layout
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.timing.analysis import Timing, analyse
from hwgen.timing.compiled import Compiled, compile_timing
from hwgen.timing.loads import Assumptions, assumptions
from hwgen.timing.wires import Wires, per_fanout

__all__ = ["ROUNDS", "Body", "Closed", "Closure", "Cost", "close"]

Body = dict[str, Any]
"""A mapped module as Yosys' ``write_json`` gives it."""

Cost = Callable[[Netlist, Compiled], np.ndarray]
"""Cost of each node of a folded netlist by place in its family, see `hwgen.closure.sizing.size`."""

ROUNDS = 4
"""Times that wires are found and sizes chosen, at most."""

# Share of the first delay that nothing reaches: a target for the fastest.
_FASTEST = 0.3
# Buffers are put in for a target that is nearer than the clock, and again while they gain so much.
_NEXT = 0.8
_GAIN = 0.01
# A clock met by more than this leaves area to be had.
_SPARE = 0.02


@dataclass(frozen=True)
class Closure:
    """What became of a design at a clock.

    Attributes
    ----------
    clock_ns : float
        As asked for.
    delay_ns : float
        The longest path with the final wires, set-up included: the best clock that was found.
    block : str
        Block that most of the longest path lies in.
    wires : str
        ``fanout`` or ``placed``.
    area_before, area_after : float
        um2 of the flat netlist.
    resized, buffers : int
        Cells of another size than before, and buffers put in; each counted once for each module.
    rounds : int
        Times that wires were found and sizes chosen.
    missing : tuple of str
        What the library has in one size only though sizing would want more.
    """

    clock_ns: float
    delay_ns: float
    block: str
    wires: str
    area_before: float
    area_after: float
    resized: int
    buffers: int
    rounds: int
    missing: tuple[str, ...] = ()

    @property
    def slack_ns(self) -> float:
        """Spare time; negative where the clock is not met."""
        return self.clock_ns - self.delay_ns

    @property
    def met(self) -> bool:
        """Whether every path fits into the clock."""
        return self.slack_ns >= -1e-9

    def check(self) -> None:
        """Refuse a clock that is not met.

        Raises
        ------
        InputError
            It names the best clock, and the block that holds it.
        """
        if not self.met:
            raise InputError(
                f"clock of {self.clock_ns:g} ns: not met by {-self.slack_ns:.4g} ns; the best found is"
                f" {self.delay_ns:.4g} ns, held by {self.block}"
            )


@dataclass(frozen=True)
class Closed:
    """A design after closure.

    Attributes
    ----------
    modules : dict of str to dict
        Module bodies.
    netlist : Netlist
        Of them, flat.
    wires : Wires
        Of the netlist.
    timing : Timing
        With these wires.
    record : Closure
    """

    modules: dict[str, Body]
    netlist: Netlist
    wires: Wires
    timing: Timing
    record: Closure


def close(
    modules: Mapping[str, Body],
    top: str,
    library: Library,
    clock_ns: float,
    *,
    layout: Callable[[Netlist], Layout] | None = None,
    cost: Cost | None = None,
    assumed: Assumptions | None = None,
    rounds: int = ROUNDS,
) -> Closed:
    """Size and buffer a design until it meets a clock, at the least cost.

    Wires follow from sizes, and sizes from wires. So each round finds the wires of the netlist as it is, sizes it for
    a target, and times the result with wires found anew; what the clock is missed by, or met with to spare, moves the
    next target. Of all rounds the cheapest that meets the clock is taken, or else the fastest.

    Parameters
    ----------
    modules : mapping of str to dict
        Module bodies, with buffer trees on their nets (`hwgen.mapping.area.buffered`); left as they are.
    top : str
    library : Library
    clock_ns : float
        0 asks for the fastest.
    layout : callable, optional
        Places a netlist, from which wires follow; they are by fanout if not given.
    cost : callable, optional
        What sizes cost; their area if not given.
    assumed : Assumptions, optional
        At the ports and of the clock; the library's defaults if not given.
    rounds : int
        The most of them.

    Raises
    ------
    InputError
        The clock is negative or not finite; modules do not link.
    """
    if not 0 <= clock_ns < np.inf:
        raise InputError(f"clock of {clock_ns} ns; expected a number of at least 0")
    closing = _Closing(library, top, layout, cost, assumed or assumptions(library))
    start = closing.state({name: dict(body) for name, body in modules.items()})
    target = clock_ns or _FASTEST * start.timing.delay
    current, best = start, None
    buffers = done = 0
    while done < rounds:
        done += 1
        sized, result = closing.sized(current, target)
        # Buffers cost area: they go in only where sizes alone do not do.
        if not buffers and result.delay > target:
            sized, buffers = closing.buffered(sized, result.delay, target)
        current = closing.state(sized.modules)
        if best is None or closing.better(current, best, clock_ns):
            best = current
        missed = current.timing.delay - clock_ns
        if not clock_ns or -_SPARE * clock_ns <= missed <= 0:
            break
        target = float(np.clip(target - missed, 0.5 * clock_ns, 1.2 * clock_ns))
    assert best is not None
    return closing.closed(start, best, clock_ns, buffers, done)


@dataclass(frozen=True)
class _State:
    """A design with wires and timing."""

    modules: dict[str, Body]
    netlist: Netlist
    layout: Layout | None
    wires: Wires
    timing: Timing


@dataclass(frozen=True)
class _Closing:
    """What all rounds have in common."""

    library: Library
    top: str
    lay_out: Callable[[Netlist], Layout] | None
    cost: Cost | None
    assumed: Assumptions

    def state(self, modules: dict[str, Body]) -> _State:
        """A design, linked, with its wires, timed."""
        netlist = link(modules, self.top, self.library)
        layout = None if self.lay_out is None else self.lay_out(netlist)
        wires = per_fanout(netlist, self.assumed.wire_load) if layout is None else layout.wires()
        timing = analyse(
            netlist,
            input_slew=self.assumed.input_slew,
            output_load=self.assumed.output_load,
            wire_load=self.assumed.wire_load,
            clock_slew=self.assumed.clock_slew,
            wires=wires,
        )
        return _State(modules, netlist, layout, wires, timing)

    def folded(self, design: _State) -> Compiled:
        """A design for sizing; in full where it cannot be folded."""
        families = [family for family in self.library.families() if len(family) > 1]
        return compile_timing(
            design.netlist, self.assumed, design.wires, classes(design.netlist).number, families=families
        )

    def sized(self, design: _State, target: float) -> tuple[_State, Sized]:
        """A design with sizes for a target in ns, its wires as they were."""
        compiled = self.folded(design)
        cost = area_cost(compiled) if self.cost is None else self.cost(design.netlist, compiled)
        result = size(compiled, target, cost)
        return replace(design, modules=applied(design.modules, classes(design.netlist), compiled)), result

    def buffered(self, design: _State, delay: float, target: float) -> tuple[_State, int]:
        """A design with buffers, as long as they make it faster, and how many they are.

        Repeaters between placed blocks come first; then buffers before sinks that can wait, and behind weak drivers.
        """
        total = 0
        for insert in (self.repeaters, self.buffers):
            before = np.inf
            while delay > target and delay < (1 - _GAIN) * before:
                modules, count = insert(design, max(target, _NEXT * delay))
                if not count:
                    break
                trial, result = self.sized(self.state(modules), target)
                if result.delay >= delay:
                    break
                design, before, delay, total = trial, delay, result.delay, total + count
        return design, total

    def repeaters(self, design: _State, period: float) -> tuple[dict[str, Body], int]:
        """The modules of a design with repeaters."""
        netlist = link(design.modules, self.top, self.library)
        if design.layout is None:
            return design.modules, 0
        folded = self.folded(replace(design, netlist=netlist))
        return insert_repeaters(design.modules, replace(design.layout, netlist=netlist), folded, period)

    def buffers(self, design: _State, period: float) -> tuple[dict[str, Body], int]:
        """The modules of a design with buffers."""
        netlist = link(design.modules, self.top, self.library)
        folded = self.folded(replace(design, netlist=netlist))
        return insert_buffers(design.modules, netlist, folded, period)

    def better(self, this: _State, than: _State, clock_ns: float) -> bool:
        """Whether a design meets the clock with less area, or comes nearer to it."""
        late = this.timing.delay > clock_ns, than.timing.delay > clock_ns
        if late[0] != late[1]:
            return not late[0]
        if late[0]:
            return this.timing.delay < than.timing.delay
        return this.netlist.area < than.netlist.area

    def closed(self, start: _State, best: _State, clock_ns: float, buffers: int, rounds: int) -> Closed:
        """The result, and the record of it."""
        shares = best.timing.path_by_block
        resized = sum(
            cell["type"] != start.modules[name]["cells"][place]["type"]
            for name, body in best.modules.items()
            for place, cell in body["cells"].items()
            if place in start.modules[name]["cells"]
        )
        record = Closure(
            clock_ns=clock_ns,
            delay_ns=best.timing.delay,
            block=max(shares, key=lambda name: shares[name]) if shares else self.top,
            wires=best.wires.kind,
            area_before=start.netlist.area,
            area_after=best.netlist.area,
            resized=resized,
            buffers=buffers,
            rounds=rounds,
            missing=tuple(_missing(best, self.library)),
        )
        return Closed(best.modules, best.netlist, best.wires, best.timing, record)


def _missing(design: _State, library: Library) -> list[str]:
    """Cells on the longest path that the library has in one size only."""
    alone = {family[0].name for family in library.families() if len(family) == 1}
    return sorted({step.kind for step in design.timing.path} & alone)
