"""Whatever is in a file, reading it gives a result or one line that names the file: no traceback, no hang.

``HWGEN_FUZZ=20000`` (or ``make fuzz``) tries as many damaged files of each kind; by default there are a few.
"""

import dataclasses
import gzip
import io
import json
import os
import re
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from hwgen import config
from hwgen.cells import libraries, reader
from hwgen.cells.liberty import merge, read_text
from hwgen.cells.library import Library
from hwgen.cost import workloads
from hwgen.cost.grid import Memory
from hwgen.cost.model import EnergyCosts
from hwgen.errors import InputError, ToolError
from hwgen.files import write_all
from hwgen.measure.workloads import cores, cost
from hwgen.netlist.link import link
from hwgen.power import activity
from hwgen.power import estimate as power
from hwgen.report import kinds, schema
from hwgen.report.beside import beside
from hwgen.report.markdown import cost as cost_tables
from hwgen.timing import analysis as timing
from sim import golden, operands, tensors
from sim.verify import reproducer
from sim.verify.stimulus import draw

EXAMPLES = int(os.environ.get("HWGEN_FUZZ", "0"))
SECONDS = 60  # what no damaged file of a few kilobytes may take
REPORTS = Path(__file__).parents[2] / "reports"

NASTY = [
    *(
        b"nan",
        b"inf",
        b"-1",
        b"0",
        b"1e999",
        b"1e308",
        b"-1e-320",
        b"9" * 5000,
        b"9223372036854775808",
        b"0x10",
        b"1_0",
    ),
    *(b"true", b"null", b"[]", b"{}", b'""', b"''", b'"', b"'", b"\\", b"$x", b"$", b"%s", b"{0}", b"*", b"..", b";"),
    *(b"\0", b"\xff\xfe", b"\xc3\x28", b"\xef\xbb\xbf", b"\r", b"\n", b"\x1b[2J", b"\\ud800", "\u202e".encode()),
    *(b"[" * 20000, b"(" * 20000, b"{" * 20000, b"a {" * 5000, b"!" * 20000, b"}" * 9, b'{"a":' * 5000, b"a." * 5000),
]
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@st.composite
def damages(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """One way of damaging a file."""
    places = st.integers(0, (1 << 30) - 1)
    kind = draw(
        st.sampled_from(["cut", "byte", "bit", "insert", "number", "remove", "line", "again", "swap", "utf-16"])
    )
    here, there, nasty = draw(places), draw(places), draw(st.sampled_from(NASTY) | st.binary(max_size=8))
    if kind == "line" or kind == "again" or kind == "swap":

        def lines(data: bytes) -> bytes:
            parts = data.splitlines(keepends=True) or [b""]
            i, j = here % len(parts), there % len(parts)
            if kind == "swap":
                parts[i], parts[j] = parts[j], parts[i]
            else:
                parts[i : i + 1] = [] if kind == "line" else [parts[i], parts[i]]
            return b"".join(parts)

        return lines

    def anywhere(data: bytes) -> bytes:
        i = here % (len(data) + 1)
        if kind == "cut":
            return data[:i]
        if kind == "byte":
            return data[:i] + bytes([there % 256]) + data[i + 1 :]
        if kind == "bit":
            return data[:i] + bytes(byte ^ 1 << there % 8 for byte in data[i : i + 1]) + data[i + 1 :]
        if kind == "insert":
            return data[:i] + nasty + data[i:]
        if kind == "remove":
            return data[:i] + data[i + there % 64 :]
        if kind == "number":
            found = list(NUMBER.finditer(data))
            if not found:
                return nasty
            match = found[here % len(found)]
            return data[: match.start()] + nasty + data[match.end() :]
        return data.decode("latin-1").encode("utf-16")

    return anywhere


def damaged(data: bytes) -> st.SearchStrategy[bytes]:
    """The file, damaged in one to four places; or not a file of its kind at all."""

    def after(steps: list[Callable[[bytes], bytes]]) -> bytes:
        found = data
        for step in steps:
            found = step(found)
        return found

    return st.lists(damages(), min_size=1, max_size=4).map(after) | st.binary(max_size=100)


def fuzzed(examples: int) -> settings:
    """So many examples in the tests, and as many as HWGEN_FUZZ says in a campaign."""
    return settings(
        max_examples=EXAMPLES or examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    )


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Allow the errors that the command line turns into one line; all else, warnings included, fails the test."""

    def late(*_: object) -> None:
        raise AssertionError(f"not done within {SECONDS} s")

    refusal = None
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    except (InputError, golden.ArgumentError) as error:
        refusal = str(error)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert refusal is None or path.name in refusal or "cell" in refusal, refusal


def _toml() -> bytes:
    return b"""# a core
name = "tiny"
a = "nvfp4"
b = "mixfp4"
rows = 4
columns = 8
groups = 2
dot = "merged"
fraction_bits = 35
rounding = "toward_zero"
pipeline = ["operands", "terms"]
"""


@fuzzed(60)
@given(damaged(_toml()))
def test_configuration_files(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "core.toml"
    path.write_bytes(data)
    for read in (config.resolve, config.resolve_pair):
        with refusals(path):
            read(str(path))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@fuzzed(60)
@given(st.sampled_from(sorted(config.NAMED["mixfp4-small"].as_dict())), _VALUES)
def test_values_of_a_configuration(field: str, value: Any) -> None:
    with suppress(InputError):
        config.TensorCoreConfig(**{**config.NAMED["mixfp4-small"].as_dict(), field: value})


def _npy() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.arange(64, dtype=np.float32).reshape(4, 16))
    return stream.getvalue()


def _safetensors() -> bytes:
    return save({"a": np.ones((2, 16), np.float32), "w": np.ones((3, 32), np.float16)})


@fuzzed(60)
@given(st.sampled_from([(".npy", None), (".safetensors", "w")]), st.data())
def test_tensor_files(tmp_path: Path, kind: tuple[str, str | None], data: st.DataObject) -> None:
    suffix, name = kind
    path = tmp_path / f"tensor{suffix}"
    path.write_bytes(data.draw(damaged(_npy() if name is None else _safetensors())))
    with refusals(path):
        tensor = tensors.load(path, name)
        assert np.isfinite(tensor).all()


def _packed(suffix: str) -> bytes:
    parts = operands.packed("w", golden.quantize(np.arange(64, dtype=np.float32).reshape(2, 32), "mixfp4"))
    if suffix == ".safetensors":
        return save(parts)
    stream = io.BytesIO()
    np.savez(stream, **parts)  # type: ignore[arg-type,unused-ignore]
    return stream.getvalue()


@fuzzed(80)
@given(st.sampled_from([".npz", ".safetensors"]), st.data())
def test_codes_and_scales(tmp_path: Path, suffix: str, data: st.DataObject) -> None:
    path = tmp_path / f"operand{suffix}"
    path.write_bytes(data.draw(damaged(_packed(suffix))))
    with refusals(path):
        operand = operands.from_file(path, "w", "A")
        assert operand.quantized("mixfp4").codes.max() < 16


def _vectors(numerics: str) -> bytes:
    core = config.TensorCoreConfig("tiny", "mixfp4", "mixfp4", 1, 1, 1, numerics=numerics)
    stimulus = draw(core, 6, np.random.default_rng(1))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "vectors.npz"
        reproducer.save(path, stimulus, {})
        return path.read_bytes()


@fuzzed(80)
@given(st.sampled_from([_vectors(numerics) for numerics in config.NUMERICS]).flatmap(damaged))
def test_vectors(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "vectors.npz"
    path.write_bytes(data)
    with refusals(path):
        stimulus = reproducer.load(path)
        assert len(stimulus.steps.expected()) == stimulus.steps.last.sum()


LISTS = {
    ".toml": b"""title = "A model"
[[gemm]]
name = "scores"
m = "4 * queries"
n = "context"
k = 128
batch = "8 * sequences"
count = 32
why = "heads"
[[gemm]]
name = "up [x]"
m = "tokens"
n = 1024
k = 64
experts = 8
experts_per_token = 2
""",
    ".csv": b'name,m,n,k,batch,count,why\nfirst,4,16,32,1,2,"one, two"\nsecond,tokens,16,32,,,\n',
}


COMPARED = [config.TensorCoreConfig(**design.settings) for design in schema.load(REPORTS / "overhead.json").designs]
"""The designs as they were measured."""


@pytest.fixture(scope="module")
def measured() -> cores.MeasuredCores:
    return cores.read(REPORTS / "overhead.json", COMPARED)


@fuzzed(60)
@given(st.sampled_from(sorted(LISTS)), st.data())
def test_gemm_lists(tmp_path: Path, measured: cores.MeasuredCores, suffix: str, data: st.DataObject) -> None:
    path = tmp_path / f"list{suffix}"
    path.write_bytes(data.draw(damaged(LISTS[suffix])))
    with refusals(path):
        workload = workloads.load(path, "decode", 2, 64)
        with suppress(InputError):  # which need not name the file: it is in order, but its sizes are too large to count
            memory = Memory(8 << 20, 1e12)
            machine = cost.Machine(4, None, memory, EnergyCosts(), 10 * measured.clock_ns)
            content = cost.document(measured, machine, workload, {"phase": "decode", "batch": 2, "sequence": 64})
            assert schema.from_json(json.loads(schema.as_text(content))) == content
            cost_tables.markdown(content, "list.png").encode()
            cost_tables.csv(content).encode()


def _cells() -> bytes:
    """generic7 with three of its cells."""
    text = libraries.path("generic7").read_text(encoding="utf-8")
    head, *cells = re.split(r"(?m)^(?=  cell \()", text)
    kept = [cell for cell in cells if re.match(r"  cell \((INV_X1|NAND2_XP33|DFF_X4)\)", cell)]
    assert len(kept) == 3
    return (head + "".join(kept) + "}\n").encode()


NETS = {
    "ports": {
        name: {"direction": way, "bits": [bit]}
        for name, way, bit in (("ck", "input", 2), ("a", "input", 3), ("y", "output", 6))
    },
    "netnames": {},
}


def _used(cells: Library) -> None:
    """What a run does with a library."""
    cells.check_for_synthesis()
    merge([read_text(path)[0] for path in cells.paths])
    flip_flop, gate, inverter = cells.flip_flops()[0], cells.gates2()[0], cells.inverters()[0]
    pins = [*zip(gate.inputs, (3, 5), strict=True), (gate.outputs[0], 4)]
    body = {
        "u": {"type": gate.name, "connections": {pin: [net] for pin, net in pins}},
        "f": {"type": flip_flop.name, "connections": {pin: ["0"] for pin in flip_flop.inputs}},
        "v": {"type": inverter.name, "connections": {inverter.inputs[0]: [5], inverter.outputs[0]: [6]}},
    }
    assert flip_flop.sequential is not None
    connections = body["f"]["connections"]
    connections |= {str(flip_flop.clock_pin): [2], flip_flop.sequential.next_state.names[0]: [4]}
    connections[flip_flop.outputs[0]] = [5]
    linked = link({"t": {**NETS, "cells": body}}, "t", cells)
    found = timing.analyse(linked, clock_period=1.0, input_slew=0.01, output_load=1.0, wire_load=1.0, clock_slew=0.01)
    seen = activity.simulate(linked, {"a": np.array([[0, 1], [1, 1], [0, 0], [1, 0]])})
    spent = power.estimate(linked, found, seen, 100.0)
    assert np.isfinite([linked.area, found.delay, spent.total_fj]).all()


@fuzzed(60)
@given(st.booleans(), st.data())
def test_liberty_files(tmp_path: Path, packed: bool, data: st.DataObject) -> None:
    path = tmp_path / ("cells.lib.gz" if packed else "cells.lib")
    if not packed:
        path.write_bytes(data.draw(damaged(_cells())))
    elif data.draw(st.booleans()):
        path.write_bytes(gzip.compress(data.draw(damaged(_cells()))))
    else:
        path.write_bytes(data.draw(damaged(gzip.compress(_cells()))))
    with refusals(path), suppress(ToolError):
        _used(reader.load(path))


def _report(source: str) -> bytes:
    """A report that is there; or the table of formats beside itself at another clock, which is of another kind."""
    if source != "libraries":
        return (REPORTS / f"{source}.json").read_bytes()
    table = schema.load(REPORTS / "formats.json")
    assert isinstance(table, schema.FormatsReport)
    slower = dataclasses.replace(table, conditions=dataclasses.replace(table.conditions, clock_ns=2.0))
    return schema.as_text(beside({"formats": table, "slower": slower})).encode()


@pytest.mark.parametrize("source", ["overhead", "power", "cost-decode", "formats", "libraries"])
def test_reports(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _report(source)
    path = tmp_path / "report.json"
    # Pictures take a second; every key they read is in a table, too. A placement is in none.
    forms = {kind: dataclasses.replace(form, png=lambda report: b"") for kind, form in kinds.FORMS.items()}
    forms["formats"] = dataclasses.replace(forms["formats"], more=lambda report: {})
    monkeypatch.setattr(kinds, "FORMS", forms)

    @fuzzed(20)
    @given(damaged(whole))
    def check(data: bytes) -> None:
        path.write_bytes(data)
        for old in (*tmp_path.glob("report.[!j]*"), *tmp_path.glob("report-*")):
            old.unlink()
        with refusals(path):
            write_all(kinds.rendered_anew(path))
            return
        assert [each.name for each in tmp_path.iterdir()] == ["report.json"]

    check()


@fuzzed(40)
@given(damaged((REPORTS / "overhead.json").read_bytes()))
def test_reports_behind_a_cost(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(data)
    with refusals(path):
        cores.read(path, COMPARED)


def test_the_files_are_in_order(tmp_path: Path) -> None:
    """What is damaged above is read as it is."""
    for suffix in (".npz", ".safetensors"):
        path = tmp_path / f"operand{suffix}"
        path.write_bytes(_packed(suffix))
        operand = operands.from_file(path, "w", "A")
        assert (operand.rows, operand.depth("mixfp4")) == (2, 32)
    path = tmp_path / "cells.lib"
    path.write_bytes(_cells())
    _used(reader.load(path))
    path = tmp_path / "core.toml"
    path.write_bytes(_toml())
    assert config.resolve(str(path)).columns == 8
    for suffix, text in LISTS.items():
        path = tmp_path / f"list{suffix}"
        path.write_bytes(text)
        assert len(workloads.load(path, "decode", 2, 64).gemms) >= 2
