"""The page of a run opens without a complaint, draws every core, and leads from a task to its own trace."""

import re
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from tests.chromium import Browser, find_chromium

SCENE = Path(__file__).parents[2] / "examples" / "paged_attention" / "scene.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    words = [
        "run",
        str(SCENE),
        "--case",
        "CaseSmall1",
        "-o",
        str(out),
        "--jobs",
        "1",
        "--replay-slowest",
        "1",
    ]
    assert main(words) == 0
    return out


def test_the_page_holds_its_numbers_and_nothing_from_elsewhere(folder):
    text = (folder / "index.html").read_text()
    assert "PagedAttention" in text or "paged_attention CaseSmall1" in text
    assert not re.findall(r"https?:(?!//www\.w3\.org/2000/svg)", text)
    assert text.count("</script>") == 2


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium")
def test_the_page_leads_from_a_task_to_its_trace(folder, tmp_path):
    browser = Browser(find_chromium(), tmp_path / "profile")
    try:
        browser.open((folder / "index.html").as_uri())
        browser.wait("document.querySelectorAll('#kernels tr').length == 5")
        assert browser.evaluate("data.bars.length") == 12
        assert browser.evaluate("data.names.length") == 72
        assert browser.evaluate("[data.names[0], data.names[24], data.names[71]]") == [
            "AIC 0",
            "AIV 0",
            "AIV 47",
        ]
        assert "bound by scheduling" in browser.evaluate("document.getElementById('bound').textContent")
        legend = browser.evaluate("document.getElementById('kernel-legend').textContent")
        assert legend == "".join(browser.evaluate("data.kernels.map((kernel) => kernel.name)"))
        browser.evaluate("document.querySelectorAll('#kernels tr')[1].click()")
        said = browser.evaluate("document.getElementById('answer').textContent")
        assert "insight-trace replay" in said
        assert "AIV" in said or "AIC" in said
        before = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        browser.evaluate("document.getElementById('theme').click()")
        assert browser.evaluate("getComputedStyle(document.body).backgroundColor") != before
        link = browser.evaluate("document.querySelector('#answer a').getAttribute('href')")
        assert (folder / link / "visualize_data.bin").is_file()
        assert browser.errors == []
    finally:
        browser.close()
