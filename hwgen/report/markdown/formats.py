"""The table of formats as CSV and Markdown."""

from __future__ import annotations

from typing import Any

import pandas as pd

from hwgen.report.form import counted, flow_lines, lacking, number, percent, table
from hwgen.report.markdown.overhead import bounds
from hwgen.report.schema import SCOPES, FormatRow, FormatsConditions, FormatsReport, OperandFormat
from hwgen.stats import paired

__all__ = ["ERRORS", "added", "costing", "csv", "kinds", "markdown", "notes", "summary"]

ERRORS = "-error.png"
"""What follows the name of a report in the file name of its second plot."""

_MODELS = {"minilm": "all-MiniLM-L6-v2"}

_COMPARED = {"area": "area per MAC", "energy": "energy per MAC"}
"""Figures, by what the netlists were built for that they are of."""


def kinds(report: FormatsReport) -> list[str]:
    """Kinds of tensors that errors are known of."""
    return list(dict.fromkeys(kind for row in report.results for each in row.errors for kind in each.decibels))


_CAVEATS = {
    "blockdialect": (
        "activations are quantised by the rule for weights, since ties of the paper's own rule could not be verified"
    ),
    "if4": "the core takes 7/8 of each number, so that factors are 7 and 6; tensor scales outside make up for it",
}
"""What is to be said of a format wherever a row has it, by name."""


def costing(report: FormatsReport, row: FormatRow) -> FormatRow:
    """The row that has the cost of one: itself, or that whose core it has, if it has no figures of its own."""
    if row.figures or row.design is None:
        return row
    return next((each for each in report.results if each.design == row.design and each.figures), row)


def notes(report: FormatsReport) -> dict[str, str]:
    """What is to be said of a row, by its name: why it was not measured, what it misses the clock by."""
    said = {row.row: _note(row, costing(report, row), report.conditions.clock_ns) for row in report.results}
    return {row: words for row, words in said.items() if words}


def _note(row: FormatRow, of: FormatRow, clock_ns: float) -> str:
    said = list(row.unlike)
    if of is not row:
        said.insert(0, f"its cost is that of {of.row}: its hardware is the same")
    elif row.not_measured is not None:
        said.insert(0, f"not measured: {row.not_measured}")
    elif not row.met and row.slowest_ns is not None:
        said.insert(0, f"misses {clock_ns:g} ns: takes {row.slowest_ns:.4g} ns, held by {row.held_by}")
    return "; ".join((*said, *_caveats(row)))


def _caveats(row: FormatRow) -> list[str]:
    """What its errors are of, where that is not what its source has."""
    operands = _operands(row)
    said = [_CAVEATS[each.name] for each in operands if each.name in _CAVEATS]
    if scaled := [each for each in operands if each.scale_bits == 0 and each.tensor_scale]:
        whose = "its errors" if row.a in scaled else "the errors of its weights"
        said.append(
            f"{whose} are those of one scale for a whole tensor, by the rule by-row of one for each row, and by"
            " by-group of one for each 128 elements of a row (ternary weights keep one); all are outside the core, and"
            " so is the sum over groups"
        )
    return said


def _operands(row: FormatRow) -> list[OperandFormat]:
    """Formats of the operands, each once."""
    return list(dict.fromkeys(each for each in (row.a, row.b) if each is not None))


def _bits(row: FormatRow) -> str:
    """Of an element, once where both formats take as many."""
    return " and ".join(dict.fromkeys(f"{each.bits_per_element:.4g}" for each in _operands(row)))


def added(row: FormatRow) -> str:
    """How products are added up: 2 x 16 are two exact sums of 16, aligned and added to C."""
    if row.products is None or row.summed is None:
        return ""
    return f"{row.products // row.summed} x {row.summed}"


def _mean(row: FormatRow, scope: str, metric: str) -> str:
    found = row.find(scope, metric)
    return "" if found is None else number(found.mean)


def _over(row: FormatRow, scope: str, metric: str) -> str:
    found = row.find(scope, metric)
    if found is None:
        return ""
    return "baseline" if row.baseline is None else percent(found.overhead)


def _noise(row: FormatRow, kind: str) -> str:
    """DB of a kind of tensor, by the default rule; in brackets by the best one, where another is better."""
    found = row.decibels(kind)
    if not found:
        return ""
    default, best = next(iter(found)), max(found, key=lambda rule: found[rule])
    better = f" ({found[best]:.2f})" if f"{found[best]:.2f}" != f"{found[default]:.2f}" else ""
    return f"{found[default]:.2f}{better}"


