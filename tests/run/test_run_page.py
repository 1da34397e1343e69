"""The page of a run opens without a complaint, draws every core, and leads from a task to its own trace."""

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
    assert "http" not in text
    assert text.count("</script>") == 2


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium")
def test_the_page_leads_from_a_task_to_its_trace(folder, tmp_path):
    browser = Browser(find_chromium(), tmp_path / "profile")
    try:
        browser.open((folder / "index.html").as_uri())
        browser.wait("document.querySelectorAll('#kernels tr').length == 5")
        assert browser.evaluate("d.bars.length") == 12
        assert browser.evaluate("canvas.height") == 72 * 12
        browser.evaluate("document.querySelectorAll('#kernels tr')[1].click()")
        said = browser.evaluate("document.getElementById('told').textContent")
        assert "insight-trace replay" in said
        link = browser.evaluate("document.querySelector('#told a').getAttribute('href')")
        assert (folder / link / "visualize_data.bin").is_file()
        assert browser.errors == []
    finally:
        browser.close()
