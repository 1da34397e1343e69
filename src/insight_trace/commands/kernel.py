"""Simulate one kernel of a C++ file: no program, no scene, arguments from the command line.

The kernel is kernel_entry(args), or a function with typed parameters; --arg gives each by its name: FILE.npy,
TYPE[SHAPE] (zeros; :random or :random:SEED for numbers), a number, or a struct by value as JSON or @FILE.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from insight_trace.commands import call, given
from insight_trace.errors import RequestError
from insight_trace.limits import cut

RUNS_KERNELS = True
RUNS = "the kernel"  # what --no-run refuses


OPTIONS = """
file FILE.cpp         path         the file that the kernel is in
--entry NAME          text         the function; a template with its arguments, as 'add<float>'
--arg NAME=VALUE      text many    one argument; repeat for each
--expect NAME=FILE.npy  text many  what an argument holds afterwards
--blocks N            int =1       how many blocks are launched (1)
--target              a2a3|a5      the family of chips (a2a3, or that of --soc-version)
--soc-version CHIP    text         the chip
--ascendc-root P      path         checkout of asc-devkit, for kernels in AscendC
--core                aic|aiv|mix  which cores run it (usual: what it does decides)
-I DIR -> include_dirs  text many  folder of headers
-D MACRO[=VALUE] -> defines  text many  a macro
--preset              device|camodel =device  whose times to show
--l2                  cold|warm    what L2 holds at first: nothing (usual), or what the same run left
--launch              kernel|first =kernel  as often before (usual), or for the first time: its code is fetched, its \
pages are looked up
--timing-only         on           simulate times, compute no values
--check               on           look for races, memory faults and synchronisation
--time-limit SECONDS -> seconds  float =60  of the run (60)
-o --output WORKSPACE  path        the folder to write
--also LIST           text         also write the files of other simulators: npusim, perf-sim, pmu
--force               on           replace a workspace that is there
--json                on           the result as JSON
"""


def run(options: argparse.Namespace) -> int:
    from insight_trace.commands.replay_text import mismatch_text, show
    from insight_trace.errors import JobError
    from insight_trace.limits import BLOCKS
    from insight_trace.program.kernel_file import parse_value
    from insight_trace.simulate.embedded import ascendc

    ascendc.name_checkout(options.ascendc_root)
    if not 1 <= options.blocks <= BLOCKS:
        raise RequestError(f"--blocks {options.blocks}: from 1 to {BLOCKS:,}", hint="--blocks 8")
    function = call("kernel", options, path=options.file)
    arguments = {name: parse_value(text, name) for name, text in _pairs("--arg", options.arg).items()}
    expected = {name: Path(text) for name, text in _pairs("--expect", options.expect).items()}
    replay = function.replay(**given(function.replay, options, arguments=arguments, expected=expected))
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
