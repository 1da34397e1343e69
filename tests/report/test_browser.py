"""The page in a real browser: opened from disk, read, searched, clicked, zoomed, compared."""

import time

import numpy as np
import pytest
from msgspec.structs import replace

from insight_trace.model import Counter, Pipe
from tests.report.conftest import READY
from tests.synthetic_trace import KERNEL_PATH, TraceBuilder, matmul_trace, softmax_trace


def _text(browser, selector):
    return browser.evaluate(f"document.querySelector({selector!r})?.textContent ?? ''")


def _point(browser, name, nth=0):
    """Where the n-th instruction of a name lies on the screen."""
    return browser.evaluate(
        f"""(() => {{
          const {{ timeline, runs: [run] }} = insightTrace;
          const rows = [...Array(run.facts.rows).keys()].filter((row) => run.nameOf(row) === {name!r});
          const row = rows[{nth}], lane = timeline.laneOf(run, row);
          const box = timeline.canvas.getBoundingClientRect();
          const middle = (timeline.x(run.start[row]) + timeline.x(run.end[row])) / 2;
          return [box.x + middle, box.y + lane.y + lane.height / 2];
        }})()"""
    )


def test_the_summary_comes_first_with_the_advice(show):
    page = show(softmax_trace(8), titles=["softmax · CaseSmall1"])
    assert _text(page, "#title") == "softmax · CaseSmall1"
    assert _text(page, "#kpis").startswith("6,182cycles3.342µs at 1850 MHz · Ascend910B1")
    assert "MTE2 waits 46 % for VECTOR on event 0" in _text(page, "#advice li")
    assert page.evaluate("document.querySelectorAll('#pipes .pipe-row').length") == 8


def test_an_instruction_is_found_by_search_and_read_with_its_line(show):
    page = show(softmax_trace(8))
    page.press("/")
    page.type("vexp")
    page.wait("document.getElementById('hits').textContent === '16 hits'")
    page.press("Enter")
    page.wait("document.querySelector('#detail h3')?.textContent === 'VEXP'")
    detail = _text(page, "#detail")
    assert "159  (85.9 ns)" in detail
    assert "TEXP(y, y);" in detail
    assert "XT:X9=0x4000000000000808" in detail
    assert _text(page, "#detail-line") == "aiv_softmax_step.cpp:14"
    assert page.evaluate("document.querySelector('#source .picked').dataset.line") == "14"
    assert _text(page, "#hits") == "1 of 16"


def test_a_line_of_the_source_finds_its_instructions(show):
    page = show(softmax_trace(4, cores=1))
    page.evaluate("document.querySelector('#source .row[data-line=\"13\"]').click()")
    page.wait("document.getElementById('hits').textContent === '4 hits'")
    assert page.evaluate("document.getElementById('search').value") == "aiv_softmax_step.cpp:13"
    cells = page.evaluate(
        "[...document.querySelectorAll('#source .row[data-line=\"13\"] .cell')].map((c) => c.textContent)"
    )
    assert cells == ["360", "", "4"]


def test_a_click_shows_the_instruction_and_its_flags_and_a_flag_leads_on(show):
    page = show(softmax_trace(8, cores=1))
    page.click(*_point(page, "VADD"))
    page.wait("document.querySelector('#detail h3')?.textContent === 'VADD'")
    assert "Read conflicts64 cycles" in _text(page, "#detail")
    assert "lets go MOV_OUT_TO_UB_ALIGN · VECTOR→MTE2 flag 0" in _text(page, "#detail ul")
    page.press("]")
    page.wait("document.querySelector('#detail h3')?.textContent.startsWith('MOV_')")
    page.press("[")
    page.wait("document.querySelector('#detail h3')?.textContent === 'VADD'")
    page.press("ArrowLeft")
    page.wait("document.querySelector('#detail h3')?.textContent === 'VEXP'")
    page.press("Escape")
    page.wait("document.querySelector('#detail .empty') !== null")


def test_w_a_s_d_zoom_and_pan_as_in_other_viewers(show):
    page = show(softmax_trace(8))
    span = "insightTrace.timeline.t1 - insightTrace.timeline.t0"
    whole, first = page.evaluate(span), page.evaluate("insightTrace.timeline.t0")
    page.press("w")
    assert page.evaluate(span) == pytest.approx(whole * 0.7)
    page.press("s")
    assert page.evaluate(span) == pytest.approx(whole)
    page.press("w")
    start = page.evaluate("insightTrace.timeline.t0")
    page.press("d")
    assert page.evaluate("insightTrace.timeline.t0") > start
    page.press("a")
    assert page.evaluate("insightTrace.timeline.t0") == pytest.approx(start)
    page.press("0")
    assert page.evaluate(span) == pytest.approx(whole)
    assert page.evaluate("insightTrace.timeline.t0") == pytest.approx(first)


