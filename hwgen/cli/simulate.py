"""``hwgen simulate``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from hwgen.cli import replay as replaying
from hwgen.cli.options import check_waves, config, engine, given, json_option, kind, made_engine, vcd
from hwgen.cli.output import print_json, print_table, progress
from hwgen.cli.types import FILE, POSITIVE, SEED, SHARE, Names
from hwgen.errors import InputError, MismatchError, StorageError
from hwgen.files import check_file, write_bytes

if TYPE_CHECKING:
    from hwgen.config import TensorCoreConfig
    from sim.engines import Engine
    from sim.gemm import GemmRun, Traffic
    from sim.golden import BlockFormat, QuantizedTensor
    from sim.operands import Operand
    from sim.tensors import Tensor

    Start = Callable[[Engine, Traffic, Callable[[int, int], None]], GemmRun]

__all__ = ["command"]


class _HasRows(Protocol):
    @property
    def rows(self) -> int: ...


Each = TypeVar("Each", bound=_HasRows)
"""An operand of either mode."""


@click.command("simulate")
@config("mixfp4-small")
@click.option("--m", type=POSITIVE, help="Rows of A, generated.  [default: 16]")
@click.option("--n", type=POSITIVE, help="Rows of B, generated.  [default: 16]")
@click.option("--k", type=POSITIVE, help="Depth, generated.  [default: 64]")
@kind
@click.option(
    "--mode",
    type=click.Choice(["fp4", "fp8", "mxfp8"]),
    default="fp4",
    show_default=True,
    help="fp8: elements without block scales, FP8 or FP6, in steps at half the rate, on a core with a slot. mxfp8: the"
    " same with E8M0 scales of 32 elements, on a core with half_scale.",
)
@click.option(
    "--a-type", type=Names("sim.unscaled:UNSCALED_TYPES"), help="Type of A at half the rate.  [default: e4m3]"
)
@click.option("--b-type", type=Names("sim.unscaled:UNSCALED_TYPES"), help="The same of B.")
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of what is generated.")
@click.option("--a", "a_file", type=FILE, help="A (M x K) from a .npy, .npz or .safetensors file.")
@click.option("--a-name", help="Tensor of the --a file.")
@click.option("--b", "b_file", type=FILE, help="B (N x K) from a .npy, .npz or .safetensors file.")
@click.option("--b-name", help="Tensor of the --b file.")
@click.option("--a-rule", help="Rule that quantises numbers of A; a wrong name lists those that its format has.")
@click.option("--b-rule", help="The same of B.")
@click.option("--model", type=click.Choice(["minilm"]), help="Take B from a trained model (extra 'workloads').")
@click.option("--layer", help="Weight matrix of --model; a wrong name lists those there are.")
@engine
@click.option("--gaps", type=SHARE, default=0.0, help="Share of cycles without a step offered, and of those without C.")
@click.option("--stalls", type=SHARE, default=0.0, help="Share of cycles without a result taken.")
@click.option("--save", type=FILE, help="Write D to this .npy file; or D and the quantised operands to this .npz file.")
@vcd
@click.option("--replay", "vectors", type=FILE, hidden=True, help="As 'hwgen replay'.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    name: str,
    engine: str,
    mode: str,
    a_type: str | None,
    b_type: str | None,
    seed: int,
    gaps: float,
    stalls: float,
    save: Path | None,
    vcd: Path | None,
    vectors: Path | None,
    as_json: bool,
    **operands: Any,
) -> None:
    """Run a GEMM, D = A B^T, through the RTL, cycle by cycle, and compare every bit with the golden model.

    Any shape will do: what the tiles have over the edge is filled with zero blocks. Operands are numbers, which are
    quantised, or codes and scales; see docs/simulate.md. Exits with status 1 if a bit differs.
    """
    if vectors is not None:
        _alone(context)
        context.invoke(replaying.command, vectors=vectors, engine=engine, vcd=vcd, as_json=as_json)
        return
    from sim.counterpart import resolved
    from sim.gemm import Traffic, saved

    _check_save(save)
    check_waves(vcd, engine, save)
    core_config = resolved(name)
    if mode == "fp8":
        start = _run_of_fp8(core_config, a_type or "e4m3", b_type or "e4m3", seed, **operands)
    elif mode == "mxfp8":
        start = _run_of_mxfp8(core_config, a_type or "e4m3", b_type or "e4m3", seed, **operands)
    else:
        _check_fp4(a_type, b_type)
        start = _run_of_fp4(core_config, seed, **operands)
    with progress() as update, made_engine(core_config, engine, vcd) as core:
        run = start(core, Traffic(gaps, stalls, seed), lambda done, total: update("steps", done, total))
    lost: StorageError | None = None
    if save is not None:
        try:
            write_bytes(save, saved(run, save.suffix.lower()))
        except StorageError as error:
            lost = error  # whether the results are right is said first
    outcome = run.as_dict()
    if as_json:
        print_json(outcome)
    else:
        rows = [[key, f"{value:.4f}" if isinstance(value, float) else str(value)] for key, value in outcome.items()]
        print_table(["GEMM", "value"], rows)
    if run.mismatch:
        raise MismatchError(f"mismatch: {run.mismatch}" + (f"; {lost}" if lost else ""))
    if lost:
        raise lost


def _check_save(file: Path | None) -> None:
    """Check where D goes, before any work."""
    from sim.gemm import SAVED

    if file is not None:
        if file.suffix.lower() not in SAVED:
            raise InputError(f"--save {str(file)!r}: must end in {' or '.join(SAVED)}")
        check_file(file)


def _alone(context: click.Context) -> None:
    """Check that nothing but the file says what to run."""
    for option in context.command.params:
        if given(context, str(option.name)) and option.name not in ("vectors", "engine", "vcd", "as_json"):
            raise InputError(f"--replay brings its own stimulus: leave {option.opts[0]} out")


def _check_fp4(a_type: str | None, b_type: str | None) -> None:
    """Check that no types are given for steps of FP4."""
    for letter, given_type in (("a", a_type), ("b", b_type)):
        if given_type is not None:
            raise InputError(
                f"--{letter}-type {given_type}: in steps of FP4 elements have the format of the core; add --mode fp8"
            )


def _run_of_fp4(core: TensorCoreConfig, seed: int, a_rule: str | None, b_rule: str | None, **operands: Any) -> Start:
    """A GEMM of operands in the formats of the core."""
    from sim.counterpart import counterpart
    from sim.gemm import run_gemm

    forms = {letter: counterpart(core.form(letter.lower())) for letter in "AB"}
    a, b, k = _quantized(forms, {"a": a_rule, "b": b_rule}, seed, **operands)
    return lambda engine, traffic, update: run_gemm(engine, a, b, traffic, depth=k, progress=update)


def _run_of_mxfp8(
    core: TensorCoreConfig,
    a_type: str,
    b_type: str,
    seed: int,
    a_rule: str | None,
    b_rule: str | None,
    **operands: Any,
) -> Start:
    """A GEMM of elements of these types with E8M0 scales."""
    from sim import golden
    from sim.gemm import run_unscaled
    from sim.unscaled import SCALED_FORMATS

    if not core.half_scaled:
        raise InputError(
            f"--mode mxfp8: {core.name} has no scales at half the rate; give a core with half_scale = 'e8m0', such as"
            " mixfp4-mx-multi-small"
        )
    forms = {
        letter: golden.block_format(SCALED_FORMATS[kind]) for letter, kind in zip("AB", (a_type, b_type), strict=True)
    }
    a, b, k = _quantized(forms, {"a": a_rule, "b": b_rule}, seed, **operands)
    return lambda engine, traffic, update: run_unscaled(engine, a, b, traffic, depth=k, progress=update)


def _quantized(
    forms: dict[str, BlockFormat], rules: dict[str, str | None], seed: int, **operands: Any
) -> tuple[QuantizedTensor, QuantizedTensor, int]:
    """A and B in their block formats, and K as it was given."""
    from sim.operands import Numbers, from_file

    def numbers(letter: str, tensor: Tensor) -> Operand:
        return Numbers(letter, tensor)

    def depth(letter: str, operand: Operand) -> int:
        return operand.depth(forms[letter])

    a, b, k = _operands(from_file, numbers, depth, seed, **operands)
    left, right = _ruled(a, rules["a"], "a"), _ruled(b, rules["b"], "b")
    return left.quantized(forms["A"]), right.quantized(forms["B"]), k


def _run_of_fp8(
    core: TensorCoreConfig,
    a_type: str,
    b_type: str,
    seed: int,
    a_rule: str | None,
    b_rule: str | None,
    **operands: Any,
) -> Start:
    """A GEMM of elements without block scales, of these types."""
    from sim.gemm import run_unscaled
    from sim.unscaled import Unscaled, from_file, rounded

    if not core.slotted:
        raise InputError(
            f"--mode fp8: {core.name} multiplies FP4 alone; give a core with a slot, such as mixfp4-multi-small"
        )
    for letter, rule in (("a", a_rule), ("b", b_rule)):
        if rule is not None:
            raise InputError(f"--{letter}-rule {rule!r}: elements without block scales have none; leave it out")
    types = {"A": a_type, "B": b_type}

    def read(path: Path, name: str | None, letter: str) -> Unscaled:
        return from_file(path, name, letter, types[letter])

    def numbers(letter: str, tensor: Tensor) -> Unscaled:
        return rounded(tensor, types[letter])

    def depth(letter: str, operand: Unscaled) -> int:
        return operand.shape[1]

    a, b, _ = _operands(read, numbers, depth, seed, **operands)
    return lambda engine, traffic, update: run_unscaled(engine, a, b, traffic, progress=update)


def _operands(
    read: Callable[[Path, str | None, str], Each],
    numbers: Callable[[str, Tensor], Each],
    depth_of: Callable[[str, Each], int],
    seed: int,
    m: int | None,
    n: int | None,
    k: int | None,
    kind: str,
    a_file: Path | None,
    a_name: str | None,
    b_file: Path | None,
    b_name: str | None,
    model: str | None,
    layer: str | None,
) -> tuple[Each, Each, int]:
    """A, B, and K as it was given."""
    from sim import tensors

    if (layer is None) != (model is None):
        raise InputError("--model and --layer belong together")
    if model is not None and (b_file is not None or b_name is not None or n is not None):
        raise InputError("--model gives B: leave --b, --b-name and --n out")
    a = _from_file(read, a_file, a_name, m, "a")
    b = numbers("B", tensors.minilm(layer)) if layer else _from_file(read, b_file, b_name, n, "b")
    sides = (("A", a), ("B", b))
    known = {f"{letter} has K =": depth_of(letter, each) for letter, each in sides if each is not None}
    known |= {} if k is None else {"--k is": k}
    if len(set(known.values())) > 1:
        found = ", ".join(f"{what} {depth}" for what, depth in known.items())
        raise InputError(f"depth: {found}; they must be the same")
    depth = next(iter(known.values()), 64)
    if a is None:
        a = numbers("A", tensors.generate(kind, (m or 16, depth), seed))
    if b is None:
        b = numbers("B", tensors.generate(kind, (n or 16, depth), seed + 1))
    return a, b, depth


def _ruled(operand: Operand, rule: str | None, letter: str) -> Operand:
    """The operand with the rule that it is quantised by."""
    from sim.operands import Numbers

    if rule is None:
        return operand
    if not isinstance(operand, Numbers):
        raise InputError(f"--{letter}-rule {rule!r}: {letter.upper()} is quantised already; leave it out")
    return replace(operand, rule=rule)


def _from_file(
    read: Callable[[Path, str | None, str], Each], file: Path | None, name: str | None, rows: int | None, letter: str
) -> Each | None:
    """An operand from a file, if there is one."""
    if file is None:
        if name is not None:
            raise InputError(f"--{letter}-name {name!r}: names a tensor of a file; give the file with --{letter}")
        return None
    operand = read(file, name, letter.upper())
    if rows is not None and rows != operand.rows:
        option = {"a": "m", "b": "n"}[letter]
        raise InputError(f"--{option} {rows}: {str(file)!r} has {operand.rows} rows; leave --{option} out")
    return operand
