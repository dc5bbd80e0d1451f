"""Netlists that the translation knows compute what Yosys' cells mean; all others are refused in one line."""

import copy
import ctypes
import random

import pytest

from hwgen.config import TensorCoreConfig
from hwgen.errors import ToolError
from hwgen.rtl.hierarchy import ModuleSet
from hwgen.rtl.tensor_core import TensorCore
from hwgen.verilog import design, run_passes
from sim.engines import available, compiled
from sim.engines.translate import PASSES, netlist, translate

CONFIG = TensorCoreConfig("translated", "mixfp4", "mixfp4", 1, 1, 1, pipeline=("operands",))

needs_compiler = pytest.mark.skipif(not available(), reason="no C++ compiler: set CXX, or put c++ on PATH")


@pytest.fixture(scope="module")
def core():
    """The netlist of a core."""
    document, _ = run_passes(design(TensorCore, CONFIG, "core"), PASSES)
    return netlist(document)


def test_a_core_is_translated(core):
    text = translate(core, "core")
    # Every register of the netlist is there, and assigned and stored once.
    for name, module in core.items():
        body = text[text.index(f"struct m_{name} {{") :].split("\n};")[0]
        registers = sum(cell["type"] == "$dff" for cell in module["cells"].values())
        instances = sum(cell["type"] in core for cell in module["cells"].values())
        clocked = sum("clk" in core[cell["type"]]["ports"] for cell in module["cells"].values() if cell["type"] in core)
        assert body.count("_next;") == registers
        assert body.count("_next = ") == 2 * registers
        assert (body.count(".eval("), body.count(".commit()")) == (instances, clocked)
    assert translate(copy.deepcopy(core), "core") == text


def of_type(module, kind):
    return next(cell for cell in module["cells"].values() if cell["type"] == kind)


def clock_of_register(core):
    of_type(core["core"], "$dff")["connections"]["CLK"] = core["core"]["ports"]["rst"]["bits"]


def falling_edge(core):
    of_type(core["core"], "$dff")["parameters"]["CLK_POLARITY"] = "0"


def register_of_another_type(core):
    of_type(core["core"], "$dff")["type"] = "$sdffe"


def cell_of_another_type(core):
    of_type(core["accumulate"], "$add")["type"] = "$alu"


def module_that_is_missing(core):
    del core["scale_decoder"]


def top_that_is_missing(core):
    del core["core"]


def cells_that_are_missing(core):
    del core["element"]["cells"]


def ports_that_are_missing(core):
    del core["element"]["ports"]


def port_of_an_instance(core):
    del of_type(core["core"], "element")["connections"]["c"]


def width_of_an_instance(core):
    of_type(core["core"], "element")["connections"]["c"].pop()


def clock_of_an_instance(core):
    cell = of_type(core["core"], "element")
    cell["connections"]["clk"] = cell["connections"]["rst"] = core["core"]["ports"]["rst"]["bits"]


def cell_that_is_missing(core):
    cells = core["accumulate"]["cells"]
    del cells[next(name for name, cell in cells.items() if cell["type"] == "$add")]


def two_drivers(core):
    cells = core["accumulate"]["cells"]
    cells["again"] = copy.deepcopy(of_type(core["accumulate"], "$not"))


def width_of_a_cell(core):
    of_type(core["accumulate"], "$add")["parameters"]["A_WIDTH"] = "1"


def width_of_a_register(core):
    of_type(core["core"], "$dff")["parameters"]["WIDTH"] = "0" * 24 + "11111111"


def sign_of_one_operand(core):
    cell = of_type(core["accumulate"], "$add")
    cell["parameters"]["A_SIGNED"] = "1" if int(cell["parameters"]["B_SIGNED"], 2) == 0 else "0"


def port_of_a_cell(core):
    cell = of_type(core["accumulate"], "$mux")
    cell["connections"]["T"] = cell["connections"].pop("S")


def parameter_that_is_missing(core):
    del of_type(core["core"], "$dff")["parameters"]["WIDTH"]


def direction_of_a_port(core):
    core["accumulate"]["ports"]["d"]["direction"] = "inout"


