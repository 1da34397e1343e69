"""Run a program of your own, unchanged, with its kernels on a simulated chip.

Everything after -- is the command: a compiled program, a Python script, pytest, make, a shell script. In its environment
bisheng and ccec compile for the simulated chip, libascendcl and libruntime run on it, and torch has an npu device.
The command's exit code is this one's.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from insight_trace.commands import call

if TYPE_CHECKING:
    from insight_trace.program.products import Product, ProgramResult
    from insight_trace.program.session import Launched

RUNS = "the program that is named"  # what --no-run refuses


OPTIONS = """
--trace                none|first|slowest|all =first  launches that get a workspace: of each kernel the first, the slowest, \
or all
--kernel-name RE       text =   trace only kernels whose name matches
--launch-count N       int      trace at most so many launches
--launch-skip-before-match N -> skip  int =0  of those that match, skip the first N
--chip --soc-version NAME -> soc_version  text  the chip (usual: that of the kernels' architecture)
--pto-isa-root P       path     checkout of pto-isa, whose own tile library kernels compile against
--ascendc-root P       path     checkout of asc-devkit, for kernels in AscendC
--preset               device|camodel =device  whose times to show
--check                on       warnings of the checker, too; errors of what is traced are always shown
--timing-only          on       simulate times, compute no values
--time-limit SECONDS -> seconds  float =60  of one launch (60)
-o --output DIR        path     folder of the workspaces (outputs/exec_<time>)
--also LIST            text     also write the files of other simulators: npusim, perf-sim, pmu
--json                 on       the launches as JSON, on standard error behind the program's own output
command -- COMMAND     text ...  the program and its arguments
"""


def run(options: argparse.Namespace) -> int:
    from insight_trace.simulate.embedded import ascendc
    from insight_trace.simulate.embedded.toolchain import name_library

    name_library(options.pto_isa_root)
    ascendc.name_checkout(options.ascendc_root)
    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    done: ProgramResult = call("run_program", options, command=words)
    sys.stdout.flush()
    if options.json:
        print(json.dumps(done.data(), indent=1), file=sys.stderr)
    else:
        print(_table(done.launches, done.products), file=sys.stderr, end="")
    return done.code


def _table(launches: tuple[Launched, ...], products: Mapping[str, Product]) -> str:
    if not launches:
        return (
            "insight-trace: the program launched no kernel\n"
            "  its kernels are compiled by the command as well: exec -- sh -c 'make && ./program' "
            "(docs/your-own-program.md)\n"
        )
    groups: dict[tuple[str, int, str, str], list[Launched]] = {}
    for one in launches:
        groups.setdefault((one.name, one.blocks, one.kind, one.soc), []).append(one)
    width = max(len(name) for name, *_ in groups)
    out = [
        f"\n{'kernel':{width}}  {'launches':>8}  {'blocks':>11}  {'cycles':>17}  {'us':>15}  bound    note"
    ]
    for (name, blocks, kind, _), rows in groups.items():
        right = [one for one in rows if not one.error]
        cycles, micros = [one.cycles for one in right], [one.us for one in right]
        failed = len(rows) - len(right)
        notes = []
        if failed:
            said = next((one.message for one in reversed(rows) if one.error and one.message), "")
            notes.append(f"{failed} failed: {said.partition(chr(10))[0]}")
        found = sum(len(products[one.job].findings) for one in rows if one.job in products)
        if found:
            notes.append(f"{found} finding{'s' * (found > 1)}")
        bound = right[-1].bound if right else ""
        out.append(
            f"{name:{width}}  {len(rows):8}  {blocks:>6} {kind:>4}  {_range(cycles, 0):>17}  {_range(micros, 2):>15}  "
            f"{bound:7}  {'; '.join(notes)}".rstrip()
        )
    repeated = sum(one.repeated for one in launches)
    chips = ", ".join(sorted({one.soc for one in launches}))
    text = f"{len(launches):,} launches on {chips}"
    if repeated:
        text += f", {repeated:,} of them equal to one before, whose result and time they have"
    out.append(text)
    for product in products.values():
        for line in product.findings:
            out.append(f"  {line}")
        if product.error:
            out.append(f"no workspace of {product.kernel}: {product.error}")
    for product in products.values():
        if product.workspace:
            out.append(f"open  {product.kernel:{width}}  {product.workspace}")
    return "\n".join(out) + "\n"


def _range(values: list[float], digits: int) -> str:
    if not values:
        return "-"
    low, high = f"{min(values):,.{digits}f}", f"{max(values):,.{digits}f}"
    return low if low == high else f"{low}-{high}"
