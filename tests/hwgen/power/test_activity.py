"""Gate-level simulation: cells by the meaning of their names, random netlists, a real netlist."""

import re
from itertools import pairwise

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.netlist.link import link
from hwgen.power import activity
from hwgen.power.logic import state_names

PREFIXES = r"^(sky130_fd_sc_hd__|sg13g2_)"
SIMPLE = {
    "INV": lambda p: 1 - p[0],
    "BUF": lambda p: p[0],
    "AND": min,
    "OR": max,
    "NAND": lambda p: 1 - min(p),
    "NOR": lambda p: 1 - max(p),
    "XOR": lambda p: sum(p) % 2,
    "XNOR": lambda p: 1 - sum(p) % 2,
    "MAJ": lambda p: int(sum(p) >= 2),
    "MAJI": lambda p: int(sum(p) < 2),
}


def meaning(cell):
    """The function a cell's name promises, over {pin: 0 or 1}; None for names not understood here.

    Independent of the Liberty functions: NAND2B is a NAND with one inverted input (its pin ends in N), A21OI
    is the inverse of (A1 and A2) or B1, and so on.
    """
    if cell.sequential is not None or len(cell.outputs) != 1:
        return None
    name = re.sub(PREFIXES, "", cell.name).upper()
    name = re.sub(r"(X?P?\d+(P\d+)?(DC|R)?)?_ASAP7_75T_\w+$|_\w+$", "", name)

    def literals(values):
        # A pin called B_N or BN enters inverted; one-letter names are plain.
        return {p: v ^ (len(p) > 1 and p.endswith("N")) for p, v in values.items()}

    found = re.fullmatch(r"(CLK)?(INV|BUF|HB|N?AND|N?OR|XN?OR|MAJI?)(\d?)B{0,2}X?", name)
    if found:
        simple = SIMPLE["BUF" if found[2] == "HB" else found[2]]
        if found[3] and int(found[3]) != len(cell.inputs):
            return None
        return lambda values: simple(list(literals(values).values()))
    found = re.fullmatch(r"([AO])([\dB]+)([OA])(I?)", name)
    if found and found[1] != found[3]:
        inner, outer = (min, max) if found[1] == "A" else (max, min)

        def compound(values):
            groups = {}
            for pin, value in literals(values).items():
                groups.setdefault(pin[0], []).append(value)
            return outer(inner(group) for group in groups.values()) ^ bool(found[4])

        return compound
    if re.fullmatch(r"MUX2I?", name):
        select = "S" if "S" in cell.inputs else "S0" if "S0" in cell.inputs else None
        data = [pin for pin in cell.inputs if pin != select]
        return (lambda values: values[data[values[select]]] ^ name.endswith("I")) if select else None
    return None


def patterns(k):
    """All combinations of k bits as one cycle of 2**k streams, shape (1, 2**k, k)."""
    return (np.arange(1 << k)[:, None] >> np.arange(k) & 1)[None].astype(np.uint8)


def alone(cell, make):
    """A module with one cell between ports of the same names."""
    nets = {pin: i + 2 for i, pin in enumerate(cell.inputs + cell.outputs)}
    ports = {pin: ("input" if pin in cell.inputs else "output", [net]) for pin, net in nets.items()}
    return make(ports, {"u": (cell.name, nets)})


@pytest.mark.parametrize("real_name", ["sky130hd", "sg13g2", "asap7"], indirect=True)
def test_every_cell(real, make, real_name):
    """What ABC may use: every gate with one output."""
    known = 0
    for cell in real.cells.values():
        expected = meaning(cell)
        if expected is None:
            continue
        found = link({"t": alone(cell, make)}, "t", real)
        bits = patterns(len(cell.inputs))
        stimulus = {pin: bits[:, :, i] for i, pin in enumerate(cell.inputs)}
        seen = activity.simulate(found, stimulus)
        wanted = [expected(dict(zip(cell.inputs, row.tolist(), strict=True))) for row in bits[0]]
        assert seen.outputs[cell.outputs[0]][0, :, 0].tolist() == wanted, cell.name
        assert seen.states[0] == pytest.approx(np.full((1, len(wanted)), 1 / len(wanted)))
        known += 1
    assert known >= {"sky130hd": 250, "sg13g2": 40, "asap7": 70}[real_name]


