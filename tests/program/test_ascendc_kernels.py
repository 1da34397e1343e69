"""Kernels as serving engines write them in AscendC, over a checkout's headers, against NumPy.

Each has a habit that the vendor's samples do not have: kernels that a macro declares, flags by hand, tails of rows,
strides of 0, scalars read from global memory.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import insight_trace

RNG = np.random.default_rng(11)
HEAD = '#include "kernel_operator.h"\nusing AscendC::LocalTensor;\n'
FLAGS = """
template <AscendC::HardEvent event> __aicore__ inline void Sync() {
    const int32_t id = static_cast<int32_t>(GetTPipePtr()->FetchEventID(event));
    AscendC::SetFlag<event>(id);
    AscendC::WaitFlag<event>(id);
}
"""


@pytest.fixture
def made(tmp_path: Path, asc_devkit_checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("INSIGHT_TRACE_ASCENDC", str(asc_devkit_checkout))

    def make(text: str, entry: str, target: str = "a2a3") -> Any:
        file = tmp_path / "kernel.cpp"
        file.write_text(HEAD + text)
        return insight_trace.kernel(file, entry, target=target)

    return make


# Dot products of one vector with the rows of a matrix of 16 columns: blocks, then pairs, are added up.
ROWS = """
template <typename T> class Rows {
public:
    __aicore__ inline explicit Rows(AscendC::TPipe *pipe) : pipe_(pipe) {}
    __aicore__ inline void Process(__gm__ void *x, __gm__ void *w, __gm__ void *y, uint32_t rows) {
        gx.SetGlobalBuffer((__gm__ float *)x);
        gw.SetGlobalBuffer((__gm__ T *)w);
        gy.SetGlobalBuffer((__gm__ float *)y);
        pipe_->InitBuffer(in, 1, rows * 16 * sizeof(T));
        pipe_->InitBuffer(out, 1, (rows + 8) * sizeof(float));
        pipe_->InitBuffer(wide, rows * 16 * sizeof(float));
        pipe_->InitBuffer(again, 64 * sizeof(float));
        auto repeated = again.Get<float>(), products = wide.Get<float>();
        for (int i = 0; i < 64; ++i) repeated.SetValue(i, gx.GetValue(i % 16));
        auto matrix = in.template AllocTensor<T>();
        DataCopy(matrix, gw, rows * 16);
        in.EnQue(matrix);
        matrix = in.template DeQue<T>();
        auto sums = out.template AllocTensor<float>();
        const uint8_t repeats = rows / 4;
        AscendC::SetFlag<AscendC::HardEvent::S_V>(EVENT_ID0);
        AscendC::WaitFlag<AscendC::HardEvent::S_V>(EVENT_ID0);
        Cast(products, matrix, AscendC::RoundMode::CAST_NONE, 64, repeats, {1, 1, 8, 4});
        AscendC::PipeBarrier<PIPE_V>();
        Mul(products, repeated, products, 64, repeats, {1, 1, 1, 8, 0, 8});
        AscendC::PipeBarrier<PIPE_V>();
        BlockReduceSum(products, products, repeats, 64, 1, 1, 8);
        AscendC::PipeBarrier<PIPE_V>();
        PairReduceSum(sums, products, repeats / 8, 64, 1, 1, 8);
        AscendC::PipeBarrier<PIPE_V>();
        ReduceSum<float>(sums[rows], sums, products, rows);
        out.EnQue(sums);
        in.FreeTensor(matrix);
        sums = out.template DeQue<float>();
        DataCopy(gy, sums, rows + 8);
        out.FreeTensor(sums);
    }

private:
    AscendC::TPipe *pipe_;
    AscendC::GlobalTensor<float> gx, gy;
    AscendC::GlobalTensor<T> gw;
    AscendC::TQue<AscendC::QuePosition::VECIN, 1> in;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> out;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> wide, again;
};
#define DECLARE(TYPE)                                                                                    \\
    extern "C" __global__ __aicore__ void rows_##TYPE(__gm__ void *x, __gm__ void *w, __gm__ void *y,    \\
                                                      uint32_t rows)                                     \\
    {                                                                                                    \\
        AscendC::TPipe pipe;                                                                             \\
        Rows<TYPE> op(&pipe);                                                                            \\
        op.Process(x, w, y, rows);                                                                       \\
    }
