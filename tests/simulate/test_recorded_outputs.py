"""Every recorded task of a real run, repeated by upstream's kernels and by ours."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from insight_trace import load_dump, load_scene, simulate
from insight_trace.arguments.buffers import view_of
from insight_trace.arguments.dispatch import from_dispatch
from insight_trace.replay.verification import Status, verify_outputs
from tests.conftest import ROOT

OURS = ROOT / "examples" / "paged_attention" / "scene.py"
UPSTREAM = "examples/a2a3/tensormap_and_ringbuffer/paged_attention/test_paged_attention.py"
EXACT = ("QK", "PV")  # products of bfloat16 numbers that the run kept exact


@pytest.fixture(params=["ours", "upstream"])
def scene_path(request) -> Path:
    if request.param == "ours":
        return OURS
    return request.getfixturevalue("simpler_checkout") / UPSTREAM


def test_every_task_gives_what_was_recorded(scene_path, recorded_dumps, capsys):
    dump = recorded_dumps / "paged_attention_CaseSmall1_args_dump_level2"
    recorded = load_dump(dump)
    kernels = {kernel.func_id: kernel for kernel in load_scene(scene_path).kernels}
    largest: defaultdict[str, float] = defaultdict(float)
    seen: defaultdict[str, int] = defaultdict(int)
    for dispatch in recorded.dispatches:
        kernel = kernels[dispatch.func_ids[0]]
        arguments = from_dispatch(dispatch, signature=kernel.signature, earlier=recorded.earlier)
        result = simulate([kernel], arguments)
        assert result.failure is None, str(result.failure)
        checks = verify_outputs(arguments, result.buffers)
        assert checks
        for check in checks:
            assert check.status is Status.VERIFIED, f"{kernel.name}: {check.text}"
            assert kernel.name not in EXACT or not check.max_error, f"{kernel.name}: {check.text}"
            tensor = arguments.at(check.slot)
            values = view_of(tensor, result.buffers[check.slot]).astype(np.float64)
            scale = float(np.abs(values[np.isfinite(values)]).max(initial=0)) or 1.0
            largest[kernel.name] = max(largest[kernel.name], (check.max_error or 0.0) / scale)
        seen[kernel.name] += 1
    assert sorted(seen.values()) == [3, 3, 3, 3]
    with capsys.disabled():
        for name, error in largest.items():
            print(f"\n{scene_path.parent.name} {name}: {seen[name]} tasks, largest error {error:.2g}", end="")
