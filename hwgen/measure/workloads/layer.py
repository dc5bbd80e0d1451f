"""A layer of a trained model through hardware quantiser and core: errors by format, and a part of it in RTL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hwgen import __version__
from hwgen.config import NAMED, TensorCoreConfig
from hwgen.config.quantiser import QUANTISERS, QuantiserConfig
from hwgen.measure.requests import CORE_SIZES
from hwgen.report import schema
from sim import golden
from sim.accuracy.encoder import Encoder
from sim.accuracy.layer import GEMMS, WITHOUT_WEIGHTS, Core, Datapath, Deviation, Layer, LayerRun, deviation
from sim.accuracy.noise import Energies, lost
from sim.engines import CompiledEngine, Engine
from sim.engines.quantisers import CompiledQuantiser, QuantiserEngine
from sim.projection import run_products
from sim.verify.quantisers import counterpart

__all__ = ["ALL", "FORMATS", "RTL", "USUAL", "LayerRequest", "measure"]

FORMATS = tuple(name.removesuffix("-quantiser") for name in QUANTISERS if name.endswith("-quantiser"))
"""Names of rows: what the quantisers of FP32 quantise to, and by which rule."""

USUAL = tuple(name for name in FORMATS if QUANTISERS[f"{name}-quantiser"].selection in (None, "squared-error"))
"""Those of them that choose nothing, or by squared errors, as the formats are defined."""

ALL = "all"
RTL = (*GEMMS, ALL)
"""What may go through the RTL: kinds of GEMMs, or all of them."""

Update = Callable[[str, int, int], None]
Engines = Callable[[QuantiserConfig, TensorCoreConfig], tuple[QuantiserEngine, Engine]]


@dataclass(frozen=True)
class LayerRequest:
    """What to run.

    Parameters
    ----------
    model
        Name of the model.
    layer
        Which one, from 0.
    sentences
        They are one batch.
    formats
        Of `FORMATS`.
    size
        Of `CORE_SIZES`.
    rtl
        What goes through the RTL, of `RTL`.
    """

    model: str
    layer: int
    sentences: tuple[str, ...]
    formats: tuple[str, ...] = USUAL
    size: str = CORE_SIZES[0]
    rtl: tuple[str, ...] = ("query",)


def _compiled(quantiser: QuantiserConfig, core: TensorCoreConfig) -> tuple[QuantiserEngine, Engine]:
    return CompiledQuantiser(quantiser), CompiledEngine(core)


def measure(
    encoder: Encoder,
    request: LayerRequest,
    update: Update = lambda what, done, total: None,
    engines: Engines = _compiled,
) -> schema.LayerReport:
    """Run a layer in each format, and compare it with FP32, and its RTL with the golden model.

    Parameters
    ----------
    encoder
        The model.
    request
        What to run.
    update
        Called with what is being done, how much of it is done, and how much there is.
    engines
        Makes the simulators of a quantiser and of a core.

    Raises
    ------
    ArgumentError
        There is no such layer, or no sentence.
    InputError
        There is no C++ compiler.
    MismatchError
        RTL and golden model differ in a bit.
    """
    layer = Layer(encoder, request.sentences, request.layer)
    pairs = {
        name: (QUANTISERS[f"{name}-quantiser"], NAMED[_core_name(QUANTISERS[f"{name}-quantiser"], request.size)])
        for name in request.formats
    }
    kinds = tuple(GEMMS) if ALL in request.rtl else request.rtl
    ready = {}
    for number, (name, pair) in enumerate(pairs.items()):
        update("simulators", number, len(pairs))
        ready[name] = engines(*pair)
    rows = []
    for number, (name, pair) in enumerate(pairs.items()):
        update("formats", number, len(pairs))
        rows.append(_row(name, *pair, layer, kinds, ready[name], update))
    update("formats", len(pairs), len(pairs))
    cores = {core.name: core for _, core in pairs.values()}
    return schema.LayerReport(
        designs=tuple(schema.Design(core.as_dict()) for core in cores.values()),
        conditions=schema.LayerConditions(
            model=request.model,
            layer=request.layer,
            sentences=len(request.sentences),
            tokens=len(layer.x),
            gemms=tuple(_gemms(layer.reference)),
            quantisers={quantiser.name: quantiser.as_dict() for quantiser, _ in pairs.values()},
            engine=next(iter(ready.values()))[1].name,
            tools=schema.CostTools(hwgen=__version__, numpy=np.__version__),
        ),
        results=tuple(rows),
    )


def _core_name(quantiser: QuantiserConfig, size: str) -> str:
    return f"{quantiser.format}-{size}"


def _gemms(reference: LayerRun) -> list[schema.LayerGemm]:
    return [
        schema.LayerGemm(
            gemm=kind,
            gemms=len(gemms),
            macs=sum(gemm.d.size * gemm.x.shape[1] for gemm in gemms),
            weights=kind not in WITHOUT_WEIGHTS,
        )
        for kind, gemms in reference.gemms.items()
    ]


def _golden_core(config: TensorCoreConfig) -> Core:
    """The golden model of a core."""
    return lambda a, b: golden.gemm(
        a,
        b,
        blocks_per_step=config.groups,
        numerics=config.numerics,
        fraction_bits=config.fraction_bits,
        rounding=config.rounding,
        empty_blocks=config.empty_blocks,
    )


def _row(
    name: str,
    quantiser: QuantiserConfig,
    core: TensorCoreConfig,
    layer: Layer,
    kinds: Sequence[str],
    engines: tuple[QuantiserEngine, Engine],
    update: Update,
) -> schema.LayerRow:
    """One format: the RTL first, since a difference there ends it all."""
    unit, multiply = counterpart(quantiser), _golden_core(core)
    path = Datapath(layer, unit, multiply, kept=kinds)
    run = layer.run(path.multiply)
    compared = []
    for kind, products in path.products.items():
        found = run_products(*engines, kind, products, partial(update, f"RTL of {name}, {kind}"))
        compared.append(
            schema.RtlComparison(
                gemm=kind,
                gemms=found.gemms,
                blocks=found.blocks,
                quantiser_cycles=found.quantiser_cycles,
                macs=found.macs,
                results=found.outputs,
                steps=found.steps,
                cycles=found.cycles,
            )
        )
    other = layer.run(Datapath(layer, unit, multiply, in_float64=True).multiply)
    return schema.LayerRow(
        name=name,
        format=quantiser.format,
        rule=quantiser.rule,
        quantiser=quantiser.name,
        core=core.name,
        blocks=path.blocks,
        saturated=path.saturated,
        gemms=tuple(_deviations(layer, unit, multiply, run)),
        output=_stated(deviation([layer.reference.output], [run.output])),
        output_in_float64=_stated(deviation([layer.reference.output], [other.output])),
        rtl=tuple(compared),
    )


def _deviations(layer: Layer, unit: golden.Quantiser, multiply: Core, run: LayerRun) -> list[schema.GemmDeviation]:
    alone = Datapath(layer, unit, multiply, kept=GEMMS)
    found = []
    for kind, gemms in layer.reference.gemms.items():
        for gemm in gemms:
            alone.multiply(kind, gemm.x, gemm.w)
        products = alone.products[kind]
        x = y = Energies(0.0, 0.0)
        for gemm, product in zip(gemms, products, strict=True):
            x += lost(gemm.x, product.x.tensor)
            y += lost(gemm.w, product.w.tensor)
        expected = [gemm.d for gemm in gemms]
        found.append(
            schema.GemmDeviation(
                gemm=kind,
                x_sqnr_db=x.decibels,
                w_sqnr_db=y.decibels,
                alone=_stated(deviation(expected, [product.d for product in products])),
                within=_stated(deviation(expected, [gemm.d for gemm in run.gemms[kind]])),
            )
        )
    return found


def _stated(found: Deviation) -> schema.Deviation:
    return schema.Deviation(found.energies.decibels, found.median, found.similarity, found.worst)
