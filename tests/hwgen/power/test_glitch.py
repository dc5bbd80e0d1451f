"""Delays: by hand on tiny netlists, against Icarus Verilog on a real one."""

import shutil
import subprocess

import numpy as np
import pytest

from hwgen.cells import reader
from hwgen.errors import InputError
from hwgen.netlist.link import link
from hwgen.power import activity, glitch
from hwgen.power.transitions import transitions
from hwgen.timing import analysis as timing

SETTINGS = {"input_slew": 0.0, "output_load": 0.0, "wire_load": 0.0, "clock_slew": 0.0}


def gates_of(body, tiny):
    found = link({"t": body}, "t", tiny)
    return glitch.Gates(found, timing.analyse(found, **SETTINGS))


@pytest.fixture
def detector(make, tiny):
    """y = !(a & !a), by way of three inverters: a pulse where a rises, none where it falls."""
    cells = {
        "u": ("INV", {"A": 2, "Y": 3}),
        "v": ("INV", {"A": 3, "Y": 4}),
        "w": ("INV", {"A": 4, "Y": 5}),
        "n": ("NAND2", {"A": 2, "B": 5, "Y": 6}),
    }
    ports = {"a": ("input", [2]), "w": ("output", [5]), "y": ("output", [6])}
    return gates_of(make(ports, cells), tiny)


def net(gates, port):
    return int(gates.netlist.ports[port].nets[0])


def test_a_pulse(detector):
    assert detector.sources.tolist() == [net(detector, "a")]
    events = detector.events(np.array([[0], [1], [0]]))
    of_y = [(cycle, time) for cycle, time, where in events if where == net(detector, "y")]
    # NAND2 falls 0.1 ns after a (no load), and rises again 0.1 ns after the third inverter.
    assert [cycle for cycle, _ in of_y] == [1, 1]
    assert of_y[0][1] == pytest.approx(0.1)
    (last,) = (time for cycle, time, where in events if cycle == 1 and where == net(detector, "w"))
    slew = detector.timing.slew[net(detector, "w"), 1]
    assert of_y[1][1] == pytest.approx(last + 0.1 + 0.1 * slew)
    counts = detector.extra(np.array([[0], [1]]), np.array([[1], [0]]))
    assert counts[net(detector, "y")] == counts.sum() == 2


def test_a_pulse_that_is_too_short_is_swallowed(make, tiny):
    cells = {"u": ("INV", {"A": 2, "Y": 3}), "n": ("NAND2", {"A": 2, "B": 3, "Y": 4}), "m": ("INV", {"A": 4, "Y": 5})}
    gates = gates_of(make({"a": ("input", [2]), "y": ("output", [5])}, cells), tiny)
    cells, y = gates._cells, net(gates, "y")
    (inverter,) = (cells.own[gate] for gate in range(3) if gates.netlist.driver[cells.nets[gate]] == 0)
    both = slice(inverter, inverter + 2)
    rise = np.array([[0]]), np.array([[1]])
    cells.delays[:] = 1.0
    cells.delays[both] = 1.1  # slower than the NAND: the pulse has come out when it ends
    assert gates.extra(*rise)[y] == 2
    cells.delays[both] = 0.9
    assert gates.extra(*rise).sum() == 0
    # A wire swallows nothing, however long it takes; its two edges do not overtake one another.
    cells.delays[both] = 1.1
    (middle,) = (gate for gate in range(3) if gates.netlist.driver[cells.nets[gate]] == 1)
    cells.wire[middle] = 5.0
    assert [time for _, time, where in gates.events(np.array(rise)[:, 0]) if where == y] == pytest.approx([7.0, 8.1])
    cells.wire[middle] = 3.0, 5.0
    assert gates.extra(*rise)[y] == 0