def test_the_theme_switches_and_the_canvas_with_it(show):
    page = show(softmax_trace(2))
    before = page.evaluate("document.documentElement.dataset.theme")
    colour = "getComputedStyle(document.body).backgroundColor"
    page_colour, pipe = page.evaluate(colour), page.evaluate("insightTrace.timeline.frames")
    page.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") != before
    assert page.evaluate(colour) != page_colour
    page.wait(f"insightTrace.timeline.frames > {pipe}")
    page.press("t")


def test_every_tab_shows_something(show):
    page = show(softmax_trace(4))
    for tab, words in (
        ("instructions", "MOV_OUT_TO_UB_ALIGN"),
        ("waits", "Who waits for whom"),
        ("roofline", "Traffic with global memory"),
        ("memory", "The window of the timeline"),
        ("source", "TEXP(y, y);"),
    ):
        page.evaluate(f"document.querySelector('[data-tab={tab}]').click()")
        page.wait(f"!document.getElementById('panel-{tab}').hidden")
        page.wait(f"document.getElementById('panel-{tab}').textContent.includes({words!r})")
    assert page.evaluate("document.querySelectorAll('#panel-roofline circle').length") == 1


def test_the_memory_map_knows_what_each_instruction_reads_and_writes(show):
    page = show(softmax_trace(2, cores=1))
    page.evaluate("insightTrace.showTab('memory')")
    page.wait("insightTrace.memory.core !== undefined && insightTrace.run.texts.has(0)")
    found = page.evaluate(
        """insightTrace.memory.collect().found.map(({ row, memory, address, bytes, writes }) =>
        [insightTrace.run.nameOf(row), memory, address, bytes, writes])"""
    )
    assert ["MOV_OUT_TO_UB_ALIGN", "UB", 0x0, 16384, True] in found
    assert ["VADD", "UB", 0x20000, 16384, True] in found
    assert ["VADD", "UB", 0x14000, 16384, False] in found
    assert ["VMULS", "UB", 0x3E000000, 16384, False] not in found, "a scalar operand is no address"
    assert ["MOV_UB_TO_OUT_ALIGN", "UB", 0x10000, 16384, False] in found


def test_two_runs_stand_side_by_side_with_what_changed(show):
    page = show(softmax_trace(8), softmax_trace(8, buffers=2, conflict=0), titles=["before", "after"])
    assert "6,182 → 3,367cycles−45.5 %" in _text(page, "#kpis")
    assert _text(page, "#panel-compare h2") == "Busy cycles by pipe"
    assert "WAIT_FLAG" in _text(page, "#panel-compare")
    rows = page.evaluate("[...document.querySelectorAll('.source.pair .row')].map((row) => row.innerText)")
    assert rows, "the two sources stand side by side"
    assert _text(page, "#panel-compare details summary") == "Removed: 2"
    heads = page.evaluate("insightTrace.timeline.lanes.filter((lane) => lane.head).map((lane) => lane.head)")
    assert heads == [f"{run} · core0.veccore{core}" for run in "AB" for core in (0, 1)]
    page.evaluate("insightTrace.search('vadd')")
    page.wait("document.getElementById('hits').textContent === '32 hits'")


def test_a_confidential_page_shows_lines_without_their_text(show):
    page = show(softmax_trace(2), confidential=True)
    assert "Source text is left out" in _text(page, "#panel-source")
    assert "TEXP" not in page.evaluate("document.body.textContent")
    assert (
        page.evaluate("document.querySelector('#source .row[data-line=\"14\"] .cell').textContent") == "636"
    )


def test_markup_in_names_operands_and_sources_is_shown_and_never_run(show):
    builder = TraceBuilder()
    evil = '<img src=x onerror="window.hurt=1">'
    builder.add(Pipe.VECTOR, evil, 0, 50, stack=f"{evil}.cpp:1", detail=f"{evil},", core=f"core0.{evil}")
    page = show(builder.build(sources={f"{evil}.cpp": evil.encode()}), titles=[evil])
    page.evaluate("insightTrace.pick({ run: insightTrace.run, row: 0 }, true)")
    page.wait(f"document.querySelector('#detail h3')?.textContent === {evil!r}")
    for tab in ("instructions", "waits", "roofline", "memory"):
        page.evaluate(f"insightTrace.showTab('{tab}')")
    time.sleep(0.1)
    assert page.evaluate("window.hurt === undefined && document.querySelector('main img') === null")
    assert evil in _text(page, "#source")