DECLARE(half)
DECLARE(bfloat16_t)
"""


@pytest.mark.parametrize(
    ("entry", "dtype"), [("rows_half", np.float16), ("rows_bfloat16_t", ml_dtypes.bfloat16)]
)
def test_a_kernel_that_a_macro_declares_adds_blocks_and_pairs_up(made, entry: str, dtype) -> None:
    x, w = RNG.normal(size=16).astype(np.float32), RNG.normal(size=(64, 16)).astype(dtype)
    y = np.zeros(72, np.float32)
    made(ROWS, entry)(x, w, y, 64)
    expected = w.astype(np.float32) @ x
    np.testing.assert_allclose(y[:64], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(y[64], expected.sum(), rtol=1e-5, atol=1e-4)


# x + residual, then divided by the root of its mean square: rows whose last block is not full.
NORM = (
    FLAGS
    + """
class AddRmsNorm {
public:
    __aicore__ inline void Process(GM_ADDR x, GM_ADDR residual, GM_ADDR gamma, GM_ADDR y, uint32_t rows, uint32_t cols,
                                   float epsilon) {
        const uint32_t padded = (cols + 15) / 16 * 16;
        AscendC::GlobalTensor<bfloat16_t> gx, gr, gg, gy;
        gx.SetGlobalBuffer((__gm__ bfloat16_t *)x, rows * cols);
        gr.SetGlobalBuffer((__gm__ bfloat16_t *)residual, rows * cols);
        gg.SetGlobalBuffer((__gm__ bfloat16_t *)gamma, cols);
        gy.SetGlobalBuffer((__gm__ bfloat16_t *)y, rows * cols);
        pipe.InitBuffer(in, 2, 2 * padded * sizeof(bfloat16_t));
        pipe.InitBuffer(out, 2, 2 * padded * sizeof(bfloat16_t));
        pipe.InitBuffer(work, 5 * padded * sizeof(float));
        auto scale = work.Get<float>(), a = scale[padded], b = a[padded], square = b[padded], rest = square[padded];
        AscendC::DataCopyExtParams row{1, uint32_t(cols * sizeof(bfloat16_t)), 0, 0, 0};
        AscendC::DataCopyPadExtParams<bfloat16_t> zeros{true, 0, uint8_t(padded - cols), 0};
        auto first = in.AllocTensor<bfloat16_t>();
        AscendC::DataCopyPad(first, gg, row, zeros);
        in.EnQue(first);
        first = in.DeQue<bfloat16_t>();
        AscendC::Cast(scale, first, AscendC::RoundMode::CAST_NONE, padded);
        in.FreeTensor(first);
        for (uint32_t r = AscendC::GetBlockIdx(); r < rows; r += AscendC::GetBlockNum()) {
            auto both = in.AllocTensor<bfloat16_t>();
            AscendC::DataCopyPad(both, gx[r * cols], row, zeros);
            AscendC::DataCopyPad(both[padded], gr[r * cols], row, zeros);
            in.EnQue(both);
            both = in.DeQue<bfloat16_t>();
            AscendC::Cast(a, both, AscendC::RoundMode::CAST_NONE, padded);
            AscendC::Cast(b, both[padded], AscendC::RoundMode::CAST_NONE, padded);
            AscendC::PipeBarrier<PIPE_V>();
            a = a + b;
            AscendC::PipeBarrier<PIPE_V>();
            in.FreeTensor(both);
            auto made = out.AllocTensor<bfloat16_t>();
            AscendC::Cast(made[padded], a, AscendC::RoundMode::CAST_RINT, padded);
            AscendC::Mul(square, a, a, padded);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::ReduceSum(square, square, rest, int32_t(cols));
            Sync<AscendC::HardEvent::V_S>();
            const float factor = 1.0f / sqrt(square.GetValue(0) / cols + epsilon);
            Sync<AscendC::HardEvent::S_V>();
            AscendC::Muls(a, a, factor, padded);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Mul(a, a, scale, padded);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Cast(made, a, AscendC::RoundMode::CAST_RINT, padded);
            out.EnQue(made);
            made = out.DeQue<bfloat16_t>();
            AscendC::DataCopyPad(gy[r * cols], made, row);
            AscendC::DataCopyPad(gr[r * cols], made[padded], row);
            out.FreeTensor(made);
        }
    }

private:
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> in;
    AscendC::TQue<AscendC::TPosition::VECOUT, 2> out;
    AscendC::TBuf<> work;
};
extern "C" __global__ __aicore__ void add_rms_norm(GM_ADDR x, GM_ADDR residual, GM_ADDR gamma, GM_ADDR y, uint32_t rows,
                                                   uint32_t cols, float epsilon) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AddRmsNorm op;
    op.Process(x, residual, gamma, y, rows, cols, epsilon);
}
"""
)


def test_rows_with_a_tail_are_normalised_with_their_residual(made) -> None:
    brain = ml_dtypes.bfloat16
    x, residual = (RNG.normal(size=(7, 200)).astype(brain) for _ in range(2))
    gamma, y = RNG.normal(size=200).astype(brain), np.zeros((7, 200), brain)
    added = x.astype(np.float32) + residual.astype(np.float32)
    made(NORM, "add_rms_norm")(x, residual, gamma, y, 7, 200, 1e-6, blocks=3)
    np.testing.assert_array_equal(residual, added.astype(brain))
    expected = added / np.sqrt((added**2).mean(1, keepdims=True) + 1e-6) * gamma.astype(np.float32)
    np.testing.assert_allclose(y.astype(np.float32), expected, rtol=1e-2, atol=1e-6)


# Halves of each head are turned by the angles of the token's position; flags by hand, strides of 0.
TURN = (
    FLAGS
    + """
