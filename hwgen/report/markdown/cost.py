"""The cost of a workload as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields

import pandas as pd

from hwgen.report.form import counted, number, percent, table
from hwgen.report.markdown.overhead import bounds
from hwgen.report.schema import (
    BANDWIDTH,
    CORE_PARTS,
    CORES,
    HALF_RATE_PART,
    Assumptions,
    CostConditions,
    CostReport,
)

__all__ = ["csv", "markdown", "quantity", "summary", "unit_of", "workload_of"]

_PREFIXES = (
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1, ""),
    (1e-3, "m"),
    (1e-6, "u"),
    (1e-9, "n"),
    (1e-12, "p"),
)


def quantity(value: float, unit: str) -> str:
    """A figure with its unit and an SI prefix; squares and shares without."""
    if unit == "1":
        return f"{100 * value:.1f} %"
    if unit.startswith("mm2") or unit.endswith("mm2") or value == 0:
        return f"{number(value)} {unit}"
    size, prefix = next(((size, prefix) for size, prefix in _PREFIXES if abs(value) >= size), _PREFIXES[-1])
    return f"{number(value / size)} {prefix}{unit}"


def csv(report: CostReport) -> str:
    """Every GEMM on every design, a row each."""
    rows = []
    for entry in report.results:
        for design, found in entry.values.items():
            plain = {
                field.name: getattr(found, field.name)
                for field in fields(found)
                if field.name not in ("arrangement", "joules")
            }
            rows.append(
                {
                    **{key: getattr(entry, key) for key in ("gemm", "m", "n", "k", "batch", "count", "macs")},
                    "rate": "half" if entry.half_rate else "full",
                    "configuration": design,
                    **{f"cores_{key}": value for key, value in asdict(found.arrangement).items()},
                    **plain,
                    **{f"joules_{part.replace(' ', '_')}": value for part, value in found.joules.items()},
                    **bounds("overhead", entry.overhead),
                }
            )
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.9g", lineterminator="\n")


def summary(report: CostReport) -> tuple[list[str], list[list[str]]]:
    """Header and rows of what a pass costs in all."""
    names = report.names
    rows = [
        [
            entry.metric,
            *(quantity(entry.values[name], entry.unit) for name in names),
            *([percent(entry.overhead)] if len(names) > 1 else []),
        ]
        for entry in report.totals
    ]
    return ["figure", *names, *(["overhead"] if len(names) > 1 else [])], rows


def _share(parts: Mapping[str, float], of: float) -> list[str]:
    groups = ((*CORE_PARTS, HALF_RATE_PART), ("quantiser",), ("buffer", "buffer leakage"), ("DRAM",))
    shares = [sum(parts.get(part, 0.0) for part in group) / of for group in groups]
    return [f"{100 * share:.0f} %" for share in shares]


def _cell(text: str) -> str:
    """Text for a Markdown table."""
    return text.replace("\\", "\\\\").replace("|", "\\|")


def _layers(report: CostReport) -> list[str]:
    """Table of the GEMMs, on the first design."""
    first = report.designs[0].name
    total = sum(entry.count * entry.values[first].seconds for entry in report.results)
    joules = sum(entry.count * sum(entry.values[first].joules.values()) for entry in report.results)
    rows = []
    for entry in report.results:
        found = entry.values[first]
        shape = found.arrangement
        own = sum(found.joules.values())
        rows.append(
            [
                _cell(entry.gemm) + (" (FP8)" if entry.half_rate else ""),
                f"{entry.count} x {entry.batch}",
                f"{entry.m} x {entry.n} x {entry.k}",
                f"{shape.batch} x {shape.rows} x {shape.columns}",
                found.order,
                found.bound,
                f"{found.cycles:,.0f}",
                f"{100 * found.utilisation:.1f} %",
                f"{100 * entry.count * found.seconds / total:.1f} %",
                f"{100 * entry.count * own / joules:.1f} %",
                *_share(found.joules, own),
                *([percent(entry.overhead)] if len(report.designs) > 1 else []),
            ]
        )
    header = ["GEMM", "layers x batch", "M x N x K", "cores", "order", "bound by", "cycles", "utilisation"]
    header += ["of the time", "of the energy", "cores'", "quantiser's", "buffer's", "DRAM's"]
    header += ["overhead in energy"] if len(report.designs) > 1 else []
    return table(header, rows, len(header) - 1)


def _sensitivity(report: CostReport, varied: str) -> list[str]:
    names = report.names
    unit, per = unit_of(report)
    rows = [
        [
            quantity(entry.value, "B/s") if varied == BANDWIDTH else f"{entry.value:g}",
            quantity(per / entry.seconds[names[0]], f"{unit}/s"),
            quantity(entry.joules[names[0]] / per, "J"),
            *([percent(entry.overhead)] if len(names) > 1 else []),
        ]
        for entry in report.sensitivity
        if entry.varied == varied
    ]
    header = [varied, "throughput", f"energy per {unit}", *(["overhead in energy"] if len(names) > 1 else [])]
    return table(header, rows, len(header))


def _left_out(report: CostReport, *varied: str) -> list[str]:
    """Lines that say what is not in a table, and why; none where all is there."""
    lines = [
        f"- {'' if entry.varied in (BANDWIDTH, CORES) else f'{entry.varied}, '}{entry.choice}: {entry.why}."
        for entry in report.left_out or ()
        if entry.varied in varied
    ]
    return ["", "Not in the table:", "", *lines] if lines else []


def workload_of(report: CostReport) -> str:
    """What the workload is, with phase and sequences where they have a say."""
    workload = report.conditions.workload
    if not workload.tokens:
        return str(workload.title)
    each = f"{workload.batch} x {workload.sequence:,} tokens"
    return f"{workload.title}, {workload.phase}, {each}"


def unit_of(report: CostReport) -> tuple[str, int]:
    """What a pass is counted in, and how many of it it has."""
    tokens = report.conditions.workload.tokens
    return ("token", tokens) if tokens else ("pass", 1)


def _alternatives(report: CostReport) -> list[str]:
    """Table of what the assumptions change; what the report assumes is in bold."""
    names = report.names
    unit, per = unit_of(report)
    rows = []
    first = ""
    for entry in report.alternatives or ():
        choice = entry.choice if entry.varied == first else f"**{entry.choice}**"
        first = entry.varied
        rows.append(
            [
                entry.varied,
                choice,
                quantity(entry.seconds[names[0]] / per, "s"),
                quantity(entry.joules[names[0]] / per, "J"),
                *([percent(entry.overhead)] if len(names) > 1 else []),
            ]
        )
    header = ["assumption", "choice", f"time per {unit}", f"energy per {unit}"]
    header += ["overhead in energy"] if len(names) > 1 else []
    return table(header, rows, len(header) - 2)


_RESULTS = {
    "fp32": "leave the cores as FP32; a pass of the quantiser reads them from DRAM and writes operands there",
    "bf16": "leave the cores as BF16; a pass of the quantiser reads them from DRAM and writes operands there",
    "quantised": "are quantised behind the cores and leave as operands",
}
_ATTENTION = {
    "fused": "fused, its scores stay in the buffer",
    "unfused": "not fused, its scores go to DRAM and come back",
}
_EXPERTS = {
    "expected": "as many as random routing reaches on average share the tokens evenly",
    "even": "as many as can be share the tokens evenly",
}
_HALF_RATE = {"attention": "scores and values", "listed": "GEMMs of which the list says so"}
_IDLE = {"gated": "have their clock off while others step", "stepping": "step like the others"}


def _masked(assumed: Assumptions) -> str:
    if assumed.query_block is None:
        return "computed as the others are"
    return (
        f"left out, by blocks of {assumed.query_block:,} queries. Each computes scores of all keys up to its last"
        " query, and reads these keys and values anew"
    )


def _assumed(conditions: CostConditions, assumed: Assumptions, fp8: str) -> list[str]:
    """What is assumed, and what is left out; ``fp8`` is what steps at half the rate are in."""
    memory = conditions.memory
    flops = 2 * conditions.cores * conditions.macs_per_step / conditions.clock_ns * 1e9
    lines = [
        f"- Machine: {quantity(flops, 'FLOP/s')}, {flops / memory.dram_bytes_per_second:.0f} FLOP per byte of DRAM.",
        *([f"- It began as {assumed.machine}: {assumed.machine_source}."] if assumed.machine else []),
        f"- Results: {_RESULTS[assumed.results]}.",
        *([f"- Attention: {_ATTENTION[assumed.attention]}."] if assumed.attention else []),
        *(
            [f"- Masked scores: {_masked(assumed)}."]
            if assumed.attention and conditions.workload.phase != "decode"
            else []
        ),
        *([f"- Experts: {_EXPERTS[assumed.experts]}."] if assumed.experts else []),
        *(
            [
                f"- Half rate: {_HALF_RATE[assumed.half_rate]} are in {fp8}, and so is what they"
                " read. What writes FP8 is not counted: it is the same for every format."
            ]
            if assumed.half_rate
            else []
        ),
        f"- Cores without an output: {_IDLE[assumed.idle_cores]}.",
    ]
    energies = assumed.quantiser_fj
    if energies is None:
        lines.append("- Quantiser: its energy is not included; none was given, and no report has it.")
    else:
        said = " and ".join(f"{value:.4g} fJ ({name})" for name, value in energies.items())
        same = len(energies) > 1 and len(set(energies.values())) == 1
        origin = f"from {assumed.quantiser_report}" if assumed.quantiser_report else "as given, without an interval"
        lines.append(
            f"- Quantiser: {said} for each element, {origin}."
            f"{' Both designs have the same, although a format with a choice takes more work.' if same else ''}"
        )
    if assumed.quantisers is None:
        lines.append("- Quantisers: their area is not included.")
    else:
        said = " and ".join(f"{value} ({name})" for name, value in assumed.quantisers.items())
        lines.append(f"- Quantisers: {said}, as many as keep up with what is to be quantised.")
    area, leakage = memory.buffer_mm2_per_mib, memory.buffer_mw_per_mib
    lines.append(
        f"- Buffer: {'its area is not included' if area is None else f'{area:.4g} mm2 per MiB'};"
        f" {'its leakage is not included' if leakage is None else f'it leaks {leakage:g} mW per MiB'}."
    )
    if conditions.clock_ns != conditions.measured.clock_ns:
        lines.append(
            f"- Clock: the cores were built for {conditions.measured.clock_ns:g} ns and run at"
            f" {conditions.clock_ns:g} ns; cores built for this clock have another area and energy."
        )
    return lines


def _conditions(report: CostReport) -> list[str]:
    conditions = report.conditions
    workload, measured, memory = conditions.workload, conditions.measured, conditions.memory
    costs, tools = conditions.energy_costs, conditions.tools
    shape = conditions.arrangement
    scaled = any(design.settings.get("half_scale") == "e8m0" for design in report.designs)
    fp8 = "MXFP8, with a scale for 32 elements" if scaled else "FP8 without block scales"
    how = (
        "arranged for each GEMM to take the fewest cycles without DRAM"
        if shape is None
        else f"{shape.batch} x {shape.rows} x {shape.columns} along the batch, M and N"
    )
    rate = memory.operands_per_cycle
    feed = "as many operands a cycle as the cores take" if rate is None else f"{rate:g} FP4 elements a cycle"
    double = "double buffering" if memory.double_buffered else "no double buffering"
    lines = [
        f"- Workload: {workload_of(report)}.",
        f"- Shapes: {workload.source or 'as given'}.",
        f"- Cores: {conditions.cores}, {how}; {conditions.clock_ns:g} ns.",
        f"- Measured: area, step, clock and leakage of a core by {measured.report} on {measured.library},"
        f" {counted(measured.runs, 'run')} at {measured.clock_ns:g} ns.",
        f"- Memory: buffer of {memory.buffer_bytes / 2**20:g} MiB with {double}, {feed};"
        f" DRAM {quantity(memory.dram_bytes_per_second, 'B/s')}; results of {memory.result_bytes:g} bytes.",
        f"- Memory's energy: {costs.buffer_pj_per_byte:g} pJ per byte of the buffer,"
        f" {costs.dram_pj_per_byte:g} pJ per byte of DRAM; for the sources of the defaults see docs/cost.md.",
        *(_assumed(conditions, conditions.assumptions, fp8) if conditions.assumptions else []),
        f"- Tools: hwgen {tools.hwgen}, numpy {tools.numpy}.",
    ]
    return lines


def markdown(report: CostReport, picture: str) -> str:
    """The report for readers.

    Parameters
    ----------
    report
        The report.
    picture
        File name of the plot beside the report.
    """
    names = report.names
    title = f"{workload_of(report)}, on {' and '.join(names)}"
    header, rows = summary(report)
    lines = [
        f"# {title}",
        "",
        *(
            [
                "Overhead = (second - first) / first. Its 95 % interval is that of the syntheses behind the figures."
                " What memory costs is an assumption without one. What quantisers take has one where one report"
                " compares both.",
                "",
            ]
            if len(names) > 1
            else []
        ),
        *table(header, rows, len(header) - 1),
        "",
        f"![Roofline, time and energy by GEMM, sensitivity](<{picture}>)",
        "",
        f"## By GEMM, {names[0]}",
        "",
        *_layers(report),
        "",
        "*Cores*: along the batch, M and N. *Order*: what stays in the buffer. *Bound by*: what takes longest. See"
        " docs/cost.md.",
    ]
    for varied in (BANDWIDTH, CORES):
        lines += ["", f"## Sensitivity to {varied if varied == BANDWIDTH else 'the number of cores'}", ""]
        lines += [*_sensitivity(report, varied), *_left_out(report, varied)]
        if varied == CORES and report.conditions.arrangement is not None:
            lines += ["", "Other numbers of cores are arranged anew for each GEMM."]
    if report.alternatives:
        lines += ["", "## What the assumptions change", "", *_alternatives(report), ""]
        lines += ["In bold: what this report assumes. Each other row changes one assumption alone."]
        lines += _left_out(report, *{entry.varied for entry in report.left_out or ()} - {BANDWIDTH, CORES})
    notes = [f"- {entry.gemm}: {entry.why}." for entry in report.results if entry.why]
    if notes:
        lines += ["", "## Why these shapes", "", *notes]
    lines += ["", "## Conditions", "", *_conditions(report), ""]
    return "\n".join(lines)
