"""Replays of our examples as Insight gets them: a kernel alone, a mix, many blocks, and the 950."""

import json
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from insight_trace import simulate
from insight_trace.__main__ import main
from insight_trace.insight import write_insight_directory
from insight_trace.insight.container import blocks_of
from insight_trace.model import CoreType, Kernel
from insight_trace.replay.pipeline import make_trace, recording_of
from insight_trace.trace.details_figures import details_of

EXAMPLES = Path(__file__).parents[2] / "examples"
REPLAYS = {
    "single": ("paged_attention", "CaseSmall1", "1", "a2a3"),
    "mix": ("mixed_example", "Default", "0,1,2", "a2a3"),
    "blocks": ("spmd_multiblock", "Blocks48", "0", "a2a3"),
    "a5": ("paged_attention", "CaseSmall1", "1", "a5"),
    "mix on a5": ("mixed_example", "Default", "0,1,2", "a5"),
}


# Every other kernel of our example scenes.
MORE = {
    f"{scene} {case} {functions}": (scene, case, functions, "a2a3")
    for scene, case, several in (
        ("paged_attention", "CaseWide", "0 1 2 3"),
        ("vector_chain", "Default", "0 1 2"),
        ("spmd_multiblock", "Blocks4", "0"),
        ("python_orchestration", "Default", "0"),
        ("pypto_run", "Default", "0 1"),
        ("calibration", "Once", "0 1"),
    )
    for functions in several.split()
}


def _kernels() -> dict[str, tuple[CoreType, dict[int, Any]]]:
    """The kernels that stand alone in examples/kernels, with arguments."""
    square, half = np.ones((64, 64), np.float32), np.ones((64, 64), np.float16)
    return {
        "softmax": (CoreType.AIV, {0: square, 1: square}),
        "tiled_matmul": (CoreType.AIC, {0: half, 1: half, 2: square}),
        "vector_add": (CoreType.AIV, {0: square, 1: square, 2: square}),
    }


KERNELS = tuple(
    path.stem
    for path in sorted((EXAMPLES / "kernels").glob("*.cpp"))
    if "kernel_entry(" in path.read_text(encoding="utf-8")  # others have parameters of their own
)


class Replayed:
    """One replay: its simulator/ directory, and the blocks of its container."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bin = directory / "visualize_data.bin"

    def blocks(self, type_: int) -> list[bytes]:
        with self.bin.open("rb") as file:
            return [block.read(file) for block in blocks_of(self.bin) if block.type == type_]

    def block(self, type_: int):
        (payload,) = self.blocks(type_)
        return json.loads(payload)

    def sources(self) -> list[str]:
        return [block.path for block in blocks_of(self.bin) if block.type == 1]


def _run_alone(name: str, target: str, folder: Path) -> Replayed:
    side, values = _kernels()[name]
    kernel = Kernel(name, EXAMPLES / "kernels" / f"{name}.cpp", side)
    done = simulate(kernel, values, target=target)
    assert done.failure is None, done.failure
    trace = make_trace(done)
    details, recording = details_of(trace, [name], target), recording_of(done, trace, [kernel])
    return Replayed(write_insight_directory(trace, folder, details=details, recording=recording))


@pytest.fixture(scope="session")
def replayed(tmp_path_factory):
    @lru_cache
    def replay(name: str) -> Replayed:
        scene, case, functions, target = (REPLAYS | MORE)[name]
        folder = tmp_path_factory.mktemp("replayed") / "workspace"
        path = EXAMPLES / scene / "scene.py"
        path = path if path.is_file() else path.parent
        command = ["replay", str(path), "--case", case, "--func-id", functions]
        assert main([*command, "--target", target, "-o", str(folder)]) == 0
        (directory,) = folder.glob("insight_export/OPPROF_*/simulator")
        return Replayed(directory)

    return replay


@pytest.fixture(scope="session")
def run_alone(tmp_path_factory):
    """A kernel of examples/kernels on a chip of that family."""
    return lambda name, target: _run_alone(name, target, tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="session")
def profiled(tmp_path_factory) -> dict[str, Replayed]:
    """Every kernel of the example build, by its name."""
    root = tmp_path_factory.mktemp("profiled")
    build = root / "build"  # a profile leaves its pointer in the build, and the checkout's is everybody's
    shutil.copytree(EXAMPLES / "pypto_build", build)
    assert main(["profile", "--build-dir", str(build), "--target", "a2a3"]) == 0
    found = sorted(build.glob("*/funcs/*/collect/out/OPPROF_*/simulator"))
    return {directory.parents[3].name: Replayed(directory) for directory in found}
