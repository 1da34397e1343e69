"""How fast the page of many cores opens and moves: 24 blocks of a mix, five million instructions.

    python benchmarks/page_scale.py [--instructions N]

The recording is made to order (tests/synthetic_recording.py), with rounds of unequal length so that it packs no better than
a real one. Frames are counted by the browser itself while the window moves for two seconds at each zoom.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.chromium import Browser, find_chromium  # noqa: E402
from tests.synthetic_recording import ROWS_A_ROUND, mix_recording  # noqa: E402

from insight_trace.report.page import write_page  # noqa: E402

BLOCKS = 24
READY = "document.documentElement?.dataset.ready"
# Moves the window by two pixels a frame for two seconds; frames a second, and how long one takes to draw.
PAN = """(async () => {
  const { timeline } = insightTrace;
  timeline.fit();
  for (let i = 0; i < %d; i++) timeline.zoom(0.5, timeline.total / 3);
  await new Promise((done) => setTimeout(done, 500));
  const began = performance.now();
  let frames = 0, step = 2;
  const times = [];
  await new Promise((done) => {
    const next = () => {
      if (performance.now() - began > 2000) return done();
      if (frames %% 100 === 99) step = -step;
      timeline.t0 += (step / timeline.plot) * (timeline.t1 - timeline.t0);
      timeline.t1 += (step / timeline.plot) * (timeline.t1 - timeline.t0);
      timeline.draw();
      times.push(timeline.lastFrame);
      frames++;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  times.sort((a, b) => a - b);
  return [frames / ((performance.now() - began) / 1000), times[times.length >> 1], times.at(-1)];
})()"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instructions", type=int, default=5_000_000)
    options = parser.parse_args()
    # later blocks do less: down to two thirds
    rounds = round(options.instructions / (BLOCKS * ROWS_A_ROUND * 5 / 6))
    trace = mix_recording(BLOCKS, rounds, seed=1).trace
    count = len(trace.instructions)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "page.html"
        began = time.process_time()
        with path.open("wb") as file:
            write_page(file, [trace], ["a mix of 24 blocks"])
        seconds, size = time.process_time() - began, path.stat().st_size
        print(
            f"page of {count:,} instructions on {3 * BLOCKS} cores: {seconds:.1f} s of CPU, {size / 1e6:.1f} MB"
        )
        executable = find_chromium()
        if executable is None:
            print("no Chromium here: the page was not opened")
            return
        browser = Browser(executable, Path(name) / "profile")
        try:
            opened(browser, path)
        finally:
            browser.close()


def opened(browser: Browser, path: Path) -> None:
    """Opening from disk, and moving at several zooms: all cores as strips, then with every core open."""
    times = []
    for _ in range(3):
        browser.open("about:blank")
        browser.open(path.as_uri(), 120)
        times.append(int(browser.wait(f"location.href === {path.as_uri()!r} && {READY}", 120)))
    print(
        f"opens in {min(times) / 1000:.2f} s in headless Chromium ({', '.join(f'{t / 1000:.2f}' for t in times)})"
    )
    for title, before in (("strips", ""), ("every core open", "insightTrace.timeline.foldAll(false); ")):
        for halvings in (0, 4, 8, 12):
            rate, median, worst = browser.evaluate(before + PAN % halvings, 120)
            taken = f"{median:.1f} ms (median), {worst:.1f} ms at most"
            print(f"{title}, zoom {2**halvings:>5}: {rate:5.1f} frames/s, a frame takes {taken}")


if __name__ == "__main__":
    main()
