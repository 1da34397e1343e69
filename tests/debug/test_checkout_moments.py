"""Moments of kernels of a simpler checkout, on made-up arguments: every memory is that of a run looked at there."""

import os
import sys
from pathlib import Path

import pytest

from insight_trace.debug import Session
from insight_trace.model import CoreType, Kernel
from insight_trace.replay.pipeline import make_trace, recording_of
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded
from tests.debug.test_moments import wrong_moments

TOOLS = Path(__file__).resolve().parents[2] / "tools"
KERNELS = 40 if os.environ.get("INSIGHT_TRACE_LONG_TESTS") else 3
MOST_ROWS = 200_000


def test_every_memory_of_kernels_of_a_checkout_is_exact_at_any_moment(
    simpler_checkout, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(str(TOOLS))
    sys.modules.pop("kernel_coverage", None)
    import kernel_coverage

    root = simpler_checkout.resolve()
    sources = [
        s for s in kernel_coverage.kernel_sources(root) if kernel_coverage.target_of(root, s) == "a2a3"
    ]
    compared = {}
    for number, source in enumerate(sources):
        text = source.read_text(encoding="utf-8", errors="replace")
        kinds = kernel_coverage.core_types(source, text)
        if len(kinds) != 1 or len(compared) >= KERNELS:
            continue
        include = kernel_coverage.include_dirs(root, source)
        kernel = Kernel(source.stem, source, CoreType(kinds[0]), include_dirs=include)
        arguments = kernel_coverage.made_up_arguments(text)
        run = run_embedded([kernel], arguments, EmbeddedOptions(seconds=10))
        if run.failure is not None or not 50 < len(run.instructions) < MOST_ROWS:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        recording = recording_of(run, make_trace(run), [kernel], arguments)
        session = Session(folder, recording, {"target": "a2a3"}, ((kernel,), arguments))
        wrong, count, _ = wrong_moments(session, folder / "observed")
        compared[str(source.relative_to(root))] = (wrong, count)
    if len(compared) < KERNELS:
        pytest.fail(f"only {len(compared)} kernels ran")
    assert {name: wrong for name, (wrong, _) in compared.items() if wrong} == {}
