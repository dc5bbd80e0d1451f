"""The dot product adds what its lanes give, each by itself, for all inputs.

::

    codes, tags -> lanes -> bits of known weight -> (add_columns or add_in_pairs) -> S

Every bit that is added depends on the tags and on one lane only, or is a bit of another sum of such bits: shown on the
gates. `add_columns` adds them by weight: shown by algebra, its full adders being equations. `add_in_pairs` adds words:
shown by SAT. So the sum of all lanes is that of every lane alone, which the tests of the engines have for all codes and
tags. A register in a tree changes nothing of that: shown on dot products with and without it.
"""

import dataclasses
import itertools
import json
import sys
from unittest import mock

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Cat, Const, Elaboratable, Instance, Module, Signal, Value

from hwgen.config import DOTS, TensorCoreConfig
from hwgen.config.dots import supported
from hwgen.formats import BLOCK_FORMATS
from hwgen.rtl.arithmetic import carry_save
from hwgen.rtl.arithmetic.binary_tree import add_in_pairs
from hwgen.rtl.dot import DotProduct
from hwgen.rtl.hierarchy import Block
from hwgen.rtl.lane_array import LaneArray
from hwgen.rtl.lanes import binary, booth, merged, signed

_TO_JSON = """
import sys
from pyosys import libyosys as ys
design = ys.Design()
for command in (
    *("read_rtlil block.il", "hierarchy -top top", "proc", "flatten -noscopeinfo", "opt_expr", "opt_clean"),
    *(*sys.argv[1:], "opt_clean", "write_json block.json"),
):
    ys.run_pass(command, design)
"""


def netlist(block, ports, prover, *passes):
    """Bits of the ports, by name, and the cells."""
    (prover.directory / "block.il").write_text(rtlil.convert(block, name="top", ports=ports, emit_src=False))
    prover.run(sys.executable, "-c", _TO_JSON, *passes)
    top = json.loads((prover.directory / "block.json").read_text())["modules"]["top"]
    return {name: port["bits"] for name, port in top["ports"].items()}, list(top["cells"].values())


class FullAdder(Elaboratable):
    def __init__(self):
        self.inputs = [Signal(name=name) for name in "abc"]
        self.sum, self.carry = Signal(name="sum"), Signal(name="carry")

    def elaborate(self, platform):
        m = Module()
        found = carry_save.full_adders(m, *self.inputs, name="adder")
        m.d.comb += [self.sum.eq(found[0]), self.carry.eq(found[1])]
        return m