extern "C" __global__ __aicore__ void rotary(__gm__ half *x, __gm__ float *table, __gm__ int64_t *positions,
                                             uint32_t tokens, uint32_t heads) {
    constexpr uint32_t size = 64, part = size / 2;
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 128 << 10);
    auto wide = buffer.Get<float>(), made = wide[heads * size], other = made[heads * size], angles = other[heads * size];
    auto narrow = angles[size].ReinterpretCast<half>();
    AscendC::GlobalTensor<half> gx;
    AscendC::GlobalTensor<float> gt;
    AscendC::GlobalTensor<int64_t> gp;
    gx.SetGlobalBuffer(x);
    gt.SetGlobalBuffer(table);
    gp.SetGlobalBuffer(positions, tokens);
    const AscendC::BinaryRepeatParams each{1, 1, 1, size / 8, size / 8, 0}, both{1, 1, 1, size / 8, size / 8, size / 8};
    for (uint32_t t = AscendC::GetBlockIdx(); t < tokens; t += AscendC::GetBlockNum()) {
        AscendC::DataCopy(narrow, gx[t * heads * size], heads * size);
        AscendC::DataCopy(angles, gt[gp.GetValue(t) * size], size);
        Sync<AscendC::HardEvent::MTE2_V>();
        AscendC::Cast(wide, narrow, AscendC::RoundMode::CAST_NONE, heads * size);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mul(made, wide, angles, part, heads, each);
        AscendC::Mul(made[part], wide[part], angles, part, heads, each);
        AscendC::Mul(other, wide[part], angles[part], part, heads, each);
        AscendC::Mul(other[part], wide, angles[part], part, heads, each);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sub(made, made, other, part, heads, both);
        AscendC::Add(made[part], made[part], other[part], part, heads, both);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(narrow, made, AscendC::RoundMode::CAST_RINT, heads * size);
        Sync<AscendC::HardEvent::V_MTE3>();
        AscendC::DataCopy(gx[t * heads * size], narrow, heads * size);
        Sync<AscendC::HardEvent::MTE3_MTE2>();
    }
}
"""
)


def test_heads_are_turned_by_the_angles_of_their_positions(made) -> None:
    tokens, heads = 5, 6
    x = RNG.normal(size=(tokens, heads, 64)).astype(np.float16)
    angle = np.arange(32)[:, None] / 10000 ** (np.arange(32) / 32)[None]
    table = np.concatenate([np.cos(angle), np.sin(angle)], 1).astype(np.float32)
    positions = RNG.integers(0, 32, tokens)
    wide = x.astype(np.float32)
    cos, sin = table[positions][:, None, :32], table[positions][:, None, 32:]
    first, second = wide[..., :32], wide[..., 32:]
    expected = np.concatenate([first * cos - second * sin, second * cos + first * sin], 2)
    made(TURN, "rotary")(x, table, positions, tokens, heads, blocks=2)
    np.testing.assert_array_equal(x, expected.astype(np.float16))


# The softmax of 64 experts, and the eight best of them: sorted in two parts that are merged.
GATE = (
    FLAGS
    + """
