"""How fast the page of many cores opens and moves: 24 blocks of a mix, five million instructions.

    python benchmarks/page_scale.py [--instructions N]

The recording is made to order (tests/synthetic_recording.py), with rounds of unequal length so that it packs no better than
a real one. Frames are counted by the browser itself while the window moves for two seconds at each zoom, and what
they cost by the CPU time of all its processes, which other work on the machine does not change.
"""

from __future__ import annotations

import argparse
import os
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
    times, costs = [], []
    for _ in range(3):
        browser.open("about:blank")
        spent = -cpu_seconds(browser.process)
        browser.open(path.as_uri(), 120)
        times.append(int(browser.wait(f"location.href === {path.as_uri()!r} && {READY}", 120)) / 1000)
        costs.append(spent + cpu_seconds(browser.process))
    listed = ", ".join(f"{each:.2f}" for each in times)
    print(
        f"opens in {min(times):.2f} s in headless Chromium ({listed}), for {min(costs):.2f} s of CPU in all its processes",
        flush=True,
    )
    for title, fold in (("strips", "true"), ("every core open", "false")):
        browser.evaluate(f"insightTrace.timeline.foldAll({fold}); insightTrace.timeline.fit()")
        browser.evaluate("new Promise((done) => setTimeout(done, 3000))", 120)  # what is seen is unpacked
        for halvings in (0, 4, 8, 12):
            spent = -cpu_seconds(browser.process)
            rate, median, worst = browser.evaluate(PAN % halvings, 120)
            spent += cpu_seconds(browser.process)
            taken = f"{median:.1f} ms (median), {worst:.1f} ms at most"
            # a pan lasts two seconds; half a second before it is at rest
            costs = f"{1000 * spent / (2 * rate):.1f} ms of CPU in all processes of the browser"
            print(f"{title}, zoom {2**halvings:>5}: {rate:5.1f} frames/s, a frame takes {taken}, and {costs}")


def cpu_seconds(root: int) -> float:
    """Of a process and all below it: what a frame costs, however busy the machine is."""
    parents, times = {}, {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        number = int(place.parent.name)
        parents[number], times[number] = int(words[1]), int(words[11]) + int(words[12])
    mine = {root}
    while found := {number for number, parent in parents.items() if parent in mine} - mine:
        mine |= found
    return sum(times.get(number, 0) for number in mine) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
