"""One task of a scene under the names and flags of simpler's core_swimlane.

  insight-trace core-swimlane --test TEST.py --func-id 0,1,2 [--platform a2a3sim]
  python -m simpler_setup.tools.core_swimlane ...              the same, where simpler itself is not installed

The task's real arguments, payload included, come from a capture of the case or from --dump-json. Two traces stand
in outputs/core_swimlane_<label>_<time>/: <label>_trace.json for Insight, <label>_trace_perfetto.json for Perfetto.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.commands import call
from insight_trace.options import RunOptions, VendorOptions

if TYPE_CHECKING:
    from insight_trace.model import Scene
    from insight_trace.replay.replaying import Replay

RUNS_KERNELS = True
# flag -> why it changes nothing here
_WITHOUT_MEANING = {
    "device": "no device is used",
    "max_time": "no device is reserved",
    "debug_line": "traces always have source lines",
}


OPTIONS = """
--test FILE            path required  the scene's Python file
--func-id A[,B,C]      text required  exactly the members of the task
--task-id HEX          text           which task of these members (default: the first)
--platform             text =a2a3sim  a2a3, a2a3sim, a5 or a5sim (default a2a3sim)
--case NAME            text           case, or Class::case (default: the platform's first)
--dump-json PATH       path           args_dump.json of an earlier run
--restore-arg SLOT     text many      bring back what the dump recorded for the slot
--set-arg SLOT=VALUE   text many      change a slot: a number, true or false, bits 0x…, or typed, f32:0.5
--spmd-block-num N     int            blocks that run (default: as the task was dispatched)
--debug-line -g        on             accepted: lines are always there
--no-collect           on             stop after the workspace
--max-time SEC         int            accepted: no device is reserved here
--msprof-timeout MIN   int =120       of the vendor's simulator (120)
--device ID            text           accepted: no device is used here
@ simulator seconds
"""


def run(options: argparse.Namespace) -> int:
    from insight_trace.commands.replay_text import mismatch_text, show
    from insight_trace.replay.workspace import PERFETTO, PLAIN

    ignored = [
        f"--{name.replace('_', '-')} ({why})"
        for name, why in _WITHOUT_MEANING.items()
        if getattr(options, name)
    ]
    if ignored:
        print(f"core-swimlane: without effect: {', '.join(ignored)}", file=sys.stderr)
    asked = _asked(options)
    replay: Replay = call("replay", options, **asked)
    show(replay, check=False)
    if replay.directory is not None:
        for trace in (replay.workspace / f"{asked['label']}{ending}" for ending in (PLAIN, PERFETTO)):
            if trace.is_file():  # else `show` has said why there is none
                print(f"trace      {trace}")
    if replay.mismatched:
        print(f"insight-trace core-swimlane: {mismatch_text(replay)}", file=sys.stderr)
    return 1 if replay.mismatched else 0


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    from insight_trace.arguments.overrides import parse_overrides
    from insight_trace.commands import numbers
    from insight_trace.commands.replay import task_number
    from insight_trace.errors import RequestError
    from insight_trace.scene.static import load_scene

    if options.spmd_block_num is not None and options.spmd_block_num < 1:
        raise RequestError(f"--spmd-block-num {options.spmd_block_num}: a task has at least one block")
    if not 1 <= options.msprof_timeout <= 2880:
        raise RequestError(f"--msprof-timeout {options.msprof_timeout}: minutes, 1 to 2880")
    class_name, _, case = (options.case or "").rpartition("::")
    test = Path(f"{options.test}::{class_name}") if class_name else options.test
    scene = load_scene(test)
    case = case or _first_case(scene, options.platform)
    func_ids = numbers(options.func_id, "--func-id")
    names = {k.func_id: k.name for k in scene.kernels}
    kernel = re.sub(r"[^A-Za-z0-9.-]+", "-", names.get(func_ids[0], str(func_ids[0])))
    words = [scene.class_name, case, options.platform, kernel, f"mix{'_'.join(map(str, func_ids))}"]
    label = "_".join(words)
    stamp = datetime.datetime.now().strftime("%Y%m%d_%H%M%S")
    return {
        "scene": test,
        "case": case,
        "func_id": func_ids,
        "dump_dir": options.dump_json,
        "task_id": task_number(options.task_id),
        "overrides": parse_overrides(options.set_arg, options.restore_arg, None, None),
        "options": RunOptions(
            simulator=options.simulator,
            platform=options.platform,
            blocks=options.spmd_block_num,
            seconds=options.seconds,
        ),
        "vendor": VendorOptions(timeout_minutes=options.msprof_timeout),
        "output": Path("outputs") / f"core_swimlane_{label}_{stamp}",
        "label": label,
        "collect": not options.no_collect,
    }


def _first_case(scene: Scene, platform: str) -> str:
    from insight_trace.errors import RequestError

    able = [case.name for case in scene.cases if platform in case.platforms]
    if not able:
        known = sorted({p for case in scene.cases for p in case.platforms})
        raise RequestError(
            f"no case of {scene.class_name} runs on {platform}", hint=f"--platform {' or '.join(known)}"
        )
    return able[0]
