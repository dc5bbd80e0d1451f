"""Self-checking SystemVerilog testbench, written from the manifest."""

from __future__ import annotations

from hwgen import __version__
from hwgen.package.layout import ADDENDS, RESULTS, STEPS
from hwgen.package.template import filled
from hwgen.package.vectors import Vectors
from hwgen.verilog import Manifest, Port

__all__ = ["testbench"]


def _declaration(port: Port) -> str:
    span = f"[{port.width - 1}:0] " if port.width > 1 else ""
    return f"  {'reg' if port.direction == 'input' else 'wire'} {span}{port.name};"


def testbench(manifest: Manifest, vectors: Vectors) -> str:
    """SystemVerilog of a testbench that runs in Icarus Verilog (``-g2012``) and Verilator (``--binary``).

    It reads ``steps.hex``, ``addends.hex`` and ``results.hex`` from the current directory, prints ``PASS``, or the
    first failure and ``FAIL``, and then ends with ``$fatal``.

    Parameters
    ----------
    manifest
        That of the core, see `hwgen.verilog.describe`.
    vectors
        The vectors that it is to run.
    """
    step, addend, result = manifest.step, manifest.addend, manifest.result
    d = result.payload.field("d")
    rows, columns = d.dimensions
    streams = {
        f"{name}_{role}": getattr(stream, role).name
        for name, stream in manifest.streams.items()
        for role in ("valid", "ready", "payload")
    }
    return filled(
        "testbench.sv",
        **streams,
        name=manifest.configuration.name,
        version=__version__,
        top=manifest.top,
        clk=manifest.clock.port.name,
        rst=manifest.reset.port.name,
        declarations="\n".join(map(_declaration, manifest.ports)),
        connections=",\n".join(f"      .{port.name}({port.name})" for port in manifest.ports),
        steps_file=STEPS,
        addends_file=ADDENDS,
        results_file=RESULTS,
        steps=vectors.step_count,
        addends=vectors.addend_count,
        results=vectors.result_count,
        latency=manifest.latency,
        turns=manifest.configuration.interleave,
        last=step.payload.field("last").offset,
        step_width=step.payload.width,
        step_top=step.payload.width - 1,
        addend_width=addend.payload.width,
        addend_top=addend.payload.width - 1,
        result_top=result.payload.width - 1,
        rows=rows.size,
        columns=columns.size,
        d_width=d.width,
        d_top=d.width - 1,
        at=f"{d.offset} + {rows.stride} * m + {columns.stride} * n",
    )