extern "C" __global__ __aicore__ void gate(__gm__ float *logits, __gm__ float *weights, __gm__ int32_t *experts,
                                           uint32_t tokens) {
    constexpr int32_t count = 64, best = 8;
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> in;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> out;
    AscendC::TBuf<AscendC::TPosition::VECCALC> work;
    pipe.InitBuffer(in, 2, count * sizeof(float));
    pipe.InitBuffer(out, 2, 2 * best * sizeof(float));
    pipe.InitBuffer(work, 8 * count * sizeof(float));
    auto number = work.Get<float>(), rest = number[count], sorted = rest[2 * count], merged = sorted[2 * count];
    auto index = merged[2 * count].ReinterpretCast<int32_t>();
    AscendC::GlobalTensor<float> gl, gw;
    AscendC::GlobalTensor<int32_t> ge;
    gl.SetGlobalBuffer(logits, tokens * count);
    gw.SetGlobalBuffer(weights, tokens * best);
    ge.SetGlobalBuffer(experts, tokens * best);
    AscendC::CreateVecIndex(index, int32_t(0), count);
    for (uint32_t t = AscendC::GetBlockIdx(); t < tokens; t += AscendC::GetBlockNum()) {
        auto row = in.AllocTensor<float>();
        AscendC::DataCopy(row, gl[t * count], count);
        in.EnQue(row);
        row = in.DeQue<float>();
        AscendC::ReduceMax<float>(number, row, rest, count, false);
        Sync<AscendC::HardEvent::V_S>();
        const float most = number.GetValue(0);
        Sync<AscendC::HardEvent::S_V>();
        AscendC::Adds(number, row, -most, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Exp(number, number, count);
        AscendC::PipeBarrier<PIPE_V>();
        in.FreeTensor(row);
        AscendC::Sort32(sorted, number, index.ReinterpretCast<uint32_t>(), count / 32);
        AscendC::PipeBarrier<PIPE_V>();
        const uint16_t lengths[] = {32, 32, 0, 0};
        AscendC::MrgSort4Info how(lengths, false, 3, 1);
        AscendC::MrgSortSrcList<float> lists(sorted, sorted[count], sorted, sorted);
        AscendC::MrgSort(merged, lists, how);
        AscendC::PipeBarrier<PIPE_V>();
        auto found = out.AllocTensor<float>();
        uint64_t kept = 0;
        AscendC::GatherMask(rest, merged, 1, true, 2 * best, {1, 1, 8, 8}, kept);
        AscendC::GatherMask(found[best].ReinterpretCast<uint32_t>(), merged.ReinterpretCast<uint32_t>(), 2, true,
                            2 * best, {1, 1, 8, 8}, kept);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::WholeReduceSum<float>(rest[count], rest, best, 1, 1, 1, 8);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Duplicate(rest[count + 8], 1.0f, best);
        Sync<AscendC::HardEvent::V_S>();
        const float sum = rest[count].GetValue(0);
        Sync<AscendC::HardEvent::S_V>();
        AscendC::Muls(found, rest, 1.0f / sum, best);
        out.EnQue(found);
        found = out.DeQue<float>();
        AscendC::DataCopy(gw[t * best], found, best);
        AscendC::DataCopy(ge[t * best], found[best].ReinterpretCast<int32_t>(), best);
        out.FreeTensor(found);
    }
}
"""
)


def test_the_best_experts_of_a_gate_come_in_order_with_their_shares(made) -> None:
    logits = RNG.normal(size=(6, 64)).astype(np.float32)
    weights, experts = np.zeros((6, 8), np.float32), np.zeros((6, 8), np.int32)
    made(GATE, "gate")(logits, weights, experts, 6, blocks=2)
    best = np.argsort(-logits, axis=1)[:, :8]
    np.testing.assert_array_equal(experts, best)
    shares = np.exp(np.take_along_axis(logits, best, 1))
    np.testing.assert_allclose(weights, shares / shares.sum(1, keepdims=True), rtol=1e-5)


# Rows to int8, each by its own largest number, which is kept.
QUANT = (
    FLAGS
    + """
struct Shape {
    uint32_t rows, cols, each;
};
extern "C" __global__ __aicore__ void quant(__gm__ half *x, __gm__ int8_t *q, __gm__ float *scales, Shape shape) {
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 1> in;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> out, kept;
    AscendC::TBuf<AscendC::QuePosition::VECCALC> work;
    pipe.InitBuffer(in, 2, shape.cols * sizeof(half));
    pipe.InitBuffer(out, 2, shape.cols);
    pipe.InitBuffer(kept, 1, (shape.each + 7) / 8 * 32);
    pipe.InitBuffer(work, 3 * shape.cols * sizeof(float));
    auto wide = work.Get<float>(), size = wide[shape.cols], rest = size[shape.cols];
    AscendC::GlobalTensor<half> gx;
    AscendC::GlobalTensor<int8_t> gq;
    AscendC::GlobalTensor<float> gs;
    gx.SetGlobalBuffer(x);
    gq.SetGlobalBuffer(q);
    gs.SetGlobalBuffer(scales);
    const uint32_t first = AscendC::GetBlockIdx() * shape.each;
    const uint32_t rows = first + shape.each > shape.rows ? shape.rows - first : shape.each;
    auto factors = kept.AllocTensor<float>();
    for (uint32_t r = 0; r < rows; ++r) {
        auto row = in.AllocTensor<half>();
        AscendC::DataCopy(row, gx[(first + r) * shape.cols], shape.cols);
        in.EnQue(row);
        row = in.DeQue<half>();
        AscendC::Cast(wide, row, AscendC::RoundMode::CAST_NONE, shape.cols);
        AscendC::PipeBarrier<PIPE_V>();
        in.FreeTensor(row);
        AscendC::Abs(size, wide, shape.cols);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::ReduceMax(size, size, rest, shape.cols);
        Sync<AscendC::HardEvent::V_S>();
        const float factor = size.GetValue(0) / 127.0f;
        factors.SetValue(r, factor);
        Sync<AscendC::HardEvent::S_V>();
        AscendC::Muls(wide, wide, 1.0f / factor, shape.cols);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(size.ReinterpretCast<int32_t>(), wide, AscendC::RoundMode::CAST_RINT, shape.cols);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::SetDeqScale(half(1.0));
        AscendC::Cast(rest.ReinterpretCast<half>(), size.ReinterpretCast<int32_t>(), AscendC::RoundMode::CAST_ROUND,
                      shape.cols);
        AscendC::PipeBarrier<PIPE_V>();
        auto narrow = out.AllocTensor<int8_t>();
        AscendC::Cast(narrow, rest.ReinterpretCast<half>(), AscendC::RoundMode::CAST_TRUNC, shape.cols);
        out.EnQue(narrow);
        narrow = out.DeQue<int8_t>();
        AscendC::DataCopy(gq[(first + r) * shape.cols], narrow, shape.cols);
        out.FreeTensor(narrow);
    }
    kept.EnQue(factors);
    factors = kept.DeQue<float>();
    Sync<AscendC::HardEvent::S_MTE3>();
    AscendC::DataCopyPad(gs[first], factors, {1, uint32_t(rows * sizeof(float)), 0, 0, 0});
    kept.FreeTensor(factors);
}
"""
)


def test_rows_become_bytes_by_their_own_largest_number(made) -> None:
    x = RNG.normal(size=(11, 320)).astype(np.float16)
    q, scales = np.zeros((11, 320), np.int8), np.zeros(11, np.float32)
    made(QUANT, "quant")(x, q, scales, {"rows": 11, "cols": 320, "each": 4}, blocks=3)
    expected: NDArray[np.float32] = np.abs(x.astype(np.float32)).max(1) / np.float32(127)
    np.testing.assert_array_equal(scales, expected)
    wanted = np.rint(x.astype(np.float32) * (np.float32(1) / expected)[:, None])
    np.testing.assert_array_equal(q, wanted.astype(np.int8))


# On the 950 the same calls are vector functions over registers; what compares stores bits at any address.
COMPARED = """
extern "C" __global__ __aicore__ void less(__gm__ float *x, __gm__ float *y, __gm__ uint8_t *bits, uint32_t count) {
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 1> in;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> out;
    pipe.InitBuffer(in, 1, 2 * count * sizeof(float));
    pipe.InitBuffer(out, 1, count / 8);
    AscendC::GlobalTensor<float> gx, gy;
    AscendC::GlobalTensor<uint8_t> gb;
    gx.SetGlobalBuffer(x, count);
    gy.SetGlobalBuffer(y, count);
    gb.SetGlobalBuffer(bits, count / 8);
    auto both = in.AllocTensor<float>();
    AscendC::DataCopy(both, gx, count);
    AscendC::DataCopy(both[count], gy, count);
    in.EnQue(both);
    both = in.DeQue<float>();
    auto made = out.AllocTensor<uint8_t>();
    AscendC::Compare(made, both, both[count], AscendC::CMPMODE::LT, count);
    out.EnQue(made);
    in.FreeTensor(both);
    made = out.DeQue<uint8_t>();
    AscendC::DataCopy(gb, made, count / 8);
    out.FreeTensor(made);
}
"""


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_comparisons_leave_a_bit_for_each_element(made, target: str) -> None:
    x, y = RNG.integers(-3, 4, (2, 1024)).astype(np.float32)
    bits = np.zeros(128, np.uint8)
    made(COMPARED, "less", target)(x, y, bits, 1024)
    np.testing.assert_array_equal(np.unpackbits(bits, bitorder="little"), x < y)


# The device's half is a type of the compiler: a number goes to it before it goes to a tensor at that address.
CHOSEN = """
extern "C" __global__ __aicore__ void chosen(__gm__ half *x, __gm__ uint8_t *bits, uint32_t count) {
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 1> in;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 1> out;
    pipe.InitBuffer(in, 1, count / 8);
    pipe.InitBuffer(out, 1, count * sizeof(half));
    AscendC::GlobalTensor<uint8_t> gb;
    AscendC::GlobalTensor<half> gx;
    gb.SetGlobalBuffer(bits, count / 8);
    gx.SetGlobalBuffer(x, count);
    auto mask = in.AllocTensor<uint8_t>();
    AscendC::DataCopy(mask, gb, count / 8);
    in.EnQue(mask);
    mask = in.DeQue<uint8_t>();
    auto made = out.AllocTensor<half>();
    AscendC::Duplicate<half>(made, .5f, count);
    AscendC::Select<half>(made, mask, made, 1.0f, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, count);
    out.EnQue(made);
    in.FreeTensor(mask);
    made = out.DeQue<half>();
    AscendC::DataCopy(gx, made, count);
    out.FreeTensor(made);
}
"""


def test_a_plain_number_is_a_half_where_a_tensor_could_stand(made) -> None:
    bits, x = RNG.integers(0, 256, 32).astype(np.uint8), np.zeros(256, np.float16)
    made(CHOSEN, "chosen")(x, bits, 256)
    np.testing.assert_array_equal(x, np.where(np.unpackbits(bits, bitorder="little"), 0.5, 1.0))


# A part of a matrix in boxes: columns of boxes have one step in global memory and another in L1.
BOXES = """
extern "C" __global__ __aicore__ void part(__gm__ half *x, __gm__ half *y) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    if ASCEND_IS_AIC {
        AscendC::GlobalTensor<half> from;
        from.SetGlobalBuffer(x, 25 * 256);
        LocalTensor<half> boxes(AscendC::TPosition::A1, 0, 9 * 256);
        AscendC::LoadData2DParamsV2 which;
        which.mStartPosition = 2;
        which.kStartPosition = 2;
        which.mStep = 2;
        which.kStep = 3;
        which.srcStride = 5;
        which.dstStride = 3;
        AscendC::LoadData(boxes, from, which);
        AscendC::SetFlag<AscendC::HardEvent::MTE2_MTE3>(EVENT_ID0);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_MTE3>(EVENT_ID0);
        copy_cbuf_to_gm(y, (__cbuf__ half *)boxes.GetPhyAddr(), 0, 3, 32, 16, 0);
    }
}
"""


def test_a_part_of_a_matrix_in_boxes_comes_from_global_memory_on_the_950(made) -> None:
    """The vendor's page of LoadData2DParamsV2 has this as its example."""
    x, y = RNG.integers(-99, 100, (5, 5, 256)).astype(np.float16), np.zeros((3, 2, 256), np.float16)
    made(BOXES, "part", "a5")(x, y)
    np.testing.assert_array_equal(y, x[2:5, 2:4])


