"""What the page shows is what the trace says: throughput, memory, search, advice, links, measures; on three traces."""

import time

import numpy as np
import pytest
from msgspec.structs import replace

from insight_trace.model import Counter, Pipe
from insight_trace.trace.stats import stats
from tests.synthetic_trace import TraceBuilder, matmul_trace, softmax_trace
from tests.trace.test_bottlenecks import ONE_BUFFER, vector


def _text(browser, selector):
    return browser.evaluate(f"document.querySelector({selector!r})?.textContent ?? ''")


def _painted(page, lane, micros):
    """Whether a pixel at the foot of a counter's lane is painted at that time."""
    return page.evaluate(
        f"""(() => {{ const {{ timeline, run }} = insightTrace; timeline.draw();
        const lane = timeline.lanes.find((item) => item.counter?.name === {lane!r});
        const ratio = timeline.canvas.width / timeline.canvas.clientWidth;
        const x = timeline.x({micros} * run.facts.mhz - run.facts.origin);
        const y = lane.y + lane.height - 4 - timeline.box.scrollTop;
        const at = timeline.canvas.getContext('2d').getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data;
        return at[3] > 0 && at[0] + at[1] + at[2] > 0; }})()"""
    )


@pytest.mark.parametrize("trace", [softmax_trace(8, cores=1), matmul_trace(6)], ids=["softmax", "matmul"])
def test_a_throughput_sample_is_as_wide_as_it_lasts(show, trace):
    counter = Counter("GM_TO_UB", np.array([0.0, 0.25, 0.5, 1.5]), np.array([90000.0, 0.0, 45000.0, 0.0]))
    page = show(replace(trace, counters=(counter,)))
    seen = {at: _painted(page, "GM_TO_UB", at) for at in (0.1, 0.4, 1.2)}
    assert seen == {0.1: True, 0.4: False, 1.2: True}


@pytest.mark.parametrize(("dtype", "each"), [("F16", 2), ("F32", 4), ("S8", 1)])
def test_the_memory_map_counts_factors_by_their_type(show, dtype, each):
    builder = TraceBuilder()
    detail = f"dtype:{dtype},XD:0x0,XN:0x100,XM:0x200,M:16,K:32,N:64,"
    builder.add(Pipe.CUBE, "MMAD", 0, 50, core="core0.cubecore0", detail=detail)
    page = show(builder.build())
    page.evaluate("insightTrace.showTab('memory')")
    page.wait("insightTrace.memory.core !== undefined && insightTrace.run.texts.has(0)")
    found = page.evaluate("insightTrace.memory.collect().found.map(({ memory, bytes }) => [memory, bytes])")
    assert ["L0A", 16 * 32 * each] in found
    assert ["L0B", 32 * 64 * each] in found
    assert ["L0C", 16 * 64 * 4] in found


@pytest.fixture(scope="module")
def real():
    """A run of a kernel of ours, with tile ops."""
    return vector(steps=4, additions=6, form=ONE_BUFFER)


def test_ops_tiles_and_text_of_the_source_are_found(show, real):
    page = show(real)
    for words, hits in (("tload", 4), ("TADD", 24), ("tstore", 4)):
        page.evaluate(f"insightTrace.search({words!r})")
        page.wait(f"document.getElementById('hits').textContent === '{hits} hits'")
    page = show(softmax_trace(2, cores=1))
    page.evaluate("insightTrace.search('TEXP(y, y)')")
    page.wait("document.getElementById('hits').textContent === '2 hits'")


def test_bars_are_labelled_by_op_when_asked(show, real):
    page = show(real)
    assert page.evaluate("insightTrace.timeline.show.ops") is False
    page.evaluate("document.getElementById('show-ops').click()")
    assert page.evaluate("insightTrace.timeline.show.ops") is True
    row = "[...Array(insightTrace.run.facts.rows).keys()].find((row) => insightTrace.run.nameOf(row) === 'VADD')"
    assert page.evaluate(f"insightTrace.run.opOf({row})") == "TADD"


