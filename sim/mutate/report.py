"""Tables of a mutation run: what was planted, killed, and proven equivalent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from hwgen.config import TensorCoreConfig
from hwgen.config.quantiser import QuantiserConfig
from sim.mutate.operators import OPERATORS, Mutant

__all__ = [
    "MutationJson",
    "Outcome",
    "QuantiserMutationJson",
    "as_dict",
    "quantiser_tables",
    "quantisers_as_dict",
    "tables",
]


class MutantJson(TypedDict):
    """What became of one mutant.

    Parameters
    ----------
    core
        Name of the core's, or the quantiser's, configuration that it was planted into.
    module, cell
        Where.
    operator
        Kind of the fault.
    detail
        The fault, in words.
    killed
        Situation that killed it; null if it survived all.
    proof
        Module at whose borders it is proven equivalent; null if it was killed, or there is no proof.
    """

    core: str
    module: str
    cell: str
    operator: str
    detail: str
    killed: str | None
    proof: str | None


class QuantiserMutationJson(TypedDict):
    """A mutation run of quantisers.

    Parameters
    ----------
    seed
        Chose mutants and stimulus.
    blocks
        That each mutant is confronted with, about.
    quantisers
        The configurations.
    mutants
        All of them; `core` is the name of a quantiser.
    """

    seed: int
    blocks: int
    quantisers: list[Annotated[dict[str, Any], QuantiserConfig]]
    mutants: list[MutantJson]


class MutationJson(TypedDict):
    """A mutation run.

    Parameters
    ----------
    seed
        Chose mutants and stimulus.
    steps
        Random steps of each mutant.
    cores
        The configurations.
    mutants
        All of them.
    """

    seed: int
    steps: int
    cores: list[Annotated[dict[str, Any], TensorCoreConfig]]
    mutants: list[MutantJson]


@dataclass(frozen=True)
class Outcome:
    """What became of one mutant.

    Parameters
    ----------
    config
        The core it was planted into.
    mutant
        The mutant.
    killed
        Situation that killed it; None if it survived all.
    proof
        Module at whose borders it is proven equivalent; None if it was killed, or there is no proof.
    """

    config: TensorCoreConfig | QuantiserConfig
    mutant: Mutant
    killed: str | None
    proof: str | None

    @property
    def alive(self) -> bool:
        """Neither killed nor proven equivalent."""
        return self.killed is None and self.proof is None


def _table(title: str, outcomes: Sequence[Outcome], key: Callable[[Outcome], str]) -> list[str]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(key(outcome), []).append(outcome)
    lines = [f"| {title} | mutants | killed | equivalent, proven | alive |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, group in [*sorted(groups.items()), ("total", list(outcomes))]:
        killed = sum(outcome.killed is not None for outcome in group)
        proven = sum(outcome.proof is not None for outcome in group)
        lines.append(f"| {name} | {len(group)} | {killed} | {proven} | {sum(o.alive for o in group)} |")
    return [*lines, ""]


def _described(config: TensorCoreConfig | QuantiserConfig) -> str:
    if isinstance(config, QuantiserConfig):
        chosen = f"{config.selection}, {config.error_bits} bits" if config.chooses else "no choice"
        words = [config.format, config.rule, config.input, f"tensor scales of {config.tensor_scale_bits} bits", chosen]
        return f"{', '.join(words)}; {', '.join(config.registers) or 'no pipeline registers'}"
    rounds = "exact" if config.exact else config.rounding
    registers = ", ".join(config.pipeline) or "no pipeline registers"
    formats = " x ".join(dict.fromkeys(form.name for form in config.formats))
    size = f"{config.rows} x {config.columns}, G = {config.groups}"
    return f"{formats}, {size}, {config.dot}, {rounds}; {registers}"


def tables(outcomes: Sequence[Outcome], seed: int, steps: int) -> str:
    """Markdown of a mutation run of cores."""
    return _tables(outcomes, "core", f"Written by `make mutate`: seed {seed}, {steps} random steps")


def quantiser_tables(outcomes: Sequence[Outcome], seed: int, blocks: int) -> str:
    """Markdown of a mutation run of quantisers."""
    return _tables(outcomes, "quantiser", f"Written by `make mutate-quantisers`: seed {seed}, {blocks} blocks")


def _tables(outcomes: Sequence[Outcome], kind: str, written: str) -> str:
    configs = list(dict.fromkeys(outcome.config for outcome in outcomes))
    killers = Counter(outcome.killed for outcome in outcomes if outcome.killed)
    by = ", ".join(f"{name} {count}" for name, count in killers.most_common())
    survivors = [outcome for outcome in outcomes if outcome.killed is None]
    lines = [
        "# Mutants of the RTL",
        "",
        f"{written}, see [docs/proofs.md](../docs/proofs.md).",
        f"First killed by: {by}.",
        "",
        *_table(kind, outcomes, lambda outcome: f"`{outcome.config.name}`"),
        *(f"- `{config.name}`: {_described(config)}" for config in configs),
        "",
        *_table(
            "operator", outcomes, lambda outcome: f"`{outcome.mutant.operator}`: {OPERATORS[outcome.mutant.operator]}"
        ),
        *_table("module", outcomes, lambda outcome: f"`{outcome.mutant.module}`"),
        "## Survivors",
        "",
        f"| {kind} | module | cell | fault | proven equivalent at the borders of |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| `{o.config.name}` | `{o.mutant.module}` | `{o.mutant.cell}` | {o.mutant.operator}: {o.mutant.detail} |"
            f" {f'`{o.proof}`' if o.proof else '**not proven**'} |"
            for o in survivors
        ),
        "",
    ]
    return "\n".join(lines)


def as_dict(outcomes: Sequence[Outcome], seed: int, steps: int) -> MutationJson:
    """The same, ready for JSON."""
    return {
        "seed": seed,
        "steps": steps,
        "cores": [config.as_dict() for config in dict.fromkeys(outcome.config for outcome in outcomes)],
        "mutants": _mutants(outcomes),
    }


def quantisers_as_dict(outcomes: Sequence[Outcome], seed: int, blocks: int) -> QuantiserMutationJson:
    """The same of quantisers."""
    return {
        "seed": seed,
        "blocks": blocks,
        "quantisers": [config.as_dict() for config in dict.fromkeys(outcome.config for outcome in outcomes)],
        "mutants": _mutants(outcomes),
    }


def _mutants(outcomes: Sequence[Outcome]) -> list[MutantJson]:
    return [
        {
            "core": outcome.config.name,
            "module": outcome.mutant.module,
            "cell": outcome.mutant.cell,
            "operator": outcome.mutant.operator,
            "detail": outcome.mutant.detail,
            "killed": outcome.killed,
            "proof": outcome.proof,
        }
        for outcome in outcomes
    ]