def test_every_flip_flop(real, make):
    """Flip-flops with one data pin store it, start as if they had stored 0, and obey clear and preset."""
    generator = np.random.default_rng(3)
    for cell in real.flip_flops():
        found = link({"t": alone(cell, make)}, "t", real)
        cycles = 6
        stimulus = {
            pin: generator.integers(0, 2, (cycles, 8), dtype=np.uint8) for pin in cell.inputs if pin != cell.clock_pin
        }
        (data,) = cell.sequential.next_state.names
        seen = activity.simulate(found, stimulus)
        for stream in range(8):
            value = 0
            for cycle in range(cycles):
                now = {pin: bits[cycle, stream] for pin, bits in stimulus.items()}
                # Active low, by the names of the three libraries' pins.
                cleared = any(now[pin] == 0 for pin in now if pin in ("RESET_B", "RESETN"))
                preset = any(now[pin] == 0 for pin in now if pin in ("SET_B", "SETN"))
                if not (cleared and preset):
                    value = 0 if cleared else 1 if preset else value
                    for pin in cell.outputs:
                        expected = value ^ (pin in ("QN", "Q_N"))
                        assert seen.outputs[pin][cycle, stream, 0] == expected, cell.name
                else:
                    break
                value = int(now[data])


def test_random_netlist(real, make):
    """Bit for bit against a plain loop over cells in topological order, by the meaning of their names."""
    generator = np.random.default_rng(7)
    cells = [cell for cell in real.cells.values() if meaning(cell)]
    width, count, cycles, streams = 12, 400, 3, 70
    chosen, order = {}, []
    for i in range(count):
        cell = cells[generator.integers(len(cells))]
        recent = max(2, width + i - 60)
        nets = {pin: int(generator.integers(recent, 2 + width + i)) for pin in cell.inputs}
        if i % 50 == 0:
            nets[cell.inputs[0]] = "1"
        nets[cell.outputs[0]] = 2 + width + i
        chosen[f"c{i}"] = (cell.name, nets)
        order.append((cell, nets))
    outputs = list(range(2 + width, 2 + width + count))
    body = make({"x": ("input", list(range(2, 2 + width))), "y": ("output", outputs)}, chosen)
    found = link({"t": body}, "t", real)
    stimulus = generator.integers(0, 2, (cycles, streams, width), dtype=np.uint8)
    seen = activity.simulate(found, {"x": stimulus})
    values = np.zeros((cycles, streams, 2 + width + count), dtype=np.uint8)
    values[:, :, 2 : 2 + width] = stimulus
    for cycle in range(cycles):
        for stream in range(0, streams, 23):
            now = values[cycle, stream]
            for cell, nets in order:
                pins = {pin: 1 if nets[pin] == "1" else int(now[nets[pin]]) for pin in cell.inputs}
                now[nets[cell.outputs[0]]] = meaning(cell)(pins)
            assert np.array_equal(seen.outputs["y"][cycle, stream], now[outputs])
    toggles = np.abs(np.diff(seen.outputs["y"].astype(int), axis=0)).mean(axis=(0, 1))
    assert seen.toggles[found.ports["y"].nets] == pytest.approx(toggles)
    assert seen.ones[found.ports["y"].nets] == pytest.approx(seen.outputs["y"].mean(axis=(0, 1)))


def number(bits):
    """Unsigned value of the last axis."""
    return (bits.astype(np.int64) << np.arange(bits.shape[-1])).sum(axis=-1)


