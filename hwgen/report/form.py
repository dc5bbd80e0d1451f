"""How numbers and conditions look in all reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hwgen.report.schema import Closing, Cycles, Design, FlowConditions, HalfRate, Operands, Physical, Stimulus
from hwgen.stats import Estimate

__all__ = [
    "counted",
    "cycles_words",
    "flow_lines",
    "half_rate_lines",
    "hold_words",
    "lacking",
    "number",
    "operand_words",
    "percent",
    "recipe_lines",
    "signed",
    "table",
]


def number(value: float) -> str:
    """A figure with four digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 10000 else f"{value:.4g}"


def counted(many: int, one: str, more: str = "") -> str:
    """So many of something; its plural has an s, or is ``more``."""
    return f"{many:,} {one if many == 1 else more or one + 's'}"


def percent(estimate: Estimate | None) -> str:
    """An estimate in percent, with its interval if it has one."""
    if estimate is None:
        return ""
    if estimate.low is None or estimate.high is None:
        return f"{signed(100 * estimate.value, 1)} %"
    value, low, high = (signed(100 * each, 2) for each in (estimate.value, estimate.low, estimate.high))
    return f"{value} % [{low}, {high}]"


def signed(value: float, digits: int) -> str:
    """A figure with its sign; one that rounds to zero has that of zero."""
    # Adding 0 makes the zero of a tiny negative value a plain one.
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def table(header: list[str], rows: list[list[str]], numbers: int) -> list[str]:
    """Lines of a Markdown table whose last ``numbers`` columns are right-aligned."""
    rule = ["---"] * (len(header) - numbers) + ["---:"] * numbers
    return ["| " + " | ".join(row) + " |" for row in (header, rule, *rows)]


def operand_words(operands: Operands) -> str:
    """Formats of A and B, with the share of E1M2 blocks where there are any."""
    return ", ".join(
        f"{side} {operand.format}"
        + (f" ({100 * operand.e1m2_share:.0f} % of its blocks E1M2)" if operand.e1m2_share else "")
        for side, operand in (("A", operands.a), ("B", operands.b))
    )


def recipe_lines(chosen: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Recipe of each module as Markdown list items, one for each design."""
    return [
        f"- Recipes of {name}: " + ", ".join(f"{module} {how}" for module, how in found.items()) + "."
        for name, found in chosen.items()
    ]


def lacking(closings: Iterable[Closing]) -> list[str]:
    """What the library lacked for the netlists of a report, as paragraphs of Markdown; none where it lacked nothing."""
    found = list(closings)
    overloaded = max((each.overloaded or 0 for each in found), default=0)
    missing = sorted({cell for each in found for cell in each.missing or ()})
    lines = []
    if overloaded:
        what = counted(overloaded, "output drives", "outputs drive")
        lines += [
            "",
            f"In the worst netlist {what} more than the library lets them, for want of a buffer that could help.",
        ]
    if missing:
        lines += [
            "",
            f"On critical paths, the library has in one size only: {', '.join(f'`{cell}`' for cell in missing)}.",
        ]
    return lines


def hold_words(stimulus: Stimulus) -> str:
    """How long operands are held, as a sentence with a blank before it; nothing where each step has others."""
    if stimulus.hold == 1:
        return ""
    return f" The rows of B stay for {stimulus.hold} steps, those of A are others in each."


def cycles_words(cycles: Cycles) -> str:
    """How many cycles are simulated in a run, and how many of them with gate delays."""
    if cycles.timed == cycles.settled:
        return f"{counted(cycles.settled, 'cycle')}, all with gate delays"
    return f"{counted(cycles.settled, 'cycle')} for what settles, {cycles.timed:,} of them with gate delays"


def half_rate_lines(half: HalfRate | None) -> list[str]:
    """How steps at half the rate were fed, as a Markdown list item; none where there are none."""
    if half is None:
        return []
    scales = "its scales" if half.elements.startswith("mx") else "one scale for each"
    return [
        f"- Half rate: both operands {half.elements.upper()}, the same kind of tensors with {scales},"
        f" K = {half.depth}; in each run {cycles_words(half.cycles)}."
    ]


def flow_lines(flow: FlowConditions, designs: Sequence[Design], physical: Physical | None = None) -> list[str]:
    """Library, recipes, timing and tools as Markdown list items, and the clock gate where a design asks for it."""
    gated = " and ".join(design.name for design in designs if design.settings.get("clock_gating"))
    library, tools = flow.library, flow.tools
    avoided = f" (without {', '.join(library.dont_use)})" if library.dont_use else ""
    placed = physical is not None and physical.wires == "placed"
    wires = "wires as they are placed" if placed else f"{flow.wire_load_ff_per_fanout:.3g} fF of wire per fanout"
    return [
        f"- Library: {library.name}, {library.cells} cells in use{avoided}, {library.voltage:g} V,"
        f" sha256 {library.sha256[:16]}.",
        f"- Synthesis: {tools.synthesis}; then at most {flow.largest_fanout} loads on a net."
        " Recipes to choose from, module by module:",
        *(f"  - `{how.name}` ({how.purpose}): {how.carry} carries; `{'; '.join(how.abc)}`" for how in flow.recipes),
        *([f"- Clock gating of {gated}: {flow.clock_gate or 'none, the library has no clock gate'}."] if gated else []),
        f"- Timing: {wires}, input slew"
        f" {flow.input_slew_ns:.3g} ns, output load {flow.output_load_ff:.3g} fF, ideal clock.",
        f"- Tools: hwgen {tools.hwgen}{f' (code {tools.code})' if tools.code else ''}, Amaranth {tools.amaranth},"
        f" numpy {tools.numpy}"
        + (f", scipy {tools.scipy}, numba {tools.numba}" if tools.scipy else "")
        + f", Python {tools.python}.",
    ]
