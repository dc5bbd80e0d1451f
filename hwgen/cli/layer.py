"""``hwgen layer``."""

from __future__ import annotations

from pathlib import Path

import click

from hwgen.cli.options import REPORTS, json_option, out
from hwgen.cli.output import progress
from hwgen.cli.study import check_files, written
from hwgen.cli.types import SEED, Names, Whole
from hwgen.errors import InputError
from hwgen.measure.requests import CORE_SIZES

__all__ = ["command"]

_SENTENCES = 20
_MINILM = "minilm"


@click.command("layer")
@click.option(
    "--model",
    metavar="NAME|DIRECTORY",
    default=_MINILM,
    show_default=True,
    help=f"{_MINILM} (extra 'workloads'), or a directory with config.json, model.safetensors and vocab.txt of a model"
    " of BERT's kind.",
)
@click.option("--layer", type=SEED, default=0, show_default=True, help="Which layer; the first is 0.")
@click.option(
    "--format",
    "formats",
    type=Names("hwgen.measure.workloads.layer:FORMATS"),
    metavar="NAME",
    multiple=True,
    help="What to quantise to; repeat it for several. A wrong name lists those there are.  [default: all but"
    " those of cheaper rules of choice]",
)
@click.option(
    "--rtl",
    type=Names("hwgen.measure.workloads.layer:RTL"),
    metavar="GEMM",
    multiple=True,
    help="GEMM that goes through the RTL, or 'all'; repeat it for several. A wrong name lists those there are."
    "  [default: query]",
)
@click.option("--core", "size", type=click.Choice(CORE_SIZES), default="small", show_default=True, help="Core.")
@click.option(
    "--sentences",
    type=Whole(1, _SENTENCES),
    default=_SENTENCES,
    show_default=True,
    help="How many of the fixed sentences are the input.",
)
@out(REPORTS, "Directory of the report.")
@click.option("--name", "stem", default="layer", show_default=True, help="Name of the report.")
@json_option
def command(
    model: str,
    layer: int,
    formats: tuple[str, ...],
    rtl: tuple[str, ...],
    size: str,
    sentences: int,
    out: Path,
    stem: str,
    as_json: bool,
) -> None:
    """Run a layer of a trained model through hardware quantiser and core, format by format.

    All its GEMMs are those of the golden model: activations quantised by the hardware quantiser, weights in
    advance. --rtl goes through the RTL of both, too, and every bit is compared; status 1 if one differs. States
    the error of each GEMM and of the output against FP32, see docs/layer.md. Writes NAME.md, .csv, .json and
    .png. Needs a C++ compiler.
    """
    check_files(out, stem)
    from hwgen.measure.workloads.layer import FORMATS, USUAL, LayerRequest, measure
    from hwgen.report.check import findings
    from sim import accuracy

    if model == _MINILM:
        encoder, name = accuracy.minilm(), "all-MiniLM-L6-v2"
    else:
        directory = Path(model)
        if not directory.is_dir():
            what = "this is a file" if directory.exists() else "there is no such directory"
            raise InputError(f"--model {model}: must be {_MINILM} or a directory; {what}")
        encoder, name = accuracy.encoder_at(directory), directory.resolve().name
    if layer >= encoder.depth:
        raise InputError(f"--layer {layer}: {name} has layers 0 to {encoder.depth - 1}")
    request = LayerRequest(
        name,
        layer,
        accuracy.SENTENCES[:sentences],
        tuple(name for name in FORMATS if name in (formats or USUAL)),
        size,
        tuple(dict.fromkeys(rtl)) or LayerRequest.rtl,
    )
    with progress() as update:
        report = measure(encoder, request, update)
    written(report, out, stem, as_json, {})
    for sentence in findings(report):
        click.echo(f"hwgen: {sentence}", err=True)
