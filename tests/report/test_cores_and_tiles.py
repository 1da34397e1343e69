"""What the page shows of a recording: cores at a glance, tiles, findings, estimates; by mouse, keys and on paper."""

import numpy as np
import pytest
from msgspec.structs import replace

from insight_trace.model import Confidence, CoreType, Launch, MemoryUse, Pipe
from insight_trace.recording.tile_lives import named_tiles, tile_lives
from insight_trace.replay.pipeline import make_trace
from insight_trace.report.payload import Section, payload
from tests.simulate.dispatching import kernel, run
from tests.synthetic_recording import VECTOR_PATH, mix_recording
from tests.synthetic_trace import TraceBuilder, softmax_trace


def _finding(row, **more):
    place = {"file": VECTOR_PATH, "line": 8, "instruction": "VEXP", "pipe": "V", "core": "core0.veccore0"}
    return {
        "category": "race", "severity": "error", "message": "VEXP reads what VMULS writes", "fix": "a barrier",
        "places": [{**place, "row": row}], "memory": "UB", "begin": 0, "end": 256, "count": 3, "cycles": None, **more,
    }  # fmt: skip


def _text(page, selector):
    return page.evaluate(f"document.querySelector({selector!r})?.textContent ?? ''")


def test_a_finding_leads_to_its_instruction_and_is_marked_on_its_lane(show, recorded):
    recording = mix_recording(1, 3)
    names = recording.instructions.names
    row = next(i for i, n in enumerate(recording.instructions.name) if names[n] == "VEXP")
    note = _finding(-1, category="redundant-sync", severity="note", message="orders nothing", cycles=7)
    page = show(recorded(mix_recording(1, 3, findings=(note, _finding(row)))))
    assert _text(page, "#findings-title") == "Findings: 2"
    badges = page.evaluate("[...document.querySelectorAll('.findings .badge')].map((b) => b.textContent)")
    assert badges == ["error", "note"], "the worst comes first"
    assert page.evaluate("document.getElementById('finding-notes').open") is False
    assert "To fix it: a barrier" in _text(page, "#findings li")
    assert "UB bytes 0 to 256" in _text(page, "#findings li")
    page.evaluate("document.querySelector('#findings button').click()")
    page.wait("document.querySelector('#detail h3')?.textContent === 'VEXP'")
    assert "VEXP reads what VMULS writes" in _text(page, "#detail")
    colour = page.evaluate(
        """(() => { const { timeline } = insightTrace; timeline.fit(); timeline.draw();
        const mark = timeline.marks.find((one) => one.finding.severity === 'error');
        const lane = timeline.laneOf(mark.run, mark.row);
        const data = timeline.canvas.getContext('2d').getImageData(
          Math.round(timeline.x(mark.time)), lane.y + 2 - timeline.box.scrollTop, 1, 1).data;
        return '#' + [...data].slice(0, 3).map((value) => value.toString(16).padStart(2, '0')).join(''); })()"""
    )
    assert colour == page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--bad')")
    assert page.evaluate("insightTrace.timeline.marks.length") == 2, (
        "a place without a row is found by its line"
    )


def test_many_cores_are_a_strip_each_and_are_read_when_they_are_opened(show, recorded):
    page = show(recorded(mix_recording(24, 3)))
    lanes = page.evaluate("insightTrace.timeline.lanes.filter((lane) => lane.strip).length")
    assert lanes == 71
    slowest = page.evaluate("insightTrace.run.facts.slowest")
    assert page.evaluate("insightTrace.timeline.lanes.find((lane) => lane.head).head") == slowest
    page.wait("insightTrace.run.loaded.size === 1")
    y = page.evaluate(
        """(() => { const { timeline } = insightTrace;
        const lane = timeline.lanes.find((one) => one.strip === 'core2.cubecore0');
        timeline.box.scrollTop = lane.y - 60;
        return timeline.canvas.getBoundingClientRect().y + lane.y - timeline.box.scrollTop + 9; })()"""
    )
    x = page.evaluate("timeline.getBoundingClientRect().x + 40")
    page.click(x, y)
    page.wait("insightTrace.timeline.lanes.some((lane) => lane.head === 'core2.cubecore0')")
    page.wait("insightTrace.run.loaded.size === 2")
    assert page.evaluate("insightTrace.timeline.height < 4000")
    page.evaluate("document.getElementById('open-all').click()")
    assert page.evaluate("insightTrace.timeline.lanes.filter((lane) => lane.strip).length") == 0
    page.evaluate("document.getElementById('fold-all').click()")
    assert page.evaluate("insightTrace.timeline.lanes.filter((lane) => lane.strip).length") == 72
    page.evaluate("insightTrace.search('mmad')")
    page.wait("document.getElementById('hits').textContent === '72 hits'", 60)


