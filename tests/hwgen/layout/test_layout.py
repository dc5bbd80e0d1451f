"""Layouts of a mapped netlist: legal, deterministic, consistent figures, far shorter than at random."""

from dataclasses import replace

import numpy as np
import pytest

from hwgen.errors import InputError
from hwgen.layout.layout import lay_out
from hwgen.layout.technology import technology_of
from hwgen.timing.analysis import analyse


@pytest.fixture(scope="module")
def found(mac):
    return lay_out(mac, technology_of(mac.library), arrangement="flat")


def test_legal(found):
    assert found.faults() == []
    assert found.filled == pytest.approx(0.7, abs=0.03)
    assert 0.9 < found.die[0] / found.die[1] < 1.1
    wide, high = found.die
    on_edge = np.isin(found.port_x, (0, wide)) | np.isin(found.port_y, (0, high))
    assert on_edge.all()


def test_lengths(found, mac):
    assert (found.length >= found.half_perimeter - 1e-6).all()
    assert found.length.sum() < 1.2 * found.half_perimeter.sum()
    shuffled = np.random.default_rng(1).permutation(mac.n_cells)
    anywhere = replace(found, x=found.x[shuffled], y=found.y[shuffled])
    assert found.length.sum() < 0.6 * anywhere.length.sum()
    by_block = found.by_block(found.length)
    assert sum(by_block.values()) == pytest.approx(found.length.sum())


def test_wires(found, mac):
    wires, technology = found.wires(), found.technology
    assert wires.kind == "placed"
    signal = np.arange(mac.n_nets) != mac.clock_net
    length = wires.capacitance[signal].sum() / (technology.capacitance * technology.detour)
    assert length == pytest.approx(found.length.sum())
    used = found.length > 0
    ohms_per_um = wires.resistance[used] / found.length[used] / technology.detour
    assert (ohms_per_um <= technology.resistance * (1 + 1e-9)).all()
    assert (ohms_per_um > 0).all()
    assert analyse(mac, wires=wires).delay > 0


def test_deterministic(found, mac):
    again = lay_out(mac, found.technology, arrangement="flat")
    assert np.array_equal((again.x, again.y), (found.x, found.y))
    other = lay_out(mac, found.technology, arrangement="flat", seed=2)
    assert not np.array_equal((other.x, other.y), (found.x, found.y))
    assert other.length.sum() == pytest.approx(found.length.sum(), rel=0.1)


def test_a_larger_die(found, mac):
    loose = lay_out(mac, found.technology, arrangement="flat", utilisation=0.4)
    assert loose.faults() == []
    assert loose.filled == pytest.approx(0.4, abs=0.03)
    assert loose.length.sum() > found.length.sum()


def test_refused(found, mac):
    for wrong, message in (
        ({"arrangement": "round"}, "arrangement 'round': must be one of array, flat"),
        ({"utilisation": 1.5}, "utilisation 1.5: must be above 0 and at most 1"),
        ({"placer": "other"}, "placer 'other'"),
        ({"arrangement": "array"}, "mac has no array"),
    ):
        with pytest.raises(InputError, match=message):
            lay_out(mac, found.technology, **{"arrangement": "flat", **wrong})
