"""One Chromium for all tests of the page."""

import pytest

from insight_trace.recording import open_recording, save
from insight_trace.report.page import write_page
from tests.chromium import Browser, find_chromium

READY = "document.documentElement?.dataset.ready"


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    executable = find_chromium()
    if executable is None:
        pytest.skip("no Chromium: install the package chromium, or set INSIGHT_TRACE_CHROMIUM")
    made = Browser(executable, tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens a page of traces and hands out the browser; afterwards the page must not have complained."""

    def opened(*traces, titles=None, **options):
        path = tmp_path / "page.html"
        with path.open("wb") as file:
            write_page(file, traces, titles or [f"run {i}" for i in range(len(traces))], **options)
        browser.open(path.as_uri())
        browser.wait(f"location.href === {path.as_uri()!r} && Boolean({READY})")
        return browser

    yield opened
    assert browser.errors == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []


@pytest.fixture
def recorded(tmp_path):
    """Saves a recording and opens it again, so that the page finds what stands beside the trace."""

    def saved(recording):
        folder = tmp_path / "OPPROF_1" / "recording"
        save(recording, folder)
        return open_recording(folder).trace

    return saved
