"""The picture of a quantiser: a column for each module, registers across them, time downwards."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from hwgen.config.quantiser import BLOCK, QUANTISER_REGISTERS, Candidate, QuantiserConfig
from hwgen.package.quantiser_structure import RESULT, units
from hwgen.package.svg import Drawing
from hwgen.package.swimlanes import Bus, Column, Row, draw
from hwgen.rtl.quantiser.lane import bound_ports, candidate_port, value_ports
from hwgen.rtl.quantiser.multiples import midpoints, odd_midpoints, odd_values

__all__ = ["quantiser_svg"]

_TOP, _LANE = "quantiser", "quantiser_lane"
_LEFT, _RIGHT, _GAP = 92.0, 84.0, 30.0
_WIDTHS = {_TOP: 216.0, _LANE: 246.0}
_KINDS = {_TOP: "decode", "choice": "accumulate", _LANE: "multiply"}
_WIDTH = 206.0
_LETTER = 7.2
"""Pixels of a letter, rather too many."""

_RULES = {
    "squared-error": "the sum of its squared errors is less",
    "absolute-error": "the sum of its errors is less",
    "largest-error": "its largest error is less",
    "sampled-error": "the sum of its squared errors in even lanes is less",
    "crest-factor": "4 times the sum of all squares is less than 13 times the largest square",
    "second-largest": "fewer than two numbers are 3/4 of the largest or more",
    "gap": "no number is from 12/16 to below 15/16 of the largest",
}
"""When the second candidate is taken, by rule of choice; that of a gap is the other way round for 6 and 4."""


def _rule(config: QuantiserConfig) -> str:
    rule = _RULES[str(config.selection)]
    if config.selection == "gap" and not config.candidates[0].evenly_spaced:
        rule = f"a {rule.removeprefix('no ')}"
    return f"The second candidate is taken where {rule}, and the first one does not saturate."


def _candidate(candidate: Candidate, tagged: bool) -> str:
    tag = f" and {candidate.tag} in bit 7 of the scale byte" if tagged else ""
    return f"{candidate.element.name} with top {candidate.top}{tag}"


class _Picture:
    """All that is drawn of one quantiser.

    A row is what happens before a register, `quotients`, or its first part, `quotients.first`.
    """

    def __init__(self, config: QuantiserConfig) -> None:
        self.config, self.units = config, units(config)
        count = len(config.candidates)
        many = range(count)
        kind = "scale_division" if config.by_magnitude else "block_scale"
        self.scales = [f"{kind}{index or ''}" for index in many]
        names = [_TOP, *self.scales]
        names += ["chosen_scale"] if config.by_magnitude else []
        names += ["choice"] if config.chooses else []
        x = _LEFT
        self.columns: dict[str, Column] = {}
        for name in (*names, _LANE):
            width = _WIDTHS.get(name, _WIDTH)
            kind = _KINDS.get(name, "scale")
            modules = (_LANE, "errorless_lane") if name == _LANE else (name,)
            title = [f"{module} x {self.units[module].count}" for module in modules if module in self.units]
            self.columns[name] = Column(title, x, width, kind, self.units[name].registers)
            x += width + _GAP
        self.width = x - _GAP + _RIGHT
        self.buses: list[Bus] = []
        self.signals: list[str] = []
        self._structure()

    def _port(self, module: str, *ports: str) -> str:
        return ", ".join(f"{port} {self.units[module].ports[port]}" for port in ports)

    def _cell(self, column: str, row: str, *lines: str) -> None:
        self.columns[column].boxes[row] = lines

    def _bus(
        self, row: str, source: str, targets: Sequence[str], words: str, module: str = "", ports: Sequence[str] = ()
    ) -> None:
        if ports:
            whence = "each lane" if source == _LANE else source
            where = " and ".join("each lane" if target == _LANE else target for target in targets)
            self.signals.append(f"{whence} to {where}: {self._port(module, *ports)}")
        self.buses.append(Bus(row, source, targets, words))

    def _structure(self) -> None:
        self._largest()
        self._exponents()
        self._divisions()
        if self.config.by_magnitude:
            self._early_choice()
        self._multiples()
        self._compare()
        if self.config.by_error:
            self._errors()
        self._results()

    def _largest(self) -> None:
        unit = self.units["largest_magnitude"]
        self._cell(_TOP, "block", "block", self._port(_TOP, "block__payload"))
        x = self._port(_LANE, "x")
        self._bus("largest", _TOP, [_LANE], f"{BLOCK} numbers: {x}")
        largest = self._port("largest_magnitude", "largest")
        self._cell(_TOP, "largest", f"largest_magnitude x {unit.count}", f"of {BLOCK}: {largest}")

    def _exponents(self) -> None:
        row = "quotients.first"
        self._cell(_TOP, row, "exponents", self._port(_TOP, "tensor_exponent"), "a - es, limits, NaN and infinity")

    def _divisions(self) -> None:
        row, scales = "quotients", self.scales
        self._bus(row, _TOP, scales, self._port(scales[0], "fraction", "exponent", "empty"))
        self._bus(row, _TOP, [_LANE], self._port(_LANE, "exponent"))
        for name, candidate in zip(scales, self.config.candidates, strict=True):
            fraction = self._port(name, "tensor_fraction")
            self._cell(name, row, f"divide by {candidate.top} x sg", "leading one, two bits", fraction)
            self._cell(name, "scales.first", "two more bits, round", f"UE4M3: {self._port(name, 'code')}")
        self._cell(_LANE, row, "exponent below the largest")

    def _early_choice(self) -> None:
        """A rule by magnitudes: it is done before there are multiples of W."""
        config = self.config
        crest = config.by_crest_factor
        self._bus("quotients", _TOP, ["choice"], self._port("choice", "largest"))
        self._bus("quotients", _TOP, ["chosen_scale"], self._port("chosen_scale", "exponent"))
        self._cell("chosen_scale", "quotients", "low bits of a - es")
        self._cell("choice", "quotients", "square of the largest" if crest else "bounds of the rule")
        self._bus("scales.first", _LANE, ["choice"], self._port(_LANE, "magnitude"))
        work = ["squares", "carry-save tree"] if crest else [f"compare {BLOCK} numbers", "count"]
        self._cell("choice", "scales.first", *work)
        for index, name in enumerate(self.scales):
            words = self._port("chosen_scale", f"code{index}", f"saturated{index}")
            self._bus("scales", name, ["chosen_scale"], words)
        row = "scales"
        if crest:
            row = "choice"
            self._cell("choice", "choice.first", "last addition, sign")
        self._bus(row, "choice", ["chosen_scale"], self._port("choice", "second"))
        self._cell("chosen_scale", row, "choose one scale")

    def _multiples(self) -> None:
        config = self.config
        for index, name in enumerate(["chosen_scale"] if config.by_magnitude else self.scales):
            candidate = config.candidates[index]
            odds = {*odd_midpoints(candidate), *(odd_values(candidate) if config.by_error else ())} - {1}
            listed = ", ".join(map(str, sorted(odds)))
            fraction = self._port(name, "tensor_fraction")
            self._cell(name, "bounds", "W = S x sg, shifted", fraction, f"{listed} x W; places")

    def _compare(self) -> None:
        config = self.config
        row = "codes" if config.by_error else "result.first"
        lines = ["compare with midpoints"]
        for index, candidate in enumerate(config.datapaths):
            name = "chosen_scale" if config.by_magnitude else self.scales[index]
            ports = [candidate_port(port, index) for port in bound_ports(config, candidate)]
            self._bus(row, name, [_LANE], self._summed(ports), _LANE, ports)
            lines.append(f"{len(midpoints(candidate))} midpoints of {len(odd_midpoints(candidate))} odd multiples")
            flags = ("code", "saturated", "tag") if "tag" in self.units[name].ports else ("code", "saturated")
            self._bus(row, name, [_TOP], self._port(name, *flags))
        self._cell(_LANE, row, *lines)

    def _summed(self, ports: Sequence[str]) -> str:
        found = self.units[_LANE].ports
        return f"{ports[0]} .. {ports[-1]}: {sum(found[port] for port in ports)}"

    def _errors(self) -> None:
        config = self.config
        for index, (name, candidate) in enumerate(zip(self.scales, config.candidates, strict=True)):
            ports = [candidate_port(port, index) for port in value_ports(config, candidate)]
            self._bus("errors", name, [_LANE], self._summed(ports), _LANE, ports)
        self._cell(_LANE, "errors", "error of each candidate", "number less value, magnitude")
        self._bus("sums", _LANE, ["choice"], self._port(_LANE, "error0", "error1"))
        largest, absolute = config.selection == "largest-error", config.selection == "absolute-error"
        work = ["largest of each", "trees of comparisons"] if largest else ["carry-save tree", "first one inverted"]
        if not largest and not absolute:
            work = ["squares", *work]
        self._cell("choice", "sums", *work)
        self._cell("choice", "result.first", "compare" if largest else "last addition, sign")

    def _results(self) -> None:
        choose = "choose, " if self.config.by_error else ""
        if choose:
            self._bus("result", "choice", [_LANE], self._port("choice", "second"))
            self._bus("result", "choice", [_TOP], self._port("choice", "second"))
        signed = self.config.candidates[0].element.values[15] == -self.config.candidates[0].element.values[1]
        self._cell(_LANE, "result", f"{choose}{'negate' if signed else 'sign'}")
        self._cell(_TOP, "result", f"{choose}scale byte, flags")
        self._cell(_TOP, "out", "result", self._port(_TOP, "result__payload"))
        self._bus("out", _LANE, [_TOP], f"{BLOCK} codes: {self._port(_LANE, 'code')}")

    def rows(self) -> list[Row]:
        """Rows from above, and the registers that the pipeline has."""
        used = {row for column in self.columns.values() for row in column.boxes}
        found, cycle = [Row("block")], 0
        for register in (*QUANTISER_REGISTERS, RESULT):
            if f"{register}.first" in used:
                found.append(Row(f"{register}.first"))
            if register in self.units[_TOP].registers:
                cycle += 1
                found.append(Row(register, register, cycle))
            elif register in used:
                found.append(Row(register))
        return [*found, Row("out")]

    def _errorless(self) -> list[str]:
        """What the other kind of lanes holds, which share a column with the first."""
        if "errorless_lane" not in self.units:
            return []
        held, other = (self.units[name].registers for name in (_LANE, "errorless_lane"))
        less = ", ".join(f"{other[register]} in {register}" for register in held if other[register] != held[register])
        return [
            f"Numbers in the column of lanes are those of a {_LANE}. An errorless_lane has {less}; no error, no value."
        ]

    def svg(self) -> str:
        """The text of the file."""
        config = self.config
        drawing = Drawing(f"Datapath of {config.name}", self.width)
        cycles = "1 cycle" if config.latency == 1 else f"{config.latency} cycles"
        drawing.text(20, 24, f"{config.name}: {config.input} to {config.format}, {BLOCK} numbers a cycle", bold=True)
        made = ", or ".join(_candidate(candidate, config.tagged) for candidate in config.candidates)
        said = [
            f"A block becomes {made}. Latency: {cycles}.",
            *([_rule(config)] if config.chooses else []),
            "A column is a module, with how often it is there. A number behind a port is its width in bits.",
            "Black bars are pipeline registers; above the right end of each stands how many flip-flops it has there.",
            *self._errorless(),
        ]
        for number, line in enumerate(said):
            drawing.text(20, 46 + 20 * number, line)
        y = draw(drawing, self.columns, self.rows(), self.buses, 46 + 20 * len(said))
        for signals in self.signals:
            for line in wrap(signals, int((self.width - 40) / _LETTER), subsequent_indent="    "):
                y += 20
                drawing.text(20, y, line)
        return drawing.svg(y + 20)


def quantiser_svg(config: QuantiserConfig) -> str:
    """Modules, ports and pipeline registers of a quantiser, as its elaborated RTL has them.

    Parameters
    ----------
    config
        The quantiser.

    Returns
    -------
    str
        Text of an SVG file.
    """
    return _Picture(config).svg()
