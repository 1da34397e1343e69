"""The Insight directory: writing against msgspec's own rate for the same events, and reading back.

Everything is measured in one run on one machine; the ratios are what counts. A large
trace is written by two processes.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from insight_trace.insight import open_trace, validate_directory, write_insight_directory
from insight_trace.model import Instructions, Pipe, Trace

_PIPES = (Pipe.SCALAR, Pipe.MTE2, Pipe.VECTOR, Pipe.MTE3)
_NAMES = (
    "MOV_XD_IMM",
    "ADD",
    "MOV_OUT_TO_UB_ALIGN",
    "VADD",
    "VEXP",
    "MOV_UB_TO_OUT",
    "SET_FLAG",
    "WAIT_FLAG",
)
_NAME_PIPES = (0, 0, 1, 2, 2, 3, 1, 2)
_FLAG = "PIPE:MTE2,TRIGGERPIPE:VEC,FLAGID:0,"


def made_up_trace(rows: int) -> Trace:
    """A loop of eight instructions on two vector cores, with flags, details of their own, and call stacks."""
    number = np.arange(rows)
    name = (number // 2) % len(_NAMES)
    core = number % 2
    start = (number // 2) * 3
    lasting = np.array([1, 1, 40, 12, 20, 30, 1, 4])[name]
    partner = np.full(rows, -1, dtype=np.int64)
    waits = np.flatnonzero(name == 7)
    partner[waits] = waits - 2
    detail = [
        _FLAG
        if kind >= 6
        else f"XD:X{row % 30}=0x{row * 64:x},XN:X{(row + 1) % 30}=0x{row:x},IMM:0x{row % 4096:x},"
        for row, kind in enumerate(name.tolist())
    ]
    moves = (name == 2) | (name == 5)
    return Trace(
        instructions=Instructions(
            cores=("core0.veccore0", "core0.veccore1"),
            names=_NAMES,
            stacks=("/src/kernel.cpp:40\n/src/tile.hpp:7", "/src/kernel.cpp:41", ""),
            core=core.astype(np.uint16),
            pipe=np.array([int(_PIPES[place]) for place in _NAME_PIPES])[name].astype(np.uint8),
            name=name.astype(np.uint16),
            stack=(name % 3).astype(np.uint32),
            pc=(0x10F86000 + 4 * ((number // 2) % 2048)).astype(np.uint64),
            start=start,
            end=start + lasting,
            detail=detail,
            issue=start,
            process_bytes=np.where(moves, 4096, -1),
            partner=partner,
            stall=np.zeros(rows, dtype=np.uint8),
            read_conflict=np.full(rows, -1, dtype=np.int32),
            write_conflict=np.full(rows, -1, dtype=np.int32),
            utilisation=np.full(rows, -1, dtype=np.float32),
        ),
        mhz=1850.0,
        sources={"/src/kernel.cpp": b"// kernel\n" * 50, "/src/tile.hpp": b"// tile\n" * 50},
    )


@dataclass
class Lasted:
    """Seconds by the clock, and of the busier of this process and its children."""

    wall: float
    cpu: float


def _timed(call, *arguments):
    begin, own = time.perf_counter(), time.process_time()
    before = _children()
    result = call(*arguments)
    busy = max(time.process_time() - own, _children() - before)
    return result, Lasted(time.perf_counter() - begin, busy)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000])
    for rows in parser.parse_args(argv).rows:
        _measure(rows)
    _measure_small()


def _say(what: str, lasted: Lasted, count: int, unit: str) -> None:
    rate = f"{count / lasted.wall:12,.0f}/s by the clock {count / lasted.cpu:12,.0f}/s by CPU time"
    print(f"  {what:<9} {lasted.wall:6.2f} s  {rate}  {unit}")


def _measure(rows: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="insight-io-"))
    try:
        trace = made_up_trace(rows)
        before = _peak_mib()
        directory, writing = _timed(lambda: write_insight_directory(trace, folder))
        print(f"{rows:,} instructions")
        _say("write", writing, rows, "instructions")
        print(f"            peak memory grew by {_peak_mib() - before:,.0f} MiB")
        before = _peak_mib()
        read, reading = _timed(lambda: open_trace(directory))
        grown = _peak_mib() - before
        del read
        encoding, events = Lasted(0.0, 0.0), []
        for document in [directory / "trace.json", *sorted(directory.glob("core*/trace.json"))]:
            decoded = msgspec.json.decode(document.read_bytes())
            _, lasted = _timed(msgspec.json.encode, decoded)
            encoding = Lasted(encoding.wall + lasted.wall, encoding.cpu + lasted.cpu)
            events.append(len(decoded["traceEvents"]))
            del decoded
        _say("read", reading, events[0], "events")
        print(f"            peak memory grew by {grown:,.0f} MiB")
        _, checking = _timed(lambda: validate_directory(directory))
        _say("validate", checking, sum(events) + events[0], "events")
        _say("msgspec", encoding, sum(events), "of the same events, encoded only")
        print(
            f"  write/msgspec: {encoding.wall / writing.wall:.2f} of its rate by the clock,"
            f" {encoding.cpu / writing.cpu:.2f} by CPU time"
        )
    finally:
        shutil.rmtree(folder)


def _measure_small() -> None:
    folder = Path(tempfile.mkdtemp(prefix="insight-io-"))
    try:
        trace = made_up_trace(200)
        write_insight_directory(trace, folder)
        _, lasted = _timed(lambda: [write_insight_directory(trace, folder) for _ in range(20)])
        print(f"200 instructions\n  write     {lasted.wall / 20 * 1e3:6.2f} ms  check included")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
