"""A mapped design closed at a clock: sizes, buffers, and the wires of a placement that follows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hwgen.cells.library import Library
from hwgen.closure.buffering import insert_buffers
from hwgen.closure.classes import Classes, applied, classes
from hwgen.closure.relief import relieve
from hwgen.closure.repeaters import insert_repeaters
from hwgen.closure.sizing import Sized, area_cost, mend, size, total
from hwgen.errors import InputError
from hwgen.layout import Layout, adapted
from hwgen.netlist.graph import Netlist
from hwgen.netlist.link import link
from hwgen.netlist.revision import only_resized, resized
from hwgen.timing.analysis import Timing, analyse
from hwgen.timing.compiled import Compiled, compile_timing
from hwgen.timing.loads import Assumptions, assumptions, net_loads, overloads
from hwgen.timing.wires import Wires, per_fanout

__all__ = ["ROUNDS", "Body", "Closed", "Closure", "Cost", "close"]

Body = dict[str, Any]
"""A mapped module as Yosys' ``write_json`` gives it."""

Cost = Callable[[Netlist, Timing, Compiled], np.ndarray]
"""Cost of each node of a netlist, folded, by place in its family, see `hwgen.closure.sizing.size`."""

ROUNDS = 4
"""Times that wires are found and sizes chosen, at most."""

# Share of the first delay that nothing reaches: a target for the fastest.
_FASTEST = 0.3
# Buffers are put in for a target that is nearer than the clock, and again while they gain so much.
_NEXT = 0.8
_GAIN = 0.01
# A larger drive loads what is before it, so that relief may ask for relief; this often at most.
_RELIEFS = 6
# Nor do they go in at first where sizes alone miss the target by no more than this share: larger cells may do.
_SIZED = 0.02
# A round that gains less than this share, of the delay where it is late, else of the cost, is the last.
_PROGRESS = 0.001
# A clock missed by no more than this share is worth another round all the same, and another beginning.
_NEAR = 0.01
# The beginning is then for a clock that is shorter by this share.
_TIGHTER = 0.03
# A clock met by more than this leaves area to be had.
_SPARE = 0.02
# A clock missed by no more than this share is worth larger cells on late paths alone, this often at most. They are for
# a clock that is shorter by a share of what it is missed by.
_MENDED = 0.08
_MENDS = 4
_BEYOND = 0.2