def _similarity(row: FormatRow) -> str:
    """Of embeddings, by the default rule; in brackets by the best one, where another is better."""
    if not row.similarities:
        return ""
    found = row.similarities
    default, best = next(iter(found)), max(found, key=lambda rule: found[rule].mean)
    shown = {rule: f"{each.mean:.4f}" for rule, each in found.items()}
    better = f" ({shown[best]})" if shown[best] != shown[default] else ""
    return f"{shown[default]}{better}"


def _baseline(report: FormatsReport, row: FormatRow) -> str:
    """The row that one is compared with."""
    return next((each.row for each in report.results if row.baseline is not None and each.design == row.baseline), "")


def csv(report: FormatsReport) -> str:
    """All figures, a row each; errors too. A row without any has one line, with the reason."""
    lines, said = [], notes(report)
    for row in report.results:
        a, b, of = row.a, row.b, costing(report, row)
        common: dict[str, Any] = {
            "library": report.conditions.flow.library.name,
            "row": row.row,
            "design": row.design,
            "baseline": row.baseline,
            "products": row.products,
            "summed": row.summed,
            "bits_per_element_of_a": None if a is None else a.bits_per_element,
            "bits_per_element_of_b": None if b is None else b.bits_per_element,
            "clock_met": of.met,
            "note": said.get(row.row, ""),
        }
        found = [
            {
                "scope": each.scope,
                "metric": each.metric,
                "unit": each.unit,
                "runs": of.runs,
                "value": each.mean,
                **bounds("overhead", each.overhead),
            }
            for each in of.figures
        ]
        found += [
            {"scope": each.format, "metric": f"signal to noise, {kind}, {each.rule}", "unit": "dB", "value": ratio}
            for each in row.errors
            for kind, ratio in each.decibels.items()
        ]
        found += [
            {"scope": "model", "metric": f"similarity, {rule}", "unit": "", "value": each.mean}
            for rule, each in (row.similarities or {}).items()
        ]
        lines += [{**common, **each} for each in found or [{}]]
    header = ["library", "row", "design", "baseline", "products", "summed"]
    header += ["bits_per_element_of_a", "bits_per_element_of_b", "clock_met", "note"]
    header += ["scope", "metric", "unit", "runs", "value", *(f"overhead_{end}" for end in ("value", "low", "high"))]
    found_lines = pd.DataFrame(lines, columns=header)
    whole = dict.fromkeys(("products", "summed", "runs"), "Int64")
    return found_lines.astype(whole).to_csv(index=False, float_format="%.9g", lineterminator="\n")


def _line(report: FormatsReport, row: FormatRow, known: list[str]) -> list[str]:
    """A row of the table; one that has another's core has its cost."""
    of = costing(report, row)
    over = [_over(row, "core", metric) for metric in ("area", "energy per MAC")]
    if of is not row:
        over = [f"that of {of.row}"] * 2
    elif not row.figures:
        over = ["not measured", ""]
    return [
        row.row,
        _bits(row),
        added(row),
        _baseline(report, row),
        *over,
        _mean(of, "element", "area"),
        _mean(of, "core", "area per MAC"),
        _mean(of, "core", "energy per MAC"),
        "" if of.slowest_ns is None else f"{of.slowest_ns:.4g}" + ("" if of.met else " (missed)"),
        *(_noise(row, kind) for kind in known),
        *([_similarity(row)] if report.conditions.model else []),
    ]


def summary(report: FormatsReport) -> tuple[list[str], list[list[str]]]:
    """Header and rows: each format, its core against the baseline, and its error."""
    known = kinds(report)
    rows = [_line(report, row, known) for row in report.results]
    header = [
        "row",
        "bits",
        "products",
        "over",
        "core, area",
        "core, energy",
        "element, um2",
        "um2/MAC",
        "fJ/MAC",
        "ns",
    ]
    header += [f"{kind}, dB" for kind in known]
    return [*header, *(["similarity"] if report.conditions.model else [])], rows


def _selected_from(report: FormatsReport) -> list[str]:
    """Rows whose lanes and recipes other reports had, as an item of a list."""
    rows: dict[str, list[str]] = {}
    for row in report.results:
        if row.selected_from is not None:
            rows.setdefault(row.selected_from, []).append(row.row)
    found = "; ".join(f"{', '.join(names)} as {name} had them" for name, names in rows.items())
    return [f"- *Not searched for here:* lanes and recipes of {found}."] if rows else []


