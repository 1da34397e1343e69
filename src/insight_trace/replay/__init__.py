"""Replay: one recorded dispatch, simulated again, checked against what was recorded, exported for Insight."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace import make_callable

if TYPE_CHECKING:
    from insight_trace.arguments.overrides import Overrides
    from insight_trace.options import RunOptions, VendorOptions
    from insight_trace.replay.replaying import Replay


def replay(
    scene: str | Path,
    *,
    case: str | None = None,
    func_id: int | Sequence[int] | None = None,
    kernel: str | None = None,
    kernel_source: str | Path | None = None,
    dump_dir: str | Path | None = None,
    dispatch_id: int | None = None,
    task_id: int | None = None,
    arg_spec: str | Path | None = None,
    recipe: bool = False,
    overrides: Overrides | None = None,
    output: str | Path | None = None,
    force: bool = False,
    collect: bool = True,
    options: RunOptions | None = None,
    vendor: VendorOptions | None = None,
    **run: object,
) -> Replay:
    """Replays one dispatch of a scene or of a PyPTO build, or an earlier workspace again.

    `run` are fields of RunOptions (simulator, soc_version, target, preset, blocks, check, timing_only, l2, seconds, …).
    The result has `.directory`, `.instructions`, `.outputs`, `.checks` and `.findings`.
    """
    from insight_trace.arguments.overrides import Overrides
    from insight_trace.options import VendorOptions, run_options
    from insight_trace.replay.replaying import run_replay
    from insight_trace.replay.request import ReplayRequest

    def path(value: str | Path | None) -> Path | None:
        return None if value is None else Path(value)

    return run_replay(
        ReplayRequest(
            Path(scene),
            case,
            () if func_id is None else (func_id,) if isinstance(func_id, int) else tuple(func_id),
            kernel,
            path(kernel_source),
            path(dump_dir),
            dispatch_id,
            task_id,
            path(arg_spec),
            recipe,
            overrides or Overrides(),
            run_options(options, run),
            vendor or VendorOptions(),
            path(output),
            collect=collect,
            force=force,
        )
    )


make_callable(__name__)
