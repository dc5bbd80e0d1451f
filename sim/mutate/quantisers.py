"""``python -m sim.mutate.quantisers``: plant mutants into hardware quantisers.

They are confronted with batches of every kind that quantisers are verified with, some of them with gaps and stalls,
and with resets amid traffic. Most batches are thinned. What survives is to be proven equivalent.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from hwgen.config.quantiser import BLOCK, QUANTISERS, QuantiserConfig, named_quantiser
from hwgen.errors import ToolError
from hwgen.files import check_directory, write_all
from hwgen.rtl.quantiser.quantiser import Quantiser
from sim.engines.quantisers import DRIVER, CompiledQuantiser, Quantised, TensorScaleWords
from sim.mutate.command import check_none_alive, started, told
from sim.mutate.design import SELECT, SELECT_WIDTH
from sim.mutate.engine import linked
from sim.mutate.equivalence import proven
from sim.mutate.operators import Mutant
from sim.mutate.report import Outcome, quantiser_tables, quantisers_as_dict
from sim.mutate.run import outcomes
from sim.mutate.transparent import same_results
from sim.verify.quantisers import batches, counterpart, first_round, scale_words

__all__ = ["MUTATED", "MutantQuantiser", "Situation", "cycles", "equivalent", "killer", "mutate", "situations"]

MUTATED = (
    QUANTISERS["mixfp4-quantiser"],
    QUANTISERS["nvint4-quantiser-bf16"],
    QuantiserConfig("four-over-six-short", "nvfp4", "four-over-six", "bfloat16", "largest-error", 5, 6),
    QuantiserConfig("mixfp4-sampled", selection="sampled-error", error_bits=6, tensor_scale_bits=4),
    QUANTISERS["mixfp4-gap-quantiser"],
    QuantiserConfig("mixfp4-second-bf16", input="bfloat16", selection="second-largest", error_bits=6),
    QuantiserConfig("mixfp4-crest-bf16", input="bfloat16", selection="crest-factor", error_bits=6),
)
"""Quantisers that have all blocks, one and two candidates, both inputs, and rules by errors and by magnitudes."""

BLOCKS = 30_000
"""Blocks that a mutant is confronted with, about; those that are all kept not counted."""

ROUNDS = 10
"""Rounds of other blocks, as many each time; only what survives the first and is not proven equivalent meets all."""

_WHOLE = ("scales", "midpoints", "flips")
"""Batches that are kept whole: a division without a remainder is rare, and so is what a single unit decides."""

_SELECT = f"""
extern "C" __attribute__((visibility("default"))) void hwgen_select(
    void *handle, uint32_t number, const uint8_t *blocks, uint64_t before) {{
    core &top = *static_cast<core *>(handle);
    top.i_{SELECT} = value<{SELECT_WIDTH}>{{{{number}}}};
    if (!before) return;
    for (uint64_t cycle = 0; cycle < before; cycle++) {{
        load(top.i_block__payload, blocks + cycle * bytes_of(top.i_block__payload));
        top.i_block__valid = bit{{{{1}}}};
        top.i_result__ready = bit{{{{cycle % 3 != 0}}}};
        top.eval();
        top.commit();
    }}
    top.i_rst = bit{{{{1}}}};
    top.eval();
    top.commit();
    top.i_rst = bit{{{{0}}}};
}}
"""


@dataclass(frozen=True)
class Situation:
    """Stimulus of one run, and what a quantiser must make of it.

    Parameters
    ----------
    name
        Kind of its batch, or ``reset``.
    words
        As the input takes them, (n, 16).
    scale
        The tensor scale.
    offer, take
        Cycles in which a block is offered, and a result taken.
    before
        Cycles of traffic before a reset; 0 is none.
    wanted
        Of the golden model, with the number of cycles.
    """

    name: str
    words: NDArray[Any]
    scale: TensorScaleWords
    offer: NDArray[np.bool_]
    take: NDArray[np.bool_]
    before: int
    wanted: Quantised


class MutantQuantiser(CompiledQuantiser):
    """The compiled engine of a quantiser that holds mutants.

    Parameters
    ----------
    config
        The quantiser.
    texts
        Its modules with the mutants, see `sim.mutate.design.planted`; the top is ``core``.

    Attributes
    ----------
    number : int
        The mutant to run; 0 is the quantiser as it is.
    before : int
        Cycles of traffic before each run, after which it is reset; none by default.

    Raises
    ------
    InputError
        There is no C++ compiler, or it cannot compile the simulator.
    """

    def __init__(self, config: QuantiserConfig, texts: Mapping[str, str]) -> None:
        self.config = config
        self._attach(linked(texts, _SELECT, DRIVER))
        self._library.hwgen_select.restype = None
        self.number = self.before = 0

    def _prepare(self, core: ctypes.c_void_p, words: NDArray[Any]) -> None:
        blocks, before = ctypes.c_void_p(words.ctypes.data), min(self.before, len(words))
        self._library.hwgen_select(core, ctypes.c_uint32(self.number), blocks, ctypes.c_uint64(before))


def cycles(latency: int, blocks: int, offer: NDArray[np.bool_], take: NDArray[np.bool_]) -> int:
    """Cycles until so many blocks have their results: all stages move on, unless a result waits that is not taken."""
    stages = [False] * latency
    accepted = answered = cycle = 0
    pending = False
    while answered < blocks:
        pending = pending or (accepted < blocks and bool(offer[cycle % len(offer)]))
        taking = bool(take[cycle % len(take)])
        answered += taking and stages[-1]
        if taking or not stages[-1]:
            stages = [pending, *stages[:-1]]
            accepted += pending
            pending = False
        cycle += 1
    return cycle


def situations(config: QuantiserConfig, blocks: int = BLOCKS, seed: int = 0) -> list[Situation]:
    """Situations for a quantiser, the short ones first.

    Parameters
    ----------
    config
        The quantiser.
    blocks
        Of all situations together but those that are kept whole, about.
    seed
        Zero or positive. Equal arguments give equal situations.
    """
    rng = np.random.default_rng(seed)
    chosen = list(islice(batches(config, seed), first_round(config)))
    singles = sum(batch.kind in ("alone", "beside") for batch in chosen)
    others = sum(batch.kind not in _WHOLE for batch in chosen) - singles
    found = []
    always = np.ones(1, bool)
    for number, batch in enumerate(chosen):
        # Half of the blocks for single numbers, half for those that are drawn.
        kept = blocks // (2 * (singles if number < singles else others))
        kept = len(batch.words) if batch.kind in _WHOLE else min(kept, len(batch.words))
        words = batch.words[np.sort(rng.choice(len(batch.words), kept, replace=False))]
        stalled = number % 3 == 0
        offer, take = (rng.random(97) < pace if stalled else always for pace in (0.8, 0.7))
        found.append(_situation(config, batch.kind, words, batch.scale, offer, take))
        if batch.kind == "drawn" and config.latency * 2 < kept:
            found += [
                _situation(config, "reset", words[: 4 * config.latency], batch.scale, offer, always, before)
                for before in range(1, 2 * config.latency)
            ]
    return sorted(found, key=lambda situation: len(situation.words))


def _situation(
    config: QuantiserConfig,
    name: str,
    words: NDArray[np.uint32],
    scale: np.float32,
    offer: NDArray[np.bool_],
    take: NDArray[np.bool_],
    before: int = 0,
) -> Situation:
    half = config.numbers.width == 16
    words = words & np.uint32(0xFFFF0000 if half else 0xFFFFFFFF)
    wanted = counterpart(config).quantize(words.view(np.float32).reshape(len(words), BLOCK), scale)
    told = Quantised(
        wanted.tensor.codes,
        wanted.tensor.scales.ravel(),
        wanted.invalid.ravel(),
        wanted.saturated.ravel(),
        cycles(config.latency, len(words), offer, take),
    )
    given = scale_words(scale, config.tensor_scale_bits)
    return Situation(name, words >> 16 if half else words, given, offer, take, before, told)


def killer(engine: MutantQuantiser, number: int, confronted: Sequence[Situation]) -> str | None:
    """The first situation in which a mutant does not do what the quantiser must do; None if there is none."""
    engine.number = number
    for situation in confronted:
        engine.before = situation.before
        try:
            run = engine.run(situation.words, situation.scale, situation.offer, situation.take)
        except ToolError:
            return situation.name
        wanted = situation.wanted
        same = [np.array_equal(mine, right) for mine, right in zip(run[:4], wanted[:4], strict=True)]
        if run.cycles != wanted.cycles or not all(same):
            return situation.name
    return None


def equivalent(config: QuantiserConfig, texts: Mapping[str, str], mutant: Mutant) -> str | None:
    """The module at whose borders a mutant is proven equivalent, its own or ``core``; None if there is none."""
    if proven(config, texts, mutant, mutant.module):
        return mutant.module
    if same_results(texts, mutant) or (mutant.module != "core" and proven(config, texts, mutant, "core")):
        return "core"
    return None


def mutate(config: QuantiserConfig, count: int, *, seed: int = 0, blocks: int = BLOCKS) -> Iterator[Outcome]:
    """Plant mutants into one quantiser, confront each with all situations, and prove those equivalent that survive.

    Parameters
    ----------
    config
        The quantiser.
    count
        How many mutants.
    seed
        Chooses them and the stimulus. Equal arguments give equal outcomes.
    blocks
        As of `situations`.

    Raises
    ------
    ToolError
        The quantiser itself does not do what it must, or a tool failed.
    InputError
        There is no C++ compiler.
    """

    def killers(texts: Mapping[str, str]) -> list[Callable[[int], str | None]]:
        engine = MutantQuantiser(config, texts)

        @cache
        def confronted(at: int) -> list[Situation]:
            return situations(config, blocks, seed + at)

        def killed_in(at: int, number: int) -> str | None:
            return killer(engine, number, confronted(at))

        return [partial(killed_in, at) for at in range(ROUNDS)]

    return outcomes(config, Quantiser, count, seed, killers, partial(equivalent, config))


@click.command()
@click.option("--config", "names", multiple=True, help="This named quantiser instead; repeat it for several.")
@click.option("--mutants", type=click.IntRange(1, 60_000), default=150, show_default=True, help="Mutants of each.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Chooses mutants and stimulus.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("reports"), show_default=True, help="Directory.")
def main(names: tuple[str, ...], mutants: int, seed: int, out: Path) -> None:
    """Plant mutants into quantisers; the status is 1 if one is neither killed nor proven equivalent.

    The quantisers are `MUTATED`, or those that are given. Writes mutation-quantiser.md and .json.
    """
    configs = [named_quantiser(name) for name in names] or MUTATED
    check_directory(out)
    found = told(configs, partial(mutate, count=mutants, seed=seed))
    about = quantisers_as_dict(found, seed, BLOCKS)
    content = {
        out / "mutation-quantiser.md": quantiser_tables(found, seed, BLOCKS),
        out / "mutation-quantiser.json": json.dumps(about, indent=1) + "\n",
    }
    write_all({path: text.encode() for path, text in content.items()})
    check_none_alive(found)


if __name__ == "__main__":
    started(main)
