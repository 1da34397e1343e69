"""What a capture needs compiled: the runner, the scene's orchestration and its kernels.

`python -m insight_trace.capture.builds` compiles the programs of a checkout ahead of their first use. Of what is not in the
standard library it takes msgspec alone, so that `make` runs it while it installs the rest.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from insight_trace.chips import family_named
from insight_trace.errors import RequestError
from insight_trace.model import Scene
from insight_trace.simulate.embedded.engine_objects import INCLUDE, Program
from insight_trace.simulate.embedded.engine_objects import RUNNER as CORE
from insight_trace.simulate.embedded.toolchain import Toolchain

HERE = Path(__file__).resolve().parent
HEADERS = HERE / "include"
HOST = HERE / "host"
RUNNER = Program("capture-runner", tuple(sorted(HOST.glob("*.cpp"))), (HEADERS, HOST))


@dataclass(frozen=True, slots=True)
class Builds:
    """Files that the runner executes or loads."""

    runner: Path
    orchestration: Path | None  # None: it is written in Python
    kernels: tuple[Path, ...]  # in the order of the scene's kernels


def build(scene: Scene, target: str, toolchain: Toolchain, without: Collection[str] = frozenset()) -> Builds:
    """Compiles whatever is not in the cache yet. KernelBuildError says what does not compile, and where.

    Kernels whose names are in `without` are never run, and have some other file for an object."""
    if scene.orchestration is None:
        raise RequestError(f"{scene.class_name} has no orchestration", where=str(scene.path))
    source = scene.orchestration.source
    defines = family_named(target).defines
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        runner = pool.submit(toolchain.executable, RUNNER)
        orchestration = None
        if source is not None:
            folders = [HEADERS, *_headers_beside(source), INCLUDE]
            orchestration = pool.submit(toolchain.host_object, source, "orchestration", folders, defines)
        kernels = [
            pool.submit(toolchain.kernel, k.source, k.core_type, target=target, include_dirs=k.include_dirs)
            if k.name not in without
            else runner
            for k in scene.kernels
        ]
        return Builds(
            runner.result(),
            None if orchestration is None else orchestration.result(),
            tuple(k.result() for k in kernels),
        )


def compile_programs(toolchain: Toolchain) -> None:
    """Everything of ours that is compiled once, into the cache."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(toolchain.executable, (CORE, RUNNER)))


def _headers_beside(source: Path) -> list[Path]:
    """Scenes put headers that kernels and orchestration share one or two folders up."""
    return [source.parent.parent, source.parent.parent.parent]


if __name__ == "__main__":
    compile_programs(Toolchain.find())
