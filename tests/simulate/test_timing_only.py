"""Timing alone: no arithmetic, but the same instructions at the same times."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from insight_trace.arguments.arrays import from_arrays
from insight_trace.arguments.slots import Zero
from insight_trace.dtypes import dtype_named
from insight_trace.errors import RequestError
from insight_trace.model import Instructions, Operands
from insight_trace.simulate import simulate
from insight_trace.simulate.embedded.memory import GlobalMemory
from insight_trace.simulate.embedded.op_forms import OpRequest
from insight_trace.simulate.embedded.op_script import op_numbers
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from insight_trace.simulate.embedded.single_op import time_op
from insight_trace.simulate.embedded.toolchain import Toolchain
from tests.simulate.example_runs import EXAMPLES, run_example
from tests.simulate.op_harness import TARGETS

KERNELS = Path(__file__).parents[1] / "data" / "kernels"
_COLUMNS = (
    "core", "pipe", "name", "pc", "stack", "issue", "start", "end", "stall", "partner", "process_bytes",
    "read_conflict", "write_conflict", "utilisation",
)  # fmt: skip


def assert_same_stream(quick: Instructions, full: Instructions) -> None:
    assert quick.names == full.names
    for column in _COLUMNS:
        np.testing.assert_array_equal(getattr(quick, column), getattr(full, column), err_msg=column)
    assert quick.detail[:] == full.detail[:]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_takes_the_same_time_without_its_arithmetic(name: str, target: str) -> None:
    quick, full = run_example(name, True, target), run_example(name, target=target)
    assert len(full.instructions) > 5
    assert_same_stream(quick.instructions, full.instructions)
    assert quick.findings == full.findings


def test_arguments_of_zeros_take_no_room_in_a_run_that_writes_none(monkeypatch) -> None:
    asked: list[int] = []
    take = GlobalMemory.take_room
    monkeypatch.setattr(
        GlobalMemory,
        "take_room",
        lambda memory, buffer, size: asked.append(size) or take(memory, buffer, size),
    )
    made = from_arrays(EXAMPLES["stream"].arguments())
    zeros = [structs.replace(made.slots[slot], content=Zero()) for slot in (1, 2)]
    arguments = structs.replace(made, slots=(made.slots[0], *zeros, made.slots[3]))
    each = made.tensors[0].numel * 4
    for timing_only, room in ((True, [each]), (False, [each] * 3)):
        asked.clear()
        done = simulate(KERNELS / "stream.cpp", arguments, timing_only=timing_only)
        assert done.failure is None
        assert asked == room


@pytest.mark.parametrize("target", TARGETS)
def test_an_op_takes_the_same_time_without_its_arithmetic(target: str) -> None:
    tried = 0
    chip, toolchain = EmbeddedOptions(target=target), Toolchain.find()
    half, single = (dtype_named(name) for name in ("float16", "float32"))
    assert half is not None
    for op in op_numbers():
        request = OpRequest(op, half, 32, 64, valid_rows=31, valid_cols=50, to=single)
        try:
            quick = time_op(request, chip, toolchain)
        except RequestError:
            continue  # asks for more than a size, or not for this type
        full = time_op(replace(request, timing_only=False), chip, toolchain)
        assert_same_stream(quick.simulation.instructions, full.simulation.instructions)
        tried += 1
    assert tried > 50


@pytest.mark.parametrize("target", TARGETS)
def test_loops_take_the_same_time_without_their_arithmetic(target: str) -> None:
    """Ops that come back with the same tiles, and with tensors that lie elsewhere."""
    tiles = [np.random.default_rng(slot).uniform(-1, 1, (64, 64)).astype(np.float32) for slot in range(3)]
    left = np.random.default_rng(4).uniform(-1, 1, (384, 320)).astype(np.float16)
    product = {
        0: left,
        1: left.reshape(320, 384),
        2: np.zeros((384, 384), np.float32),
        3: 384,
        4: 384,
        5: 320,
    }
    for kernel, core_type, arguments in (
        ("stream.cpp", "aiv", {**dict(enumerate(tiles)), 3: 300}),
        ("gemm.cpp", "aic", product),
    ):
        quick, full = (
            simulate(
                KERNELS / kernel, arguments, core_type=core_type, target=target, timing_only=timing_only
            ).instructions
            for timing_only in (True, False)
        )
        assert_same_stream(quick, full)
        assert_same_operands(quick.operands, full.operands)


def assert_same_operands(quick: Operands | None, full: Operands | None) -> None:
    assert quick is not None
    assert full is not None
    for column in ("times", "form", "value", "geometry", "call", "first", "count", "rows"):
        np.testing.assert_array_equal(getattr(quick, column), getattr(full, column), err_msg=column)
    for table in ("geometries", "footprints", "tiles", "calls", "lists"):
        np.testing.assert_array_equal(getattr(quick, table), getattr(full, table), err_msg=table)