@pytest.mark.parametrize("made", ["real", "softmax", "matmul"])
def test_advice_stands_in_full_and_leads_to_its_line_and_its_place(show, made, real):
    trace = {"real": real, "softmax": softmax_trace(8), "matmul": matmul_trace(6)}[made]
    page = show(trace)
    first = page.evaluate("insightTrace.run.facts.advice[0]")
    assert first["text"] in _text(page, "#advice li")
    page.evaluate(
        "[...document.querySelectorAll('#advice li button')].find((b) => b.textContent === 'show in timeline').click()"
    )
    page.wait(f"insightTrace.selection?.row === {first['row']}")
    page.wait("document.querySelector('#detail h3') !== null")
    seen = page.evaluate("insightTrace.timeline.t0 <= insightTrace.run.start[insightTrace.selection.row]")
    assert seen


def test_how_near_the_roofs_are_is_at_the_top(show, real):
    page = show(real)
    figures = stats(real)
    vector_unit = figures.arithmetic[0]
    share = round(100 * vector_unit.giga_per_s / vector_unit.roof_giga_per_s)
    assert f"{share} %of the vector roof" in _text(page, "#kpis")
    assert "of the memory roof" in _text(page, "#kpis")
    assert "G operations a second" in page.evaluate("document.querySelector('.kpi.light').title")


def test_a_link_leads_to_the_same_place(show, real):
    page = show(real)
    page.evaluate("insightTrace.pick({ run: insightTrace.run, row: 5 }, true)")
    page.evaluate(
        "insightTrace.timeline.t0 = 100; insightTrace.timeline.t1 = 3000; insightTrace.timeline.clamp()"
    )
    page.wait("location.hash === '#t=100-3000&row=5'")
    address = page.evaluate("location.href")
    page.open("about:blank")
    page.open(address)
    page.wait("window.insightTrace?.selection?.row === 5")
    page.wait("Math.round(insightTrace.timeline.t0) === 100 && Math.round(insightTrace.timeline.t1) === 3000")


def test_a_span_is_measured_with_shift(show, real):
    page = show(real)
    page.evaluate(
        """(() => { const { timeline } = insightTrace; const canvas = timeline.canvas;
        const send = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, { pointerId: 1, shiftKey: true,
          clientX: canvas.getBoundingClientRect().x + x, clientY: canvas.getBoundingClientRect().y + 60, bubbles: true }));
        canvas.setPointerCapture = () => {};
        send('pointerdown', timeline.x(1000));
        send('pointermove', timeline.x(3000));
        send('pointerup', timeline.x(3000)); })()"""
    )
    measured = page.evaluate(
        "Math.abs(insightTrace.timeline.measured[1] - insightTrace.timeline.measured[0])"
    )
    assert measured == pytest.approx(2000, abs=60)
    assert "cycles ·" in page.evaluate("insightTrace.timeline.measureText()")


def test_hot_spots_fill_the_empty_pane_and_the_source_opens_at_the_hottest_line(show, real):
    page = show(real)
    hottest = stats(real).hot_lines[0].frame.rsplit("/", 1)[-1]
    assert hottest in _text(page, "#detail .spot")
    page = show(softmax_trace(8))
    assert page.evaluate("document.querySelector('#source .hottest')?.dataset.line") is not None


def test_at_1280_by_720_the_timeline_is_above_the_fold(show, real):
    page = show(real)
    page.call("Emulation.setDeviceMetricsOverride", width=1280, height=720, deviceScaleFactor=1, mobile=False)
    try:
        time.sleep(0.3)
        top = page.evaluate("document.getElementById('timeline').getBoundingClientRect().top")
        assert top < 560, "two lanes at least are seen without scrolling"
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def test_wrong_outputs_come_first_in_red_with_the_way_on(show, real, monkeypatch):
    checks = [{"status": "mismatch", "slot": 1}, {"status": "exact", "slot": 2}]
    monkeypatch.setattr("insight_trace.report.payload.recorded_facts", lambda _path: {"checks": checks})
    page = show(real)
    assert _text(page, "#wrong").startswith("1 of 2 outputs are wrong")
    assert "insight-trace why WORKSPACE --first-mismatch" in _text(page, "#wrong")
    assert page.evaluate("document.querySelector('.summary').firstElementChild.id") == "wrong"


def test_two_runs_say_why_one_is_faster_and_show_the_advice_of_the_second(show):
    page = show(softmax_trace(8), softmax_trace(8, buffers=2, conflict=0), titles=["before", "after"])
    assert "B is faster by 2,815 cycles: its critical path has" in _text(page, "#panel-compare .reason")
    assert _text(page, "#advice-card h2") == "What to fix first in B"