def test_a_strip_is_as_busy_as_its_core(recorded):
    facts = payload(recorded(mix_recording(3, 5)), title="t").facts
    busy = {(pipe["core"], pipe["pipe"]): pipe["busy"] for pipe in facts["pipes"]}
    strips = facts["load"]["strips"]
    assert len(strips) == 9 * 5 - 3 * 2 * 1, strips
    for strip in strips:
        assert strip["busy"] == busy[facts["coreNames"][strip["core"]], strip["pipe"]]


def test_tiles_have_the_names_of_the_kernels_own_lines_and_live_from_write_to_read():
    lives = tile_lives(mix_recording(1, 2).trace, {})
    names = {tile.name: (tile.memory, tile.address, tile.bytes) for tile in lives.tiles}
    assert names["leftL1"] == ("L1", 0, 16384)
    assert names["weights"] == ("UB", 32768, 16384)
    of_first = [
        (lives.tiles[tile].name, begin, end)
        for core, tile, begin, end in zip(lives.core, lives.tile, lives.begin, lives.end, strict=True)
        if core == 1
    ]
    assert ("scoresUb", 710, 1232) in of_first, "from the load to the last product that reads it"
    assert ("scaled", 1112, 1712) in of_first
    assert ("weights", 1232, 2082) in of_first, "read by the sum, read and written by the addition, stored"
    sums = [(begin, end) for name, begin, end in of_first if name == "sums"]
    assert len(sums) == 2, "written in each round and never read: each is a value of its own"
    assert (lives.overlap == -1).all()


def test_a_tile_that_is_written_over_while_it_is_to_be_read_overlaps():
    lives = tile_lives(mix_recording(1, 3, overlap=True).trace, {})
    found = {
        (lives.tiles[tile].name, lives.tiles[over].name)
        for tile, over in zip(lives.tile, lives.overlap, strict=True)
        if over >= 0
    }
    assert found == {("scaled", "weights")}


def test_names_of_a_pypto_program_come_first():
    known = named_tiles([{"name": "probabilities", "memory": "vec", "address": 32768}])
    lives = tile_lives(mix_recording(1, 1).trace, known)
    assert "probabilities" in {tile.name for tile in lives.tiles}
    assert "weights" not in {tile.name for tile in lives.tiles}


def test_the_tiles_tab_lists_them_and_draws_overlaps_red(show, recorded):
    page = show(recorded(mix_recording(1, 3, overlap=True)))
    page.evaluate("insightTrace.showTab('tiles')")
    page.wait("document.querySelectorAll('#panel-tiles tbody tr').length === 5")
    assert "overwritten by weights" in _text(page, "#panel-tiles")
    red = page.evaluate(
        """(() => { const { tiles } = insightTrace; tiles.paint();
        const at = [...tiles.lives.overlap].findIndex((over) => over >= 0);
        const [x, y, w, h] = tiles.drawn.find(([, , , , row]) => row === tiles.lives.first[at]);
        const data = tiles.canvas.getContext('2d').getImageData(Math.round(x + w / 2), Math.round(y + h - 3), 1, 1).data;
        return data[0] > data[1] + 40 && data[0] > data[2] + 40; })()"""
    )
    assert red
    page.evaluate("document.querySelector('#panel-tiles tbody tr').focus()")
    page.press("Enter")
    page.wait("document.querySelector('#detail h3') !== null")


