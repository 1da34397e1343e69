"""The page of a replay with its values: a click shows the tile before and after, and what made it."""

from pathlib import Path

import insight_trace
from insight_trace.__main__ import main
from insight_trace.debug import open_session
from insight_trace.debug.page_values import MADE_BY, VALUES, value_sections
from insight_trace.report.payload import Section

SCENE = Path(__file__).resolve().parents[2] / "examples" / "paged_attention" / "scene.py"


def test_a_click_shows_the_tile_before_and_after_and_what_made_it(show, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    workspace = insight_trace.replay(
        SCENE, func_id=1, simulator="embedded", output=tmp_path / "out"
    ).workspace
    session = open_session(workspace)
    sections, left_out = value_sections(session)
    assert left_out == 0
    page = show(session.recording.trace, sections=[Section(title, entries) for title, entries in sections])
    page.press("/")
    page.type("vexp")
    page.wait("document.getElementById('hits').textContent.endsWith('hit')")
    page.press("Enter")
    page.wait(f"document.querySelector('#detail')?.textContent.includes({VALUES!r})")
    text = page.evaluate("document.querySelector('#detail').textContent")
    assert MADE_BY in text
    assert "TROWEXPANDSUB at softmax.cpp" in text
    assert "256 of 256 elements changed" in text
    assert page.evaluate("document.querySelectorAll('#detail .heatmap').length") == 2  # before and after
    assert page.evaluate("document.querySelectorAll('#detail .heatmap i').length") == 2 * 256
    row = next(row for row in dict(sections)[VALUES] if session.op_name(session.call_of(row)) == "TEXP")
    shown = session.moment(session.call_rows(session.call_of(row))[1]).show(session.moment(row).tiles()[0][1])
    after = next(line for line in dict(sections)[VALUES][row] if line[:5] == "after")
    assert f"{float(shown.values[0, 0]):>10.4g}" in after.splitlines()[1]
    # back along the chain, click by click, to the argument
    walked = []
    while page.evaluate("document.querySelectorAll('#detail > button.jump').length"):
        walked.append(page.evaluate("document.querySelector('#detail > button.jump').textContent"))
        page.evaluate("(document.querySelector('#detail > button.jump').click(), 0)")
        row = int(walked[-1].split()[-1])
        page.wait(f"document.querySelector('#detail').textContent.includes({_own(session, row)!r})")
    assert [line.split()[0] for line in walked] == ["TROWEXPANDSUB", "TMULS", "TLOAD"]
    assert "an argument" in page.evaluate("document.querySelector('#detail').textContent")
    assert main(["view", str(workspace), "--values", "--no-browser", "-o", str(tmp_path / "page.html")]) == 0
    assert VALUES.encode() in _facts(tmp_path / "page.html")
    assert main(["view", str(session.recording.trace.path.parent), "--values", "--no-browser"]) == 2
    assert "workspace" in capsys.readouterr().err


def _own(session, row):
    """What the detail of an instruction says of its own op's result, and no other's does."""
    return next(line for line in dict(value_sections(session)[0])[VALUES][row] if line[:5] == "after")


def _facts(path):
    import base64
    import re
    import zlib

    found = re.search(rb'id="run0-facts">([^<]*)<', path.read_bytes())
    return zlib.decompress(base64.b64decode(found[1]))
