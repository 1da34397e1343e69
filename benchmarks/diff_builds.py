"""Two builds of 40 kernels that differ in every kernel: seconds of `insight-trace diff`, nothing of them compiled before."""

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.guard.harmless import write_harmless  # noqa: E402

import insight_trace  # noqa: E402

KERNELS = 40


def main() -> None:
    with TemporaryDirectory() as folder:
        a, b, _ = write_harmless(Path(folder), KERNELS)
        # other bytes than ever before: what is compiled cannot come from the cache
        for path in [*a.glob("**/*.cpp"), *b.glob("**/*.cpp")]:
            path.write_text(f"{path.read_text()}// {time.time_ns()}\n")
        before, begin = os.times(), time.monotonic()
        found = insight_trace.diff(a, b, run_same=True)
        seconds, after = time.monotonic() - begin, os.times()
        work = sum(after[:4]) - sum(before[:4])
    print(f"{found.summary}, {len(found.errors)} new errors")
    print(
        f"{seconds:.1f} s for two builds of {KERNELS} kernels, all compiled and run; {work:.1f} s of processors "
        f"(load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)"
    )


if __name__ == "__main__":
    main()
