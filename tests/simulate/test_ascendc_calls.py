"""AscendC's basic calls, as kernels beside the tile API use them, against NumPy."""

import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from insight_trace.model import CoreType, Kernel
from insight_trace.outcome import Fault
from tests.simulate.dispatching import outputs, run
from tests.simulate.kernel_text import line_of, write_kernel

RNG = np.random.default_rng(3)
_HEAD = '#include "kernel_operator.h"\nusing namespace AscendC;\n'
_VECTOR = """\
    AscendC::TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    GetTPipePtr()->InitBuffer(buffer, 64 * 1024);
    auto all = buffer.Get<float>();
    auto x = all, y = all[4096], sums = all[8192], spread = all[8704], out = all[12288 - 1024];
    auto narrow = all[10240].ReinterpretCast<half>();
    AscendC::GlobalTensor<float> from, to;
    from.SetGlobalBuffer(data_in(args, 0));
    to.SetGlobalBuffer(data_in(args, 1));
    DataCopy(x, from, DataCopyParams(16, 4, 4, 4)); // 32 of every 64 columns
    DataCopyPad(x[32], from[32], DataCopyExtParams(16, 128, 128, 4, 0), DataCopyPadExtParams<float>(false, 0, 0, 0));
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    SetVectorMask<int8_t>(0, 0xffffffffull);
    Muls<float, false>(y, x, 2.0f, (uint64_t)0, 16, UnaryRepeatParams(1, 1, 8, 8));
    ResetMask();
    Copy(y[32], x[32], 32, 16, CopyRepeatParams{1, 1, 8, 8});
    PipeBarrier<PIPE_V>();
    Cast(narrow, y, AscendC::RoundMode::CAST_RINT, 1024);
    PipeBarrier<PIPE_V>();
    Cast(y, narrow, AscendC::RoundMode::CAST_NONE, 1024);
    PipeBarrier<PIPE_V>();
    uint32_t shape[] = {16, 64}, row[] = {1, 64}, column[] = {16, 1};
    ReduceSum<float, Pattern::Reduce::RA>(sums, y, all[12288].ReinterpretCast<uint8_t>(), shape, true);
    BroadCast<float, 2, 0>(out, sums, shape, row, all[12288].ReinterpretCast<uint8_t>());
    BlockReduceMax<float>(sums, y, 16, 64, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    BlockReduceMax<float>(sums[128], sums, 2, 64, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    BroadCast<float, 2, 1>(spread, sums[128], shape, column, all[12288].ReinterpretCast<uint8_t>());
    Sub(out, out, spread, 1024);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopyPad(to, out, DataCopyExtParams(16, 256, 0, 0, 0));"""


def test_vector_calls_take_masks_counts_and_whole_tensors(tmp_path: Path) -> None:
    x = RNG.uniform(-4, 4, (16, 64)).astype(np.float32)
    kernel = Kernel("vector", write_kernel(tmp_path, _VECTOR, before=_HEAD), CoreType.AIV)
    simulation = run([kernel], [x, np.zeros_like(x)], [1])
    y = x.copy()
    y[:, :32] *= 2
    y = y.astype(np.float16).astype(np.float32)
    sums = y[0].copy()
    for line in y[1:]:
        sums += line
    np.testing.assert_array_equal(outputs(simulation)[1], sums - y.max(axis=1, keepdims=True))


