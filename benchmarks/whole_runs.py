"""Whole runs of simpler's scenes against their published times; docs/accuracy.md has the result.

    python benchmarks/whole_runs.py --simpler PATH [--only TEXT]

Needs a checkout of simpler and torch, which its scenes import. `set` names the parameter of the chip's [schedule] that
the row's orchestrator time has set; the row's run set none.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_TESTS = "tests/st/a2a3/tensormap_and_ringbuffer"
_EXAMPLES = "examples/a2a3/tensormap_and_ringbuffer"


@dataclass(frozen=True)
class Published:
    """Microseconds of a run and of its orchestrator: simpler pull request 694, a2a3, mean of 100 rounds."""

    folder: str
    scene: str
    case: str
    micros: float
    orchestrator: float
    set: str = ""


RUNS = (
    Published(_EXAMPLES, "benchmark_bgemm", "Case0", 598.6, 549.2),
    Published(_TESTS, "alternating_matmul_add", "Case1", 789.4, 788.4, "ready"),
    Published(_TESTS, "paged_attention_unroll", "Case2", 507.8, 273.2, "argument"),
    Published(_TESTS, "paged_attention_unroll", "Case1", 1137.7, 721.6, "argument"),
    Published(_EXAMPLES, "paged_attention_unroll_manual_scope", "Case2", 492.1, 229.8, "submit"),
    Published(_EXAMPLES, "paged_attention_unroll_manual_scope", "Case1", 1131.2, 621.0),
    Published(_TESTS, "batch_paged_attention", "Case1", 2752.6, 2005.5),
    Published(_TESTS, "spmd_paged_attention", "Case1", 1507.0, 6.6),
    Published(_TESTS, "spmd_paged_attention", "Case2", 744.9, 5.9),
)


def _done(run: Published, simpler: Path) -> subprocess.CompletedProcess[str]:
    folder = simpler / run.folder / run.scene
    scene = next(iter(sorted(folder.glob("test_*.py"))), folder)  # its name changed with the checkouts
    with tempfile.TemporaryDirectory(prefix="whole-runs-") as place:
        command = [sys.executable, "-m", "insight_trace", "run", str(scene), "--case", run.case, "--json"]
        return subprocess.run([*command, "-o", f"{place}/run"], capture_output=True, text=True)


def micros_of(run: Published, simpler: Path) -> float:
    """What it takes here."""
    done = _done(run, simpler)
    done.check_returncode()
    return float(json.loads(done.stdout)["micros"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simpler", type=Path, required=True, metavar="PATH", help="a checkout of simpler")
    parser.add_argument("--only", default="", metavar="TEXT", help="runs whose scene or case has it")
    options = parser.parse_args()
    print("| run | published us | ours us | ratio | orchestrator, published | ours | set |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for run in RUNS:
        if options.only not in f"{run.scene} {run.case}":
            continue
        done = _done(run, options.simpler)
        name = f"{run.scene} {run.case}"
        if done.returncode:
            print(f"| {name} | {run.micros:,.1f} | {done.stderr.strip().splitlines()[0]} | | | | {run.set} |")
            continue
        data = json.loads(done.stdout)
        print(
            f"| {name} | {run.micros:,.1f} | {data['micros']:,.1f} | {data['micros'] / run.micros:.2f} | "
            f"{run.orchestrator / run.micros:.0%} | {data['occupancy']['orchestrator']:.0%} | {run.set} |",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
