"""Shrinking of what fails, and the file that keeps it."""

import dataclasses
import io
from itertools import pairwise

import numpy as np
import pytest

from hwgen.config import TensorCoreConfig
from hwgen.errors import InputError, ToolError
from sim import verify
from sim.engines import Pattern
from sim.steps import elements
from sim.verify import reproducer

CORE = TensorCoreConfig("core", "mixfp4", "mixfp4", 3, 2, 2)
TURNS = dataclasses.replace(CORE, pipeline=("operands", "aligned", "total"))
EXACT = dataclasses.replace(CORE, numerics="exact")
SLOT = dataclasses.replace(CORE, slot="full")

cores = pytest.mark.parametrize("core", [CORE, TURNS, EXACT, SLOT], ids=["one", "turns", "exact", "slot"])


def failing(engine):
    """The first batch on which an engine fails."""
    for batch in range(20):
        stimulus = verify.stimulus_of(engine.config, 5, batch, 300)
        if verify.check(engine, stimulus):
            return stimulus
    raise AssertionError("the engine never fails")


@cores
def test_what_remains_is_what_the_fault_needs(core, wrong):
    engine = wrong(core)
    stimulus = failing(engine)
    small = verify.shrink(engine, stimulus)
    assert verify.check(engine, small) is not None
    steps = small.steps
    # One step is wrong; with T tiles by turns, and from then on, those before it may be needed to make its turn.
    assert len(steps) <= core.interleave
    assert np.count_nonzero(steps.a_codes) == np.count_nonzero(steps.b_codes) == 1
    assert (steps.a_codes[-1, 1, 5], steps.b_codes[-1, 0, 5]) == (3, 13)
    assert np.count_nonzero(steps.b_scales) == 1
    assert np.count_nonzero(steps.a_scales) == np.count_nonzero(steps.c) == 0
    assert steps.last.sum() == 1
    assert not any(array.any() for array in (steps.half, steps.a_types, steps.b_types))
    for pattern in small.patterns.values():
        assert pattern.bits.all()


def test_every_part_of_what_remains_is_needed(wrong):
    engine = wrong(CORE)
    small = verify.shrink(engine, failing(engine)).steps
    for name in ("a_codes", "b_codes", "b_scales"):
        cells = np.argwhere(getattr(small, name))
        assert len(cells) == 1
        array = getattr(small, name).copy()
        array[tuple(cells[0])] = 0
        mended = dataclasses.replace(small, **{name: array})
        always = Pattern(np.ones(1, bool))
        assert verify.check(engine, verify.Stimulus(mended, always, always, always)) is None


class WrongAtHalfRate:
    """One bit of a result is wrong where E2M3 meets 0xc1 of E5M2 in the third slot of a step at half the rate."""

    name = "wrong at half rate"

    def __init__(self, oracle):
        self.oracle, self.config = oracle, oracle.config

    def run(self, steps, **streams):
        run = self.oracle.run(steps, **streams)
        hit = steps.half & (steps.a_types == 3) & (steps.b_types == 1) & (elements(steps.b_codes)[:, 1, 2] == 0xC1)
        run.results[hit[steps.last], 0, 1] ^= 1
        return run


def test_what_a_fault_at_half_rate_needs(oracle, tmp_path):
    engine = WrongAtHalfRate(oracle(SLOT))
    small = verify.shrink(engine, failing(engine))
    steps = small.steps
    assert len(steps) == 1
    assert steps.half.all()
    assert (steps.a_types[0], steps.b_types[0]) == (3, 1)
    assert np.argwhere(steps.b_codes).tolist() == [[0, 1, 4], [0, 1, 5]]
    assert not any(array.any() for array in (steps.a_codes, steps.c, steps.a_scales, steps.b_scales))
    verify.save(tmp_path / "vectors.npz", small, {})
    read = verify.load(tmp_path / "vectors.npz")
    assert verify.check(engine, read) == verify.check(engine, small) is not None
    assert verify.check(oracle(SLOT), read) is None


class Impatient:
    """Hangs where a result is not taken in two cycles in a row, both before the tenth."""

    name = "impatient"

    def __init__(self, oracle):
        self.oracle, self.config = oracle, oracle.config

    def run(self, steps, *, offer, take, **other):
        waits = [not take(cycle) for cycle in range(10)]
        if any(first and second for first, second in pairwise(waits)):
            raise ToolError("core: stuck")
        return self.oracle.run(steps)


def test_stalls_that_are_needed_stay(oracle):
    engine = Impatient(oracle(CORE))
    stimulus = verify.stimulus_of(CORE, 1, 0, 50)
    bits = np.random.default_rng(0).random(500) < 0.4
    small = verify.shrink(engine, dataclasses.replace(stimulus, take=Pattern(bits)))
    assert (~small.take.bits).sum() == 2
    assert small.offer.bits.all()
    assert len(small.steps) == 1
    assert verify.check(engine, small) == verify.Mismatch(1, "core: stuck")


def test_shrinking_comes_to_an_end(wrong, monkeypatch):
    monkeypatch.setattr(reproducer, "MOST_RUNS", 7)
    engine = wrong(CORE)
    stimulus = failing(engine)
    engine.runs = 0
    calls = []
    small = verify.shrink(engine, stimulus, calls.append)
    assert calls == list(range(1, 8))
    assert engine.runs == 8
    assert verify.check(engine, small) is not None


def test_what_does_not_fail_is_not_shrunk(oracle):
    with pytest.raises(ValueError, match="the core computes what it should"):
        verify.shrink(oracle(CORE), verify.stimulus_of(CORE, 1, 0, 5))


