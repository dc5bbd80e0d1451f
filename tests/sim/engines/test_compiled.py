"""Choice of an engine, the C++ compiler and the cache of compiled simulators."""

import dataclasses
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError, ToolError
from hwgen.rtl.hierarchy import Block, add_child
from hwgen.rtl.tensor_core import TensorCore
from sim.engines import AmaranthEngine, CompiledEngine, available, compiled, engine
from sim.random import random_steps

CONFIG = TensorCoreConfig("cached", "nvfp4", "nvfp4", 1, 1, 1)
AWKWARD = "a b'c\";d$e"

needs_compiler = pytest.mark.skipif(not available(), reason="no C++ compiler: set CXX, or put c++ on PATH")


class Toy(TensorCore):
    """A core that answers the C of the last first step: it takes a fraction of a second to compile."""

    def elaborate(self, platform):
        m = Module()
        step, addend = self.step, self.addend
        stored = Signal.like(self.result.payload)
        waiting, moving, begins = Signal(), Signal(), Signal()
        m.d.comb += [
            moving.eq(self.result.ready | ~waiting),
            begins.eq(step.valid & step.payload.first),
            step.ready.eq(moving & (~begins | addend.valid)),
            addend.ready.eq(moving & begins),
            self.result.payload.eq(stored),
            self.result.valid.eq(waiting),
        ]
        with m.If(moving):
            m.d.sync += waiting.eq(step.valid & step.ready & step.payload.last)
        with m.If(addend.valid & addend.ready):
            m.d.sync += stored.eq(addend.payload)
        return m


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(compiled, "TensorCore", Toy)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache in a directory with an awkward name."""
    # Not by XDG_CACHE_HOME, which holds the cache of Yosys too.
    directory = tmp_path / AWKWARD / "engines"
    monkeypatch.setattr(compiled, "cache_directory", lambda name: directory)
    return directory


@pytest.fixture
def compilations(tmp_path, monkeypatch):
    """Puts a C++ compiler at an awkward path that counts its calls; returns the counter."""
    log = tmp_path / "log"
    log.touch()
    wrapper = tmp_path / AWKWARD / "c++ 'x'"
    wrapper.parent.mkdir(exist_ok=True)
    real = shlex.quote(compiled._compiler()[0])
    wrapper.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] || echo x >>{shlex.quote(str(log))}\nexec {real} "$@"\n', encoding="utf-8"
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", shlex.quote(str(wrapper)))
    return lambda: len(log.read_text().split())


def works(made):
    steps = random_steps(CONFIG, 20, np.random.default_rng(0))
    begins = np.maximum.accumulate(np.where(steps.first, np.arange(20), 0))
    np.testing.assert_array_equal(made.run(steps).results, steps.c[begins][steps.last])


@needs_compiler
def test_second_engine_is_not_compiled(cache, compilations):
    for _ in range(2):
        works(CompiledEngine(CONFIG))
    assert compilations() == 1
    assert len(list(cache.iterdir())) == 1


@needs_compiler
@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "missing"])
def test_damaged_entry_is_compiled_again(damage, cache, compilations):
    CompiledEngine(CONFIG)
    (entry,) = cache.iterdir()
    content = entry.read_bytes()
    if damage == "missing":
        entry.unlink()
    else:
        changed = bytearray(content)
        changed[len(content) // 2] ^= 1
        # A file of its own: the one above is mapped into this process.
        entry.unlink()
        entry.write_bytes({"truncated": content[:-100], "changed": bytes(changed), "empty": b""}[damage])
    works(CompiledEngine(CONFIG))
    assert compilations() == 2
    assert [path.read_bytes() for path in cache.iterdir()] == [content]


@needs_compiler
def test_entry_that_does_not_load_is_compiled_again(cache, compilations):
    CompiledEngine(CONFIG)
    (entry,) = cache.iterdir()
    foreign = b"\x7fELF of another machine"
    key = entry.stem.split("-")[0]
    entry.unlink()
    (cache / f"{key}-{compiled._digest(foreign)}.so").write_bytes(foreign)
    works(CompiledEngine(CONFIG))
    assert compilations() == 2


@needs_compiler
def test_key_depends_on_everything(cache, compilations, monkeypatch):
    CompiledEngine(CONFIG)
    CompiledEngine(TensorCoreConfig("cached", "nvfp4", "nvfp4", 1, 2, 1))
    monkeypatch.setattr(compiled, "_FLAGS", (*compiled._FLAGS, "-g0"))
    CompiledEngine(CONFIG)
    works(CompiledEngine(CONFIG, long=True))
    assert compilations() == len(list(cache.iterdir())) == 4
    # The name is no part of the hardware.
    CompiledEngine(TensorCoreConfig("other", "nvfp4", "nvfp4", 1, 1, 1))
    assert compilations() == 4


@needs_compiler
def test_two_processes_at_once(cache, compilations):
    script = (
        "import runpy\n"
        "from pathlib import Path\n"
        "from sim.engines import compiled, CompiledEngine\n"
        "from hwgen.config import TensorCoreConfig\n"
        f"compiled.TensorCore = runpy.run_path({__file__!r})['Toy']\n"
        f"compiled.cache_directory = lambda name: Path({str(cache)!r})\n"
        f"CompiledEngine(TensorCoreConfig(**{CONFIG.as_dict()!r}))\n"
    )
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    both = [subprocess.Popen([sys.executable, "-c", script], env=environment) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    before = compilations()
    works(CompiledEngine(CONFIG))
    assert compilations() == before <= 2


@needs_compiler
@pytest.mark.parametrize("place", ["file", "nowhere"])
def test_nowhere_to_keep_it(place, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    directory = tmp_path / "file" / "engines" if place == "file" else None
    monkeypatch.setattr(compiled, "cache_directory", lambda name: directory)
    works(CompiledEngine(CONFIG))


@needs_compiler
def test_arguments_in_cxx(cache, monkeypatch):
    real = compiled._compiler()[0]
    monkeypatch.setenv("CXX", f"{shlex.quote(real)} -DUNUSED='\"a b\"'")
    works(CompiledEngine(CONFIG))


def refused(message):
    with pytest.raises(InputError, match=message) as caught:
        engine(CONFIG, "compiled")
    assert "\n" not in str(caught.value)


def test_no_compiler(tmp_path, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not available()
    refused(r"engine 'compiled' needs a C\+\+ compiler: none of .* is on PATH; install g\+\+ or clang")
    assert isinstance(engine(CONFIG), AmaranthEngine)


@pytest.mark.parametrize("value", ["no-such-compiler", "/no/such compiler", "unclosed 'quote"])
def test_cxx_that_is_not_there(value, monkeypatch):
    monkeypatch.setenv("CXX", value)
    assert not available()
    refused(r"CXX = .* is not there")
    assert engine(CONFIG, "auto").name == "python"


def test_compiler_that_fails(cache, tmp_path, monkeypatch):
    false = tmp_path / "false"
    false.write_text("#!/bin/sh\ncat >/dev/null\necho 'x.h: fatal error: no headers' >&2\nexit 1\n")
    false.chmod(0o755)
    monkeypatch.setenv("CXX", shlex.quote(str(false)))
    refused("cannot compile the simulator: x.h: fatal error: no headers")
    assert not cache.exists()


def test_compiler_that_cannot_be_run(cache, tmp_path, monkeypatch):
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", shlex.quote(str(broken)))
    refused("cannot be run")


@pytest.mark.parametrize("name", ["", "abacus", "Python"])
def test_unknown_engine(name):
    with pytest.raises(InputError, match=rf"engine '{name}': must be one of auto, python, compiled"):
        engine(CONFIG, name)


def test_python_engine_by_name():
    made = engine(CONFIG, "python")
    assert (made.name, made.config) == ("python", CONFIG)


@needs_compiler
def test_auto_prefers_the_compiled_engine(cache, monkeypatch):
    assert shutil.which(compiled._compiler()[0])
    made = engine(CONFIG)
    assert (made.name, made.config) == ("compiled", CONFIG)


# Designs that one pass per cycle simulates only with care, or not at all


def all_first(steps):
    """The steps with a C for each."""
    return dataclasses.replace(steps, first=np.ones_like(steps.first))


class Bypass(Block):
    """A register, and a combinational path past it."""

    module_name = "bypass"
    registers = True

    def __init__(self, config):
        super().__init__(config, {"value": In(32), "register": Out(32), "both": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.register.eq(self.value)
        m.d.comb += self.both.eq(self.register + self.value)
        return m


class Bypassed(TensorCore):
    """A core that adds C to the C of the cycle before: outputs with a register and without go into registers."""

    def elaborate(self, platform):
        m = Module()
        payload = self.step.payload
        child = add_child(m, platform, "child", Bypass, self.config)
        stored, waiting = Signal(32), Signal()
        m.d.comb += [
            child.value.eq(self.addend.payload.as_value()),
            self.step.ready.eq(1),
            self.addend.ready.eq(1),
            self.result.valid.eq(waiting),
            self.result.payload.as_value().eq(stored + child.register),
        ]
        m.d.sync += [waiting.eq(self.step.valid & payload.last), stored.eq(child.both)]
        return m


@needs_compiler
def test_child_with_a_path_past_its_register(cache, monkeypatch):
    monkeypatch.setattr(compiled, "TensorCore", Bypassed)
    steps = all_first(random_steps(CONFIG, 20, np.random.default_rng(0)))
    c = steps.c.astype(np.uint64)
    before = np.concatenate([np.zeros_like(c[:1]), c[:-1]])
    want = (2 * c + before).astype(np.uint32)[steps.last]
    np.testing.assert_array_equal(CompiledEngine(CONFIG).run(steps).results, want)


class Ripple(TensorCore):
    """A signal whose bits depend on one another."""

    def elaborate(self, platform):
        m = Module()
        payload = self.step.payload.as_value()
        chain, stored, waiting = Signal(32), Signal(32), Signal()
        c = self.addend.payload.as_value()
        m.d.comb += [chain[i].eq(c[i] ^ (chain[i - 1] if i else payload[-1])) for i in range(32)]
        m.d.comb += [
            self.step.ready.eq(1),
            self.addend.ready.eq(1),
            self.result.valid.eq(waiting),
            self.result.payload.as_value().eq(stored),
        ]
        m.d.sync += [waiting.eq(self.step.valid & self.step.payload.last), stored.eq(chain)]
        return m


@needs_compiler
def test_a_chain_through_the_bits_of_one_signal(cache, monkeypatch):
    monkeypatch.setattr(compiled, "TensorCore", Ripple)
    steps = all_first(random_steps(CONFIG, 20, np.random.default_rng(0)))
    chain = (steps.c.view(np.uint32)[..., None] >> np.arange(32, dtype=np.uint32)) & 1
    chain[..., 0] ^= steps.last[:, None, None]
    bits = np.bitwise_xor.accumulate(chain, axis=-1)
    want = (bits.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(-1).astype(np.uint32)
    np.testing.assert_array_equal(CompiledEngine(CONFIG).run(steps).results, want[steps.last])


class Loop(TensorCore):
    """A child whose output depends on the input that it drives; Amaranth does not look into children."""

    def elaborate(self, platform):
        m = Module()
        child = add_child(m, platform, "child", Bypass, self.config)
        m.d.comb += [child.value.eq(child.both), self.result.payload.as_value().eq(child.register)]
        return m


@needs_compiler
def test_loops_are_refused(cache, monkeypatch):
    monkeypatch.setattr(compiled, "TensorCore", Loop)
    with pytest.raises(ToolError, match="module 'core' has combinational loops"):
        CompiledEngine(CONFIG)