def test_full_adder(prover):
    block = FullAdder()
    text = rtlil.convert(block, ports=[*block.inputs, block.sum, block.carry], emit_src=False)
    miter = """
module miter(input a, input b, input c, output wrong);
  wire sum, carry;
  top block(.*);
  wire [1:0] expected = a + b + c;
  assign wrong = {carry, sum} != expected;
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("a + b", "a + !b"))


class Columns(Elaboratable):
    """`add_columns` on its own, each full adder a cell.

    ``moved`` of the bits of the first column come one place too high. ``late``: bits are there at all sorts of levels.
    """

    def __init__(self, counts, width, constant, moved=0, late=False):
        self.levels = None
        if late:
            self.levels = {
                place: [(3 * place + 7 * index) % 11 / 2 for index in range(count)] for place, count in counts.items()
            }
        self.columns = {place: Signal(count, name=f"column{place}") for place, count in counts.items()}
        self.constant, self.moved = constant, moved
        self.total = Signal(width, name="total")

    def full_adders(self, m, a, b, c, *, name):
        sums, carries = Signal(len(a)), Signal(len(a))
        for bit in range(len(a)):
            m.submodules += Instance(
                "full_adder", i_a=a[bit], i_b=b[bit], i_c=c[bit], o_sum=sums[bit], o_carry=carries[bit]
            )
        return sums, carries

    def elaborate(self, platform):
        m = Module()
        columns = {place: list(bits) for place, bits in self.columns.items()}
        for _ in range(self.moved):
            columns[1].append(columns[0].pop())
        with mock.patch.object(carry_save, "full_adders", self.full_adders):
            total = carry_save.add_columns(
                m, columns, width=len(self.total), constant=self.constant, levels=self.levels, name="added"
            )
        m.d.comb += self.total.eq(total)
        return m


def adds_by_weight(block, prover):
    """Whether the result is the sum of all bits by weight and the constant, modulo a power of two."""
    ports, cells = netlist(block, [*block.columns.values(), block.total], prover)
    modulus = 1 << len(block.total)
    weights = {bit: 1 << place for place, bit in enumerate(ports["total"])}  # the result is the sum of these bits

    def put(weight, *bits):
        for bit in bits:
            weights[bit] = (weights.get(bit, 0) + weight) % modulus

    adders = []
    for cell in cells:
        pins = cell["connections"]
        if cell["type"] == "full_adder":
            adders.append({name: bits[0] for name, bits in pins.items()})
            continue
        assert cell["type"] == "$add"
        assert not any(int(cell["parameters"][f"{pin}_SIGNED"], 2) for pin in "AB")
        for place, bit in enumerate(pins["Y"]):
            assert weights.pop(bit, 0) == (1 << place) % modulus
        for place, bits in enumerate(itertools.zip_longest(pins["A"], pins["B"], fillvalue="0")):
            put(1 << place, *bits)

    def last(adder):
        weight = weights.get(adder["sum"], 0)
        return weight and weights.get(adder["carry"], 0) == 2 * weight % modulus

    # a + b + c = sum + 2 carry, from the last adders to the first.
    while adder := next(filter(last, adders), None):
        weight = weights.pop(adder["sum"])
        weights.pop(adder["carry"], None)
        put(weight, *(adder[pin] for pin in "abc"))
        adders.remove(adder)
    weights.pop("0", None)
    wanted = {bit: 1 << place for place in block.columns for bit in ports[f"column{place}"]} | {"1": block.constant}
    return not adders and {"1": 0} | weights == wanted


class Words(Elaboratable):
    """`add_in_pairs` on its own."""

    def __init__(self, widths, ones):
        self.words = [Signal(width, name=f"word{index}") for index, width in enumerate(widths)]
        self.ones = Signal(ones)
        module = Module()
        self.total = add_in_pairs(module, self.words, list(self.ones), name="total")
        self.module = module

    def elaborate(self, platform):
        return self.module


@pytest.mark.parametrize("lanes", [1, 2, 3, 16, 25])
def test_binary_tree(lanes, prover):
    """In the order of the tree, or SAT would not end: no sum on the way overflows 32 bits, so any order will do."""
    widths = [9] * lanes
    block = Words(widths, lanes - 1)
    ports = [*block.words, block.ones, block.total]
    text = rtlil.convert(block, ports=ports, emit_src=False)
    rows, ones = [f"word{index}" for index in range(lanes)], [f"ones[{index}]" for index in range(lanes - 1)]
    while len(rows) > 1:
        rows = [
            f"({x} + {rows[2 * k + 1]} + {ones.pop()})" if 2 * k + 1 < len(rows) else x for k, x in enumerate(rows[::2])
        ]
    declared = [f"input [8:0] word{index}" for index in range(lanes)]
    connected = [f".word{index}(word{index})" for index in range(lanes)]
    if lanes > 1:
        declared.append(f"input [{lanes - 2}:0] ones")
        connected.append(".ones(ones)")
    miter = f"""
module miter({", ".join(declared)}, output wrong);
  wire [{len(block.total) - 1}:0] total;
  top block({", ".join(connected)}, .total(total));
  wire [31:0] expected = {rows[0]};
  assign wrong = total != expected;
