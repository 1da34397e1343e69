"""The tutorial, run as a reader would: its commands, its changes, its pictures."""

import os
import re
import shlex

import pytest

from insight_trace.__main__ import main
from insight_trace.insight import open_trace
from insight_trace.report.page import write_page
from insight_trace.trace.advice import advise
from insight_trace.trace.stats import stats
from tests.chromium import Browser, find_chromium
from tests.conftest import ROOT

DOCS = ROOT / "docs"
# Set, it makes the pictures of the document anew; else they are made beside the test.
PICTURES = "INSIGHT_TRACE_WRITE_PICTURES"


def _blocks(text):
    """("console" or "diff", its lines) in the order of the page."""
    return [
        (kind, body.splitlines()) for kind, body in re.findall(r"```(console|diff)\n(.*?)```", text, re.S)
    ]


def _expected(lines):
    """Commands, each with the lines that it must print."""
    found = []
    for line in lines:
        if line.startswith("$ insight-trace "):
            found.append((shlex.split(line[len("$ insight-trace ") :]), []))
        else:
            found[-1][1].append(line)
    return found


def _pattern(line):
    """Figures may differ, and … stands for anything."""
    parts = [
        re.sub(r"\d[\d,.]*", r"[0-9][0-9,.]*", re.escape(part).replace("\\,", ","))
        for part in line.split("…")
    ]
    return re.compile(
        ".*".join(re.sub(r"\\\.(?=\[0-9\])", ".", part) for part in parts).rstrip()
        + (".*" if "…" in line else r"\s*$")
    )


def _apply(lines, source):
    text = source.read_text()
    old = "".join(f"{line[1:]}\n" for line in lines if line[:1] in "- ")
    new = "".join(f"{line[1:]}\n" for line in lines if line[:1] in "+ ")
    assert text.count(old) == 1, f"this stands {text.count(old)} times in {source}:\n{old}"
    source.write_text(text.replace(old, new))


def _picture(browser, path, page, traces, titles, height):
    with page.open("wb") as file:
        write_page(file, traces, titles)
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=1280, height=height, deviceScaleFactor=1, mobile=False
    )
    browser.open(page.as_uri())
    browser.wait("Boolean(document.documentElement?.dataset.ready)")
    browser.wait("insightTrace.timeline.frames > 1")
    browser.screenshot(path)
    assert path.stat().st_size > 20_000
    assert browser.errors == []


def test_the_tutorial_works_as_it_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    for kind, lines in _blocks(text):
        if kind == "diff":
            _apply(lines, tmp_path / "mine" / "mine.cpp")
            continue
        for words, expected in _expected(lines):
            code = main(words)
            output = capsys.readouterr()
            told = (output.out + output.err).splitlines()
            assert code == (1 if words[0] == "check" or "wrong" in words[-1:] else 0), told
            place = 0
            for line in expected:
                pattern = _pattern(line)
                found = next((i for i in range(place, len(told)) if pattern.match(told[i])), None)
                assert found is not None, f"{line!r} is not printed by {words}:\n" + "\n".join(told)
                place = found + 1
    # the second buffer that was advised brings what was said
    before, after = (open_trace(tmp_path / name) for name in ("before", "after"))
    promised = next(each.saves for each in advise(before, stats(before)) if each.topic == "buffer")
    assert promised == pytest.approx(stats(before).cycles - stats(after).cycles, rel=0.1)
    pictures = re.findall(r"!\[[^\]]*\]\((tutorial-\w+\.png)\)", text)
    assert pictures == ["tutorial-before.png", "tutorial-compare.png"]
    assert all((DOCS / name).is_file() for name in pictures)
    executable = find_chromium()
    if executable is None:
        pytest.skip("no Chromium: the commands are right, the pictures are not made")
    folder = DOCS if os.environ.get(PICTURES) else tmp_path
    browser = Browser(executable, tmp_path / "profile")
    try:
        page = tmp_path / "page.html"
        _picture(browser, folder / pictures[0], page, [before], ["mine · one buffer"], 720)
        _picture(browser, folder / pictures[1], page, [before, after], ["one buffer", "two buffers"], 900)
    finally:
        browser.close()
