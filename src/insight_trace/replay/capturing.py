"""Arguments where none were given: run the case until the dispatch that is asked for, and record that one."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path

from insight_trace.capture.session import CaptureOptions, run_capture
from insight_trace.errors import JobError, RequestError
from insight_trace.replay.request import ReplayRequest
from insight_trace.replay.selection import RecordedDispatch, Selection, select_dispatch


def captured_dispatch(request: ReplayRequest, selection: Selection) -> RecordedDispatch:
    """The first dispatch of the selected kernels, or the task that the request names, with its payload.

    Nothing else is recorded, and the run ends when it is done: a case of a thousand tasks costs one of them.
    """
    scene, case = selection.scene, selection.case
    func_ids = tuple(kernel.func_id for kernel in selection.kernels if kernel.func_id is not None)
    if case is None or len(func_ids) != len(selection.kernels):
        raise RequestError(
            "no arguments were given, and this kernel is not part of a case that could be captured",
            hint="give --dump-dir with --func-id, --arg-spec, or --recipe",
        )
    stamp = datetime.datetime.now().strftime("%Y%m%d_%H%M%S_%f")[:-3]
    output = Path("outputs") / f"{scene.class_name.replace('/', '_')}_{case.name}_{selection.label}_{stamp}"
    options = CaptureOptions(
        level=2,
        platform=request.platform,
        seconds=request.seconds,
        golden=False,
        only_kernels=func_ids,
        only_task=request.task_id,
    )
    try:
        capture = run_capture(request.scene, case.name, output, options)
    except BaseException:
        shutil.rmtree(output, ignore_errors=True)
        raise
    if capture.directory is None or capture.failure is not None:
        shutil.rmtree(output, ignore_errors=True)
        why = str(capture.failure) if capture.failure else capture.note
        which = f" task 0x{request.task_id:x} of" if request.task_id is not None else ""
        raise JobError(
            f"capturing{which} {case.name} for func id {','.join(map(str, func_ids))}: {why}",
            hint="`insight-trace capture SCENE --dump-args 3` lists what is dispatched; or give --dump-dir",
        )
    return select_dispatch(capture.directory, scene, func_ids, None, request.task_id)
