"""A fresh program under `exec`: the time to its first launch with compilation, of 1,000 different launches, and its memory.

    python -m benchmarks programs

Wall seconds and CPU seconds of the command and all that it starts. The program's text is new each time, so that nothing
of it is in the cache; the tool's own engine and libraries are compiled before. Every launch has another input, so that none
takes the result of one before.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SOURCE = """
// {stamp}
#include <acl/acl.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pto/pto-inst.hpp>
using namespace pto;
__global__ AICORE void plus_one(__gm__ float *x) {{
#if defined(__DAV_VEC__)
    Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor> a;
    TASSIGN(a, 0);
    GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<64, 64, 64, 64, 1>> g(x);
    TLOAD(a, g);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(a, a, 1.0f);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(g, a);
#endif
}}
static long kilobytes(const char *process) {{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%s/status", process);
    long found = 0;
    if (FILE *file = fopen(path, "r")) {{
        while (fgets(line, sizeof line, file)) sscanf(line, "VmRSS: %ld", &found);
        fclose(file);
    }}
    return found;
}}
static void memory(int launches) {{
    char engine[32] = "";
    if (FILE *file = popen("pgrep -P $PPID program_engine", "r")) {{
        if (fgets(engine, sizeof engine, file)) engine[strcspn(engine, "\\n")] = 0;
        pclose(file);
    }}
    printf("memory %d %ld %ld\\n", launches, kilobytes("self"), kilobytes(engine));
}}
int main(int, char **words) {{
    const int launches = atoi(words[1]);
    void *x = nullptr;
    float h[64] = {{0}};
    aclrtMalloc(&x, sizeof h, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(x, sizeof h, h, sizeof h, ACL_MEMCPY_HOST_TO_DEVICE);
    for (int i = 1; i <= launches; ++i) {{
        plus_one<<<1, nullptr, nullptr>>>(static_cast<float *>(x));
        if (aclrtSynchronizeDevice()) return 1;
        if (i == 100 || i == launches) memory(i);
    }}
    aclrtMemcpy(h, sizeof h, x, sizeof h, ACL_MEMCPY_DEVICE_TO_HOST);
    return h[5] != launches;
}}
"""


def _run(folder: Path, line: str) -> tuple[float, float, str]:
    """Wall and CPU seconds of a shell's line under exec, and what it printed."""
    words = [sys.executable, "-m", "insight_trace", "exec", "--trace", "none", "--", "sh", "-c", line]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{line}: exit {done.returncode}\n{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="insight-trace-bench-") as place:
        folder = Path(place)
        build = "bisheng -xcce --npu-arch=dav-2201 -O2 {0}.cpp -o {0} -lascendcl && ./{0} {1}"
        for name in ("warm", "fresh"):  # the first one compiles what is ours
            (folder / f"{name}.cpp").write_text(_SOURCE.format(stamp=f"{name} {time.time_ns()}"))
            wall, cpu, _ = _run(folder, build.format(name, 1))
        print(f"compile, start, first launch   {wall:6.2f} s wall  {cpu:6.2f} s CPU")
        wall, cpu, said = _run(folder, "./fresh 1000")
        print(f"1,000 launches, all different  {wall:6.2f} s wall  {cpu:6.2f} s CPU")
        for launches, program, engine in re.findall(r"memory (\d+) (\d+) (\d+)", said):
            sizes = f"program {int(program) / 1024:.1f} MiB, engine {int(engine) / 1024:.1f} MiB"
            print(f"memory after {launches:>5} launches: {sizes}")


if __name__ == "__main__":
    main()