def test_a_long_instruction_right_after_a_short_one_is_drawn_in_full(show):
    """Both start in one pixel of the screen; the short one must not swallow the long one."""
    builder = TraceBuilder()
    builder.add(Pipe.VECTOR, "MOVEMASK", 5_000, 5_001)
    builder.add(Pipe.VECTOR, "VCMAX", 5_001, 9_000)
    builder.add(Pipe.MTE2, "MOV", 0, 20_000)
    page = show(builder.build())
    page.wait("insightTrace.timeline.frames > 0")
    colour = page.evaluate(
        """(() => { const { timeline } = insightTrace; timeline.draw();
        const lane = timeline.lanes.find((item) => item.pipe === 'VECTOR');
        const [r, g, b] = timeline.canvas.getContext('2d').getImageData(
          Math.round(timeline.x(8000)), lane.y + 5, 1, 1).data;
        return '#' + [r, g, b].map((value) => value.toString(16).padStart(2, '0')).join(''); })()"""
    )
    assert colour == page.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--pipe-vector')"
    )


def test_sampled_throughput_stands_below_the_cores(show):
    counter = Counter("GM_TO_UB", np.arange(4, dtype=np.int64), np.array([0.0, 90000.0, 45000.0, 0.0]))
    page = show(softmax_trace(8, counters=(counter,)))
    lanes = page.evaluate("insightTrace.timeline.lanes.map((lane) => lane.head || lane.label)")
    assert lanes[-2:] == ["throughput with global memory", "GM→UB"]
    page.wait("insightTrace.timeline.frames > 0")


def _odd_traces():
    one = TraceBuilder()
    one.add(Pipe.VECTOR, "VADD", 7, 7)
    scalar = TraceBuilder()
    for step in range(9):
        scalar.add(Pipe.SCALAR, "ADD", step, step + 1)
    odd = TraceBuilder()
    odd.add(Pipe.MTE2, "MOV", 50, 20)
    odd.add(Pipe.VECTOR, "WAIT_FLAG", 0, 40, detail="PIPE:MTE2,TRIGGERPIPE:VEC,FLAGID:0,")
    odd.add(Pipe.CACHEMISS, "0x10", 3, 4, core="core1.veccore0")
    return {
        "empty": TraceBuilder().build(),
        "one of no length": one.build(),
        "scalar only": scalar.build(),
        "backward, unpaired, idle core": odd.build(),
        "cube": matmul_trace(),
    }


@pytest.mark.parametrize("name", list(_odd_traces()))
def test_odd_traces_make_no_broken_page(show, name):
    page = show(_odd_traces()[name])
    for tab in ("instructions", "waits", "roofline", "memory", "source"):
        page.evaluate(f"insightTrace.showTab('{tab}')")
    for key in ("w", "d", "s", "0"):
        page.press(key)
    page.wait("insightTrace.timeline.frames > 0")
    assert page.evaluate("!document.getElementById('main').hidden")


def test_a_million_instructions_open_fast_and_move_smoothly(show):
    trace = softmax_trace(3_600, buffers=2)
    page = show(_repeated(trace, 10))
    assert page.evaluate("insightTrace.run.facts.instructions") > 1_000_000
    assert int(page.evaluate(READY)) < 20_000
    frames = page.evaluate(
        """(() => { const { timeline } = insightTrace; const times = [];
        for (let i = 0; i < 40; i++) {
          timeline.zoom(0.75, timeline.total / 3);
          timeline.draw();
          times.push(timeline.lastFrame);
        }
        return times.sort((a, b) => a - b); })()"""
    )
    assert frames[len(frames) // 2] < 100


def _repeated(trace, times):
    """The same instructions again and again, later; made from columns, not one by one."""
    columns = trace.instructions
    count, span = len(columns), int(columns.end.max()) + 10
    shift = np.repeat(np.arange(times, dtype=np.int64), count)
    again = {
        name: np.tile(getattr(columns, name), times)
        for name in (
            *("core", "pipe", "name", "stack", "pc", "process_bytes", "stall"),
            *("read_conflict", "write_conflict", "utilisation"),
        )
    }
    partner = np.tile(columns.partner, times)
    return replace(
        trace,
        instructions=replace(
            columns,
            **again,
            start=np.tile(columns.start, times) + shift * span,
            end=np.tile(columns.end, times) + shift * span,
            issue=np.tile(columns.issue, times) + shift * span,
            partner=np.where(partner >= 0, partner + shift * count, -1),
            detail=list(columns.detail) * times,
        ),
    )


def test_the_source_path_of_the_kernel_is_shown_in_full(show):
    page = show(softmax_trace(1))
    assert KERNEL_PATH in _text(page, "#source .head")