def test_mac(mac):
    """A mapped netlist with registers, against arithmetic."""
    generator = np.random.default_rng(11)
    cycles, streams = 20, 100
    stimulus = {name: generator.integers(0, 2, (cycles, streams, 32), dtype=np.uint8) for name in ("a", "b")}
    stimulus["rst"] = (generator.integers(0, 8, (cycles, streams, 1)) == 0).astype(np.uint8)
    seen = activity.simulate(mac, stimulus)
    factors = []
    for name in ("a", "b"):
        nibbles = stimulus[name].reshape(cycles, streams, 8, 4)
        factors.append(number(nibbles) - 16 * nibbles[..., 3].astype(np.int64))
    products = (factors[0] * factors[1]).sum(axis=-1)
    total = np.zeros(streams, dtype=np.int64)
    stored = np.zeros(streams, dtype=np.int64)
    for cycle in range(cycles):
        assert np.array_equal(number(seen.outputs["acc"][cycle]), total % 65536)
        parity = (total % 65536 != 0) ^ (stimulus["a"][cycle, :, 0] == 1)
        assert np.array_equal(seen.outputs["any"][cycle, :, 0], parity)
        total = np.where(stimulus["rst"][cycle, :, 0] == 1, 0, total + stored)
        stored = products[cycle]
    assert seen.toggles[mac.clock_net] == 2.0
    for name in ("a", "acc"):
        bits = stimulus["a"] if name == "a" else seen.outputs["acc"]
        rates = np.mean([np.abs(p.astype(int) - q) for p, q in pairwise(bits)], axis=(0, 1))
        assert seen.toggles[mac.ports[name].nets] == pytest.approx(rates)
    for group, states in zip(mac.groups, seen.states, strict=True):
        names = state_names(group.cell)
        assert states.shape == (len(group.cells), 1 << len(names))
        assert states.sum(axis=1) == pytest.approx(1.0)
        for i, name in enumerate(names):
            if name in group.cell.inputs:
                marginal = states[:, np.arange(states.shape[1]) >> i & 1 == 1].sum(axis=1)
                nets = group.inputs[:, group.cell.inputs.index(name)]
                assert marginal == pytest.approx(seen.ones[nets])


@pytest.fixture(scope="module")
def counter(make, tiny):
    """A flip-flop that toggles, with an enable that is one input of a NAND, and its reset."""
    ports = {"ck": ("input", [2]), "rn": ("input", [3]), "en": ("input", [4]), "q": ("output", [5, 6])}
    cells = {
        "f": ("DFF", {"CK": 2, "RN": 3, "D": 6, "Q": 5}),
        "g": ("NAND2", {"A": 4, "B": 5, "Y": 6}),
    }
    return link({"t": make(ports, cells)}, "t", tiny)


def test_feedback_and_reset(counter):
    bits = [[1, 1], [1, 1], [1, 1], [0, 1], [1, 1], [1, 0], [1, 1]]
    reset, enable = (np.array(bits, dtype=np.uint8)[:, i, None] for i in (0, 1))
    seen = activity.simulate(counter, {"rn": reset, "en": enable})
    # Starts at 0, toggles, is cleared at once in cycle 3; a disabled NAND stores 1.
    assert seen.outputs["q"][:, 0, 0].tolist() == [0, 1, 0, 0, 1, 0, 1]
    assert seen.outputs["q"][:, 0, 1].tolist() == [1, 0, 1, 1, 0, 1, 0]
    assert seen.transitions == 6
    assert seen.toggles[counter.ports["q"].nets] == pytest.approx([5 / 6, 5 / 6])
    later = activity.simulate(counter, {"rn": reset, "en": enable}, warmup=4)
    assert np.array_equal(later.outputs["q"], seen.outputs["q"])
    assert later.transitions == 2
    assert later.toggles[counter.ports["q"].nets] == pytest.approx([1.0, 1.0])
    assert later.ones[counter.ports["q"].nets] == pytest.approx([2 / 3, 1 / 3])


