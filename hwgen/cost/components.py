"""A measured core for AccelForge and hwcomponents, which follow Timeloop and Accelergy.

hwcomponents takes component models as Python classes, AccelForge takes an architecture as YAML. Both count in J, W, m2
and s without prefixes. The component is one multiply-accumulate of the array, as in `hwgen.cost.export`: its share of
everything that the core holds.
"""

from __future__ import annotations

import math
from typing import Any

import yaml

from hwgen.cost.grid import Memory
from hwgen.cost.model import CoreCost, EnergyCosts

__all__ = ["architecture", "component_model"]

_CLASS = '''\
"""{remark}.

hwcomponents finds it where `hwcomponents.get_models` is given the path of this file, AccelForge where it stands in
`config.component_models`.
"""

from hwcomponents import ActionCost, ComponentModel, action


class {name}(ComponentModel):
    """A multiply-accumulate of {formats} operands: a share of {macs} of a core.

    Parameters
    ----------
    cycle_seconds
        Clock period; not below that of the longest path, {critical:.9g} s.
    """

    component_name = {name!r}
    priority = 1.0

    def __init__(self, cycle_seconds: float = {cycle:.9g}):
        super().__init__(area={area:.9g}, leak_power={leak:.9g})
        if cycle_seconds < {critical:.9g}:
            raise ValueError(f"cycle_seconds = {{cycle_seconds}}: must be at least {critical:.9g}")
        self.cycle_seconds = cycle_seconds

    @action
    def compute(self) -> ActionCost:
        """A multiply-accumulate."""
        return self._cost({active:.9g})

    @action
    def idle(self) -> ActionCost:
        """A cycle without a step: the clock."""
        return self._cost({idle:.9g})

    def _cost(self, energy: float) -> ActionCost:
        return ActionCost(energy=energy, latency=self.cycle_seconds, throughput=1 / self.cycle_seconds)
'''


class _Node(dict[str, Any]):
    """A node of an architecture; the tag says what it is."""

    def __init__(self, tag: str, **content: Any) -> None:
        super().__init__(content)
        self.tag = tag


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(_Node, lambda dumper, node: dumper.represent_mapping(f"!{node.tag}", node))


def _shares(core: CoreCost) -> dict[str, float]:
    """Of a multiply-accumulate: m2, W, and J of a step and of a cycle without."""
    macs = core.config.macs_per_step
    return {
        "area": core.area_um2 * 1e-12 / macs,
        "leak": core.leakage_mw * 1e-3 / macs,
        "active": core.active_fj * 1e-15 / macs,
        "idle": (core.clock_fj + core.clock_tree_fj) * 1e-15 / macs,
    }


def component_model(core: CoreCost, clock_ns: float, library: str) -> str:
    """Python text of a component model for hwcomponents, with the actions ``compute`` and ``idle``.

    Parameters
    ----------
    core
        What was measured.
    clock_ns
        Clock period.
    library
        Name of the cell library.
    """
    config = core.config
    what = " ".join(f"{config.name} on {library} at {clock_ns:g} ns, measured by hwgen".split())
    return _CLASS.format(
        remark=what.replace("\\", "/").replace('"', "'"),
        name=f"{config.identifier}_mac",
        formats=f"{config.a.name} x {config.b.name}",
        macs=config.macs_per_step,
        cycle=clock_ns * 1e-9,
        critical=core.critical_path_ns * 1e-9,
        **_shares(core),
    )


def architecture(
    core: CoreCost,
    clock_ns: float,
    library: str,
    cores: int,
    memory: Memory,
    costs: EnergyCosts,
    buffer_mm2: float | None,
) -> str:
    """YAML text of an architecture for AccelForge: DRAM, buffer, cores and their multiply-accumulates.

    What is not given, such as the leakage of the buffer, is 0 there.

    Parameters
    ----------
    core
        Each core.
    clock_ns
        Clock period.
    library
        Name of the cell library.
    cores
        How many.
    memory, costs
        What feeds them, and what a byte costs.
    buffer_mm2
        Area of the buffer; None where it is left out.
    """
    config, share = core.config, _shares(core)
    cycle = clock_ns * 1e-9

    def port(name: str, picojoules: float, bits_per_second: float) -> dict[str, Any]:
        rate = bits_per_second if math.isfinite(bits_per_second) else "inf"
        return {"name": name, "energy": picojoules * 1e-12 / 8, "throughput": rate}

    def store(name: str, size: Any, leak: float, area: float, energy: float, rate: float, keep: str) -> _Node:
        ports = [port(action, energy, rate) for action in ("read", "write")]
        tensors = {"keep": keep, "may_keep": "All"}
        return _Node("Memory", name=name, size=size, leak_power=leak, area=area, actions=ports, tensors=tensors)

    leaking = (costs.buffer_mw_per_mib or 0) * 1e-3 * memory.buffer_bytes / (1 << 20)
    mm2 = (buffer_mm2 or 0) * 1e-6
    dram_rate = 8 * memory.dram_bytes_per_second
    fanouts = {"cores": cores, "rows": config.rows, "columns": config.columns, "depth": config.depth}
    usable = int(8 * memory.usable_bytes)
    nodes = [
        store("DRAM", "inf", 0, 0, costs.dram_pj_per_byte, dram_rate, "~Intermediates"),
        store("Buffer", usable, leaking, mm2, costs.buffer_pj_per_byte, math.inf, "~DRAM.tensors"),
        *(
            _Node("Container", name=name, spatial=[{"name": name, "fanout": fanout}])
            for name, fanout in fanouts.items()
        ),
        _Node(
            "Compute",
            name="mac",
            area=share["area"],
            leak_power=share["leak"],
            actions=[{"name": "compute", "energy": share["active"], "throughput": 1 / cycle}],
        ),
    ]
    text = yaml.dump({"arch": {"nodes": nodes}}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    remark = " ".join(f"{config.name} on {library} at {clock_ns:g} ns, measured by hwgen; J, W, m2, bits".split())
    return f"# {remark}\n{text}"