# Files


@cores
def test_a_file_holds_all_of_it(core, tmp_path):
    stimulus = verify.stimulus_of(core, 2, 0, 20)
    path = tmp_path / "a b'c\";d" / "vectors.npz"
    verify.save(path, stimulus, {"seed": 2})
    read = verify.load(path)
    assert read.steps.config == core
    for field in dataclasses.fields(stimulus.steps):
        np.testing.assert_array_equal(getattr(read.steps, field.name), getattr(stimulus.steps, field.name))
    for name, pattern in stimulus.patterns.items():
        np.testing.assert_array_equal(read.patterns[name].bits, pattern.bits)
    with np.load(path, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["expected"], stimulus.steps.expected())
    assert [file.name for file in path.parent.iterdir()] == ["vectors.npz"]


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        verify.save(tmp_path / "vectors.npz", verify.stimulus_of(CORE, 2, 0, 20), {})
    assert list(tmp_path.iterdir()) == []


def changed(path, **arrays):
    """Write a file with other arrays in it."""
    with np.load(path, allow_pickle=False) as file:
        content = dict(file) | arrays
    np.savez(path, **{name: array for name, array in content.items() if array is not None})


BAD = {
    "text": (lambda path: path.write_text("no archive"), "not what 'hwgen verify' writes"),
    "empty": (lambda path: path.write_bytes(b""), "not what 'hwgen verify' writes"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:900]), "not what 'hwgen verify' writes"),
    "one array": (lambda path: path.write_bytes(array_file()), "not an .npz file"),
    "pickle": (lambda path: changed(path, c=np.array([{}], object)), "not what 'hwgen verify' writes"),
    "missing": (lambda path: changed(path, c=None), "array 'c' is missing"),
    "about": (lambda path: changed(path, about=np.array("[1")), "not what 'hwgen verify' writes"),
    "list": (lambda path: changed(path, about=np.array("[1]")), "not what 'hwgen verify' writes"),
    "format": (lambda path: changed(path, about=np.array('{"format": "x"}')), "format 'x'; this hwgen reads"),
    "shape": (lambda path: changed(path, c=np.zeros((1, 2), np.uint32)), r"c is uint32 \(1, 2\); must be uint32 \(20,"),
    "type": (lambda path: changed(path, last=np.ones(20, np.uint8)), r"last is uint8 \(20,\); must be bool \(20,\)"),
    "no steps": (lambda path: changed(path, first=np.ones(0, bool)), "must be"),
    "scalar": (lambda path: changed(path, first=np.bool_(True)), r"must be bool \(count,\)"),
    "codes": (lambda path: changed(path, a_codes=np.full((20, 3, 32), 16, np.uint8)), "holds 16; codes are 0 to 15"),
    "no supply": (lambda path: changed(path, supply=None), "array 'supply' is missing"),
    "never": (lambda path: changed(path, take=np.zeros(5, bool)), "take is never true"),
    "no result": (lambda path: changed(path, last=np.zeros(20, bool)), "last is never set; there would be no result"),
    "first": (lambda path: changed(path, first=np.zeros(20, bool)), "first must be set in the first 1 steps"),
}


def array_file():
    content = io.BytesIO()
    np.save(content, np.zeros(3))
    return content.getvalue()


@pytest.mark.parametrize(("damage", "message"), BAD.values(), ids=BAD)
def test_bad_files(damage, message, tmp_path):
    path = tmp_path / "vectors.npz"
    verify.save(path, verify.stimulus_of(CORE, 2, 0, 20), {})
    damage(path)
    with pytest.raises(InputError, match=message) as caught:
        verify.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"half": None}, "array 'half' is missing"),
        ({"half": np.zeros(20, np.uint8)}, r"half is uint8 \(20,\); must be bool \(20,\)"),
        ({"a_types": np.zeros(3, np.uint8)}, r"a_types is uint8 \(3,\); must be uint8 \(20,\)"),
        ({"b_types": np.full(20, 8, np.uint8)}, "b_types holds 8; codes are 0 to 7"),
    ],
)
def test_bad_modes(damage, message, tmp_path):
    path = tmp_path / "vectors.npz"
    verify.save(path, verify.stimulus_of(SLOT, 2, 0, 20), {})
    changed(path, **damage)
    with pytest.raises(InputError, match=message):
        verify.load(path)


def test_cores_without_a_slot_have_files_without_modes(tmp_path):
    """As they were before there were slots; a file with modes says so by its format, for those that know none."""
    for core, number in ((CORE, 2), (SLOT, 3)):
        path = tmp_path / f"{number}.npz"
        verify.save(path, verify.stimulus_of(core, 2, 0, 20), {})
        with np.load(path, allow_pickle=False) as arrays:
            assert f'"format": "hwgen-vectors {number}"' in str(arrays["about"])
            assert ("half" in arrays) == core.slotted


def test_a_tile_too_deep_for_its_core(tmp_path):
    path = tmp_path / "vectors.npz"
    core = TensorCoreConfig("core", "mixfp4", "mixfp4", 1, 1, 1, numerics="exact", largest_depth=4096)
    verify.save(path, verify.stimulus_of(core, 2, 0, 300), {})
    changed(path, first=np.arange(300) == 0)
    with pytest.raises(InputError, match=r"vectors .*vectors\.npz': K = 4800: core accumulates exactly up to K = 4096"):
        verify.load(path)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match=r"absent\.npz': No such file"):
        verify.load(tmp_path / "absent.npz")
    with pytest.raises(InputError, match="Is a directory"):
        verify.load(tmp_path)