def test_blocks_of_cycles(counter, monkeypatch):
    """Statistics do not depend on how many cycles are held at a time."""
    generator = np.random.default_rng(2)
    stimulus = {name: generator.integers(0, 2, (30, 130)) for name in ("rn", "en")}
    whole = activity.simulate(counter, stimulus, warmup=7)
    monkeypatch.setattr(activity, "_BLOCK_BYTES", 1000)
    parts = activity.simulate(counter, stimulus, warmup=7)
    assert np.array_equal(whole.toggles, parts.toggles)
    assert np.array_equal(whole.ones, parts.ones)
    assert all(np.array_equal(p, q) for p, q in zip(whole.states, parts.states, strict=True))
    assert np.array_equal(whole.outputs["q"], parts.outputs["q"])
    assert np.array_equal(whole.outputs["q"], activity.respond(counter, stimulus)["q"])


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (4, 2, 9), (0, 3, 1)])
def test_ones_transitions_and_subsets_are_counted(shape):
    history = np.random.default_rng(9).integers(0, 1 << 64, shape, dtype=np.uint64)
    ones, toggles, twice = np.zeros((3, shape[1]), np.int64)
    previous = np.zeros(shape[1:], np.uint64)
    activity._tally(history, True, previous, ones, toggles)
    activity._tally(history, False, previous, twice, toggles)

    def counted(words: np.ndarray) -> list[int]:
        return [sum(int(word).bit_count() for word in row.ravel()) for row in words.swapaxes(0, 1)]

    assert ones.tolist() == twice.tolist() == counted(history)
    played = np.concatenate([history, history])
    assert toggles.tolist() == counted(played[1:] ^ played[:-1])
    rows = np.array([[0, 0], [shape[1] - 1, 0], [shape[1] // 2, 0]])
    subsets = np.zeros((2, 7), np.int64)
    activity._count_subsets(history, rows, subsets)
    for subset in range(1, 8):
        words = [rows[bit] for bit in range(3) if subset >> bit & 1]
        assert subsets[:, subset - 1].tolist() == counted(np.bitwise_and.reduce([history[:, each] for each in words]))


@pytest.mark.parametrize(
    ("stimulus", "message"),
    [
        ({}, "no stimulus for the input rn"),
        ({"rn": np.ones((2, 3)), "nope": 0}, "stimulus for nope, which is no data input"),
        ({"ck": np.ones((2, 3))}, "stimulus for ck, which is no data input"),
        ({"rn": np.ones((2, 3), int), "en": np.ones((3, 3), int)}, r"en has the shape \(3, 3, 1\)"),
        ({"rn": np.ones((2, 3, 2), int), "en": np.ones((2, 3), int)}, r"expected \(cycles, streams, 1\)"),
        ({"rn": np.ones((0, 3), int), "en": np.ones((0, 3), int)}, "has the shape"),
        ({"rn": np.full((2, 3), 2), "en": np.ones((2, 3), int)}, "other values than 0 and 1"),
        ({"rn": np.full((2, 3), 0.5), "en": np.ones((2, 3), int)}, "other values than 0 and 1"),
    ],
)
def test_refused(counter, stimulus, message):
    with pytest.raises(InputError, match=message):
        activity.simulate(counter, stimulus)


def test_bad_warmup(counter):
    stimulus = {name: np.ones((2, 3), dtype=bool) for name in ("rn", "en")}
    for warmup in (-1, 2):
        with pytest.raises(InputError, match=f"warmup is {warmup}"):
            activity.simulate(counter, stimulus, warmup=warmup)


@pytest.mark.parametrize("streams", [1, 2, 63, 64, 65, 127, 128, 129])
def test_any_number_of_streams(counter, streams):
    """Whether they fill machine words or not, each stream is what it is alone, and the mean is theirs."""
    generator = np.random.default_rng(streams)
    stimulus = {name: generator.integers(0, 2, (6, streams)) for name in ("rn", "en")}
    together = activity.simulate(counter, stimulus, warmup=1, keep=np.arange(counter.n_nets))
    alone = [
        activity.simulate(counter, {name: bits[:, [stream]] for name, bits in stimulus.items()}, warmup=1)
        for stream in range(streams)
    ]
    assert together.outputs["q"].tolist() == np.concatenate([one.outputs["q"] for one in alone], axis=1).tolist()
    assert together.toggles == pytest.approx(np.mean([one.toggles for one in alone], axis=0))
    assert together.ones == pytest.approx(np.mean([one.ones for one in alone], axis=0))
    assert together.kept.shape == (5, streams, counter.n_nets)
    assert together.kept[:, :, counter.ports["q"].nets].tolist() == together.outputs["q"][1:].tolist()
    for group, states in enumerate(together.states):
        assert states == pytest.approx(np.mean([one.states[group] for one in alone], axis=0))
