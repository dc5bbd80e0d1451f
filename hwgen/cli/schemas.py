"""JSON Schema files of all that hwgen writes as JSON, made of the records that it is written from.

``python -m hwgen.cli.schemas`` writes them to ``hwgen/report/schemas/NAME-VERSION.json``. A version grows when a key
changes its meaning or goes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

from hwgen import report
from hwgen.config import TensorCoreConfig
from hwgen.files import write_all
from hwgen.report.json_schema import json_schema
from hwgen.report.mutants import FiguresJson
from hwgen.report.schema import REPORTS, SCHEMA, SCHEMA_VERSION
from hwgen.verilog.ports import SCHEMA as MANIFEST
from hwgen.verilog.ports import Manifest
from hwgen.verilog.quantiser import QUANTISER_SCHEMA, QuantiserManifest
from sim.accuracy.table import ErrorRow
from sim.gemm import GemmFigures
from sim.mutate.report import MutationJson, QuantiserMutationJson
from sim.verify.campaign import CampaignFigures
from sim.verify.quantisers import ComparisonFigures
from sim.verify.reproducer import VERSION, About

__all__ = ["DIRECTORY", "WRITTEN", "Written", "files", "main"]

DIRECTORY = Path(report.__path__[0]) / "schemas"
"""Where the files are."""


class DerivedFigures(TypedDict):
    """What follows from a configuration.

    Parameters
    ----------
    macs_per_step
        Multiply-accumulates of one step, and so of a cycle without stalls.
    latency
        Cycles from the acceptance of a step to its result, without stalls.
    """

    macs_per_step: int
    latency: int


class ReplayFigures(TypedDict):
    """What came of the steps of a file.

    Parameters
    ----------
    configuration
        Name of the core's configuration.
    engine
        Name of its simulator.
    steps, outputs
        Steps, and results that were compared with the golden model.
    mismatch
        The first result that differs in a bit, in words; null where none does.
    """

    configuration: str
    engine: str
    steps: int
    outputs: int
    mismatch: str | None


class ReproducerFigures(TypedDict):
    """Where a mismatch can be looked at.

    Parameters
    ----------
    reproducer
        File of as few steps as show the mismatch; null without one.
    """

    reproducer: str | None


class DrawnTensors(TypedDict):
    """Tensors that were drawn.

    Parameters
    ----------
    shape
        Rows and K.
    seed
        Of the generator.
    """

    shape: list[int]
    seed: int


class ErrorTable(TypedDict):
    """What formats lose.

    Parameters
    ----------
    drawn
        The tensors; null where they are of a file.
    file
        The file; null where tensors were drawn.
    model
        The trained model; null without one.
    sentences
        Sentences that the model was run on; null without one.
    rows
        One for each format and rule.
    """

    drawn: DrawnTensors | None
    file: str | None
    model: str | None
    sentences: int | None
    rows: list[ErrorRow]


class PlacedBlock(TypedDict):
    """A block of a placed core.

    Parameters
    ----------
    area_um2
        Of its cells.
    steiner_trees_um
        Of the nets that it drives.
    wires_ff
        Capacitance of the wires that it drives.
    """

    area_um2: float
    steiner_trees_um: float
    wires_ff: float


class PlacedFigures(TypedDict):
    """A placed core.

    Parameters
    ----------
    configuration
        Name of its configuration.
    library
        Name of the cell library.
    technology
        Where the figures of wires and rows come from.
    arrangement, placer
        How it was placed.
    cells, nets
        How many there are.
    die_um
        Width and height.
    utilisation
        Share of the rows that cells fill.
    half_perimeters_um, steiner_trees_um
        Of all nets.
    detour
        Length of a wire over that of its Steiner tree.
    wires_ff
        Capacitance of the wires.
    wire_per_fanout_ff
        The same for each load.
    clock_buffers
        Buffers of the estimated clock tree.
    clock_wires_ff
        Capacitance of the clock's wires.
    blocks
        By block.
    """

    configuration: str
    library: str
    technology: str
    arrangement: str
    placer: str
    cells: int
    nets: int
    die_um: str
    utilisation: float
    half_perimeters_um: float
    steiner_trees_um: float
    detour: float
    wires_ff: float
    wire_per_fanout_ff: float
    clock_buffers: int
    clock_wires_ff: float
    blocks: dict[str, PlacedBlock]


class WrittenPackage(TypedDict):
    """The files of one core.

    Parameters
    ----------
    configuration
        Name of its configuration.
    files
        Their paths.
    """

    configuration: str
    files: list[str]


class QuantiserFigures(TypedDict):
    """A quantiser that was verified.

    Parameters
    ----------
    quantiser
        Its name.
    seed
        Of what was drawn.
    """

    quantiser: str
    seed: int


class WrittenQuantiser(TypedDict):
    """The files of one quantiser.

    Parameters
    ----------
    quantiser
        Its name.
    files
        Their paths.
    """

    quantiser: str
    files: list[str]


@dataclass(frozen=True)
class Written:
    """One kind of JSON.

    Parameters
    ----------
    name, version
        Of its schema.
    title
        What it is, and what writes it.
    form
        What it is written from, see `hwgen.report.json_schema`.
    constants
        Keys that always have one value.
    """

    name: str
    version: int
    title: str
    form: Any
    constants: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """Name of the schema's file."""
        return f"{self.name}-{self.version}.json"

    def schema(self) -> dict[str, Any]:
        """The schema."""
        return json_schema(self.form, self.name, self.version, self.title, self.constants)