endmodule
"""
    assert prover.proven(text, miter)
    assert not prover.proven(text, miter.replace("total != expected", "total != expected + (&word0)"))


def opaque_pairs(m, words, ones, *, register=None, name):
    """`add_in_pairs` as a cell that adds columns: a bit more for each level, constants apart."""
    assert register is None
    constant = sum(word.value for word in words if isinstance(word, Const))
    columns = {}
    for word in words:
        for place, bit in enumerate(() if isinstance(word, Const) else word):
            columns.setdefault(place, []).append(bit)
    columns[0] += ones
    levels = (len(words) - 1).bit_length()
    return opaque(m, columns, width=max(map(len, words)) + levels, constant=constant, name=name)


def opaque(m, columns, *, width, constant=0, register=None, height=2, levels=None, name):
    """`add_columns` as a cell."""
    assert register is None
    total = Signal(width)
    inputs = {f"i_column{place}": Cat(*bits) for place, bits in columns.items()}
    m.submodules += Instance("add_columns", p_constant=constant % (1 << width), **inputs, o_total=total)
    return total


class Sums:
    """What a lane array adds up: its sums as columns of bits, total and constant, and the gates before them."""

    def __init__(self, config, prover):
        self.config = config
        block = LaneArray(config)
        ports = [Value.cast(getattr(block, name)) for name in block.signature.members]
        with (
            mock.patch.object(merged, "add_columns", opaque),
            mock.patch.object(signed, "add_columns", opaque),
            mock.patch.object(booth, "add_columns", opaque),
            mock.patch.object(binary, "add_in_pairs", opaque_pairs),
        ):
            self.ports, cells = netlist(block, ports, prover, "techmap", "simplemap")
        self.gates, self.sums, self._inputs = {}, [], {}
        for cell in cells:
            pins = dict(cell["connections"])
            if cell["type"] == "add_columns":
                total, constant = pins.pop("total"), int(cell["parameters"]["constant"], 2)
                self.sums.append(({int(pin[6:]): bits for pin, bits in pins.items()}, total, constant))
            else:
                (output,) = pins.pop("Y")
                self.gates[output] = cell["type"], list(itertools.chain(*pins.values()))

    def inputs(self, bit):
        """What no gate drives of all that a bit depends on."""
        if bit not in self._inputs:
            _, before = self.gates.get(bit, ("", []))
            self._inputs[bit] = set().union(*map(self.inputs, before)) if before else {bit} - {"0", "1"}
        return self._inputs[bit]

    def inverted(self, bit):
        """The bit that a bit is the inverse of, if it is one."""
        kind, inputs = self.gates.get(bit, ("", []))
        return inputs[0] if kind == "$_NOT_" else None

    def check(self):
        """Every sum is one of lanes; `AssertionError` if not."""
        widths = {side: self.config.form(side).code_width for side in "ab"}
        lanes = {bit: place // widths[side] for side in "ab" for place, bit in enumerate(self.ports[f"{side}_codes"])}
        tags = {bit for side in "ab" for bit in self.ports.get(f"{side}_tag", ())}
        within = {bit: number for number, (_, total, _) in enumerate(self.sums) for bit in total}
        *low, top = self.ports["sum"]
        # Inverted, the top bit has another weight of its own added, modulo twice that.
        assert [*low, self.inverted(top) or top] in [total for _, total, _ in self.sums]
        for columns, total, _ in self.sums:
            weights = {}
            for place, bit in ((place, bit) for place, bits in columns.items() for bit in bits):
                depends = self.inputs(bit) - tags
                if depends <= set(lanes):
                    assert len({lanes[source] for source in depends}) == 1, "a bit depends on several lanes"
                    continue
                (source,) = depends
                assert source in (bit, self.inverted(bit)), "more than a bit of another sum"
                weights[source] = weights.get(source, 0) + ((1 if bit == source else -1) << place)
            for number in {within[bit] for bit in weights}:
                columns, bits, constant = self.sums[number]
                largest = constant + sum(len(column) << place for place, column in columns.items())
                assert largest < 1 << len(bits), "another sum may overflow"
                unit = weights[bits[0]]
                shares = [(weights.get(bit, 0) - (unit << place)) % (1 << len(total)) for place, bit in enumerate(bits)]
                assert not any(shares), "another sum is not taken by weight"


PAIRS = (("nvfp4", "nvfp4"), ("mixfp4", "mixfp4"), ("nvfp4", "mixfp4"), ("nvint4", "nvint4"))
RAZER = ("razer-activations", "razer-weights")
LONG = (("int8", "int8"), ("int8", "int4"), ("int8", "ternary"), ("mxint8", "mxint8"), ("mxfp6-e2m3", "mxfp6-e2m3"))
FORMS = {
    f"{a}-{b}-{dot}": TensorCoreConfig("x", a, b, 1, 1, 1, dot)
    for a, b in (*PAIRS, RAZER, *LONG)
    for dot in ("merged", "merged-timed", "merged-binary", "signed", "binary", "booth")
    if dot in supported(BLOCK_FORMATS[a], BLOCK_FORMATS[b])
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("config", FORMS.values(), ids=FORMS)
def test_lanes_are_added_one_by_one(config, prover):
    found = Sums(config, prover)
    found.check()
    for columns, total, constant in found.sums if "binary" not in config.dot else ():
        counts = {place: len(bits) for place, bits in columns.items()}
        assert adds_by_weight(Columns(counts, len(total), constant, late=config.dot == "merged-timed"), prover)


def test_planted_errors_are_refused(prover):
    found = Sums(FORMS["mixfp4-mixfp4-merged"], prover)
    columns, total, constant = max(found.sums, key=lambda each: len(each[1]))
    counts = {place: len(bits) for place, bits in columns.items()}
    assert not adds_by_weight(Columns(counts, len(total), constant, moved=1), prover)
    # A gate reads another lane.
    kind, inputs = found.gates[columns[3][0]]
    found.gates[columns[3][0]] = kind, [*inputs, columns[3][1]]
    with pytest.raises(AssertionError, match="several lanes"):
        found.check()


def dot_product(config, name):
    """RTLIL of a dot product, and the widths of its ports."""
    block = DotProduct(config)
    ports = {port: Value.cast(getattr(block, port)) for port in block.signature.members}
    text = rtlil.convert(block, name=name, ports=list(ports.values()), emit_src=False)
    return text, {port: len(value) for port, value in ports.items()}


TREES = {
    f"{a}-{b}-{dot}": TensorCoreConfig("x", a, b, 1, 1, 1, dot, pipeline=("tree",))
    for a, b in (("nvfp4", "nvfp4"), ("mixfp4", "mixfp4"), ("nvfp4", "mixfp4"))
    for dot in DOTS
    if dot in supported(BLOCK_FORMATS[a], BLOCK_FORMATS[b])
}
TREES |= {f"{name}-tree": dataclasses.replace(FORMS[name], pipeline=("tree",)) for name in FORMS if "booth" in name}
TREES |= {
    f"{a}-{b}-words": TensorCoreConfig("x", a, b, 1, 1, 1, "shifted-carry-save", pipeline=("tree",))
    for a, b in (("mxfp6-e2m3", "mxfp6-e2m3"), ("mxfp8-e4m3", "mxfp4"), ("int8", "int8"))
}
TREES["hif4-tree"] = TensorCoreConfig("x", "hif4", "hif4", 1, 1, 1, "nested", pipeline=("tree",))


def outputs(ports):
    """Names and widths of what a dot product gives, which are no longer among its ports then."""
    return {name: ports.pop(name) for name in ("sum", "below") if name in ports}


def through(self, m, register, enable, values):
    """A register that does not wait."""
    assert register in self.config.pipeline
    return {name: Cat(value) for name, value in values.items()}


def blocked(self, m, register, enable, values):
    """A register that never loads."""
    return {name: Const(0, len(value)) for name, value in values.items()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("config", TREES.values(), ids=TREES)
def test_nothing_passes_the_register_by(config, prover):
    with mock.patch.object(Block, "held", blocked):
        text, ports = dot_product(config, "top")
    found = outputs(ports)
    inputs = ", ".join(f"input [{bits - 1}:0] {name}, {name}_too" for name, bits in ports.items())
    miter = f"""
