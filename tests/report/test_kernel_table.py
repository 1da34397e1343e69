"""Several kernels: a table, sorted and filtered in a browser, whose rows open a page each."""

import pytest
from msgspec.structs import replace

from insight_trace.__main__ import main
from insight_trace.insight import write_insight_directory
from insight_trace.model import Confidence
from tests.report.conftest import READY
from tests.synthetic_recording import mix_recording
from tests.synthetic_trace import matmul_trace, softmax_trace

RACE = {"category": "race", "severity": "error", "message": "a race", "fix": "", "places": [], "count": 1}


@pytest.fixture
def profiled(tmp_path):
    """What a profile leaves: two kernels that ran, one of them checked, and one that did not."""
    root = tmp_path / "kernel_insight_all_funcs_1"
    recording = mix_recording(1, 4, findings=(RACE,), checks=({"slot": 2, "status": "mismatch"},))
    trace = replace(recording.trace, confidence=Confidence(5000, 0.25, "mix"))
    recording = replace(recording, trace=trace)
    write_insight_directory(trace, root / "funcs" / "scores" / "collect" / "out", recording=recording)
    write_insight_directory(softmax_trace(4), root / "funcs" / "softmax" / "collect" / "out")
    rows = [
        "func,status,message",
        "scores,exported,",
        "softmax,exported,",
        "broken,failed,it does not compile",
    ]
    (root / "manifest_export.csv").write_text("\n".join(rows) + "\n")
    return root


def _column(page, place):
    rows = "[...document.querySelectorAll('#kernels tbody tr')].filter((row) => !row.hidden)"
    return page.evaluate(f"{rows}.map((row) => row.cells[{place}].textContent)")


def test_a_profiles_output_is_a_table_of_its_kernels(browser, profiled, capsys):
    assert main(["view", str(profiled), "--no-browser"]) == 0
    index = profiled / "pages" / "index.html"
    assert capsys.readouterr().out.strip() == str(index)
    assert sorted(path.name for path in index.parent.iterdir()) == [
        "index.html",
        "scores.html",
        "softmax.html",
    ]
    browser.open(index.as_uri())
    browser.wait(f"location.href === {index.as_uri()!r} && Boolean({READY})")
    assert _column(browser, 0) == ["scores", "softmax", "broken"]
    rows = browser.evaluate(
        "[...document.querySelectorAll('#kernels tbody tr')].map((row) => row.innerText.split('\\t'))"
    )
    scores, softmax, broken = rows
    assert scores[4] == "4,000 to 6,250"
    assert scores[8:10] == ["1 wrong", "1 error"]
    assert softmax[8:10] == ["not compared", "0"]
    assert "cycles" in softmax[10]
    assert (broken[1], broken[10]) == ("failed", "it does not compile")
    shares = [float(row[2].strip().removesuffix("%")) for row in (scores, softmax)]
    assert shares[0] > shares[1] > 0
    assert abs(sum(shares) - 100) < 0.11
    assert all(" MB · " in row[6] for row in (scores, softmax))
    assert browser.evaluate("document.querySelector('th[aria-sort=descending]').textContent") == "Cycles"
    browser.evaluate("document.querySelector('[data-column=\"1\"]').focus()")
    browser.press("Enter")
    assert _column(browser, 0) == ["broken", "softmax", "scores"]
    browser.evaluate("document.getElementById('filter').focus()")
    browser.type("soft")
    assert _column(browser, 0) == ["softmax"]
    assert browser.evaluate("document.getElementById('count').textContent") == "1 kernel"
    browser.evaluate("document.querySelector('a[href=\"softmax.html\"]').click()")
    browser.wait(
        f"location.href.endsWith('softmax.html') && Boolean({READY}) && Boolean(window.insightTrace)"
    )
    assert browser.evaluate("document.getElementById('title').textContent") == "softmax"
    assert browser.evaluate("document.getElementById('back').getAttribute('href')") == "index.html"
    assert browser.errors == []


def test_three_runs_are_a_table_and_two_stand_side_by_side(tmp_path, capsys):
    runs = []
    for name, trace in (("a", softmax_trace(1)), ("b", softmax_trace(2)), ("c", matmul_trace(2))):
        runs.append(str(write_insight_directory(trace, tmp_path / name)))
    assert main(["view", *runs, "--no-browser", "-o", str(tmp_path / "table")]) == 0
    assert {"a.html", "b.html", "c.html", "index.html"} == {p.name for p in (tmp_path / "table").iterdir()}
    assert main(["view", *runs[:2], "--no-browser", "-o", str(tmp_path / "two.html")]) == 0
    assert 'id="comparison"' in (tmp_path / "two.html").read_text()
    assert main(["view", *runs[:2], "--table", "--no-browser", "-o", str(tmp_path / "two")]) == 0
    assert (tmp_path / "two" / "index.html").is_file()
    capsys.readouterr()
    assert main(["view", *runs, "--perfetto"]) == 2
    assert "opens one run" in capsys.readouterr().err
    assert main(["view", *runs, "--title", "x", "--title", "y"]) == 2
    assert "2 titles for one table" in capsys.readouterr().err


def test_a_table_is_replaced_by_the_next_and_nothing_else_is(profiled, capsys):
    words = ["view", str(profiled), "--no-browser"]
    assert main(words) == 0
    assert main(words) == 0
    other = profiled / "mine"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    capsys.readouterr()
    assert main([*words, "-o", str(other)]) == 2
    assert (other / "notes.txt").read_text() == "mine"


def test_kernels_of_one_name_and_names_that_no_file_has_get_pages_of_their_own(tmp_path):
    runs = [write_insight_directory(softmax_trace(1), tmp_path / place / "same") for place in ("1", "2", "3")]
    odd = write_insight_directory(softmax_trace(1), tmp_path / "<i>ünï code")
    assert main(["view", *map(str, runs), str(odd), "--no-browser", "-o", str(tmp_path / "out")]) == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"index.html", "same.html", "same-2.html", "same-3.html", "_i__n__code.html"}
    assert "<i>ünï" not in (tmp_path / "out" / "index.html").read_text()
