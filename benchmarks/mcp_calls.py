"""Many calls to the server of tools for agents: how long they take, and whether its memory stays flat.

    python benchmarks/mcp_calls.py [--calls 1000] [--root FOLDER]

Memory is that of the server and all its processes. Exits 1 if a call fails, or if the last tenth of the calls ends with
more than a tenth above what the first fifth ended with.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "judge"


def memory_below(pid: int) -> int:
    """Resident bytes of a process' descendants."""
    parents: dict[int, list[int]] = {}
    pages: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            pages[int(entry.name)] = int((entry / "statm").read_text().split()[1])
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = 0, [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += sum(pages.get(child, 0) for child in children)
        waiting += children
    return found * os.sysconf("SC_PAGE_SIZE")


async def calls(root: Path, count: int) -> int:
    from mcp import Client, StdioServerParameters, stdio_client

    words = ["-m", "insight_trace", "mcp", "--root", str(root)]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    arguments = {"x": "f32[4096]:random", "y": "f32[4096]:random", "z": "f32[4096]"}
    memory = []
    async with Client(stdio_client(server)) as client:
        first = await client.call_tool("kernel", {"file": "judge/good.cpp", "arguments": arguments})
        if first.is_error:
            print(first.content[0].text)
            return 1
        workspace = first.structured_content["workspace"]
        kinds = [
            ("stats", {"workspace": workspace}),
            ("op_cost", {"op": "TADD", "rows": [16, 32], "cols": 64}),
            ("query", {"workspace": workspace, "sql": "select * from instructions", "limit": 5}),
            ("advice", {"workspace": workspace}),
            ("stats", {"workspace": "../outside"}),
        ]
        began = time.perf_counter()
        failed = 0
        for number in range(count):
            name, given = kinds[number % len(kinds)]
            answer = await client.call_tool(name, given)
            failed += answer.is_error != (given.get("workspace") == "../outside")
            memory.append(memory_below(os.getpid()))
        took = time.perf_counter() - began
    early, late = max(memory[: count // 5]), max(memory[-(count // 10) :])
    print(
        f"{count} calls, {failed} failed, {1000 * took / count:.0f} ms each; server and processes: "
        f"{early / 2**20:.0f} MiB after the first fifth, {late / 2**20:.0f} MiB at the end"
    )
    return 1 if failed or late > 1.1 * early else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--root", type=Path, help="a folder with examples/judge in it (usual: a new one)")
    options = parser.parse_args()
    import anyio

    if options.root is not None:
        return anyio.run(calls, options.root, options.calls)
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(EXAMPLES, Path(place) / "judge")
        return anyio.run(calls, Path(place), options.calls)


if __name__ == "__main__":
    sys.exit(main())
