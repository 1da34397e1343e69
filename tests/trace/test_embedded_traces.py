"""Traces of the embedded simulator: the kernels of our paged attention, looked at in every way."""

import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from insight_trace.arguments.argument_recipes import from_recipe
from insight_trace.insight import open_trace, write_insight_directory
from insight_trace.model import Case, Kernel, Trace
from insight_trace.recording.flag_pairs import partners
from insight_trace.recording.kinds import Kind, kinds
from insight_trace.report.page import write_page
from insight_trace.scene.static import load_scene
from insight_trace.simulate.embedded.simulator import run_embedded
from insight_trace.trace.advice import advise
from insight_trace.trace.chrome import write_chrome
from insight_trace.trace.clean import clean
from insight_trace.trace.compare import compare
from insight_trace.trace.stats import stats

SCENE = Path(__file__).resolve().parents[2] / "examples" / "paged_attention" / "scene.py"
SIZES = {"num_heads": 64, "head_dim": 128, "block_size": 64, "context_len": 150, "batch": 1}


def _kernel(name: str) -> Kernel:
    return next(kernel for kernel in load_scene(SCENE).kernels if kernel.name == name)


@pytest.fixture(scope="module", params=["QK", "SF", "PV", "UP"])
def trace(request) -> Trace:
    run = run_embedded([_kernel(request.param)], from_recipe(request.param, Case("wide", params=SIZES)))
    assert run.failure is None
    return Trace(run.instructions, run.mhz, run.soc_version)


def test_the_clean_trace_keeps_every_instruction_of_its_lanes(trace):
    cleaned = clean(trace)
    kind = kinds(trace.instructions)
    assert sorted(cleaned.rows.tolist()) == [i for i, k in enumerate(kind) if k in (Kind.WORK, Kind.MARK)]
    last: dict[int, int] = {}
    for row, lane in zip(cleaned.rows.tolist(), cleaned.lane.tolist(), strict=True):
        assert last.get(lane, -1) <= trace.instructions.start[row]
        last[lane] = int(trace.instructions.end[row])


def test_arrows_are_the_flag_pairs_of_the_engine(trace):
    cleaned = clean(trace, keep_scalar=True)
    arrows, columns = cleaned.arrows, trace.instructions
    pairs = partners(columns, kinds(columns))
    assert len(arrows.producer) + arrows.hidden + arrows.unanchored == int((pairs >= 0).sum())
    assert len(arrows.producer) > 0
    for producer, consumer, set_row, wait_row in zip(
        arrows.producer, arrows.consumer, arrows.set_row, arrows.wait_row, strict=True
    ):
        assert columns.partner[wait_row] == set_row
        assert columns.end[set_row] <= columns.end[wait_row]
        assert columns.pipe[producer] == columns.pipe[set_row]
        assert columns.pipe[consumer] == columns.pipe[wait_row]
        assert columns.end[producer] <= columns.start[consumer]


def test_figures_add_up_and_stay_below_the_roofs(trace):
    figures = stats(trace)
    assert figures.path.cycles == figures.cycles
    assert figures.traffic
    assert all(item.roof_gb_per_s is None or item.gb_per_s <= item.roof_gb_per_s for item in figures.traffic)
    assert all(item.giga_per_s <= item.roof_giga_per_s for item in figures.arithmetic)
    assert all(0 <= item.saves <= figures.cycles for item in advise(trace, figures))


def test_through_the_insight_directory_nothing_changes(trace, tmp_path):
    again = open_trace(write_insight_directory(trace, tmp_path), mhz=trace.mhz)
    result = compare(trace, again)
    assert result.total.delta == 0
    assert len(result.matches.added) == len(result.matches.removed) == 0
    assert result.fidelity.mean_error == 0


def test_every_form_can_be_written(trace):
    chrome, page = io.BytesIO(), io.BytesIO()
    write_chrome(clean(trace), chrome)
    assert json.loads(chrome.getvalue())["traceEvents"]
    write_page(page, [trace, replace(trace, mhz=1800.0)], ["device", "slower clock"])
    assert page.getvalue().endswith(b"</html>\n")