def _fairness(report: FormatsReport) -> list[str]:
    """What all rows have in common, and what is left out."""
    conditions = report.conditions
    design = report.designs[0]
    wires = "placed wires" if conditions.physical.wires == "placed" else "wires by fanout"
    lanes = f" and {', '.join(conditions.lanes)} as far as they can multiply the format" if conditions.lanes else ""
    return [
        f"Library {conditions.flow.library.name}, clock {conditions.clock_ns:g} ns"
        f" ({1000 / conditions.clock_ns:.4g} MHz), {wires}. A MAC is a multiply-accumulate.",
        "",
        "What all rows have in common:",
        "",
        f"- *Shape.* {design.settings['rows']} x {design.settings['columns']} outputs. A row is compared with a"
        " baseline that adds up as many products for each output in a cycle.",
        "- *Accumulator.* FP32, the same fraction bits, the same rounding. A row that differs says so.",
        "- *Clock and effort.* Every core is built for the same clock, with the registers of its configuration. Every"
        f" row has the same search for lanes (its own{lanes}) and recipes, once for least area and once for least"
        " energy. Areas are of the former, energies of the latter, and *ns* is of the slowest of both.",
        *_selected_from(report),
        "- *Runs.* Run k of a row and of its baseline have the same perturbation, and tensors of the same numbers, each"
        " quantised to the row's own format. An overhead is the ratio of the means over these pairs, with its 95 %"
        " interval. Other figures of a row are means over all runs that it has. A baseline has as many as any row that"
        " is compared with it, so they do not divide to quite the overhead.",
        "- *Outside.* In no row is the hardware of encoders and of the tensor scale. Nor is that of the scales which"
        " integers have for a group, a row or a token, or of the one factor that is left in all sums where kinds of"
        " elements have factors, as in if4.",
        "",
        "*Products*: how many each output adds up in a cycle. 2 x 16 are two exact sums of 16 products. Each is scaled"
        " and aligned for itself, and both are added to C in one step. Fewer and longer sums need less hardware a"
        " product, whatever the format. *Bits* are those of an element and its share of the block's scale. *ns* is the"
        " longest path of the slowest run. *dB*: signal over quantisation noise, by the rule of the simulated operands,"
        " and in brackets by the best of the others, where that is better. With two formats the noise is the mean of"
        " both."
        f"{_of_model(report)}{_other_rules(report)}",
    ]


def _model(report: FormatsReport) -> str:
    """The trained model's name, as its makers write it."""
    name = report.conditions.model or ""
    return _MODELS.get(name, name)


def _of_model(report: FormatsReport) -> str:
    """What the columns of a trained model say, as sentences with a blank before them; nothing without a model."""
    if report.conditions.model is None:
        return ""
    return (
        f" *Trained* weights and activations are those of all linear layers of a small trained encoder,"
        f" {_model(report)}: the mean of the layers. Of two formats the weights have that of B, the"
        " activations that of A. An *embedding* is the vector that this encoder gives for a sentence. *Similarity* is"
        " the mean cosine between embeddings and those in FP32, over a fixed set of sentences. All linear layers are"
        " quantised then, and multiplied by the golden model in steps of 64 products, whatever the row has."
    )


def _other_rules(report: FormatsReport) -> str:
    """Which rules the table does not show, as a sentence with a blank before it; nothing where there are none."""
    default = {each.rule for row in report.results for each in row.errors if each.default}
    others = {each.rule: None for row in report.results for each in row.errors if each.rule not in default}
    if not others:
        return ""
    return f" Other rules ({', '.join(others)}) have the same cores; further down is which one is in brackets."


def _products_alone(report: FormatsReport) -> list[str]:
    """What it is worth to add up more products in a cycle, of the baseline's format, as a paragraph."""
    baselines = [row for row in report.results if row.figures and row.baseline is None]
    if len(baselines) < 2:
        return []
    first, said = baselines[0], []
    for row in baselines[1:]:
        overheads = []
        for metric in _COMPARED.values():
            one, many = first.find("core", metric), row.find("core", metric)
            assert one is not None  # every row that was measured has both
            assert many is not None
            runs = min(len(one.values), len(many.values))
            overheads.append(percent(paired(one.values[:runs], many.values[:runs])))
        area, energy = overheads
        said.append(f"{row.row} with {row.products} products: {area} core area and {energy} energy a product")
    return ["", f"*Products alone*, each of them over {first.row} with {first.products}: {'; '.join(said)}."]


def _notes(report: FormatsReport) -> list[str]:
    """Rows of which something is to be said."""
    lines = [f"- {name}: {words}." for name, words in notes(report).items()]
    return ["", *lines] if lines else []


