"""One dispatch of a large dump: list, show, replay and a sample, the first time and the second, each in its own process.

    python benchmarks/large_dump.py [DISPATCHES]

The dump is that of examples/vector_chain, its records repeated under new ids; its payload is as small as it was.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCENE = Path(__file__).parents[1] / "examples" / "vector_chain" / "scene.py"
DISPATCHES = 1_000_000


def repeat_dump(folder: Path, count: int) -> None:
    """Gives the dump in `folder` that many dispatches."""
    path = folder / "args_dump.json"
    whole = json.loads(path.read_text())
    records = whole.pop("args")
    ids = sorted({record["dispatch_id"] for record in records})
    for key in ("total_args", "before_dispatch", "after_completion", "input_args", "output_args"):
        whole[key] = whole[key] * count // len(ids)
    with path.open("w") as file:
        file.write(json.dumps(whole)[:-1] + ', "args": [\n')
        separator = ""
        for start in range(0, count - count % len(ids), len(ids)):
            for record in records:
                number = start + record["dispatch_id"]
                again = record | {"task_id": f"0x{number:016x}", "dispatch_id": number}
                file.write(f"{separator}    {json.dumps(again)}")
                separator = ",\n"
        file.write("\n  ]\n}\n")
    (folder / "kernel_args_dump.json").unlink(missing_ok=True)


def measured(words: list[str], environment: dict[str, str]) -> str:
    """Seconds by the clock and of CPU, and the most memory that the command took."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "insight_trace", *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    failed = f" · exit {os.waitstatus_to_exitcode(status)}: {said[-200:].decode()}" if status else ""
    cpu = usage.ru_utime + usage.ru_stime
    return f"{took:7.2f} s · {cpu:6.2f} s of CPU · {usage.ru_maxrss / 1024:5,.0f} MB{failed}"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else DISPATCHES
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        environment = dict(os.environ)
        captured = subprocess.run(
            [
                sys.executable,
                "-m",
                "insight_trace",
                "capture",
                str(SCENE),
                "-o",
                str(folder / "dump"),
                "--json",
            ],
            env=environment,
            check=True,
            capture_output=True,
        )
        del captured
        dump = next((folder / "dump").rglob("args_dump.json")).parent
        repeat_dump(dump, count)
        size = (dump / "args_dump.json").stat().st_size
        print(f"dump       {count:,} dispatches, {size / 1e6:,.0f} MB of manifest")
        middle = str(count // 2 - count // 2 % 4)
        replay = ["replay", str(SCENE), "--dump-dir", str(dump), "--func-id", "0", "--dispatch-id", middle]
        commands = {
            "list": ["dump", "list", str(dump), "--dispatch-id", middle],
            "list all": ["dump", "list", str(dump)],
            "show": ["dump", "show", str(dump), "--dispatch-id", middle],
            "replay": replay,
            "sample 100": ["replay", str(SCENE), "--dump-dir", str(dump), "--sample", "100"],
        }
        for name, words in commands.items():
            for turn in ("first", "second"):
                output = (
                    [] if words[0] == "dump" else ["-o", str(folder / f"{name}-{turn}".replace(" ", "-"))]
                )
                print(f"{name:<10} {turn:<6} {measured([*words, *output], environment)}", flush=True)


if __name__ == "__main__":
    main()
