"""A layer through hardware quantiser and core, as CSV and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from hwgen.report.form import counted, table
from hwgen.report.schema import Deviation, GemmDeviation, LayerReport

__all__ = ["OUTPUT", "csv", "markdown", "summary"]

OUTPUT = "layer's output"
"""Name of what comes out at the end, beside those of the GEMMs."""


def _columns(prefix: str, found: Deviation) -> dict[str, float]:
    return {
        f"{prefix}snr_db": found.snr_db,
        f"{prefix}median_db": found.median_db,
        f"{prefix}similarity": found.similarity,
        f"{prefix}worst_similarity": found.worst_similarity,
    }


def csv(report: LayerReport) -> str:
    """A row for each GEMM of each format, and for the layer's output."""
    rows: list[dict[str, object]] = []
    for row in report.results:
        head = {"name": row.name, "format": row.format, "rule": row.rule}
        rows += [
            {
                **head,
                "gemm": each.gemm,
                "x_sqnr_db": each.x_sqnr_db,
                "w_sqnr_db": each.w_sqnr_db,
                **_columns("alone_", each.alone),
                **_columns("", each.within),
            }
            for each in row.gemms
        ]
        rows.append({**head, "gemm": OUTPUT, **_columns("", row.output)})
        rows.append({**head, "gemm": f"{OUTPUT}, quantised in float64", **_columns("", row.output_in_float64)})
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.9g", lineterminator="\n")


def summary(report: LayerReport) -> tuple[list[str], list[list[str]]]:
    """Header and a row for each format: the layer's output, and the GEMM of most noise."""
    rows = []
    for row in report.results:
        least = min(row.gemms, key=lambda each: each.within.median_db)
        whole = len(row.rtl) == len(row.gemms)
        compared = "all GEMMs" if whole else ", ".join(each.gemm for each in row.rtl)
        rows.append(
            [
                row.name,
                f"{row.output.snr_db:.2f}",
                f"{row.output.median_db:.2f}",
                f"{row.output.similarity:.4f}",
                f"{row.output.worst_similarity:.4f}",
                f"{least.within.median_db:.2f} ({least.gemm})",
                f"{compared}: equal" if compared else "none",
            ]
        )
    return ["format", "output, dB", "median, dB", "similarity", "worst", "lowest GEMM, median", "RTL"], rows


def markdown(report: LayerReport, picture: str) -> str:
    """The report for readers."""
    conditions = report.conditions
    lines = [
        f"# Layer {conditions.layer} of {conditions.model} through quantiser and core",
        "",
        f"All GEMMs of the layer are computed in the format: activations by the hardware quantiser, weights quantised"
        f" once in float64, products by the core. The rest is FP32. {counted(conditions.sentences, 'sentence')},"
        f" {counted(conditions.tokens, 'token')}. docs/layer.md has what is measured.",
        "",
        *table(*(found := summary(report)), len(found[0]) - 1),
        "",
        "The output is the layer's. Signal-to-noise ratio, that of a column (median over the columns) and cosine"
        " similarity of its rows are to FP32. The last figure in dB is that of the GEMM with the lowest median.",
        "",
        "The hardware quantiser chooses by errors of a few bits. With activations quantised in float64, with the same"
        f" tensor scales, the output has {_in_float64(report)}.",
        "",
        f"![Signal-to-noise ratio by GEMM](<{picture}>)",
        "",
        "## Signal-to-noise ratio of each GEMM within the layer, dB",
        "",
        "Operands come from quantised GEMMs before.",
        "",
        *_by_gemm(report, lambda each: f"{each.within.snr_db:.2f}", lambda found: f"{found.snr_db:.2f}"),
        "",
        "## The same of a column, median over the columns, dB",
        "",
        "One channel of large numbers may have nearly all of the energy above.",
        "",
        *_by_gemm(report, lambda each: f"{each.within.median_db:.2f}", lambda found: f"{found.median_db:.2f}"),
        "",
        "## Of each GEMM alone, and of its median column, dB",
        "",
        "Operands before quantisation are those of the layer in FP32.",
        "",
        *_by_gemm(report, lambda each: f"{each.alone.snr_db:.2f}, {each.alone.median_db:.2f}"),
        "",
        "## Operands: signal-to-quantisation-noise ratio of X and of W, dB",
        "",
        *_by_gemm(report, lambda each: f"{each.x_sqnr_db:.2f}, {each.w_sqnr_db:.2f}"),
        "",
        "## Similarity of the rows within the layer, mean and lowest",
        "",
        *_by_gemm(report, lambda each: _similar(each.within), _similar),
        "",
        *_compared(report),
        *_conditions(report),
    ]
    return "\n".join(lines) + "\n"


def _conditions(report: LayerReport) -> list[str]:
    conditions = report.conditions
    return [
        "## Conditions",
        "",
        "- Tensor scales of activations are calibrated: those of the largest number in FP32, over all heads and"
        f" sentences. {_saturation(report)}",
        "- GEMMs: "
        + ", ".join(
            f"{each.gemm} {each.macs:,} multiply-accumulates"
            + (f" in {counted(each.gemms, 'GEMM')}" if each.gemms > 1 else "")
            for each in conditions.gemms
        )
        + ".",
        *(
            f"- Configuration of {name}: " + ", ".join(f"{key} {_said(value)}" for key, value in fields.items()) + "."
            for name, fields in conditions.quantisers.items()
        ),
        *(f"- Core {design.name}: {design.shape}." for design in report.designs),
        f"- Tools: hwgen {conditions.tools.hwgen}, numpy {conditions.tools.numpy}.",
    ]


def _in_float64(report: LayerReport) -> str:
    found = (f"{row.output_in_float64.snr_db:.2f} dB ({row.name})" for row in report.results)
    return ", ".join(found)


def _similar(found: Deviation) -> str:
    return f"{found.similarity:.4f}, {found.worst_similarity:.4f}"


def _said(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _by_gemm(
    report: LayerReport,
    cell: Callable[[GemmDeviation], str],
    of_output: Callable[[Deviation], str] | None = None,
) -> list[str]:
    """A row for each GEMM, a column for each format; and a row for the output, if there is a cell of it."""
    cells: dict[str, Mapping[str, str]] = {
        row.name: {each.gemm: cell(each) for each in row.gemms} for row in report.results
    }
    rows = [[each.gemm, *(found.get(each.gemm, "") for found in cells.values())] for each in report.conditions.gemms]
    if of_output is not None:
        rows.append([OUTPUT, *(of_output(row.output) for row in report.results)])
    return table(["GEMM", *cells], rows, len(cells))


def _saturation(report: LayerReport) -> str:
    """How many blocks are beyond the calibration, in a sentence."""
    counts = ", ".join(f"{row.name} {row.saturated:,} of {row.blocks:,}" for row in report.results)
    return f"Blocks that saturate within the layer: {counts}."


def _compared(report: LayerReport) -> list[str]:
    rows = [
        [
            row.name,
            each.gemm,
            f"{each.blocks:,}",
            f"{each.quantiser_cycles:,}",
            f"{each.results:,}",
            f"{each.steps:,}",
            f"{each.cycles:,}",
        ]
        for row in report.results
        for each in row.rtl
    ]
    if not rows:
        return []
    header = ["format", "GEMM", "blocks", "cycles of the quantiser", "results", "steps", "cycles of the core"]
    return [
        "## In RTL",
        "",
        "Activations went through the RTL of the quantiser, its codes and scales through that of the core"
        f" (engine {report.conditions.engine}). Codes, scales, flags and results equal the golden model in every bit.",
        "",
        *table(header, rows, 5),
        "",
    ]