_VERIFIED = Annotated[dict[str, Any], CampaignFigures, ReproducerFigures]
_COMPARED = Annotated[dict[str, Any], ComparisonFigures, QuantiserFigures]
_CONFIGURATION = Annotated[dict[str, Any], TensorCoreConfig, DerivedFigures]
_REPORTS = [
    Written(
        kind,
        SCHEMA_VERSION,
        f"Report of '{form.command}'",
        form,
        {"schema": SCHEMA, "version": SCHEMA_VERSION, "kind": kind},
    )
    for kind, form in REPORTS.items()
]

WRITTEN: dict[str, Written] = {
    each.name: each
    for each in (
        *_REPORTS,
        Written(
            "manifest",
            int(str(MANIFEST["version"])),
            "Manifest of 'hwgen verilog': NAME.json",
            Manifest,
            {"schema": MANIFEST},
        ),
        Written(
            "quantiser-manifest",
            int(str(QUANTISER_SCHEMA["version"])),
            "Manifest of 'hwgen quantiser verilog': NAME.json",
            QuantiserManifest,
            {"schema": QUANTISER_SCHEMA},
        ),
        Written(
            "vectors",
            VERSION,
            "Text 'about' of the .npz file of 'hwgen verify'",
            About,
        ),
        Written("mutation", 1, "mutation.json of 'python -m sim.mutate'", MutationJson),
        Written(
            "mutation-quantiser",
            1,
            "mutation-quantiser.json of 'python -m sim.mutate.quantisers'",
            QuantiserMutationJson,
        ),
        Written(
            "mutation-figures",
            1,
            "reports/mutation-figures.json of 'make mutate-figures'",
            FiguresJson,
            {"kind": "mutation-figures"},
        ),
        Written("configs", 1, "'hwgen configs --json'", list[_CONFIGURATION]),
        Written("error", 1, "'hwgen error --json'", ErrorTable),
        Written("place", 1, "'hwgen place --json'", PlacedFigures),
        Written("quantiser-verify", 1, "'hwgen quantiser verify --json'", _COMPARED),
        Written("quantiser-verilog", 1, "'hwgen quantiser verilog --json'", list[WrittenQuantiser]),
        Written("replay", 1, "'hwgen replay --json'", ReplayFigures),
        Written("simulate", 1, "'hwgen simulate --json'", GemmFigures),
        Written("verify", 1, "'hwgen verify --json'", _VERIFIED),
        Written("verilog", 1, "'hwgen verilog --json'", list[WrittenPackage]),
    )
}
"""Kinds of JSON by name."""


def files() -> dict[str, str]:
    """Texts of the schemas by file name."""
    return {each.file: json.dumps(each.schema(), indent=2) + "\n" for each in WRITTEN.values()}


def main() -> None:
    """Write the files."""
    write_all({DIRECTORY / name: text.encode() for name, text in files().items()})


if __name__ == "__main__":
    main()