def test_values_settle_as_without_delays(mac):
    result = timing.analyse(mac)
    gates = glitch.Gates(mac, result)
    generator = np.random.default_rng(2)
    stimulus = {
        port.name: generator.integers(0, 2, (12, 4, len(port.nets)))
        for port in mac.ports.values()
        if port.direction == "input" and port.name != mac.clock_port
    }
    everything = np.arange(mac.n_nets)
    seen = activity.simulate(mac, stimulus, keep=everything)
    values = seen.kept[:, 0]
    clock = mac.clock_net
    for cycle in (0, 5):
        settled = gates.settled(values[cycle, gates.sources])
        np.testing.assert_array_equal(np.delete(settled, clock), np.delete(values[cycle], clock))
    events = gates.events(values[:, gates.sources])
    assert events == sorted(events, key=lambda event: event[:2])
    changes = np.zeros((12, mac.n_nets), int)
    for cycle, time, where in events:
        assert 0 <= time <= result.delay
        changes[cycle, where] += 1
    differ = values[1:] != values[:-1]
    np.testing.assert_array_equal(np.delete(changes[1:] % 2, clock, 1), np.delete(differ, clock, 1))
    counts = gates.extra(values[:-1, gates.sources], values[1:, gates.sources])
    np.testing.assert_array_equal(np.delete(counts, clock), np.delete(changes.sum(0) - differ.sum(0), clock))
    assert counts.sum() > 0
    kept = activity.simulate(mac, stimulus, keep=gates.sources)
    timed = glitch.with_glitches(kept, gates, 10**9)
    assert (timed.toggles >= seen.toggles - 1e-12).all()
    every = sum(gates.extra(kept.kept[:-1, stream], kept.kept[1:, stream]) for stream in range(4)) / (11 * 4)
    np.testing.assert_allclose(timed.toggles, seen.toggles + every)


def by_edge(cells, rise_fall, wire):
    """The same cells with delays that depend on the edge of each output alone, and those of wires on neither."""
    picks = np.zeros_like(cells.picks)
    for width, truth, pick in {*zip(cells.width.tolist(), cells.truth.tolist(), cells.pick.tolist(), strict=True)}:
        size = 1 << width
        picks[pick : pick + width * size] = np.tile(1 - cells.tables[truth : truth + size], width)
    return cells._replace(
        picks=picks,
        own=2 * np.arange(len(cells.nets), dtype=np.int32),
        delays=rise_fall.ravel().astype(np.float32),
        wire=np.repeat(wire[:, None], 2, axis=1).astype(np.float32),
    )


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog (iverilog) is not installed")
def test_against_icarus(mac, tmp_path):
    """Every transition of every net, with delays by output and edge, too fine for two events to coincide."""
    gates = glitch.Gates(mac, timing.analyse(mac))
    nets, unit = gates._cells.nets, 1e-6  # 1 fs
    generator = np.random.default_rng(1)
    rise_fall, wire = generator.integers(20000, 90000, (len(nets), 2)), generator.integers(1000, 9000, len(nets))
    gates.__dict__["_cells"] = by_edge(gates._cells, rise_fall * unit, wire * unit)
    gates._clocked.delays[:] = 0
    values = generator.integers(0, 2, (40, len(gates.sources))).astype(np.uint8)
    driven = {int(net): pair for net, pair in zip(nets, rise_fall, strict=True)}
    lines = ["`timescale 1ps/1ps", "module top;"]
    lines += [f"reg s{net} = {values[0][i]};" for i, net in enumerate(gates.sources)]

    def name(net):
        return f"1'b{net}" if net < 2 else f"n{net}" if net in driven else f"s{net}" if net in gates.sources else "1'b0"

    # What comes out of a cell is d; n is behind the wire, which hands on all of it.
    behind = dict(zip(nets.tolist(), wire, strict=True))
    lines += [f"wire d{net}; reg n{net}; always @(d{net}) n{net} <= #{behind[net]} d{net};" for net in driven]
    for group in mac.groups:
        for place, pin in enumerate(group.cell.outputs if group.cell.sequential is None else ()):
            function = group.cell.pins[pin].function
            truth = "".join(str(int(bit)) for bit in function.truth(function.names)[::-1])
            # A table, since an expression of several gates would have hazards of its own.
            table = f"t{len(lines)}"
            lines.append(f"localparam [{len(truth) - 1}:0] {table} = {len(truth)}'b{truth};")
            for inputs, outputs in zip(group.inputs.tolist(), group.outputs.tolist(), strict=True):
                wires = [name(inputs[group.cell.inputs.index(pin)]) for pin in function.names]
                text = f"{table}[{{{', '.join(wires[::-1])}}}]"
                rise, fall = driven[outputs[place]]
                lines.append(f"assign #({rise},{fall}) d{outputs[place]} = {text};")
    lines += ["integer f;", "initial begin", 'f = $fopen("seen.txt");', "#10000000;"]
    for row in values[1:]:
        lines += [f"s{net} = {row[i]};" for i, net in enumerate(gates.sources)]
        lines.append("#10000000;")
    lines += ["$fclose(f); $finish;", "end"]
    lines += [f'always @(n{net}) if ($time >= 10000000) $fwrite(f, "{net} %0d\\n", $time);' for net in driven]
    (tmp_path / "top.v").write_text("\n".join([*lines, "endmodule", ""]))
    subprocess.run(["iverilog", "-o", "top", "top.v"], cwd=tmp_path, check=True, timeout=120)
    subprocess.run(["./top"], cwd=tmp_path, check=True, timeout=120)
    lines = (tmp_path / "seen.txt").read_text().splitlines()
    theirs = np.array([line.split()[::-1] for line in lines], dtype=np.int64)
    found = [(cycle * 10000000 + time / unit, net) for cycle, time, net in gates.events(values) if net in driven]
    assert len(found) > 5000
    ours, theirs = (np.array(sorted(each, key=lambda event: event[::-1])) for each in (found, theirs.tolist()))
    differ = 0
    for net in driven:
        one, other = (each[each[:, 1] == net, 0] for each in (ours, theirs))
        # Times are sums of numbers of 24 bits.
        differ += int((abs(one - other) > 5).sum()) if len(one) == len(other) else len(one) + len(other)
    print(len(ours), len(theirs), differ)
    # A change at an input and one that comes out in the same moment have no defined order.
    assert differ < 0.001 * len(ours)


