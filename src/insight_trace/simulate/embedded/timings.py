"""Thousands of launches, timing only, in one start of the runner (engine/timings.hpp).

All global memories lie in one sparse file; launches that differ in their scalars alone share one. What a launch
leaves is one row of a file, which a kernel can write to, so it is read as a stranger's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from insight_trace import limits
from insight_trace.chips import Chip
from insight_trace.errors import JobError
from insight_trace.outcome import Failure, Fault
from insight_trace.reading import read_regular
from insight_trace.simulate.embedded.core_plan import CorePlan, core_line
from insight_trace.simulate.embedded.job_files import with_job_directory
from insight_trace.simulate.embedded.memory import BASE, GlobalMemory, escape
from insight_trace.simulate.embedded.runner import failure_in, run_timings_job
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, job_options
from insight_trace.simulate.embedded.toolchain import Toolchain

if TYPE_CHECKING:
    import numpy as np

BUILTIN = Path("builtin:op_script")  # the runner's own interpreter of tile ops
_NOT_RUN, _WELL = 0, 1
_PIPES = ("SCALAR", "VECTOR", "CUBE", "MTE1", "MTE2", "MTE3", "ALL", "FIXP")  # abi.hpp PipeId


class Image(Struct, frozen=True, eq=False):
    """A global memory, and what writes it into a file at an offset."""

    memory: GlobalMemory
    fill: Callable[[Path, int], None]


class Launch(Struct, frozen=True, eq=False):
    """One run: kernels on cores, and the bytes in which it differs from others with the same image."""

    image: Image
    kernels: tuple[tuple[Path, str], ...]  # object, entry
    cores: tuple[tuple[CorePlan, int], ...]  # and where the args array of each lies
    blocks: int
    address: int
    content: bytes


class LaunchTime(Struct, frozen=True):
    """What one launch took."""

    cycles: int = 0  # from cycle 0 to the end of the last core
    span: int = 0  # from the start of the first instruction to the end of the last one before END
    instructions: int = 0
    bound: str = ""  # the pipe that works longest on one core
    failure: Failure | None = None


def time_launches(
    launches: Sequence[Launch],
    chip: Chip,
    options: EmbeddedOptions,
    toolchain: Toolchain,
    *,
    usual_l2: str = "cold",
    processes: int | None = None,
    seconds: float = limits.RUN_SECONDS_MOST,
) -> list[LaunchTime]:
    """The time of each, in their order. `seconds` is for all of them; `options.seconds` for one."""
    if not launches:
        return []
    at_once = processes or os.cpu_count() or 1
    groups: dict[Any, list[int]] = {}
    for number, launch in enumerate(launches):
        key = (
            id(launch.image),
            launch.kernels,
            launch.cores,
            launch.blocks,
            launch.address,
            len(launch.content),
        )
        groups.setdefault(key, []).append(number)
    order = [number for members in groups.values() for number in members]
    kernels = list(dict.fromkeys(kernel for launch in launches for kernel in launch.kernels))

    def run_in(directory: Path) -> list[LaunchTime]:
        rows, images, content = (directory / name for name in ("rows", "images", "content"))
        images.touch()
        placed = _placed([launches[members[0]].image for members in groups.values()], images)
        content.write_bytes(b"".join(launches[number].content for number in order))
        lines = [
            *(line for line in job_options(chip, options, directory, usual_l2) if not line.startswith("records\t")),
            f"timings\t{rows}\t{images}\t{content}\t{at_once}\t{seconds}\t{BASE}",
            *(f"kernel\t{escape(str(path))}\t{entry}" for path, entry in kernels),
        ]  # fmt: skip
        for members in groups.values():
            first = launches[members[0]]
            memory = first.image.memory
            place = placed[id(first.image)]
            lines.append(
                f"group\t{place}\t{memory.size}\t{first.address}\t{len(first.content)}\t{len(members)}"
            )
            lines += memory.region_lines()
            for plan, args in first.cores:
                number = kernels.index(first.kernels[plan.kernel])
                lines.append(core_line(plan, args, first.blocks, kernel=number))
        readable = tuple({path.parent for path, _ in kernels if path != BUILTIN})
        run_timings_job(
            toolchain.runner(), directory, lines, options.seconds, seconds, options.sandbox, readable
        )
        times = _read(rows, len(launches))
        found = [LaunchTime()] * len(launches)
        for place, number in enumerate(order):
            found[number] = times[place]
        return found

    return with_job_directory(run_in)


def _placed(images: Sequence[Image], file: Path) -> dict[int, int]:
    """Writes every global memory once; where each begins."""
    places: dict[int, int] = {}
    end = 0
    for image in images:
        if id(image) in places:
            continue
        image.fill(file, end)
        image.memory.release()
        places[id(image)] = end
        end += image.memory.size
    return places


def _layout() -> np.dtype[Any]:
    import numpy as np

    return np.dtype([
        ("status", "u4"), ("bound", "u4"), ("cycles", "i8"), ("first", "i8"), ("last", "i8"), ("instructions", "i8"),
        ("text", "V984"),
    ])  # fmt: skip


def _read(path: Path, count: int) -> list[LaunchTime]:
    import numpy as np

    layout = _layout()
    content = read_regular(path, most=count * layout.itemsize, follow=False)
    if len(content) != count * layout.itemsize:
        raise JobError(f"the runner kept {len(content):,} bytes of {count} launches")
    return [_time(row) for row in np.frombuffer(content, layout)]


def _time(row: Any) -> LaunchTime:
    cycles, first, last, instructions = (
        int(row[name]) for name in ("cycles", "first", "last", "instructions")
    )
    status, bound = int(row["status"]), int(row["bound"])
    if status == _NOT_RUN:
        return LaunchTime(
            failure=Failure(Fault.ENVIRONMENT, "it was not run: the time for all was over", limit="time")
        )
    if status != _WELL:
        said = bytes(row["text"]).split(b"\0")[0].decode("utf-8", "replace")
        return LaunchTime(failure=failure_in(said))
    if min(cycles, instructions, last - first) < 0 or bound >= len(_PIPES):
        return LaunchTime(
            failure=Failure(Fault.KERNEL, "the kernel wrote over what the runner keeps of its run")
        )
    span = (last + 500) // 1000 - (first + 500) // 1000  # as records.py rounds the times of instructions
    return LaunchTime(cycles, span, instructions, _PIPES[bound])
