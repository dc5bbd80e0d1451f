"""Run the cocotb test beside this file on a core: python run.py rtl_out/mixfp4-small.json [--sim icarus]."""

import argparse
import json
import os
import tempfile
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("manifest", type=Path, help="NAME.json, with NAME.v beside it")
    parser.add_argument("--sim", default="icarus", help="simulator, as cocotb names it")
    arguments = parser.parse_args()
    try:
        manifest = json.loads(arguments.manifest.read_text())
        source, top = arguments.manifest.resolve().parent / manifest["file"], str(manifest["top"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        parser.error(f"{str(arguments.manifest)!r}: not a manifest that hwgen wrote: {error!r}")
    runner = get_runner(arguments.sim)
    with tempfile.TemporaryDirectory() as build:
        runner.build(
            sources=[source],
            hdl_toplevel=top,
            build_dir=build,
            timescale=("1ns", "1ps"),
        )
        results = runner.test(
            hdl_toplevel=top,
            test_module="gemm",
            test_dir=HERE,
            build_dir=build,
            seed=1,
            results_xml=os.path.join(build, "results.xml"),
            extra_env={"HWGEN_MANIFEST": str(arguments.manifest.resolve())},
        )
        tests, failures = get_results(results)
    if failures or not tests:
        raise SystemExit(f"{failures} of {tests} tests failed")


if __name__ == "__main__":
    main()