def test_a_pool_that_is_too_small_grows(detector):
    """Whatever room there was, the same transitions are found, and none is lost."""
    for before, after in ((0, 1), (1, 0)):
        found = []
        for room in (0, 1, 2, 3, 5, 1000):
            state = detector.settled(np.array([before]))
            start, length, pool = transitions(
                state, np.array([after], np.uint8), detector._clocked, detector._cells, room
            )
            found.append([pool[first : first + count].tolist() for first, count in zip(start, length, strict=True)])
        assert all(one == found[0] for one in found)
        assert sum(map(len, found[0])) == (6 if after else 4)


def test_registers_change_after_their_own_delay(make, tiny):
    """From the clock's edge to a flip-flop's output, by edge; a port changes with the edge."""
    cells = {
        "f": ("DFF", {"CK": 2, "RN": "1", "D": 3, "Q": 4}),
        "u": ("INV", {"A": 4, "Y": 5}),
        "v": ("INV", {"A": 3, "Y": 6}),
    }
    ports = {"ck": ("input", [2]), "d": ("input", [3]), "y": ("output", [5]), "z": ("output", [6])}
    found = link({"t": make(ports, cells)}, "t", tiny)
    gates = glitch.Gates(found, timing.analyse(found, **SETTINGS))
    assert found.clock_net not in gates.sources
    q = int(found.groups[found.cell_group[0]].outputs[0, 0])
    events = gates.events(np.array([[0, 0], [1, 1], [0, 0]]))
    times = {(cycle, where): time for cycle, time, where in events}
    d, y, z = (net(gates, port) for port in "dyz")
    # The flip-flop drives 2 fF: 0.5 + 0.02 * 2 rising, 0.4 + 0.02 * 2 falling; its slew is 0.1 + 0.02 * 2.
    assert (times[1, d], times[2, d]) == (0.0, 0.0)
    assert (times[1, q], times[2, q]) == (pytest.approx(0.54), pytest.approx(0.44))
    assert times[1, y] == pytest.approx(0.54 + 0.2 + 0.1 * 0.14)
    assert times[2, y] == pytest.approx(0.44 + 0.1 + 0.1 * 0.14)
    assert (times[1, z], times[2, z]) == (pytest.approx(0.2), pytest.approx(0.1))
    assert len(events) == 8


