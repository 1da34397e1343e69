"""TMPipe: tiles of the kernel's choice between the cube core and the vector cores, ours and the tile library's."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from insight_trace.model import CoreType, Kernel
from insight_trace.outcome import Fault, Simulation
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded
from insight_trace.simulate.embedded.toolchain import Toolchain
from tests.simulate.dispatching import KERNELS, arguments, outputs

TILES = 5
FORMS = {
    "one product wide": "",
    "two products wide": "#define WIDE 2",
    "local places": "#define LOCAL 2",
    "unit flag": "#define WIDE 2\n#define UNIT 1",
}


def _run(tmp_path: Path, settings: str, target: str, library: Path | None = None) -> Simulation:
    source = tmp_path / "tile_pipe.cpp"
    source.write_text(f"{settings}\n{(KERNELS / 'tile_pipe.cpp').read_text()}", encoding="utf-8")
    kernels = [Kernel("tile_pipe", source, core) for core in (CoreType.AIC, CoreType.AIV, CoreType.AIV)]
    a, b, w = _inputs()
    rings = [np.zeros((4, 64, 64), dtype) for dtype in (np.float32, np.float16, np.float32)]
    slots = [a, b, w, np.zeros((TILES, 64, 64), np.float32), *rings, TILES]
    toolchain = Toolchain.find(library)
    return run_embedded(kernels, arguments(slots, [3]), EmbeddedOptions(target=target), toolchain)


def _inputs() -> tuple[NDArray[np.float16], NDArray[np.float16], NDArray[np.float16]]:
    random = np.random.default_rng(3)
    a, b, w = (random.uniform(-1, 1, (count, 64, 64)).astype(np.float16) for count in (TILES, 2, 2))
    return a, b, w


def _expected(wide: int) -> NDArray[np.float64]:
    a, b, w = (array.astype(np.float64) for array in _inputs())
    products = (
        np.maximum(a @ b[part], 0).astype(np.float16).astype(np.float64) @ w[part] for part in range(wide)
    )
    total: NDArray[np.float64] = np.sum(list(products), axis=0)
    return total


def _check(simulation: Simulation, settings: str) -> None:
    wide = 2 if "WIDE 2" in settings else 1
    np.testing.assert_allclose(outputs(simulation)[3], _expected(wide), rtol=2e-3, atol=1e-2)


CASES = [
    *((target, settings) for target in ("a2a3", "a5") for settings in FORMS.values()),
    ("a5", "#define ON_CHIP 1"),
]
ON_BOTH = pytest.mark.parametrize(
    ("target", "settings"),
    CASES,
    ids=[f"{target}, {settings}".replace("#define ", "").replace("\n", ", ") for target, settings in CASES],
)


@ON_BOTH
def test_tiles_arrive_through_pipes_whose_steps_the_kernel_chooses(
    tmp_path: Path, target: str, settings: str
) -> None:
    _check(_run(tmp_path, settings, target), settings)


_BETWEEN = re.compile(r"SET_CROSS_CORE|WAIT_FLAG_DEV|\w+_INTRA_BLOCK|FIX_L0C_TO_\w+|MOV_(?:OUT|UB)_TO_\w+")


def _between_cores(simulation: Simulation) -> list[list[tuple[str, int, str]]]:
    """Flags of other cores and transfers with their places, core by core in its order: what a pipe is.

    Element types are left out, as the library moves rows as bytes, and of UB to L1 the place of a lane's part, as TINSERT
    of ours names the whole tile.
    """
    found = simulation.instructions
    steps: list[list[tuple[str, int, str]]] = [[] for _ in found.cores]
    for row, (core, pipe) in enumerate(zip(found.core, found.pipe, strict=True)):
        name = found.names[found.name[row]]
        if _BETWEEN.fullmatch(name):
            left_out = r"(dtype|XD|repeat):\w+," if name == "MOV_UB_TO_L1" else r"dtype:\w+,"
            steps[core].append((name, int(pipe), re.sub(left_out, "", found.detail[row])))
    return steps


@ON_BOTH
def test_the_librarys_pipe_does_the_same(
    tmp_path: Path, target: str, settings: str, pto_isa_checkout: Path
) -> None:
    theirs = _run(tmp_path, settings, target, pto_isa_checkout)
    _check(theirs, settings)
    ours = _between_cores(_run(tmp_path, settings, target))
    assert all(len(steps) > 5 * TILES for steps in ours)
    assert ours == _between_cores(theirs)


@pytest.mark.parametrize(
    ("target", "pipe", "message", "fault"),
    [
        ("a5", "FIFOType::CTRL_FIFO, 2, 1, Scores, Mat", "TMPipe with CTRL_FIFO", Fault.NOT_SUPPORTED),
        ("a2a3", "FIFOType::VEC_FIFO, 2, 1, Acc, Scores", "a TMPipe goes through global", Fault.KERNEL),
        ("a5", "FIFOType::MAT_FIFO, 2, 1, Acc, Scores", "TMPipe goes from Acc to Vec", Fault.KERNEL),
    ],
)
def test_a_form_that_is_not_there_is_named_with_its_line(
    tmp_path: Path, target: str, pipe: str, message: str, fault: Fault
) -> None:
    text = (KERNELS / "tile_pipe.cpp").read_text(encoding="utf-8")
    before, use = "// Where what is popped lies", "inline int other = Other::vector_cores;"
    assert before in text
    text = text.replace(before, f"using Other = TMPipe<6, {pipe}>;\n{use}\n{before}")
    source = tmp_path / "tile_pipe.cpp"
    source.write_text(text, encoding="utf-8")
    failure = run_embedded(
        [Kernel("tile_pipe", source, CoreType.AIC)],
        arguments([*[np.zeros(1, np.float32)] * 7, 1], [3]),
        EmbeddedOptions(target=target),
    ).failure
    assert failure
    assert message in failure.message
    assert failure.fault is fault
    assert failure.line == text.splitlines().index(use) + 1