# Arrays that the compiler finds room for in UB, also again in every turn of a loop, beside tensors of the library.
ARRAYS = """
extern "C" __global__ __aicore__ void sums(__gm__ float *x, __gm__ float *y, uint32_t turns) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    AscendC::LocalMemAllocator<AscendC::Hardware::UB> room;
    LocalTensor<float> sum = room.Alloc<float, 64>();
    AscendC::Duplicate(sum, 0.0f, 64);
    AscendC::GlobalTensor<float> from, to;
    from.SetGlobalBuffer(x);
    to.SetGlobalBuffer(y);
    for (uint32_t i = 0; i < turns; ++i) {
        __ubuf__ float part[64];
        __ubuf__ float twice[2][64];
        static_assert(sizeof(twice) == 512);
        LocalTensor<float> a(AscendC::TPosition::VECIN, uint32_t((uint64_t)part & 0xfffff), 64);
        LocalTensor<float> b(AscendC::TPosition::VECCALC, uint32_t((uint64_t)twice[1] & 0xfffff), 64);
        AscendC::DataCopy(a, from[i * 64], 64);
        AscendC::PipeBarrier<PIPE_ALL>();
        AscendC::Add(b, a, a, 64);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(sum, sum, b, 64);
        AscendC::PipeBarrier<PIPE_ALL>();
    }
    AscendC::DataCopy(to, sum, 64);
}
"""


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_arrays_that_a_kernel_declares_in_ub_lie_there(made, target: str) -> None:
    turns = 200  # all of them would not fit
    x, y = RNG.integers(-9, 10, (turns, 64)).astype(np.float32), np.zeros(64, np.float32)
    made(ARRAYS, "sums", target)(x, y, turns)
    np.testing.assert_array_equal(y, 2 * x.sum(0))