_CUBE = """\
    constexpr int m = 32, k = 64, n = 48;
    AscendC::TPipe pipe;
    TBuf<TPosition::A1> l1;
    TBuf<TPosition::A2> l0a;
    TBuf<TPosition::B2> l0b;
    TBuf<TPosition::CO1> l0c;
    GetTPipePtr()->InitBuffer(l1, 128 * 1024);
    auto a1 = l1.Get<half>(), b1 = a1[16384], a2 = l0a.Get<half>(), b2 = l0b.Get<half>();
    auto c = l0c.Get<float>();
    AscendC::GlobalTensor<half> left, right, result;
    left.SetGlobalBuffer((half *)data_in(args, 0));
    right.SetGlobalBuffer((half *)data_in(args, 1));
    result.SetGlobalBuffer((half *)data_in(args, 2));
    DataCopy(a1, left, Nd2NzParams(1, m, k, 0, k, m, 1, 0));
    DataCopy(b1, right, Nd2NzParams(1, k, n, 0, n, k, 1, 0));
    SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
    LoadData2DParams whole{};
    whole.repeatTimes = k / 16;
    whole.srcStride = m / 16;
    for (int i = 0; i < m / 16; ++i) LoadData(a2[i * 16 * k], a1[i * 256], whole);
    LoadData2dTransposeParams turned{};
    turned.repeatTimes = n / 16;
    turned.srcStride = k / 16;
    for (int i = 0; i < k / 16; ++i) LoadDataWithTranspose(b2[i * 16 * n], b1[i * 256], turned);
    SetFlag<HardEvent::MTE1_M>(EVENT_ID0);
    WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);
    MmadParams product;
    product.m = m, product.n = n, product.k = k;
    Mmad(c, a2, b2, product);
    SetFlag<HardEvent::M_FIX>(EVENT_ID0);
    WaitFlag<HardEvent::M_FIX>(EVENT_ID0);
    FixpipeParamsV220 out;
    out.nSize = n, out.mSize = m, out.srcStride = m, out.dstStride = n;
    out.quantPre = QuantMode_t::F322F16;
    out.reluEn = true;
    Fixpipe<half, float, CFG_ROW_MAJOR>(result, c, out);"""


def test_cube_calls_multiply_and_rectify(tmp_path: Path) -> None:
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((32, 64), (64, 48)))
    kernel = Kernel("cube", write_kernel(tmp_path, _CUBE, before=_HEAD), CoreType.AIC)
    found = outputs(run([kernel], [a, b, np.zeros((32, 48), np.float16)], [2]))[2]
    np.testing.assert_array_equal(found, np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0))


def test_a_call_that_is_not_modelled_stops_the_kernel_at_its_line(tmp_path: Path) -> None:
    body = "    AscendC::LocalTensor<float> x;\n    CompareScalar(x, x, 1.0f, CMPMODE::EQ, 64);"
    source = write_kernel(tmp_path, body, before=_HEAD)
    failure = run([Kernel("refused", source, CoreType.AIV)], [np.zeros(8, np.float32)], [0]).failure
    assert failure is not None
    assert failure.fault is Fault.NOT_SUPPORTED
    assert "AscendC::CompareScalar" in failure.message
    assert failure.line == line_of(source, "CompareScalar(")


@pytest.mark.skipif("INSIGHT_TRACE_LONG_TESTS" not in os.environ, reason="set INSIGHT_TRACE_LONG_TESTS=1")
def test_a_vendors_attention_over_pages_matches_numpy(simpler_checkout: Path) -> None:
    heads, kv_heads, width, page = 40, 8, 128, 128
    lengths = np.array([128, 513, 77, 900, 1], np.int32)
    pages = -(-int(lengths.max()) // page)
    count = len(lengths) * pages
    q, k, v = (
        RNG.normal(size=shape).astype(ml_dtypes.bfloat16)
        for shape in ((len(lengths), heads, width), *((count, page, kv_heads, width),) * 2)
    )
    table = RNG.permutation(count).astype(np.int32).reshape(-1, pages)
    folder = "examples/a2a3/tensormap_and_ringbuffer/qwen3_14b_decode/kernels/vendor/paged_attention_cce"
    plan, attend = (simpler_checkout / folder / name / "entry.cpp" for name in ("tiling", "attention"))
    planned = run(
        [Kernel("plan", plan, CoreType.AIV)], [lengths, np.zeros(27840, np.uint8), pages, count], [1]
    )
    cores = [Kernel("attend", attend, kind) for kind in (CoreType.AIC, CoreType.AIV, CoreType.AIV)]
    space = np.zeros(70_000_000, np.uint8)
    slots = [q, k, v, table, np.zeros_like(q), space, np.asarray(outputs(planned)[1]), 0]
    found = np.asarray(outputs(run(cores, slots, [4, 5, 6], 24, seconds=300.0))[4]).astype(np.float64)
    for i, length in enumerate(lengths):
        keys, values = (x[table[i]].reshape(-1, kv_heads, width)[:length].astype(np.float64) for x in (k, v))
        for head in range(heads):
            weights = keys[:, head // 5] @ q[i, head].astype(np.float64) * width**-0.5
            weights = np.exp(weights - weights.max())
            want = weights @ values[:, head // 5] / weights.sum()
            np.testing.assert_allclose(found[i, head], want, atol=4e-3)