def _scopes(report: FormatsReport) -> list[str]:
    lines = []
    for purpose, metric in _COMPARED.items():
        rows = [
            [row.row, *(cell for scope in SCOPES for cell in _scope(row, scope, metric, purpose))]
            for row in report.results
            if row.figures
        ]
        unit = "um2" if metric == "area per MAC" else "fJ"
        header = ["row", *(each for scope in SCOPES for each in (f"{scope}, {unit}", "over the baseline"))]
        lines += ["", f"## {metric.capitalize()}, by scope".replace("mac", "MAC"), ""]
        if metric == "area per MAC":
            lines += [
                "A lane array has the products of one exact sum, decoders of its own and no registers, so that it takes"
                " more at a fast clock than the same lanes in a core. It has the lanes of the configuration, and a core"
                " may have others. One that misses the clock says so: its figures are of what it takes instead.",
                "",
            ]
        lines += table(header, rows, 6)
    return lines


def _scope(row: FormatRow, scope: str, metric: str, purpose: str) -> tuple[str, str]:
    """Figure and overhead of a scope; what misses the clock says so."""
    closing = row.closing.get(purpose, {}).get(scope)
    missed = " (missed)" if closing is not None and closing.slack_ns < 0 else ""
    return f"{_mean(row, scope, metric)}{missed}", _over(row, scope, metric)


def _blocks(report: FormatsReport) -> list[str]:
    measured = [row for row in report.results if row.blocks_um2]
    blocks = list(dict.fromkeys(block for row in measured for block in row.blocks_um2))
    rows = [
        [
            row.row,
            *(number(row.blocks_um2.get(block, 0.0)) for block in blocks),
            number(sum(row.blocks_um2.values())),
        ]
        for row in measured
    ]
    return ["", "## Core area by block, um2", "", *table(["row", *blocks, "total"], rows, len(blocks) + 1)]


def _errors(report: FormatsReport) -> list[str]:
    known = kinds(report)
    if not known:
        return []
    found: dict[tuple[str, str, bool], dict[str, float]] = {}
    for row in report.results:
        for each in row.errors:
            # In a row of two formats one has the model's weights, the other what meets them.
            found.setdefault((each.format, each.rule, each.default), {}).update(each.decibels)
    rows = [
        [
            name,
            rule + (" (default)" if default else ""),
            *(f"{decibels[kind]:.2f}" if kind in decibels else "" for kind in known),
        ]
        for (name, rule, default), decibels in found.items()
    ]
    return [
        "",
        "## Signal over quantisation noise, dB",
        "",
        "A rule says how the scale of a block follows from its numbers. It costs nothing in a core.",
        "",
        *table(["format", "rule", *known], rows, len(known)),
        *_similarities(report),
    ]


_DRAWS = (
    " Scales a little larger would round all numbers another way. So the model is quantised in several draws, with"
    " scales that are up to 2 % larger. The mean is over all, the standard error has both, and *from draw to draw* is"
    " the standard deviation of one draw."
)


def _similarities(report: FormatsReport) -> list[str]:
    """The table of what a trained model gives, where one was asked for."""
    found = [(row.row, rule, each) for row in report.results for rule, each in (row.similarities or {}).items()]
    if not found:
        return []
    several = any(each.draws is not None for *_, each in found)
    spread = ["from draw to draw"] if several else []
    rows = [
        [name, rule, f"{each.mean:.4f}", f"{each.worst:.4f}", f"{each.standard_error:.4f}"]
        + (["one draw" if each.spread is None else f"{each.spread:.4f}"] if several else [])
        for name, rule, each in found
    ]
    return [
        "",
        f"## Similarity of embeddings, {_model(report)}",
        "",
        "Mean over the sentences, the worst sentence, and the standard error of the mean: what other sentences would"
        f" change.{_DRAWS if several else ''} The difference of two rows is known better, since all rows have the same"
        " sentences.",
        "",
        *table(["row", "rule", "mean", "worst", "standard error", *spread], rows, 3),
    ]


def _storage(report: FormatsReport) -> list[str]:
    found = {each.name: each for row in report.results for each in _operands(row)}
    rows = [
        [
            each.name,
            f"{each.element_bits}: {' or '.join(each.elements)}",
            f"{each.scale_bits}, of which {each.read_bits} are read: {each.scale}"
            + (f", selector of {each.selector_bits}" if each.selector_bits else "")
            + (f", {each.shift_bits} for sub-groups" if each.shift_bits else ""),
            str(each.block),
            f"{each.bits_per_element:.4g}",
            f"{each.packed_bits_per_element:.4g}",
            "FP32, outside the core" if each.tensor_scale else "none",
            each.source,
        ]
        for each in found.values()
    ]
    header = ["format", "bits of an element", "bits with a block", "block", "bits an element", "packed"]
    return [
        "",
        "## What is stored",
        "",
        "Scales are stored in whole bytes. *Packed*: bits an element, if nothing were stored but what is read.",
        "",
        *table([*header, "tensor scale", "source"], rows, 0),
    ]