_Choose = Callable[[Compiled, float, np.ndarray], Sized]
"""Chooses sizes for a period in ns, at costs by node and place in its family."""


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
    overloaded : int
        Outputs that drive more than the library lets them: those that no buffer of it could serve.
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
    overloaded: int = 0
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
    layout : Layout or None
        Of the netlist; None with wires by fanout.
    wires : Wires
        Of the netlist.
    timing : Timing
        With these wires.
    record : Closure
    """

    modules: dict[str, Body]
    netlist: Netlist
    layout: Layout | None
    wires: Wires
    timing: Timing
    record: Closure


def close(
    modules: Mapping[str, Body],
    top: str,
    library: Library,
    clock_ns: float,
    *,
    layout: Layout | None = None,
    cost: Cost | None = None,
    assumed: Assumptions | None = None,
    rounds: int = ROUNDS,
    begun: Closed | None = None,
) -> Closed:
    """Size and buffer a design until it meets a clock, at the least cost.

    Wires follow from sizes, and sizes from wires. So each round finds the wires of the netlist as it is, sizes it for
    a target, and times the result with wires found anew. What is late by little then takes larger cells on its late
    paths. What the clock is still missed by, or met with to spare, moves the next target. Of all rounds the cheapest
    that meets the clock is taken, or else the fastest.

    Buffers go in where the first targets ask for them. So what is late by little in the end is begun anew, for a clock
    that is a little shorter. If that meets the clock, it is sized again, for the clock itself.

    Parameters
    ----------
    modules : mapping of str to dict
        Module bodies, with buffer trees on their nets (`hwgen.mapping.area.buffered`); left as they are.
    top : str
    library : Library
    clock_ns : float
        0 asks for the fastest.
    layout : Layout, optional
        Of the netlist that the modules make. Wires follow from it, as it is adapted; they are by fanout if not given.
    cost : callable, optional
        What sizes cost; their area if not given.
    assumed : Assumptions, optional
        At the ports and of the clock; the library's defaults if not given.
    rounds : int
        The most of them, for each beginning.
    begun : Closed, optional
        The same modules closed for another cost, to go on from: with its buffers and places.

    Raises
    ------
    InputError
        The clock is negative or not finite; modules do not link.
    """
    if not 0 <= clock_ns < np.inf:
        raise InputError(f"clock of {clock_ns} ns; expected a number of at least 0")
    closing = _Closing(library, top, cost, assumed or assumptions(library))
    if begun is None:
        start = closing.begun({name: dict(body) for name, body in modules.items()}, layout)
    else:
        start = _State(begun.modules, begun.netlist, begun.layout, begun.wires, closing.assumed)
    best, done = closing.rounds(start, clock_ns, rounds)
    if clock_ns < best.timing.delay <= (1 + _NEAR) * clock_ns:
        tight, more = closing.rounds(start, (1 - _TIGHTER) * clock_ns, rounds)
        best, done = min(best, tight, key=lambda each: each.timing.delay), done + more
        if best.timing.delay <= clock_ns:
            eased, more = closing.rounds(best, clock_ns, rounds)
            best, done = eased if closing.gain(eased, best, clock_ns) > 0 else best, done + more
    area = start.netlist.area if begun is None else begun.record.area_before
    return closing.closed(modules, area, best, clock_ns, done)


@dataclass(frozen=True)
class _State:
    """A design with wires."""

    modules: dict[str, Body]
    netlist: Netlist
    layout: Layout | None
    wires: Wires
    assumed: Assumptions

    @cached_property
    def timing(self) -> Timing:
        """With these wires."""
        assumed = self.assumed
        return analyse(
            self.netlist,
            input_slew=assumed.input_slew,
            output_load=assumed.output_load,
            wire_load=assumed.wire_load,
            clock_slew=assumed.clock_slew,
            wires=self.wires,
        )


@dataclass(frozen=True)
class _Sized:
    """A design of which ``modules`` have new sizes, which ``compiled`` has as well, chosen at a ``cost``."""

    design: _State
    modules: dict[str, Body]
    compiled: Compiled
    result: Sized
    cost: np.ndarray


@dataclass(frozen=True)
class _Closing:
    """What all rounds have in common."""

    library: Library
    top: str
    cost: Cost | None
    assumed: Assumptions

    def begun(self, modules: dict[str, Body], layout: Layout | None) -> _State:
        """A design as it is given."""
        if layout is None:
            return self.state(modules, None)
        return _State(modules, layout.netlist, layout, layout.wires(), self.assumed)

    def state(
        self, modules: dict[str, Body], layout: Layout | None, draft: Mapping[str, tuple[float, float]] | None = None
    ) -> _State:
        """A design, linked, with the wires of a layout of what it was.

        ``draft``, of places of new cells in the top module, asks for one that is not made legal.
        """
        return self.wired(modules, link(modules, self.top, self.library), layout, draft)

    def wired(
        self,
        modules: dict[str, Body],
        netlist: Netlist,
        layout: Layout | None,
        draft: Mapping[str, tuple[float, float]] | None = None,
    ) -> _State:
        """As `state`, where the netlist that the modules make is known."""
        if layout is None:
            return _State(modules, netlist, None, per_fanout(netlist, self.assumed.wire_load), self.assumed)
        layout = adapted(layout, netlist, legal=draft is None, places=draft or {})
        return _State(modules, netlist, layout, layout.wires(), self.assumed)

    def relieved(self, design: _State) -> _State:
        """A design whose outputs drive no more than they may, as far as there are cells for it.

        Layouts on the way are drafts; the last one is made legal.
        """
        relief = design
        for _ in range(_RELIEFS):
            load = net_loads(relief.netlist, self.assumed.output_load, relief.wires)
            modules, count = relieve(relief.modules, relief.netlist, load)
            if not count:
                break
            relief = self.state(modules, relief.layout, draft={})
        return design if relief is design else self.state(relief.modules, relief.layout)

    def rewired(self, sized: _Sized) -> _State:
        """A sized design with the wires of its cells where they are then."""
        compiled = sized.compiled
        netlist = resized(sized.design.netlist, compiled.kinds.cells, compiled.state.kind[compiled.node_of])
        return self.relieved(self.wired(sized.modules, netlist, sized.design.layout))

    def rounds(self, start: _State, clock_ns: float, most: int) -> tuple[_State, int]:
        """The cheapest design of some rounds that meets a clock, or else the fastest; and how many rounds it took."""
        target = clock_ns or _FASTEST * start.timing.delay
        current, best = start, None
        done, buffered = 0, False
        while done < most:
            sized = self.sized(current, target)
            # Buffers cost area: they go in only where cells alone do not do.
            enough = (1 + _SIZED) * target if clock_ns and not done else target
            if not buffered and sized.result.delay > enough:
                sized, buffered = self.buffered(sized, target)
            current = self.mended(sized, self.rewired(sized), clock_ns)
            done += 1
            gain = np.inf if best is None else self.gain(current, best, clock_ns)
            if gain > 0:
                best = current
            missed = current.timing.delay - clock_ns
            if not clock_ns or -_SPARE * clock_ns <= missed <= 0:
                break
            if -np.inf < gain <= _PROGRESS and not 0 < missed <= _NEAR * clock_ns:
                break
            target = float(np.clip(target - missed, 0.5 * clock_ns, 1.2 * clock_ns))
        assert best is not None
        return best, done

    def gain(self, design: _State, best: _State, clock_ns: float) -> float:
        """By which share a design is better than another one: the cheaper if both meet a clock, else the faster.

        It is infinite where one of them alone meets the clock.
        """
        late, other = (each.timing.delay > clock_ns for each in (design, best))
        if late != other:
            return -np.inf if late else np.inf
        if late:
            return 1 - design.timing.delay / best.timing.delay
        return 1 - self.spends(design) / self.spends(best)

    def spends(self, design: _State) -> float:
        """What a design costs: its area, or what its own toggles cost in it."""
        if self.cost is None:
            return design.netlist.area
        _, compiled = self.folded(design)
        return total(compiled, self.cost(design.netlist, design.timing, compiled))

    def mended(self, sized: _Sized, design: _State, clock_ns: float) -> _State:
        """A design that is a little late, with larger cells on its late paths alone, as long as that makes it faster.

        Cells move when their sizes change, and all wires with them. Few changes move few.
        """
        for _ in range(_MENDS):
            late = design.timing.delay - clock_ns
            if not 0 < late <= _MENDED * clock_ns:
                break
            # Glitches take long to count. Those from before the sizing tell well enough what a larger cell costs.
            known = sized.cost if only_resized(sized.design.netlist, design.netlist) else None
            trial = self.sized(design, clock_ns - _BEYOND * late, mend, known)
            after = self.rewired(trial)
            if after.timing.delay >= design.timing.delay:
                break
            sized, design = trial, after
        return design

    def sized(self, design: _State, target: float, choose: _Choose = size, cost: np.ndarray | None = None) -> _Sized:
        """A design with sizes for a target in ns, its wires as they were; their ``cost`` is found if not known."""
        found, compiled = self.folded(design)
        if cost is None:
            cost = area_cost(compiled) if self.cost is None else self.cost(design.netlist, design.timing, compiled)
        result = choose(compiled, target, cost)
        return _Sized(design, applied(design.modules, found, compiled), compiled, result, cost)

    def folded(self, design: _State) -> tuple[Classes, Compiled]:
        """The classes of a design, and its timing by class."""
        families = [family for family in self.library.families() if len(family) > 1]
        found = classes(design.netlist)
        return found, compile_timing(design.netlist, self.assumed, design.wires, found.number, families=families)

    def buffered(self, sized: _Sized, target: float) -> tuple[_Sized, bool]:
        """A design with buffers, as long as they make it faster, and whether it got any.

        Repeaters between placed blocks come first; then buffers before sinks that can wait, and behind weak drivers.
        What one kind leaves late may be late for want of the other. So both have their turn again while they gain.
        """
        given, turn = sized, np.inf
        while target < sized.result.delay < (1 - _GAIN) * turn:
            turn = sized.result.delay
            for insert in (_with_repeaters, _with_buffers):
                sized = self.inserted(insert, sized, target)
        return sized, sized is not given

    def inserted(self, insert: _Insert, sized: _Sized, target: float) -> _Sized:
        """A design with buffers of one kind, as long as they make it faster."""
        before = np.inf
        while target < sized.result.delay < (1 - _GAIN) * before:
            modules, places, count = insert(sized, max(target, _NEXT * sized.result.delay))
            if not count:
                break
            trial = self.sized(self.state(modules, sized.design.layout, draft=places), target)
            if trial.result.delay >= sized.result.delay:
                break
            sized, before = trial, sized.result.delay
        return sized

    def closed(self, mapped: Mapping[str, Body], area: float, best: _State, clock_ns: float, rounds: int) -> Closed:
        """The result, and the record of it; ``mapped`` are the modules before, of ``area`` um2."""
        shares = best.timing.path_by_block
        changed = sum(
            cell["type"] != mapped[name]["cells"][place]["type"]
            for name, body in best.modules.items()
            for place, cell in body["cells"].items()
            if place in mapped[name]["cells"]
        )
        record = Closure(
            clock_ns=clock_ns,
            delay_ns=best.timing.delay,
            block=max(shares, key=lambda name: shares[name]) if shares else self.top,
            wires=best.wires.kind,
            area_before=area,
            area_after=best.netlist.area,
            resized=changed,
            buffers=sum(
                place not in mapped[name]["cells"] for name, body in best.modules.items() for place in body["cells"]
            ),
            rounds=rounds,
            overloaded=sum(1 for _ in overloads(best.netlist, best.timing.load)),
            missing=tuple(_missing(best, self.library)),
        )
        return Closed(best.modules, best.netlist, best.layout, best.wires, best.timing, record)


_Inserted = tuple[dict[str, Body], Mapping[str, tuple[float, float]], int]
"""Modules, places of new cells in the top module where they are known, and how many cells are new."""

_Insert = Callable[[_Sized, float], _Inserted]
"""Puts buffers of one kind into a design, for a period in ns."""


def _with_repeaters(sized: _Sized, period: float) -> _Inserted:
    layout = sized.design.layout
    if layout is None:
        return sized.modules, {}, 0
    modules, places = insert_repeaters(sized.modules, layout, sized.compiled, period)
    return modules, places, len(places)


def _with_buffers(sized: _Sized, period: float) -> _Inserted:
    modules, count = insert_buffers(sized.modules, sized.design.netlist, sized.compiled, period)
    return modules, {}, count


def _missing(design: _State, library: Library) -> list[str]:
    """Cells on the longest path that the library has in one size only."""
    alone = {family[0].name for family in library.families() if len(family) == 1}
    return sorted({step.kind for step in design.timing.path} & alone)
