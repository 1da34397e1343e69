"""Timing alone: no arithmetic, but the same instructions at the same times."""

from dataclasses import replace

import numpy as np
import pytest

from insight_trace.dtypes import dtype_named
from insight_trace.errors import RequestError
from insight_trace.model import Instructions
from insight_trace.simulate.embedded.op_forms import OpRequest
from insight_trace.simulate.embedded.op_script import op_numbers
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from insight_trace.simulate.embedded.single_op import time_op
from insight_trace.simulate.embedded.toolchain import Toolchain
from tests.simulate.example_runs import EXAMPLES, run_example
from tests.simulate.op_harness import TARGETS

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


@pytest.mark.parametrize("target", TARGETS)
def test_an_op_takes_the_same_time_without_its_arithmetic(target: str) -> None:
    tried = 0
    chip, toolchain = EmbeddedOptions(target=target), Toolchain.find()
    for type_name in ("float32", "float16", "int32", "int16"):
        dtype = dtype_named(type_name)
        assert dtype is not None
        for op in op_numbers():
            request = OpRequest(op, dtype, 32, 64, valid_rows=31, valid_cols=50, to=dtype_named("float32"))
            try:
                quick = time_op(request, chip, toolchain)
            except RequestError:
                continue  # asks for more than a size, or not for this type
            full = time_op(replace(request, timing_only=False), chip, toolchain)
            assert_same_stream(quick.simulation.instructions, full.simulation.instructions)
            tried += 1
    assert tried > 100