def _closings(report: FormatsReport) -> list[str]:
    rows = [
        [
            *(row.row, scope, f"least {purpose}", f"`{found.lanes}`"),
            *(f"{found.clock_ns - found.slack_ns:.4g}", f"{found.slack_ns:+.3f}", found.block),
            *(f"{found.resized:,.0f}", f"{found.buffers:,.0f}", str(found.changed or 0)),
            ", ".join(f"{module} {how}" for module, how in found.recipes.items()),
        ]
        for row in report.results
        for purpose, scopes in row.closing.items()
        for scope, found in scopes.items()
    ]
    header = ["row", "scope", "built for", "lanes", "slowest, ns", "slack, ns", "path in", "cells resized", "buffers"]
    found = (each for row in report.results for scopes in row.closing.values() for each in scopes.values())
    shown = table([*header, "other recipe, runs", "recipes"], rows, 0)
    return ["", "## How the clock was met", "", *shown, *lacking(found)]


def _registers(report: FormatsReport) -> str:
    """Where the registers of each row stand, as a list item."""
    pipelines = {design.name: ", ".join(design.settings["pipeline"]) for design in report.designs}
    found: dict[str, list[str]] = {}
    for row in report.results:
        if row.design is not None:
            found.setdefault(pipelines[row.design], []).append(row.row)
    return "- Registers: " + "; ".join(f"{registers} in {', '.join(names)}" for registers, names in found.items()) + "."


def _at_most(conditions: FormatsConditions) -> str:
    """How many runs a row may have."""
    if conditions.parts is None or len(conditions.parts) == 1:
        return str(conditions.runs)
    return f"{' or '.join(map(str, conditions.parts))}, as the part of the table had it that a row was measured in"


def _conditions(report: FormatsReport) -> list[str]:
    conditions, physical = report.conditions, report.conditions.physical
    lines = [*flow_lines(conditions.flow, report.designs, conditions.physical), _registers(report)]
    if physical.utilisation is not None:
        lines.append(
            f"- Wires: every netlist is placed ({physical.placer} placer, {100 * physical.utilisation:.0f} % of the"
            f" rows filled); {physical.capacitance_ff_per_um:.4g} fF and"
            f" {1e3 * (physical.resistance_kohm_per_um or 0):.3g} ohm per um ({physical.source})."
        )
    runs = ", ".join(f"{row.row} {row.runs}" for row in report.results if row.runs) or "No row was built"
    lines.append(
        f"- Runs: added until the intervals of area and power of a row's core are within"
        f" {100 * conditions.half_width:.2g} points, or {100 * conditions.half_width:.2g} % of its own where it takes"
        f" more than its baseline; at most {_at_most(conditions)}. {runs}."
    )
    fed = {
        (each.tensors, each.layer, each.seed, each.depth): row.row
        for row in report.results
        if (each := row.stimulus) is not None
    }
    for (tensors, _, seed, depth), _name in fed.items():
        who = ", ".join(row.row for row in report.results if row.stimulus is not None and row.stimulus.depth == depth)
        lines.append(f"- Operands of {who}: {tensors} tensors (seed {seed}, others in every run), K = {depth}.")
    least = [row.checked for row in report.results if row.checked is not None]
    if least:
        results, sums = min(each.results for each in least), min(each.lane_sums for each in least)
        lines.append(
            f"- Checks: every netlist gave the golden model's bits: {counted(results, 'result')} and"
            f" {counted(sums, 'lane sum')} at least in each run."
        )
    return lines


def _error_picture(report: FormatsReport, picture: str) -> list[str]:
    if not kinds(report):
        return []
    name = picture.removesuffix(".png") + ERRORS
    return ["", f"![What is left of the numbers against area and energy of a product](<{name}>)"]


def markdown(report: FormatsReport, picture: str) -> str:
    """The report for readers; ``picture`` is the file name of the plot beside it."""
    header, rows = summary(report)
    lines = [
        "# What block formats cost",
        "",
        *_fairness(report),
        *_products_alone(report),
        "",
        *table(header, rows, len(header) - 1),
        *_notes(report),
        "",
        f"![Core area by block](<{picture}>)",
        *_error_picture(report, picture),
        *_scopes(report),
        *_blocks(report),
        *_errors(report),
        *_storage(report),
        *_closings(report),
        "",
        "## Conditions",
        "",
        *_conditions(report),
        "",
    ]
    return "\n".join(lines)
