"""Many variants in one call: the same cycles as alone, failures in their places, nothing left from one to the next."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.time_many import KERNEL, single

from insight_trace import Candidate, op_variants, time_many, time_op, variants
from insight_trace.commands import run_line
from insight_trace.simulate.embedded.op_forms import OpRequest
from insight_trace.simulate.embedded.program import On, set_flag, wait_flag
from insight_trace.simulate.embedded.single_op import named_dtype

_ARRAYS = {"x": "f32[65536]", "y": "f32[65536]"}


def test_variants_take_the_cycles_that_they_take_alone() -> None:
    made = [
        *variants(KERNEL, {**_ARRAYS, "rounds": [2, 5], "work": [1, 3]}, blocks=[1, 3]),
        *variants(KERNEL, {**_ARRAYS, "rounds": 2, "work": 1}, macros={"TILE": 2048}),
        *variants(KERNEL, {**_ARRAYS, "rounds": 2, "work": 1}, soc_version="Ascend910B4"),
        *variants(KERNEL, {"x": np.ones(4096, np.float32), "y": "f32[4096]", "rounds": 2, "work": 1}),
    ]
    found = time_many(made)
    assert [one.failure for one in found.times] == [""] * len(made)
    assert [one.cycles for one in found.times] == [single(one) for one in made]
    assert all(one.low < one.cycles < one.high and one.bound for one in found.times)
    columns = found.columns()
    assert {"rounds", "work", "blocks", "TILE", "soc_version", "cycles", "bound"} <= set(columns)
    assert found.times[found.best].cycles == min(columns["cycles"])


_STATEFUL = """#include <pto/pto-inst.hpp>
int32_t seen = 0;
__global__ AICORE void counts(__gm__ float *x, int32_t n) {
    if (n < 0) *reinterpret_cast<volatile int *>(8) = 1;
    if (n == 0) for (;;) set_flag(PIPE_V, PIPE_S, EVENT_ID0), wait_flag(PIPE_V, PIPE_S, EVENT_ID0);
    seen += n;
    for (int32_t i = 0; i < seen; ++i) pipe_barrier(PIPE_ALL);
}
"""


def test_a_variant_that_fails_says_why_and_the_others_find_nothing_of_it(tmp_path: Path) -> None:
    file = tmp_path / "counts.cpp"
    file.write_text(_STATEFUL)
    made = variants(file, {"x": "f32[64]", "n": [3, -1, 3, 0, 3, 7]})
    found = time_many([*made, Candidate(kernel=tmp_path / "none.cpp"), Candidate()], processes=1, seconds=1)
    times = found.times
    assert [bool(one.failure) for one in times] == [False, True, False, True, False, False, True, True]
    assert times[0].cycles == times[2].cycles == times[4].cycles == single(made[0])
    assert times[5].cycles == single(made[5]) > times[0].cycles
    assert "counts.cpp:4" in times[1].failure or "0x8" in times[1].failure
    assert "still running" in times[3].failure
    assert "none.cpp" in times[6].failure
    assert found.summary().endswith("4 failed")


def test_a_grid_of_ops_is_each_of_them_and_a_sequence_is_longer_than_its_parts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = [
        *op_variants("TADD", rows=[16, 32], cols=64, dtype=["f16", "f32"]),
        *op_variants("TLOAD", rows=16, cols=64),
    ]
    found = time_many(made)
    for candidate, time in zip(made, found.times, strict=True):
        request = candidate.ops[0]
        assert isinstance(request, OpRequest)
        assert time_op(request.op, request.dtype.name, request.rows, request.cols).cycles == time.cycles
    parts = [OpRequest("TLOAD", named_dtype("f32"), 16, 64), OpRequest("TADD", named_dtype("f32"), 16, 64)]
    order = (set_flag(On.MTE2, On.V), wait_flag(On.MTE2, On.V))
    first, second, both = time_many(
        [Candidate(ops=parts[:1]), Candidate(ops=parts[1:]), Candidate(ops=(parts[0], *order, parts[1]))]
    ).times
    assert first.cycles + second.cycles <= both.cycles < first.cycles + second.cycles + 100
    assert run_line(["op", "TADD", "--grid", "rows=16:32:16", "cols=64", "dtype=f16,f32"]) == 0
    said = capsys.readouterr().out
    assert "4 variants" in said
    assert f"{found.times[0].cycles:,}" in said
    assert run_line(["op", "TADD", "--grid", "rows=x", "cols=64"]) == 2
    assert run_line(["op", "TADD", "--grid", "depth=1", "rows=1", "cols=64"]) == 2