class Recorder:
    """Stands for a netlist of two nets; notes which pairs of cycles are simulated."""

    def extra(self, before, after):
        self.pairs = [tuple(row.tolist()) for row in before]
        np.testing.assert_array_equal(after, before + np.array([1, 0]))
        return np.array([2.0 * len(before), 0.0])


def pairs_of(length, streams, cycles):
    """The cycles and streams of so many pairs, and what becomes of the toggles."""
    # What is kept of a cycle and a stream says which they are.
    kept = np.stack(np.meshgrid(np.arange(length), np.arange(streams), indexing="ij"), axis=-1).astype(np.uint8)
    seen = activity.Activity(np.array([0.5, 0.25]), np.zeros(2), [], {}, length, streams, 4, kept)
    gates = Recorder()
    timed = glitch.with_glitches(seen, gates, cycles)
    assert seen.toggles.tolist() == [0.5, 0.25]
    return gates.pairs, timed.toggles.tolist()


@pytest.mark.parametrize("cycles", [None, 0, 1, 2, 6, 12, 99])
def test_as_many_cycles_have_delays_as_were_asked_for(cycles):
    """All of them by default; none twice, and one of each part of them."""
    pairs, toggles = pairs_of(5, 3, cycles)
    count = 12 if cycles is None else min(cycles, 12)
    places = [3 * cycle + stream for cycle, stream in pairs]
    assert [place * count // 12 for place in places] == list(range(count))
    assert toggles == [2.5 if count else 0.5, 0.25]


@pytest.mark.parametrize(("length", "streams", "cycles"), [(128, 16, 64), (160, 16, 64), (160, 4, 16), (64, 16, 64)])
def test_the_cycles_with_delays_meet_every_turn_of_the_operands(length, streams, cycles):
    """Where operands take turns of some cycles, no turn is left out, and none has twice its share."""
    pairs, _ = pairs_of(length, streams, cycles)
    for turns in (2, 3, 4, 5):
        share = np.bincount([cycle % turns for cycle, _ in pairs], minlength=turns) * turns / cycles
        assert share.min() >= 0.5
        assert share.max() < 1.75
    assert len({stream for _, stream in pairs}) == streams


def wide(tmp_path, inputs, function=True):
    """A library of one AND gate."""
    names = [f"A{number}" for number in range(inputs)]
    pins = " ".join(f"pin ({name}) {{ direction : input; capacitance : 1; }}" for name in names)
    arcs = " ".join(
        f'timing () {{ related_pin : "{name}"; cell_rise (scalar) {{ values ("{number + 1}"); }}'
        f' cell_fall (scalar) {{ values ("{number + 101}"); }} }}'
        for number, name in enumerate(names)
    )
    says = f'function : "{" & ".join(names)}";' if function else ""
    output = f"pin (Y) {{ direction : output; {says} {arcs} }}"
    path = tmp_path / "wide.lib"
    path.write_text(f"library (wide) {{ nom_voltage : 1; cell (G) {{ {pins} {output} }} }}")
    return reader.load(path), names


def test_the_widest_gate(make, tmp_path):
    cells, names = wide(tmp_path, 12)
    nets = {name: number + 2 for number, name in enumerate(names)}
    body = make({"a": ("input", list(nets.values())), "y": ("output", [20])}, {"g": ("G", {**nets, "Y": 20})})
    found = link({"t": body}, "t", cells)
    gates = glitch.Gates(found, timing.analyse(found, **SETTINGS))
    for place in range(12):
        low = np.ones(12, np.uint8)
        low[place] = 0
        events = gates.events(np.array([low, np.ones(12), low]))
        of_y = [(cycle, time) for cycle, time, where in events if where == net(gates, "y")]
        assert of_y == [(1, place + 1), (2, place + 101)]


@pytest.mark.parametrize(
    ("inputs", "function", "message"),
    [
        (13, True, "the cell G has 13 inputs; at most 12 can be simulated with delays, leave it out with --dont-use"),
        (2, False, "output Y of the cell G has no function; expected one"),
    ],
)
def test_gates_that_cannot_be_simulated(make, tmp_path, inputs, function, message):
    cells, names = wide(tmp_path, inputs, function)
    nets = {name: number + 2 for number, name in enumerate(names)}
    body = make({"a": ("input", list(nets.values())), "y": ("output", [20])}, {"g": ("G", {**nets, "Y": 20})})
    found = link({"t": body}, "t", cells)
    with pytest.raises(InputError, match=message):
        glitch.Gates(found, timing.analyse(found, **SETTINGS)).settled(np.zeros(inputs))


def test_refused(make, tiny, detector):
    with pytest.raises(InputError, match=r"values have the shape \(2, 3\); expected \(cycles, 1\)"):
        detector.extra(np.zeros((2, 3)), np.zeros((2, 3)))


def test_delays_are_those_of_the_arcs(mac):
    """Each cell's in every state, looked up one by one: of arcs with a condition those whose condition holds."""
    result = timing.analyse(mac)
    gates = glitch.Gates(mac, result)
    cells = gates._cells
    where = {int(driven): gate for gate, driven in enumerate(cells.nets)}
    clocked = dict(zip(gates.sources.tolist(), gates._clocked.delays, strict=True))
    generator = np.random.default_rng(4)
    checked = 0
    for group in mac.groups:
        cell = group.cell
        for row in generator.choice(len(group.cells), min(3, len(group.cells)), replace=False):
            for place, name in enumerate(cell.outputs):
                driven = int(group.outputs[row, place])
                if cell.sequential is not None:
                    for edge in (0, 1):
                        found = [
                            arc.delay[edge](result.clock_slew, result.load[driven, edge])
                            for arc in cell.pins[name].arcs
                            if arc.related_pin == cell.clock_pin and arc.delay[edge] is not None
                        ]
                        assert clocked[driven][edge] == pytest.approx(max(float(np.mean(found)), 0.0), rel=1e-5)
                        checked += 1
                    continue
                function = cell.pins[name].function
                used = [one for one in cell.inputs if one in function.names]
                gate, truth = where[driven], function.truth(used)
                sources = {one: int(group.inputs[row, cell.inputs.index(one)]) for one in used}
                assert cells.inputs[cells.first[gate] :][: len(used)].tolist() == [*sources.values()]
                for number, pin in enumerate(used):
                    for state in range(len(truth)):
                        if truth[state] == truth[state ^ 1 << number]:
                            continue
                        values = {one: bool(state >> bit & 1) for bit, one in enumerate(used)}
                        nets = sources[pin], driven
                        expected = looked_up(cell.pins[name], pin, values, int(not truth[state]), result, nets)
                        pick = cells.picks[cells.pick[gate] + (number << len(used)) + state]
                        assert cells.delays[cells.own[gate] + pick] == pytest.approx(expected, rel=1e-5)
                        checked += 1
    assert checked > 300


def looked_up(output, pin, values, edge, result, nets):
    """Ns from an edge of an input to one of an output, behind which inputs have some values."""
    cause = 0 if values[pin] else 1
    flips = {"positive_unate": (0,), "negative_unate": (1,)}
    held, plain, any_edge = [], [], []
    for arc in output.arcs:
        if arc.related_pin != pin:
            continue
        for to, table in enumerate(arc.delay):
            if table is None or arc.kind == f"combinational_{('fall', 'rise')[to]}":
                continue
            for flip in flips.get(arc.sense, (0, 1)):
                delay = float(table(result.slew[nets[0], to ^ flip], result.load[nets[1], to]))
                any_edge.append(delay)
                if (to ^ flip, to) != (cause, edge):
                    continue
                if arc.when is None:
                    plain.append(delay)
                elif {*arc.when.names} <= values.keys() and arc.when.evaluate([values[n] for n in arc.when.names]):
                    held.append(delay)
    return max(float(np.mean(held or plain or any_edge)), 0.0)
