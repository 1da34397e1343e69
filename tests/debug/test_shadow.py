"""Shadow arithmetic: what each line's own rounding is, and what its inputs brought, against NumPy in double."""

import json

import numpy as np
import pytest

from insight_trace.__main__ import main
from insight_trace.arguments.arrays import from_arrays
from insight_trace.debug import Session, open_session
from insight_trace.debug.shadow import shadow
from insight_trace.model import CoreType, Kernel
from insight_trace.replay.pipeline import make_trace, recording_of
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

KERNEL = """
#include <pto/pto-inst.hpp>
#include "tensor.h"
using namespace pto;
extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *in = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *out = reinterpret_cast<__gm__ ChipTensor *>(args[1]);
    using Shape_ = Shape<1, 1, 1, 8, 64>;
    using Stride_ = Stride<1, 1, 1, 64, 1>;
    GlobalTensor<float, Shape_, Stride_> from(reinterpret_cast<__gm__ float *>(in->buffer.addr));
    GlobalTensor<half, Shape_, Stride_> to(reinterpret_cast<__gm__ half *>(out->buffer.addr));
    using T = Tile<TileType::Vec, float, 8, 64, BLayout::RowMajor, 8, 64>;
    Tile<TileType::Vec, half, 8, 64, BLayout::RowMajor, 8, 64> h;
    T a, b, c;
    TASSIGN(a, 0);
    TASSIGN(b, 0x1000);
    TASSIGN(c, 0x2000);
    TASSIGN(h, 0x3000);
    TLOAD(a, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    BODY
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, h);
}
"""
NEXT = " pipe_barrier(PIPE_V);\n"


@pytest.fixture
def of_body(tmp_path):
    """The precision of a kernel with these ops, on these numbers."""

    def run(ops, values):
        source = tmp_path / "kernel.cpp"
        source.write_text(KERNEL.replace("BODY", NEXT.join(ops) + NEXT))
        arguments = from_arrays({0: values.astype(np.float32), 1: np.zeros((8, 64), np.float16)})
        kernel = Kernel("kernel", source, CoreType.AIV)
        simulated = run_embedded([kernel], arguments, EmbeddedOptions())
        assert simulated.failure is None, simulated.failure
        recording = recording_of(simulated, make_trace(simulated), [kernel], arguments)
        session = Session(tmp_path, recording, {"target": "a2a3"}, ((kernel,), arguments))
        return {line.op: line for line in shadow(session).lines}, shadow(session)

    return run


VALUES = np.random.default_rng(0).uniform(0.1, 2, (8, 64)).astype(np.float32)


def test_introduced_and_inherited_errors_are_those_that_numpy_finds(of_body):
    lines, found = of_body(["TEXP(b, a);", "TMUL(c, b, a);", "TCVT(h, c, RoundMode::CAST_RINT);"], VALUES)
    exact = VALUES.astype(np.float64)
    power = np.exp(exact)
    rounded = power.astype(np.float32)
    assert lines["TEXP"].introduced == pytest.approx(np.abs(rounded - power).max(), rel=1e-6)
    assert lines["TEXP"].inherited == lines["TEXP"].introduced
    product = (rounded * VALUES).astype(np.float32)
    own = np.abs(product - rounded.astype(np.float64) * exact).max()
    assert lines["TMUL"].introduced == pytest.approx(own, rel=1e-6)
    assert lines["TMUL"].inherited == pytest.approx(np.abs(product - power * exact).max(), rel=1e-6)
    half = product.astype(np.float16).astype(np.float64)
    assert lines["TCVT"].introduced == pytest.approx(np.abs(half - product).max(), rel=1e-6)
    assert found.lines[0].op == "TCVT"
    assert found.without == {}


def test_cancellation_overflow_and_flushed_numbers_are_counted(of_body):
    lines, _ = of_body(
        [
            "TADDS(b, a, 4096.0f);",
            "TSUB(c, b, a);",
            "TSUBS(c, c, 4096.0f);",
            "TCVT(h, c, RoundMode::CAST_RINT);",
        ],
        np.full((8, 64), 1e-9),
    )
    assert lines["TADDS"].introduced > 0
    lines, _ = of_body(["TMULS(c, a, 1e30f);", "TCVT(h, c, RoundMode::CAST_RINT);"], np.full((8, 64), 1e9))
    assert lines["TMULS"].overflowed == 512
    lines, _ = of_body(["TMULS(c, a, 1e-9f);", "TCVT(h, c, RoundMode::CAST_RINT);"], np.full((8, 64), 1.0))
    assert lines["TCVT"].flushed == 512
    lines, _ = of_body(
        ["TADDS(b, a, 1.0f);", "TMULS(c, a, 1.0f);", "TSUB(c, b, c);", "TCVT(h, c, RoundMode::CAST_RINT);"],
        np.full((8, 64), 1e7),
    )
    assert lines["TSUB"].cancelled == 512


def test_products_are_summed_in_double(workspaces):
    for workspace in workspaces("paged_attention"):
        found = shadow(open_session(workspace))
        for line in found.lines:
            if line.op == "TMATMUL":
                assert 0 < line.relative < 1e-5
        assert found.without == {}
        for slot in found.slots:
            assert slot.difference == 0.0


def test_replay_with_a_shadow_prints_a_ranked_table_and_keeps_it(wrong_softmax, capsys, tmp_path):
    record = json.loads((wrong_softmax[""] / "replay.json").read_text())
    words = [
        "replay",
        record["scene"]["path"],
        "--func-id",
        "1",
        "--dump-dir",
        str(wrong_softmax[""].parent / "dump"),
    ]
    assert main([*words, "--shadow", "-o", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    table = [line for line in lines if "softmax.cpp:" in line and "TCVT" in line]
    assert table
    assert lines[-1].startswith("open ")
    kept = json.loads((tmp_path / "out" / "shadow.json").read_text())
    assert kept["lines"][0]["op"] == "TCVT"
    assert {slot["slot"] for slot in kept["slots"]} == {1, 2, 3}
    assert main([*words, "--shadow", "--timing-only", "-o", str(tmp_path / "timed")]) == 2
