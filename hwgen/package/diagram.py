"""Pictures of a core and of the datapath of one element, drawn from the configuration alone."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Shape

from hwgen.config import TensorCoreConfig
from hwgen.formats import BlockFormat
from hwgen.formats.unscaled import SCALE
from hwgen.package.svg import Drawing
from hwgen.rtl.tensor_core import addend_layout, step_layout

__all__ = ["core_svg", "datapath_svg"]

_SHOWN = 4
"""Rows and columns of the array that are drawn."""

_ROUNDING = {"toward_zero": "toward zero", "nearest_even": "to nearest, ties to even"}


def _counted(many: int, what: str) -> str:
    return f"{many} {what}" if many == 1 else f"{many} {what}s"


def _title(config: TensorCoreConfig) -> str:
    formats = " x ".join(dict.fromkeys(form.name for form in config.formats))
    return f"{config.name}: {formats}, {config.rows} x {config.columns} outputs, G = {config.groups}"


def _places(many: int) -> list[str]:
    """Numbers of the rows that are drawn; of more than there is room for, the last after dots."""
    if many <= _SHOWN:
        return [str(number) for number in range(many)]
    return [*(str(number) for number in range(_SHOWN - 2)), "...", str(many - 1)]


def core_svg(config: TensorCoreConfig) -> str:
    """The whole core: streams, operand decoders, array of elements, control.

    Parameters
    ----------
    config
        Tensor core configuration.

    Returns
    -------
    str
        Text of an SVG file.
    """
    rows, columns = _places(config.rows), _places(config.columns)
    side, left, top, gap = 92.0, 380.0, 200.0, 14.0
    right = left + len(columns) * (side + gap)
    bottom = top + len(rows) * (side + gap)
    drawing = Drawing(_title(config), max(right + 190, 800))
    drawing.text(20, 24, _title(config), bold=True)
    drawing.text(
        20,
        46,
        f"{config.macs_per_step} multiply-accumulates a cycle; latency {_counted(config.latency, 'cycle')};"
        f" {_counted(config.interleave, 'tile')} at a time in the accumulation loop",
    )
    middle = top + (bottom - top - gap) / 2
    bits = Shape.cast(step_layout(config)).width
    codes = "codes, scales," if any(form.has_scales for form in config.formats) else "codes,"
    drawing.box(20, middle - 50, 130, 100, "stream", ["step", f"{bits} bits:", codes, "first, last"])
    if "operands" in config.pipeline:
        drawing.register(152, middle + 60, 90, "operands")
    for number, row in enumerate(rows):
        y = top + number * (side + gap)
        drawing.box(215, y + 21, 120, 50, "decode", _decoder("A", row, config.a))
        drawing.arrow((150, middle), (182, middle), (182, y + 46), (215, y + 46))
        drawing.arrow((335, y + 46), (left, y + 46))
        for place, column in enumerate(columns):
            dots = "..." in (row, column)
            lines = ["..."] if dots else ["element", f"{row}, {column}"]
            drawing.box(left + place * (side + gap), y, side, side, "plain" if dots else "multiply", lines)
    # Around the decoders of A, above which those of B stand.
    drawing.arrow((182, middle), (182, 96), (left + side / 2, 96), (left + side / 2, 112))
    for place, column in enumerate(columns):
        x = left + place * (side + gap)
        drawing.box(x - 4, 112, side + 8, 50, "decode", _decoder("B", column, config.b))
        drawing.arrow((x + side / 2, 162), (x + side / 2, top))
        if place:
            drawing.arrow((x + side / 2 - side - gap, 96), (x + side / 2, 96), (x + side / 2, 112))
    if "decoded" in config.pipeline:
        drawing.text(20, 68, "The register decoded stands behind each decoder.", italic=True)
    words = Shape.cast(addend_layout(config)).width
    drawing.box(left, bottom + 36, 130, 56, "stream", ["addend", f"C, {words} bits", "once a tile"])
    drawing.arrow((left + 65, bottom + 36), (left + 65, bottom - gap))
    drawing.box(
        20, bottom + 36, 250, 56, "plain", ["control", "valid, first, last of every step;", "which tile's turn it is"]
    )
    drawing.arrow((85, middle + 50), (85, bottom + 36))
    drawing.arrow(
        (270, bottom + 64), (325, bottom + 64), (325, bottom + 8), (left + 20, bottom + 8), (left + 20, bottom - gap)
    )
    drawing.box(right + 40, middle - 36, 130, 72, "stream", ["result", f"D, {words} bits", "after a last step"])
    drawing.arrow((right - gap, middle), (right + 40, middle))
    return drawing.svg(bottom + 110)


def _decoder(side: str, number: str, form: BlockFormat) -> list[str]:
    return ["..."] if number == "..." else [f"decoder {side}{number}", form.name]


class _Column:
    """A way down the page: boxes, with registers between them."""

    def __init__(self, drawing: Drawing, config: TensorCoreConfig, x: float, y: float, width: float) -> None:
        self.drawing, self.config = drawing, config
        self.x, self.y, self.width = x, y, width

    @property
    def centre(self) -> float:
        return self.x + self.width / 2

    def box(self, kind: str, *lines: str) -> float:
        """The next box; gives the height of its middle."""
        height = 18.0 * len(lines) + 16
        self.drawing.box(self.x, self.y, self.width, height, kind, lines)
        self.y += height
        return self.y - height / 2

    def way(self, register: str = "", carries: str = "") -> None:
        """The way to the next box, through a register if the pipeline has it; beside it what it carries."""
        there = register in (*self.config.pipeline, "result", "sum", "resolved")
        length = 46.0 if there else 26.0
        self.drawing.arrow((self.centre, self.y), (self.centre, self.y + length))
        if there:
            self.drawing.register(self.x, self.y + 14, self.width, register)
        if carries:
            self.drawing.text(self.centre + 8, self.y + (30 if there else 10), carries)
        self.y += length


def datapath_svg(config: TensorCoreConfig) -> str:
    """The way of one output through decoders, dot products, scales and accumulator, with its registers.

    Parameters
    ----------
    config
        Tensor core configuration.

    Returns
    -------
    str
        Text of an SVG file.
    """
    drawing = Drawing(f"Datapath of {_title(config)}", 860)
    drawing.text(20, 24, f"One element of {_title(config)}", bold=True)
    drawing.text(20, 46, "Black bars are registers. Widths follow from the formats.")
    column = _Column(drawing, config, 180, 70, 420)
    _operands(column)
    _products(column)
    (_exact if config.exact else _stepwise)(column)
    column.way("result")
    column.box("stream", "D", "FP32")
    return drawing.svg(column.y + 20)


def _stored(config: TensorCoreConfig, side: str) -> str:
    form = config.form(side)
    scales = f", {_counted(config.groups, 'scale')} of {form.stored_scale_width} bits" if form.has_scales else ""
    return f"{side.upper()}, {form.name}: {config.depth} codes of {form.code_width} bits{scales}"


def _operands(column: _Column) -> None:
    """What comes in, and its decoders."""
    config = column.config
    column.box("stream", "a row of A and a row of B", *(_stored(config, side) for side in "ab"))
    column.way("operands")
    bounds = config.bounds
    lines = [f"integers up to {bounds.a.largest} and {bounds.b.largest}"]
    if bounds.window is not None:
        what = "codes" if bounds.additive else "significands and exponents"
        lines = [f"{what} of the elements"]
    if any(form.has_scales for form in config.formats):
        with_significands = any(form.significand_bits for form in config.formats)
        lines.append(f"{'significands and exponents' if with_significands else 'exponents'} of the scales")
    column.box("decode", "operand decoders, shared by a whole row", *lines)
    column.way("decoded")


def _products(column: _Column) -> None:
    """From decoded rows to terms."""
    config, bounds = column.config, column.config.bounds
    scaled = any(form.has_scales for form in config.formats)
    lines = [f"lanes: {config.dot}"]
    if config.slotted:
        lines.append(f"FP8 and FP6 at half the rate: slot {config.slot}")
    if config.half_scaled:
        lines.append(f"rows at half the rate have {SCALE.name} scales")
    if "tree" in config.pipeline and bounds.window is None:
        lines.append(f"register tree {'behind two words' if config.carry_save else 'before the last addition'}")
    title = f"{_counted(config.sums, 'dot product')} of {bounds.lanes} lanes"
    if bounds.window is None:
        column.box("multiply", title, *lines)
        column.way("sums", f"block sums, {'in two words' if config.carry_save else f'{bounds.sum_width} bits'}")
    else:
        products = "codes added for products" if bounds.additive else "products"
        column.box("multiply", title, *lines, f"{products}, and the largest of their exponents")
        column.way("tree")
        cut = f"aligned to it, and cut to a window of {bounds.window} bits"
        column.box("multiply", "all products of a block added", cut, "carry-save tree")
        column.way("sums", f"two words of {bounds.sum_width} bits, whose sum is the block's")
    if scaled or not config.adds_sums:
        behind = ["register factors before the product"] if "factors" in config.pipeline else []
        significands = [side for side in "ab" if config.form(side).significand_bits]
        added = ", exponents added" if scaled else ""
        times = {0: "absolute values", 1: f"times the significands of {''.join(significands).upper()}"}
        column.box("scale", f"{times.get(len(significands), 'times both significands')}{added}", *behind)
    terms = f"terms, {bounds.term_width} bits, exponents {bounds.lowest_exponent} to {bounds.highest_exponent}"
    if not config.adds_sums or "terms" in config.pipeline:
        column.way("terms", "" if config.adds_sums else terms)


def _addend(column: _Column, y: float) -> None:
    """C, which waits in a register of its own, beside the accumulator."""
    column.drawing.box(20, y - 30, 110, 60, "stream", ["C", "FP32,", "once a tile"])
    column.drawing.arrow((130, y), (column.x, y))


def _stepwise(column: _Column) -> None:
    """The accumulator that rounds every step, and its loop."""
    config, drawing, top = column.config, column.drawing, column.y
    stages: list[tuple[str, Sequence[str], str]] = []
    if "compared" in config.pipeline:
        stages.append(("compare exponents", [], "compared"))
    stages += [
        (
            "align to the largest exponent",
            [f"{config.fraction_bits} bits are kept below it; the rest is cut off"],
            "aligned",
        ),
        ("add C or the sum before, and all terms", ["carry-save tree"], "addends"),
        ("adder", ["leading zeros anticipated beside it"] if config.anticipated else [], "total"),
        ("normalise", [] if config.anticipated else ["leading zeros counted"], "normal"),
        (f"round {_ROUNDING[config.rounding]}", [], "result"),
    ]
    entrance = 0.0
    for number, (title, lines, register) in enumerate(stages):
        middle = column.box("accumulate", title, *lines)
        entrance = entrance or middle
        if number < len(stages) - 1:
            column.way(register)
    _addend(column, entrance)
    below = column.y + 34
    drawing.region(150, top - 6, 690, below + 6 - top)
    said = (
        "accumulation loop:",
        _counted(config.interleave, "cycle"),
        f"{_counted(config.interleave, 'tile')} by turns",
    )
    for line, words in enumerate(said):
        drawing.text(730, (entrance + below) / 2 + 18 * line, words, italic=True, anchor="middle")
    drawing.arrow((column.centre, below), (825, below), (825, entrance), (column.x + column.width, entrance))


def _exact(column: _Column) -> None:
    """The accumulator that rounds once, at the end of a tile."""
    drawing = column.drawing
    saved = column.config.carry_save
    if not saved:
        column.box("accumulate", "exact sum of a step's terms")
        column.way("aligned")
    top = column.y
    kind = "carry-save tree, whose two words are" if saved else "fixed-point adder,"
    middle = column.box("accumulate", f"{kind} wide enough for every term")
    column.way("sum")
    below = column.y - 12
    drawing.region(150, top - 6, 690, column.y - top)
    drawing.text(715, (middle + below) / 2, "accumulation loop: 1 cycle", italic=True, anchor="middle")
    drawing.arrow((column.centre, below), (825, below), (825, middle), (column.x + column.width, middle))
    column.way()
    if saved:
        column.box("accumulate", "both words added, where a tile is complete")
        column.way("resolved")
    _addend(column, column.box("accumulate", "add C" if saved else "add C, where a tile is complete"))
    column.way("total")
    column.box("accumulate", "normalise")
    column.way("normal")
    column.box("accumulate", "round once, to nearest, ties to even")