def test_a_number_says_how_far_it_can_be_trusted(show, recorded):
    numbers = [
        {"parameter": "vector.VEXP.any", "source": "nobody measured it", "instructions": 6, "cycles": 360}
    ]
    page = show(recorded(mix_recording(1, 3, about={"estimates": {"share": 0.12, "numbers": numbers}})))
    assert "12 % of the time rests on estimates" in _text(page, "#trust")
    assert "nobody measured it" in page.evaluate("document.querySelector('#trust p').title")
    page.evaluate("insightTrace.showTab('instructions')")
    marked = page.evaluate(
        "[...document.querySelectorAll('#panel-instructions tr')].filter((r) => r.textContent.includes('≈')).length"
    )
    assert marked == 1
    page.evaluate("insightTrace.search('vexp')")
    page.wait("document.getElementById('hits').textContent.endsWith('hits')")
    page.evaluate("insightTrace.nextHit(1)")
    page.wait("document.querySelector('#detail')?.textContent.includes('≈ estimated')")


def test_the_total_has_its_interval_and_transfers_tell_what_l2_had(show, recorded):
    trace = recorded(mix_recording(1, 3))
    memory, confidence = MemoryUse(1 << 20, 3 << 18, 1 << 18, 0), Confidence(4000, 0.25, "mix")
    launch = Launch(1000, 500, 1, (0,), (4000,))
    page = show(replace(trace, memory=memory, confidence=confidence, launch=launch))
    assert "3,200 to 5,000 cycles on a chip (90 % interval)" in _text(page, "#trust")
    assert "75.0 %of 1.00 MiB found in L2" in _text(page, "#kpis")
    assert "with the launch around it" in _text(page, "#kpis")
    page.evaluate("insightTrace.search('mov_out_to_ub')")
    page.wait("document.getElementById('hits').textContent.endsWith('hits')")
    page.evaluate("insightTrace.nextHit(1)")
    page.wait("document.querySelector('#detail')?.textContent.includes('75.0 % of 16.0 KiB found there')")


def test_the_detail_of_an_instruction_has_room_for_what_others_know(show):
    trace = softmax_trace(2, cores=1)
    names = trace.instructions.names
    row = next(i for i, n in enumerate(trace.instructions.name) if names[n] == "VEXP")
    page = show(trace, sections=[Section("Tile before and after", {row: ["x 1.0 2.0", "y 2.7 7.4"]})])
    page.press("/")
    page.type("vexp")
    page.wait("document.getElementById('hits').textContent === '2 hits'")
    page.press("Enter")
    page.wait("document.querySelector('#detail')?.textContent.includes('Tile before and after')")
    assert "y 2.7 7.4" in _text(page, "#detail")


def test_marks_that_the_author_named_are_listed_with_their_time(show):
    builder = TraceBuilder()
    for begin in (0, 400):
        builder.add(Pipe.USERMARK, "load", begin, begin + 100)
        builder.add(Pipe.USERMARK, "compute", begin + 100, begin + 400)
        builder.add(Pipe.VECTOR, "VADD", begin + 100, begin + 390)
    page = show(builder.build())
    page.evaluate("insightTrace.showTab('cores')")
    rows = page.evaluate(
        "[...document.querySelectorAll('#panel-cores table')].at(-1).innerText.split('\\n').map((t) => t.split('\\t'))"
    )
    assert [row[:4] for row in rows[1:]] == [
        ["load", "core0.veccore0", "2", "200"],
        ["compute", "core0.veccore0", "2", "600"],
    ]


def test_phases_of_the_critical_path_add_up_on_the_page_too(show):
    slots = [np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32), 3]
    page = show(make_trace(run([kernel("marked.cpp", CoreType.AIV)], slots, [1])))
    page.evaluate("insightTrace.showTab('cores')")
    rows = page.evaluate(
        """[...document.querySelectorAll('#panel-cores h2')].find((h) => h.textContent.startsWith('Phases'))
        .nextElementSibling.innerText.split('\\n').map((t) => t.split('\\t'))"""
    )
    assert [row[:2] for row in rows[1:]] == [
        *([f"Mark 0x{number}", "3"] for number in (1, 2, 3)),
        ["Mark 0x4", "1"],
        ["outside", ""],
    ]
    cycles = [int(row[3].replace(",", "")) for row in rows[1:]]
    assert sum(cycles) == page.evaluate("insightTrace.run.facts.cycles")


