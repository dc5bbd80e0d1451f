"""Signal-to-noise ratio of a layer's GEMMs by format, as a picture."""

from __future__ import annotations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hwgen.report.markdown.layer import OUTPUT
from hwgen.report.plots.canvas import plain, png
from hwgen.report.schema import LayerReport

__all__ = ["layer_png"]

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7")


def layer_png(report: LayerReport) -> bytes:
    """Each GEMM within the layer as a bar, its median column as a dot, alone as a dash; the layer's output at the end.

    Returns
    -------
    bytes
        A PNG.
    """
    canvas = Canvas(figsize=(9, 4.2), layout="constrained")
    FigureCanvasAgg(canvas)
    axis = canvas.subplots()
    width = 0.8 / max(1, len(report.results))
    names = [each.gemm for each in report.conditions.gemms]
    for number, row in enumerate(report.results):
        colour = _COLOURS[number % len(_COLOURS)]
        places = np.arange(len(row.gemms) + 1) + (number - (len(report.results) - 1) / 2) * width
        heights = [*(each.within.snr_db for each in row.gemms), row.output.snr_db]
        axis.bar(places, heights, width * 0.9, color=colour, label=plain(row.name))
        alone = [each.alone.snr_db for each in row.gemms]
        label = "alone" if number == 0 else None
        axis.plot(places[:-1], alone, "_", color="#333333", markersize=7, label=label)
        medians = [*(each.within.median_db for each in row.gemms), row.output.median_db]
        label = "median column" if number == 0 else None
        axis.plot(places, medians, "o", color="black", markersize=3, label=label)
    axis.set_xticks(range(len(names) + 1), [*names, OUTPUT], rotation=20, ha="right")
    axis.set_ylabel("signal-to-noise ratio, dB")
    conditions = report.conditions
    axis.set_title(plain(f"{conditions.model}, layer {conditions.layer}, against FP32"))
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    return png(canvas)
