"""Arguments where none were given: capture the case, then replay a dispatch of it."""

from __future__ import annotations

import datetime
from pathlib import Path

from insight_trace.capture.session import CaptureOptions, run_capture
from insight_trace.errors import JobError, RequestError
from insight_trace.replay.request import ReplayRequest
from insight_trace.replay.selection import Recorded, Selection, select_dispatch


def captured_dispatch(request: ReplayRequest, selection: Selection) -> Recorded:
    """Runs the case on the host with full payload and takes the first dispatch of the selected kernels."""
    scene, case = selection.scene, selection.case
    func_ids = [kernel.func_id for kernel in selection.kernels if kernel.func_id is not None]
    if case is None or len(func_ids) != len(selection.kernels):
        raise RequestError(
            "no arguments were given, and this kernel is not part of a case that could be captured",
            hint="give --dump-dir with --func-id, --arg-spec, or --recipe",
        )
    stamp = datetime.datetime.now().strftime("%Y%m%d_%H%M%S")
    output = Path("outputs") / f"{scene.class_name}_{case.name}_{stamp}"
    options = CaptureOptions(
        level=2, platform=request.platform, seconds=request.seconds, golden=False, force=True
    )
    capture = run_capture(request.scene, case.name, output, options)
    if capture.directory is None:
        why = str(capture.failure) if capture.failure else capture.note
        raise JobError(
            f"capturing {case.name} recorded nothing: {why}", hint="give --dump-dir of another run"
        )
    return select_dispatch(capture.directory, scene, func_ids, None, None)