def test_vector_instructions_in_flight_together_are_one_lane_until_it_is_spread(show):
    builder = TraceBuilder()
    for step in range(12):
        builder.add(Pipe.RVECEX, f"VADD{step}", 10 * step, 10 * step + 35)
    page = show(builder.build())
    labels = "insightTrace.timeline.lanes.filter((lane) => !lane.head).map((lane) => lane.label)"
    assert page.evaluate(labels) == ["RVECEX ×4"]
    for step in (0, 5, 11):
        found = page.evaluate(
            f"""(() => {{ const {{ timeline, run }} = insightTrace; timeline.draw();
            const row = [...Array(12).keys()].find((one) => run.nameOf(one) === 'VADD{step}');
            const lane = timeline.laneOf(run, row), place = lane.works.indexOf(run.segmentOf(row));
            const y = lane.y + 2 + ((place + 0.5) * (lane.height - 4)) / lane.works.length;
            return run.nameOf(timeline.at((timeline.x(run.start[row]) + timeline.x(run.end[row])) / 2, y).row); }})()"""
        )
        assert found == f"VADD{step}"
    page.evaluate("insightTrace.timeline.toggle(insightTrace.timeline.lanes.find((lane) => lane.spreads))")
    assert page.evaluate(labels) == ["RVECEX", "RVECEX #1", "RVECEX #2", "RVECEX #3"]


def test_a_header_that_holds_anything_makes_no_broken_page(show, recorded):
    odd = [7, None, {"places": [3, {"row": "x"}]}, {"severity": 5, "places": 9}]
    about = {
        "estimates": {"share": 0.5, "numbers": [1, {"parameter": 3}]},
        "tiles": [4, {"name": 1, "memory": 2}],
    }
    page = show(recorded(mix_recording(1, 2, findings=odd, checks=[1, {}], about=about)))
    for tab in ("instructions", "cores", "tiles"):
        page.evaluate(f"insightTrace.showTab('{tab}')")
    page.wait("insightTrace.timeline.frames > 0")
    assert "50 % of the time rests on estimates" in _text(page, "#trust")


def test_the_page_is_used_with_the_keyboard_alone(show, recorded):
    page = show(recorded(mix_recording(1, 3)))
    page.evaluate("document.querySelector('.skip').focus()")
    assert (
        page.evaluate("document.querySelector(document.activeElement.getAttribute('href')).id") == "timeline"
    )
    page.evaluate("document.getElementById('timeline').focus()")
    page.press("ArrowDown")
    page.wait("document.querySelector('#detail .sub') !== null")  # before it the pane lists hot spots
    first = _text(page, "#detail .sub")
    page.press("ArrowDown")
    page.wait(f"document.querySelector('#detail .sub')?.textContent !== {first!r}")
    page.evaluate("document.getElementById('tab-source').focus()")
    page.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-instructions"
    assert page.evaluate("!document.getElementById('panel-instructions').hidden")
    page.press("End")
    assert page.evaluate("document.activeElement.id") == "tab-roofline"
    unnamed = page.evaluate(
        """[...document.querySelectorAll('button, input, select, canvas, [role=tabpanel], section, aside')]
        .filter((node) => !node.textContent.trim() && !node.labels?.length
          && !node.getAttribute('aria-label') && !node.getAttribute('aria-labelledby'))
        .map((node) => node.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_paper_the_page_is_light_and_has_its_tables(show, recorded, theme):
    page = show(recorded(mix_recording(1, 3)))
    page.evaluate(f"insightTrace.setTheme('{theme}')")
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        shown = "getComputedStyle(document.querySelector({!r})).display"
        for selector in ("#panel-instructions", "#panel-waits", "#panel-cores"):
            assert page.evaluate(shown.format(selector)) == "block"
        for selector in (".search", "#theme", ".tab-bar"):
            assert page.evaluate(shown.format(selector)) == "none"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        page.call("Emulation.setEmulatedMedia", media="")
