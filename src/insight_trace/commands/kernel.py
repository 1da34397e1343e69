"""Simulate one kernel of a C++ file: no program, no scene, arguments from the command line.

The kernel is kernel_entry(args), or a function with typed parameters; --arg gives each by its name: FILE.npy,
TYPE[SHAPE] (zeros; :random or :random:SEED for numbers), a number, or a struct by value as JSON or @FILE.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from insight_trace.commands.replay_text import add_also
from insight_trace.errors import RequestError
from insight_trace.limits import cut

RUNS_KERNELS = True
RUNS = "the kernel"  # what --no-run refuses


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.cpp", help="the file that the kernel is in")
    parser.add_argument(
        "--entry", metavar="NAME", help="the function; a template with its arguments, as 'add<float>'"
    )
    parser.add_argument(
        "--arg", action="append", default=[], metavar="NAME=VALUE", help="one argument; repeat for each"
    )
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="what an argument holds afterwards",
    )
    parser.add_argument("--blocks", type=int, default=1, metavar="N", help="how many blocks are launched (1)")
    parser.add_argument(
        "--target", choices=("a2a3", "a5"), help="the family of chips (a2a3, or that of --soc-version)"
    )
    parser.add_argument("--soc-version", metavar="CHIP", help="the chip")
    parser.add_argument(
        "--ascendc-root", type=Path, metavar="P", help="checkout of asc-devkit, for kernels in AscendC"
    )
    parser.add_argument(
        "--core", choices=("aic", "aiv", "mix"), help="which cores run it (usual: what it does decides)"
    )
    parser.add_argument(
        "-I", action="append", default=[], dest="include_dirs", metavar="DIR", help="folder of headers"
    )
    parser.add_argument(
        "-D", action="append", default=[], dest="defines", metavar="MACRO[=VALUE]", help="a macro"
    )
    parser.add_argument(
        "--preset", choices=("device", "camodel"), default="device", help="whose times to show"
    )
    parser.add_argument(
        "--l2",
        choices=("cold", "warm"),
        help="what L2 holds at first: nothing (usual), or what the same run left",
    )
    parser.add_argument(
        "--launch", choices=("kernel", "first"), default="kernel",
        help="as often before (usual), or for the first time: its code is fetched, its pages are looked up",
    )  # fmt: skip
    parser.add_argument("--timing-only", action="store_true", help="simulate times, compute no values")
    parser.add_argument(
        "--check", action="store_true", help="look for races, memory faults and synchronisation"
    )
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS", help="of the run (60)")
    parser.add_argument("-o", "--output", type=Path, metavar="WORKSPACE", help="the folder to write")
    add_also(parser)
    parser.add_argument("--force", action="store_true", help="replace a workspace that is there")
    parser.add_argument("--json", action="store_true", help="the result as JSON")


def run(options: argparse.Namespace) -> int:
    from insight_trace import kernel
    from insight_trace.commands.replay_text import mismatch_text, show
    from insight_trace.errors import JobError
    from insight_trace.limits import BLOCKS
    from insight_trace.program.kernel_file import parse_value
    from insight_trace.simulate.embedded import ascendc

    ascendc.name_checkout(options.ascendc_root)
    if not 1 <= options.blocks <= BLOCKS:
        raise RequestError(f"--blocks {options.blocks}: from 1 to {BLOCKS:,}", hint="--blocks 8")
    function = kernel(
        options.file,
        options.entry,
        target=options.target,
        soc_version=options.soc_version,
        include_dirs=options.include_dirs,
        defines=options.defines,
        core=options.core,
        seconds=options.time_limit,
    )
    replay = function.replay(
        {name: parse_value(text, name) for name, text in _pairs("--arg", options.arg).items()},
        blocks=options.blocks,
        expected={name: Path(text) for name, text in _pairs("--expect", options.expect).items()},
        output=options.output,
        preset=options.preset,
        timing_only=options.timing_only,
        check=options.check,
        l2=options.l2,
        launch=options.launch,
        force=options.force,
        also=options.also,
    )
    if options.json:
        print(json.dumps(replay.data(), indent=1))
    else:
        show(replay, check=options.check)
    if replay.mismatched:
        raise JobError(mismatch_text(replay))
    return 0


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise RequestError(
                f"{option} '{cut(text)}' is not NAME=VALUE", hint="--arg x=f32[64,64]:random --arg rows=8"
            )
        if name in found:
            raise RequestError(
                f"{option} {name} is given twice: {cut(found[name])} and {cut(value)}", hint="leave one out"
            )
        found[name] = value
    return found