def name_of_a_port(core):
    core["core"]["ports"]["a b"] = core["core"]["ports"].pop("rst")


def loop(core):
    cell = of_type(core["accumulate"], "$not")
    cell["connections"]["A"] = cell["connections"]["Y"]


def clock_as_data(core):
    cell = next(cell for cell in core["core"]["cells"].values() if cell["type"] == "$mux")
    cell["connections"]["S"] = core["core"]["ports"]["clk"]["bits"]


def structure(core):
    core["accumulate"]["cells"] = {"one": ["a", "list"]}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (clock_of_register, "register .* has another clock"),
        (falling_edge, "register .* has another clock"),
        (register_of_another_type, r"module 'core': cell .* is of type '\$sdffe', which this engine does not know"),
        (cell_of_another_type, r"module 'accumulate': cell .* is of type '\$alu'"),
        (module_that_is_missing, "is of type 'scale_decoder'"),
        (top_that_is_missing, "the netlist has no module 'core'"),
        (cells_that_are_missing, "structure: KeyError"),
        (ports_that_are_missing, "module 'element' of the netlist has no 'ports'"),
        (port_of_an_instance, "instance .* has other ports than module 'element'"),
        (width_of_an_instance, "instance .* has other ports than module 'element'"),
        (clock_of_an_instance, "has another clock than 'clk'"),
        (cell_that_is_missing, "has no driver"),
        (two_drivers, "net .* has two drivers"),
        (width_of_a_cell, "cell .* has another width"),
        (width_of_a_register, "register .* has another width"),
        (sign_of_one_operand, "has one signed operand and one that is not"),
        (port_of_a_cell, "has other ports"),
        (parameter_that_is_missing, "structure: KeyError"),
        (direction_of_a_port, "port 'd' is not one"),
        (name_of_a_port, "port 'a b' is not one"),
        (loop, "module 'accumulate' has combinational loops"),
        (clock_as_data, "has no driver"),
        (structure, "structure: TypeError"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_netlist_of_another_kind_is_refused(damage, message, core):
    damaged = copy.deepcopy(core)
    damage(damaged)
    with pytest.raises(ToolError, match=message) as caught:
        translate(damaged, "core")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("document", ["", "{", "[]", "{}", '{"modules": []}', "Warning: x\n{}"])
def test_text_that_is_no_netlist_is_refused(document):
    with pytest.raises(ToolError, match="no netlist in JSON"):
        netlist(document)


def compute(text, words, path):
    """A function that gives so many words of y, of a core with the inputs a and b of 256 bits."""
    driver = f"""
extern "C" __attribute__((visibility("default"))) void compute(const uint64_t *a, const uint64_t *b, uint64_t *y) {{
    core top;
    for (size_t i = 0; i < 4; i++) top.i_a.data[i] = a[i], top.i_b.data[i] = b[i];
    top.eval();
    for (size_t i = 0; i < {words}; i++) y[i] = top.o_y().data[i];
}}
"""
    runtime, _ = compiled._surroundings("driver.cc")
    compiled.build("\n".join([runtime, text, driver]), path)
    function = ctypes.CDLL(str(path)).compute

    def computed(*operands):
        given = [(ctypes.c_uint64 * 4)(*(value >> 64 * i & (1 << 64) - 1 for i in range(4))) for value in operands]
        out = (ctypes.c_uint64 * words)()
        function(*given, out)
        return sum(word << 64 * i for i, word in enumerate(out))

    return computed


@needs_compiler
def test_bits_at_equal_distances(tmp_path):
    places = [list(range(low, 256, stride)) for stride in range(1, 40) for low in (0, 5, 63, 64, 100)]
    places += [own[::-1] for own in places[::7]] + [own[::2] + own for own in places[::11]]
    bits = [place for own in places for place in own]
    chosen = " ".join(f"\\a [{place}]" for place in reversed(bits))
    modules = ModuleSet(lambda block, name, modules: "")
    modules.texts = {
        "core": "module \\core\n  wire width 256 input 1 \\a\n  wire width 256 input 2 \\b\n"
        f"  wire width {len(bits)} output 3 \\y\n  connect \\y {{ {chosen} }}\nend\n"
    }
    document, _ = run_passes(modules, "hierarchy -top core\nwrite_json")
    text = translate(netlist(document), "core")
    assert text.count("* 0x") > 100  # they are gathered together
    gather = compute(text, -(-len(bits) // 64), tmp_path / "bits.so")
    draw = random.Random(1)
    for a in [(1 << 256) - 1, int("01" * 128, 2), *(draw.getrandbits(256) for _ in range(20))]:
        assert gather(a, 0) == sum((a >> place & 1) << index for index, place in enumerate(bits))


# Cells: against Python's whole numbers

BINARY = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "xnor": lambda a, b: ~(a ^ b),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNARY = {
    "pos": lambda a, mask: a,
    "not": lambda a, mask: ~a,
    "neg": lambda a, mask: -a,
    "reduce_or": lambda a, mask: a & mask != 0,
    "reduce_bool": lambda a, mask: a & mask != 0,
    "reduce_and": lambda a, mask: a & mask == mask,
    "logic_not": lambda a, mask: a & mask == 0,
}
WIDTHS = ((1, 1, 1), (4, 7, 9), (9, 4, 5), (64, 64, 64), (64, 1, 65), (65, 70, 130), (130, 3, 128), (200, 129, 40))


def rtlil(kinds):
    """A module whose inputs a and b, of 256 bits, go into each of the cells; y has their outputs, and c slices."""
    lines, connections, offset = [], [], 0
    for number, (kind, a, b, y, signed) in enumerate(kinds):
        lines += [f"  wire width {y} \\y{number}", f"  cell ${kind} $c{number}"]
        for port, width in (("A", a), ("B", b))[: 2 if kind in BINARY else 1]:
            lines += [f"    parameter \\{port}_SIGNED {signed}", f"    parameter \\{port}_WIDTH {width}"]
            low = 255 - width if number % 2 else 0
            lines += [f"    connect \\{port} \\{port.lower()} [{low + width - 1}:{low}]"]
        lines += [f"    parameter \\Y_WIDTH {y}", f"    connect \\Y \\y{number}", "  end"]
        connections.append(f"\\y{number}")
        offset += y
    head = ["module \\core", "  wire width 256 input 1 \\a", "  wire width 256 input 2 \\b"]
    head += [f"  wire width {offset} output 3 \\y"]
    return "\n".join([*head, *lines, f"  connect \\y {{ {' '.join(reversed(connections))} }}", "end", ""])


@needs_compiler
@pytest.mark.parametrize("signed", [0, 1])
def test_cells_of_every_width(signed, tmp_path):
    kinds = [(kind, *widths, signed) for kind in (*BINARY, *UNARY) for widths in WIDTHS]
    modules = ModuleSet(lambda block, name, modules: "")
    modules.texts = {"core": rtlil(kinds)}
    # No optimisation: cells that are one and the same after it would be tested once.
    document, _ = run_passes(modules, "hierarchy -top core\nwrite_json")
    total = sum(y for *_, y, _ in kinds)
    text = translate(netlist(document), "core")
    compute_all = compute(text, -(-total // 64), tmp_path / "cells.so")

    draw = random.Random(0)
    corners = [0, (1 << 256) - 1, 1 << 255, 1, int("01" * 128, 2)]
    operands = [(a, b) for a in corners for b in corners]
    operands += [(draw.getrandbits(256), draw.getrandbits(256) >> draw.randrange(256)) for _ in range(75)]
    for operand in operands:
        got, offset = compute_all(*operand), 0
        for number, (kind, a, b, y, _) in enumerate(kinds):

            def part(value, width, low=number % 2):
                value = value >> (255 - width if low else 0) & (1 << width) - 1
                return value - (1 << width) if signed and value >> (width - 1) else value

            if kind in BINARY:
                want = BINARY[kind](part(operand[0], a), part(operand[1], b))
            else:
                want = UNARY[kind](part(operand[0], a), (1 << a) - 1)
            assert got >> offset & (1 << y) - 1 == int(want) & (1 << y) - 1, (kind, a, b, y, operand)
            offset += y
