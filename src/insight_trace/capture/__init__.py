"""Capture: run a scene on the host and record every dispatch as a dump."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace import make_callable

if TYPE_CHECKING:
    from insight_trace.capture.session import Capture


def capture(
    scene: str | Path,
    case: str | None = None,
    *,
    output: str | Path | None = None,
    level: int = 2,
    seed: int = 0,
    platform: str | None = None,
    seconds: float = 60.0,
    workers: int | None = None,
    golden: bool = True,
    force: bool = False,
    shuffle: int = 0,
    max_payload: int | None = None,
) -> Capture:
    """Runs one case of a scene, or a PyPTO build directory, on modelled cores and records its dispatches below `output`.

    `level` is 0 (nothing), 1 (what the orchestration marked), 2 (everything) or 3 (all metadata, payload of
    what was marked). `seconds` limits each dispatch, and the orchestration between two of its calls. A run
    that fails gives a Capture with its `failure` and what was recorded until then; a wrong request raises.
    """
    from insight_trace.capture.session import CaptureOptions, run_capture

    options = CaptureOptions(
        level=level,
        seed=seed,
        platform=platform,
        seconds=seconds,
        workers=workers,
        golden=golden,
        force=force,
        shuffle=shuffle,
        max_payload=max_payload,
    )
    return run_capture(Path(scene), case, None if output is None else Path(output), options)


make_callable(__name__)
