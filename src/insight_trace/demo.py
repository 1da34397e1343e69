"""The whole way on our own paged attention: capture, list, replay with verification, what to open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace import make_callable
from insight_trace.errors import JobError

if TYPE_CHECKING:
    from insight_trace.capture.session import Capture
    from insight_trace.model import Dispatch
    from insight_trace.replay.replaying import Replay

CASE = "CaseSmall1"
KERNEL = 1  # SF, the softmax
# The last softmax gets a one-column view of a sixteen-wide row and loads the whole tile.
STEP = 2


@dataclass(frozen=True)
class Demo:
    """What the demonstration produced."""

    scene: Path
    capture: Capture
    dispatches: tuple[Dispatch, ...]
    replay: Replay


def find_scene() -> Path:
    """The example beside a source checkout, or the copy inside an installed package."""
    here = Path(__file__).resolve().parent
    for root in (here / "examples", here.parent.parent / "examples"):
        scene = root / "paged_attention" / "scene.py"
        if scene.is_file():
            return scene
    raise JobError("the example scenes are not installed", hint="run the demo from a source checkout")


def run_demo(output: Path, say: Callable[[str], None] = lambda _text: None) -> Demo:
    """Captures the example, replays one of its dispatches, and returns both."""
    from insight_trace.capture.session import CaptureOptions, run_capture
    from insight_trace.dump.load import load_dump
    from insight_trace.options import RunOptions
    from insight_trace.replay.jobs import ReplayRequest
    from insight_trace.replay.replaying import run_replay
    from insight_trace.scene.static import load_scene

    scene = find_scene()
    say("capture: run the scene on this machine and record every dispatch")
    capture = run_capture(scene, CASE, output / "dump", CaptureOptions(force=True))
    if capture.failure or capture.directory is None:
        raise JobError(f"the capture failed: {capture.failure or capture.note}")
    dispatches = tuple(load_dump(capture.directory, load_scene(scene)).dispatches)
    chosen = [dispatch for dispatch in dispatches if dispatch.func_ids == (KERNEL,)][STEP]
    say(f"replay: dispatch {chosen.dispatch_id}, {chosen.kernel}, on the modelled core")
    replay = run_replay(
        ReplayRequest(
            scene,
            case=CASE,
            func_ids=(KERNEL,),
            dump_dir=capture.directory,
            dispatch_id=chosen.dispatch_id,
            options=RunOptions(simulator="embedded"),
            output=output / "replay",
            force=True,
        )
    )
    return Demo(scene, capture, dispatches, replay)


make_callable(__name__)