module miter({inputs}, output wrong);
  {" ".join(f"wire [{bits - 1}:0] {name}, {name}_too;" for name, bits in found.items())}
  top first({", ".join(f".{name}({name})" for name in (*ports, *found))});
  top second({", ".join(f".{name}({name}_too)" for name in (*ports, *found))});
  assign wrong = {" || ".join(f"{name} != {name}_too" for name in found)};
endmodule
"""
    assert prover.proven(text, miter)
    with mock.patch.object(Block, "held", through):
        assert not prover.proven(dot_product(config, "top")[0], miter)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("config", TREES.values(), ids=TREES)
def test_a_register_in_the_tree_changes_nothing(config, prover):
    """But that it waits: all that is added goes through it, and what went in comes out."""
    plain = dataclasses.replace(config, pipeline=())
    with mock.patch.object(Block, "held", through):
        behind, _ = dot_product(config, "behind")
    text, ports = dot_product(plain, "top")
    found = outputs(ports)
    connected = ", ".join(f".{name}({name})" for name in ports)
    miter = f"""
module miter({", ".join(f"input [{bits - 1}:0] {name}" for name, bits in ports.items())}, output wrong);
  {" ".join(f"wire [{bits - 1}:0] {name}, {name}_too;" for name, bits in found.items())}
  top first({connected}, {", ".join(f".{name}({name})" for name in found)});
  behind second({connected}, .enable_tree(1'b1), {", ".join(f".{name}({name}_too)" for name in found)});
  assign wrong = {" || ".join(f"{name} != {name}_too" for name in found)};
endmodule
"""
    text += behind
    assert prover.proven(text, miter)
    for name in found:
        assert not prover.proven(text, miter.replace(f"!= {name}_too", f"!= {name}_too ^ (&a & &b)"))


@pytest.mark.parametrize(
    ("config", "most"),
    [("mxint8-mxint8-booth-tree", 6), ("int8-int8-booth-tree", 2), ("mxfp6-e2m3-mxfp6-e2m3-words", 6)],
)
def test_where_the_register_of_a_long_sum_stands(config, most):
    """Three levels of full adders before the last addition where 32 products are long, and else right before it."""
    held = []

    def seen(self, m, register, enable, values):
        held.append({name: len(value) for name, value in values.items()})
        return through(self, m, register, enable, values)

    with mock.patch.object(Block, "held", seen):
        dot_product(TREES[config], "top")
    (words,) = held
    columns = max(words.values()) if "booth" in config else sum(name in "xyuvst" for name in words)
    assert columns == most
