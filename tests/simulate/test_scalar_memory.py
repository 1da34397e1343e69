"""Global memory that a kernel reads and writes by plain dereference."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from insight_trace.model import CoreType, Pipe
from insight_trace.outcome import Fault, Simulation
from insight_trace.simulate import simulate
from insight_trace.simulate.embedded.source_lines import KEPT, line_of_crash
from insight_trace.simulate.embedded.toolchain import Toolchain

KERNEL = Path(__file__).parents[1] / "data" / "kernels" / "dereference.cpp"
LINE = 64
with_hooks = pytest.mark.skipif(
    bool(os.environ.get("INSIGHT_TRACE_SANITIZE")), reason="a compiler takes sanitizers or hooks, not both"
)
MISS = 360


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(KERNEL.read_text().splitlines(), 1) if text in line)


def run(count: int, forget: bool = False) -> tuple[Simulation, np.ndarray]:
    values = np.arange(1000, dtype=np.int32)
    done = simulate(KERNEL, {0: values, 1: count, 2: int(forget)}, core_type="aiv")
    assert done.failure is None, done.failure
    return done, values


def loads(done: Simulation) -> list[tuple[str, int]]:
    """Source line and duration of every load from global memory."""
    columns = done.instructions
    rows = [i for i in range(len(columns)) if columns.names[columns.name[i]] == "LD_XD_XN_IMM"]
    assert all(columns.pipe[i] == int(Pipe.SCALAR) for i in rows)
    return [(columns.stacks[columns.stack[i]], int(columns.end[i] - columns.start[i])) for i in rows]


@with_hooks
def test_a_load_waits_for_memory_once_per_line() -> None:
    done, values = run(256)
    assert done.outputs[0][0] == values[:256].sum()
    in_loop = [cycles for where, cycles in loads(done) if where == f"{KERNEL}:{line_of('// the loop')}"]
    # the array begins on a line; the count lies beside the tensor's address, which has been read before
    assert in_loop == [MISS] * (256 * 4 // LINE)


@with_hooks
def test_what_has_been_read_is_read_again_in_a_few_cycles() -> None:
    few, many = run(16)[0].instructions, run(32)[0].instructions
    # sixteen more elements are one line more, and for each a load that hits, an addition and the loop's own code
    longer = int(many.end.max() - few.end.max())
    assert MISS + 16 * 2 <= longer <= MISS + 16 * 8


@with_hooks
def test_dcci_makes_the_scalar_unit_read_again() -> None:
    before, after = loads(run(16)[0]), loads(run(16, forget=True)[0])
    again = f"{KERNEL}:{line_of('// again')}"
    assert again not in [where for where, _ in before]
    assert [cycles for where, cycles in after if where == again] == [MISS]


@with_hooks
def test_a_store_is_in_the_trace_when_it_is_the_first_to_touch_its_line_and_nobody_waits_for_it() -> None:
    done = simulate(KERNEL, {0: np.ones(8, np.int32), 1: 0, 2: 0}, core_type="aiv")
    columns = done.instructions
    stores = [i for i in range(len(columns)) if columns.names[columns.name[i]] == "ST_XD_XN_IMM"]
    assert [int(columns.end[i] - columns.start[i]) for i in stores] == [1]


@with_hooks
def test_a_read_past_the_buffer_is_the_kernels_fault_at_its_line() -> None:
    done = simulate(KERNEL, {0: np.zeros(8, np.int32), 1: 100_000, 2: 0}, core_type="aiv")
    assert done.failure is not None
    assert done.failure.fault is Fault.KERNEL
    assert "GM access of 4 bytes" in done.failure.message
    assert "slot 0 ends 4 bytes earlier" in done.failure.message
    assert done.failure.where == f"{KERNEL}:{line_of('// the loop')}"


def test_the_source_lines_kept_beside_an_object_are_its_debug_lines(tmp_path: Path) -> None:
    made = Toolchain.find().kernel(KERNEL, CoreType.AIV)
    alone = shutil.copy(made, tmp_path / "alone.so")  # nothing is kept beside it
    offsets = [int(row.split("\t")[0]) for row in (made.parent / KEPT).read_text().splitlines()]
    assert len(offsets) > 10
    found = [line_of_crash(str(made), offset) for offset in offsets]
    assert found == [line_of_crash(str(alone), offset) for offset in offsets]
    assert (str(KERNEL), line_of("// the loop")) in found
