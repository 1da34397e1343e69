"""One run of a user's program: its settings for the runtime, its process, and the launches that it made."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from insight_trace import supervisor
from insight_trace.chips import TARGETS, Chip, load_chip, target_of_chip
from insight_trace.errors import RequestError
from insight_trace.program import toolkit
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.embedded.memory import escape
from insight_trace.simulate.embedded.sandbox import Sandbox, rules
from insight_trace.simulate.embedded.simulator import WARM_START
from insight_trace.simulate.embedded.toolchain import Toolchain

_LANES = 2  # vector cores of a cluster
TRACES = ("none", "first", "slowest", "all")


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """How to run a program, as opposed to which."""

    soc_version: str | None = None
    preset: str = "device"
    trace: str = "first"
    kernel_name: str = ""  # a regular expression: launches of other kernels are not traced
    launch_count: int | None = None
    skip: int = 0
    check: bool = False
    timing_only: bool = False
    seconds: float = 60.0  # of one launch


class Launched(Struct, frozen=True):
    """One launch of the program, as its runtime wrote it down."""

    process: int
    number: int
    kernel: str
    file: str
    line: int
    blocks: int
    kind: str
    target: str
    soc: str
    cycles: float
    us: float
    start_us: float
    stream: int
    bound: str
    repeated: bool  # result and time are those of an equal launch before
    chosen: bool  # by --kernel-name
    seconds: float
    error: int
    message: str
    job: str  # the folder with all that it takes to simulate it again; "" where it is not kept

    @property
    def name(self) -> str:
        """The kernel's name without namespaces and template arguments."""
        return self.kernel.split("<", 1)[0].split("::")[-1].strip()


class Ran(Struct, frozen=True):
    """How the program ended, and what it launched."""

    code: int
    launches: tuple[Launched, ...]
    folder: Path


@contextlib.contextmanager
def run_program(command: Sequence[str], options: ProgramOptions) -> Iterator[Ran]:
    """Runs a command in an environment where compiler, libraries and device are ours, and waits for it."""
    toolchain = Toolchain.find()
    engine = toolchain.executable(toolkit.ENGINE)
    folder = toolkit.make(toolchain)
    with scratch_folder("exec") as place:
        write_settings(place, engine, options)
        environment = toolkit.environment(folder, place, dict(os.environ), toolchain.ascendc_folders)
        code = _run(command, environment)
        yield Ran(code, read_launches(place), place)


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    try:
        return supervisor.in_foreground(command, environment=environment)
    except FileNotFoundError:
        raise RequestError(
            f"there is no program '{command[0]}'", hint="give its path, or a name that PATH has"
        ) from None
    except PermissionError:
        raise RequestError(
            f"'{command[0]}' cannot be executed", hint="chmod +x, or name its interpreter"
        ) from None


def write_settings(place: Path, engine: Path, options: ProgramOptions) -> None:
    """What the runtime library reads when the program starts."""
    sandbox = Sandbox.chosen()
    (place / "work").mkdir()
    (place / "sandbox").write_text("\n".join(rules(sandbox, [place / "work"], [place])) + "\n")
    lines = {
        "engine": engine, "sandbox": sandbox.value, "trace": options.trace, "kernel_name": options.kernel_name,
        "skip": options.skip, "seconds": options.seconds, "timing_only": int(options.timing_only),
    }  # fmt: skip
    if options.launch_count is not None:
        lines["launch_count"] = options.launch_count
    (place / "settings").write_text("".join(f"{key}\t{escape(str(value))}\n" for key, value in lines.items()))
    asked = target_of_chip(options.soc_version or "")
    if asked:
        (place / "target").write_text(asked + "\n")
    for target in TARGETS:
        chip = load_chip(
            options.soc_version if asked == target else None, target=target, preset=options.preset
        )
        # a program launches its kernels more than once before it takes times
        told = [*_facts(chip), *chip.job_lines, *WARM_START]
        (place / f"chip.{target}").write_text("\n".join(told) + "\n")


def _facts(chip: Chip) -> list[str]:
    facts: dict[str, Any] = {
        "soc": chip.name, "mhz": chip.mhz, "head": chip.value("launch.head"), "tail": chip.value("launch.tail"),
        **_sizes(chip),
    }  # fmt: skip
    return [f"fact\t{name}\t{value}" for name, value in facts.items()]


def _sizes(chip: Chip) -> dict[str, int]:
    return {
        "cube_cores": int(chip.value("chip.cube_cores")), "vector_cores": _LANES * int(chip.value("chip.cube_cores")),
        "l2": int(chip.value("l2.capacity")), "ub": int(chip.value("memory.ub")),
    }  # fmt: skip


def read_launches(place: Path) -> tuple[Launched, ...]:
    """Every launch of every process of the program, in order."""
    found = []
    for path in place.glob("launches.*.jsonl"):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError, TypeError):
                found.append(Launched(**json.loads(line)))
    return tuple(sorted(found, key=lambda one: (one.process, one.number)))
