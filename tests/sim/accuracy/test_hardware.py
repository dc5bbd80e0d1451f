"""Distances of the hardware quantiser from the float64 quantiser, and docs/quantiser.md, which states them."""

import doctest
import math
import re
from pathlib import Path

import numpy as np
import pytest

from sim import accuracy, golden, tensors
from sim.accuracy.hardware import TABLES, Case, distances
from sim.golden import Quantiser

PAGE = Path(__file__).parents[3] / "docs" / "quantiser.md"
ROW = re.compile(r"\| `([\w-]+)` \| ([^|]+) \|((?: -?[\d.]+(?:, [\d.]+)? \|){5})((?: [+-]?[\d.]+ \|)*)")


def test_a_distance_is_that_of_the_numbers():
    x = {"one": tensors.generate("gaussian", (5, 40), 1), "other": tensors.generate("heavy-tailed", (8, 32), 2)}
    quantiser = Quantiser(selection=golden.SquaredError(3))
    (found,) = distances(x, [Case("", quantiser)])
    decibels, defaults, equal, blocks = [], [], 0, 0
    for each in x.values():
        filled = np.pad(each, [(0, 0), (0, -each.shape[1] % 16)])
        one = quantiser.quantize(filled).tensor
        others = (golden.quantize(filled, "mixfp4", tensor_scale=one.tensor_scale), golden.quantize(filled, "mixfp4"))
        noises = [np.square(golden.dequantize(q).astype(float) - filled).sum() for q in (one, *others)]
        decibels.append(10 * math.log10(noises[0] / noises[1]))
        defaults.append(10 * math.log10(noises[0] / noises[2]))
        equal += int((one.scales == others[0].scales).sum())
        blocks += one.scales.size
    assert found.decibels == pytest.approx(np.mean(decibels), abs=1e-4)
    assert found.from_default == pytest.approx(np.mean(defaults), abs=1e-4)
    assert found.worst == pytest.approx(max(decibels), abs=1e-4)
    # Tensors of unequal length count by their numbers, those that are filled up without the filling.
    shares = [(Case("", quantiser), name) for name in x]
    apart = [distances({name: x[name]}, [case])[0].equal for case, name in shares]
    assert found.equal == pytest.approx(np.average(apart, weights=[200, 256]))
    assert 0.5 < equal / blocks < 1


def test_a_goal_may_be_another_quantiser():
    x = {"one": tensors.generate("gaussian", (16, 256), 3)}
    (found,) = distances(x, [Case("", Quantiser("nvfp4"), Quantiser("mixfp4"))])
    energies = [accuracy.energies(x["one"], form).decibels for form in ("mixfp4", "nvfp4")]
    assert found.from_default == pytest.approx(energies[0] - energies[1], abs=0.05)
    assert found.decibels > 1


def rows():
    """Rows of the page by table: quantiser, label, figures, ends."""
    found: dict[str, list[tuple[str, str, list[str], list[str]]]] = {}
    kinds = iter(TABLES)
    inside = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| quantiser |"):
            inside = True
            found[next(kinds)] = []
        match = ROW.fullmatch(line)
        if inside and match:
            cells = [[cell.strip() for cell in match[group].split("|")[:-1]] for group in (3, 4)]
            found[list(found)[-1]].append((match[1], match[2].strip(), cells[0], cells[1]))
        inside = inside and line.startswith("|")
    return found


def agree(stated, distance):
    decibels, _, share = stated.partition(", ")
    assert distance.decibels == pytest.approx(float(decibels), abs=0.0011)
    if share:
        assert 100 * distance.equal == pytest.approx(float(share), abs=0.02)


@pytest.mark.parametrize("name", TABLES)
def test_the_page_states_the_figures_of_gaussian_tensors(name):
    cases, stated = TABLES[name].cases, rows()[name]
    assert [label for _, label, *_ in stated] == [case.label for case in cases]
    x = {"gaussian": tensors.generate("gaussian", accuracy.SHAPE, accuracy.SEED)}
    # Long tables in part: each of their rows is the same computation with another number.
    part = slice(None) if len(cases) < 10 else slice(2, None, 5)
    for (quantiser, _, figures, _), case, distance in zip(
        stated[part], cases[part], distances(x, cases[part]), strict=True
    ):
        assert quantiser in (case.target.format, case.target.rule)
        agree(figures[0], distance)


def test_the_page_keeps_its_promise():
    for quantiser, _, figures, (worst, own) in rows()["defaults"]:
        assert len(figures) == 5
        assert float(worst) <= 0.02
        assert abs(float(own)) <= 0.02
        assert all(
            float(cell.partition(", ")[2]) >= (99 if quantiser in ("mixfp4", "four-over-six") else 100)
            for cell in figures
        )


def test_the_page_states_the_figures_of_activations(trained):
    stated = rows()["defaults"][2]
    (found,) = distances(trained.activations, TABLES["defaults"].cases[2:3])
    agree(stated[2][4], found)


def test_the_page_counts_as_it_says():
    text = PAGE.read_text(encoding="utf-8")
    found = {
        (name, int(bits or 0)): [int(cell) for cell in cells.split("|")[:-1]]
        for name, bits, cells in re.findall(r"^\| `(\w+|no choice)(?:\((\d)\))?` \|((?: \d+ \|){5})$", text, re.M)
    }
    width = 8 + 10
    assert len(found) == 10
    for (name, bits), (codes, differences, squares, sums, total) in found.items():
        candidates = 2 if name.endswith("Error") else 1
        lanes = 8 if name == "SampledError" else 16
        assert codes == candidates * 16 * 7 * width
        assert differences == (2 * lanes * width if candidates == 2 else 0)
        squared = name in ("SquaredError", "SampledError", "CrestFactor")
        assert squares == squared * candidates * lanes * bits * (bits + 1) // 2
        assert total == codes + differences + squares + sums
        if name in ("SquaredError", "SampledError", "AbsoluteError", "CrestFactor"):
            word, tree, count = 2 * bits if squared else bits, 0, lanes
            while count > 1:
                count //= 2
                tree += count * word
                word += 1
            assert sums == candidates * tree


def test_the_page_names_the_pareto_front():
    text = PAGE.read_text(encoding="utf-8")
    totals = {
        name: int(total) for name, total in re.findall(r"^\| `([\w() ]+)` \|(?: \d+ \|){4} (\d+) \|$", text, re.M)
    }
    noise = {"no choice": math.inf}
    for quantiser, label, figures, _ in rows()["rules"]:
        decibels = float(figures[0].partition(",")[0])
        if quantiser == "mixfp4" and label.endswith("all blocks"):
            noise["no choice"] = min(noise["no choice"], decibels)
        elif quantiser == "mixfp4":
            rule, bits = re.fullmatch(r"([\w-]+), (\d) bits", label).groups()
            noise[f"{rule.title().replace('-', '')}({bits})"] = decibels
    assert set(totals) <= set(noise)
    front, least = [], math.inf
    for name in sorted(totals, key=totals.get):
        if noise[name] < least:
            front.append(name)
            least = noise[name]
    (sentence,) = re.findall(r"^The Pareto front of gaussian noise .*?: (.*?)\.$", text, re.M | re.S)
    assert re.findall(r"`(.*?)`", sentence) == front


def test_the_page_prints_what_it_says():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert tried >= 7
    assert failed == 0
