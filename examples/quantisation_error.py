"""What NVFP4 and MixFP4 lose of a model's weights, matrix by matrix.

    python examples/quantisation_error.py                               # all-MiniLM-L6-v2 (extra hwgen[workloads])
    python examples/quantisation_error.py model.safetensors --match '*q_proj*' --out build
    python examples/quantisation_error.py weights.npy

Prints a table and writes it as quantisation-error.csv, with a picture, quantisation-error.png. SQNR is the energy
of the weights over that of the error; "MSE ratio" is the error energy of MixFP4 over that of NVFP4; "E1M2" is the share
of blocks that MixFP4 stores so. The last row is of all elements together.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hwgen.errors import InputError
from hwgen.files import check_directory, write_all
from sim import golden, tensors

NAMES = {"nvfp4": "NVFP4", "mixfp4": "MixFP4"}
COLOURS = {"nvfp4": "#e69f00", "mixfp4": "#0072b2"}
ALL = "all"


def weights(files: Sequence[Path], match: str) -> Iterator[tuple[str, tensors.Tensor]]:
    """Matrices by name: of files, or of all-MiniLM-L6-v2 if there are none."""
    if not files:
        for name in tensors.minilm_layers():
            if fnmatchcase(name, match):
                yield name, tensors.minilm(name)
    for file in files:
        if file.suffix == ".safetensors":
            for name in tensors.matrices(file):
                if fnmatchcase(name, match):
                    yield name, tensors.load(file, name)
        elif fnmatchcase(file.stem, match):
            yield file.stem, tensors.load(file)


def errors(x: tensors.Tensor) -> dict[str, float]:
    """Energy of a matrix and of its errors, and how many of its blocks are E1M2."""
    wide = x.astype(np.float64)
    found = {"rows": x.shape[0], "K": x.shape[1], "energy": float(np.square(wide).sum())}
    for fmt in NAMES:
        q = golden.quantize_padded(x, fmt)
        found[fmt] = float(np.square(golden.dequantize(q)[:, : x.shape[1]] - wide).sum())
        found["blocks"], found["e1m2"] = q.e1m2.size, int(q.e1m2.sum())
    return found


def table(measured: dict[str, dict[str, float]]) -> pd.DataFrame:
    """The figures of each matrix, and of all."""
    raw = pd.DataFrame.from_dict(measured, orient="index")
    raw.loc[ALL] = raw.sum()
    found = pd.DataFrame(index=raw.index.rename("matrix"))
    found[["rows", "K"]] = raw[["rows", "K"]].astype(int).astype(str)
    found.loc[ALL, ["rows", "K"]] = ""
    for fmt, name in NAMES.items():
        # Without error SQNR is infinite, and of zeros it is not a number.
        with np.errstate(divide="ignore", invalid="ignore"):
            found[f"SQNR {name} (dB)"] = 10 * np.log10(raw["energy"] / raw[fmt])
    found["gain (dB)"] = found["SQNR MixFP4 (dB)"] - found["SQNR NVFP4 (dB)"]
    found["MSE ratio"] = raw["mixfp4"] / raw["nvfp4"]
    found["E1M2"] = raw["e1m2"] / raw["blocks"]
    return found


def picture(found: pd.DataFrame) -> bytes:
    """The table as a PNG: SQNR of both formats, and the share of E1M2 blocks."""
    rows = found.drop(ALL)
    places = np.arange(len(rows))[::-1]
    figure = Figure(figsize=(10, min(1.6 + 0.19 * len(rows), 60)), layout="constrained")
    FigureCanvasAgg(figure)
    quality, share = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    both = [rows[f"SQNR {name} (dB)"].where(np.isfinite) for name in NAMES.values()]
    quality.hlines(places, *both, color="#bbbbbb", linewidth=1.5, zorder=1)
    for values, (fmt, name) in zip(both, NAMES.items(), strict=True):
        overall = found.loc[ALL, f"SQNR {name} (dB)"]
        label = f"{name}, {overall:.2f} dB in all"
        quality.plot(values, places, "o", color=COLOURS[fmt], markersize=5, label=label)
        if np.isfinite(overall):
            quality.axvline(overall, color=COLOURS[fmt], linewidth=0.8, linestyle=":", zorder=0)
    # A dollar sign would begin a formula.
    quality.set_yticks(places, [name.replace("$", r"\$") for name in rows.index], fontsize=7)
    quality.set_ylim(-1, len(rows))
    quality.set_xlabel("SQNR (dB)")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    share.barh(places, 100 * rows["E1M2"], 0.7, color=COLOURS["mixfp4"])
    share.axvline(100 * found.loc[ALL, "E1M2"], color="black", linewidth=0.8, linestyle=":")
    share.set_xlim(0, 100)
    share.set_xlabel("E1M2 blocks (%)")
    for axis in (quality, share):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="x", alpha=0.25)
        axis.set_axisbelow(True)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110, metadata={"Software": None})
    return buffer.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; bad input is one line and status 2."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help=".safetensors or .npy")
    parser.add_argument("--match", default="*", metavar="PATTERN", help="names to take, with wildcards")
    parser.add_argument("--out", default=Path("."), type=Path, metavar="DIR", help="where the files go (default: here)")
    options = parser.parse_args(arguments)
    try:
        check_directory(options.out)
        measured = {}
        for name, x in weights(options.files, options.match):
            if name in measured or name == ALL:
                raise InputError(f"matrix {name!r}: of that name there are several; give one file at a time")
            if not x.size:
                raise InputError(f"matrix {name!r}: is empty, {x.shape}; must have rows and columns")
            measured[name] = errors(x)
        if not measured:
            raise InputError(f"--match {options.match!r}: no such matrix of floats")
        found = table(measured)
        content = {"csv": found.to_csv(float_format="%.6g").encode(), "png": picture(found)}
        files = {options.out / f"quantisation-error.{suffix}": data for suffix, data in content.items()}
        write_all(files)
    except (InputError, golden.ArgumentError) as error:
        print(f"quantisation_error: {error}", file=sys.stderr)
        return 2
    print(found.to_string(float_format="{:.3f}".format))
    print(*files, sep="  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
