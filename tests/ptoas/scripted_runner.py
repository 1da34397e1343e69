"""A runner that follows a script: what a simulator would leave on disk, without simulating."""

import functools
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from insight_trace.errors import JobError
from insight_trace.profile.kernel_runner import COLLECT_FAILED, EXPORTED, CorePipes, Places, RunOutcome
from insight_trace.profile.msprof_runner import fingerprint
from insight_trace.ptoas.planned_kernel import ProfileKernel


def pipes_of(kernel: ProfileKernel, *, idle: bool = False) -> tuple[CorePipes, ...]:
    """What a healthy (or idle) run of the kernel shows."""
    cores = {"aic": ["core0.cubecore0"], "aiv": ["core0.veccore0"]}
    cores["mix"] = ["core0.cubecore0", "core0.veccore0", "core0.veccore1"]
    found = []
    for core in cores[kernel.kind.value]:
        pipe, work = ("CUBE", kernel.cube) if "cube" in core else ("VECTOR", kernel.vector)
        count = 0 if idle else max(work.certain, work.written)
        counts = {pipe: count, "MTE2": 0 if idle else 2, "SCALAR": 9}
        found.append(CorePipes(core, {name: 10 * number for name, number in counts.items()}, counts))
    return tuple(found)


class ScriptedRunner:
    """Succeeds unless told otherwise; counts what it was asked."""

    name = "scripted"
    in_threads = True

    def __init__(
        self,
        fail: tuple[str, ...] = (),
        seconds: float = 0.0,
        idle: tuple[str, ...] = (),
        hook: Callable[[ProfileKernel], None] = lambda _: None,
    ) -> None:
        self.fail, self.seconds, self.idle, self.hook = fail, seconds, idle, hook
        self.ran: list[str] = []
        self.stopped = False
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()

    def digest(self, kernel: ProfileKernel) -> str:
        return fingerprint(kernel, self.name)

    def call(self, kernel: ProfileKernel, places: Places) -> Callable[[], RunOutcome]:
        return functools.partial(self.run, kernel, places)

    def run(self, kernel: ProfileKernel, places: Places) -> RunOutcome:
        with self._lock:
            self.ran.append(kernel.name)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            return self._run(kernel, places.out, places.logs)
        finally:
            with self._lock:
                self._now -= 1

    def stop(self) -> None:
        self.stopped = True

    def _run(self, kernel: ProfileKernel, out: Path, logs: Path) -> RunOutcome:
        (logs / "run.log").write_text(f"running {kernel.name}\n")
        self.hook(kernel)
        simulator = out / "OPPROF_20261115_AAAA" / "simulator"
        pipes = pipes_of(kernel, idle=kernel.name in self.idle)
        for core in pipes:
            (simulator / core.core).mkdir(parents=True)
            (simulator / core.core / "trace.json").write_text("{}")
            (simulator / core.core / f"{core.core}_instr_exe_0.csv").write_text("instr\n")
        (simulator / "trace.json").write_text(json.dumps({"kernel": kernel.name}))
        time.sleep(self.seconds)
        if kernel.name in self.fail:
            return RunOutcome(COLLECT_FAILED, "kernel.cpp:7: error: 'TFOO' was not declared")
        if f"raise:{kernel.name}" in self.fail:
            raise JobError("the compiler is gone", where=str(kernel.source), hint="install one")
        if f"bug:{kernel.name}" in self.fail:
            raise ZeroDivisionError("division by zero")
        (simulator / "visualize_data.bin").write_bytes(b"\0" * 12)
        return RunOutcome(EXPORTED, "", 1000 + len(kernel.name), "VECTOR", pipes)


def make(_options: object, _simulator: object = None) -> ScriptedRunner:
    """The factory that the command line is given in tests; the environment is its script."""
    return ScriptedRunner(
        fail=tuple(filter(None, os.environ.get("SCRIPTED_FAIL", "").split(","))),
        seconds=float(os.environ.get("SCRIPTED_SECONDS", "0")),
        idle=tuple(filter(None, os.environ.get("SCRIPTED_IDLE", "").split(","))),
    )
