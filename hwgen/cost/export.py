"""A measured core for Timeloop and Accelergy: reference tables of energy and area, and a component class.

Timeloop counts multiply-accumulates, so that the component is one MAC of the array: the share of one in everything
the core holds, operand decoders, scales, accumulation and registers included. Its energies are those of a core at
work in full: Timeloop counts no padding unless the mapping does.

The tables are those that Accelergy 0.4 writes and Timeloop reads in its place (``ERT`` in pJ, ``ART`` in um2). The
class is a primitive one, for Accelergy's ``primitive_components``.
"""

from __future__ import annotations

from typing import Any

import yaml

from hwgen.cost.model import CoreCost

__all__ = ["exported"]

_VERSION = 0.4
_LEVEL = "mac"


def _document(content: dict[str, Any], *remarks: str) -> str:
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
    return "".join(f"# {remark}\n" for remark in remarks) + str(text)


def exported(core: CoreCost, clock_ns: float, library: str) -> dict[str, str]:
    """Texts by what follows the name of a file: ``ert.yaml``, ``art.yaml`` and ``lib.yaml``.

    ======== ========= ==================================================================
    action   unit      energy
    ======== ========= ==================================================================
    compute  pJ        dynamic energy of a multiply-accumulate
    idle     pJ        clock, for each MAC and cycle without a step
    leak     pJ        leakage, for each MAC and cycle
    ======== ========= ==================================================================

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
    macs = config.macs_per_step
    name = f"system.{config.identifier}.{_LEVEL}[0..{macs - 1}]"
    picojoules = {
        "compute": core.active_fj * 1e-3 / macs,
        "idle": (core.clock_fj + core.clock_tree_fj) * 1e-3 / macs,
        "leak": core.leakage_mw * clock_ns / macs,
    }
    remark = f"{config.name} on {library} at {clock_ns:g} ns, measured by hwgen; one of its {macs} MACs"
    ert = {
        "ERT": {
            "version": _VERSION,
            "tables": [
                {
                    "name": name,
                    "actions": [
                        {"name": action, "arguments": None, "energy": value} for action, value in picojoules.items()
                    ],
                }
            ],
        }
    }
    art = {"ART": {"version": _VERSION, "tables": [{"name": name, "area": core.area_um2 / macs}]}}
    component = {
        "version": _VERSION,
        "classes": [
            {
                "name": f"{config.identifier}_mac",
                "attributes": {
                    "technology": library,
                    "global_cycle_seconds": clock_ns * 1e-9,
                    "formats": f"{config.a.name} x {config.b.name}",
                    "rows": config.rows,
                    "columns": config.columns,
                    "depth": config.depth,
                    "instances": macs,
                },
                "actions": [{"name": action} for action in picojoules],
            }
        ],
    }
    return {
        "ert.yaml": _document(ert, f"{remark}, pJ"),
        "art.yaml": _document(art, f"{remark}, um2"),
        "lib.yaml": _document(component, f"{remark}: {config.rows} x {config.columns} outputs, {config.depth} along K"),
    }
