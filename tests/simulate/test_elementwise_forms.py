"""Every way in which kernels call element-wise ops compiles, and reaches the op."""

import numpy as np
import pytest

import insight_trace
from tests.simulate.op_harness import TARGETS

KERNEL = """
#include <cstdint>
#include <pto/pto-inst.hpp>
#include "tensor.h"
using namespace pto;
template <class T> using Square = Tile<TileType::Vec, T, 16, 64, BLayout::RowMajor, -1, -1>;

template <class T> Square<T> placed(uint64_t address) {
    Square<T> tile(16, 64);
    TASSIGN(tile, address);
    return tile;
}

inline float *at(int64_t slot) {
    auto *tensor = reinterpret_cast<ChipTensor *>(slot);
    return reinterpret_cast<float *>(tensor->buffer.addr) + tensor->start_offset;
}

extern "C" void kernel_entry(int64_t *args) {
    auto a = placed<float>(0x0), b = placed<float>(0x1000), c = placed<float>(0x2000);
    auto tmp = placed<float>(0x3000);
    auto i = placed<int32_t>(0x4000), j = placed<int32_t>(0x5000), k = placed<int32_t>(0x6000);
    auto l = placed<int32_t>(0x7000);
    auto h = placed<half>(0x8000);
    auto mask = placed<uint8_t>(0x9000);
    auto brain = placed<bfloat16_t>(0xa000);
    CALLS
}
"""

# by op: what a kernel writes
FORMS = {
    "two tiles": "TADD(c, a, b); TSUB(c, a, b); TMUL(c, a, b); TDIV(c, a, b); TMAX(c, a, b); TMIN(c, a, b);",
    "numbers": "TADDS(c, a, 1.0f); TSUBS(c, a, 1); TMULS(c, a, 2.0); TMAXS(c, a, half(3)); TMINS(c, a, 1u);",
    "quotients": "TDIVS(c, a, 2.0f); TDIVS(c, 2.0f, a); TRECIP(c, a); TRSQRT(c, a); TRSQRT(c, a, tmp);",
    "one tile": "TEXP(c, a); TLOG(c, a); TSQRT(c, a); TABS(c, a); TNEG(c, a); TRELU(c, a);TEXPANDS(c, 2);",
    "algorithms": (
        "TEXP<ExpAlgorithm::HIGH_PRECISION>(c, a); TLOG<LogAlgorithm::DEFAULT>(c, a);"
        "TSQRT<SqrtAlgorithm::DEFAULT>(c, a); TRSQRT<RsqrtAlgorithm::HIGH_PRECISION>(c, a, tmp);"
        "TRECIP<RecipAlgorithm::DEFAULT>(c, a); TDIV<DivAlgorithm::HIGH_PRECISION>(c, a, b);"
        "TDIVS<DivAlgorithm::DEFAULT>(c, a, 3.0f); TFMOD<FmodAlgorithm::DEFAULT>(c, a, b);"
        "TREM<RemAlgorithm::DEFAULT>(c, a, b, tmp); TPOW<PowAlgorithm::DEFAULT>(c, a, b, tmp);"
    ),
    "conversions": (
        "TCVT(h, a, RoundMode::CAST_RINT); TCVT(brain, a, RoundMode::CAST_ROUND, SaturationMode::ON);"
        "TCVT(h, a, tmp, RoundMode::CAST_FLOOR); TCVT(i, a, tmp, RoundMode::CAST_TRUNC, SaturationMode::OFF);"
        "RoundMode mode = RoundMode::CAST_CEIL; SaturationMode wrap = SaturationMode::OFF;"
        "TCVT(h, a, mode, wrap);"
    ),
    "bits": (
        "TAND(k, i, j); TOR(k, i, j); TXOR(k, i, j, l); TNOT(k, i); TANDS(k, i, 7); TORS(k, i, 7);"
        "TXORS(k, i, 7, l); TSHL(k, i, j); TSHR(k, i, j); TSHLS(k, i, 2); TSHRS(k, i, 2);"
    ),
    "masks": (
        "TCMP(mask, a, b, CmpMode::LT); TCMPS(mask, a, 0.0f, CmpMode::GE); TCMPS(mask, a, b, CmpMode::EQ);"
        "TSEL(c, mask, a, b, tmp); TSELS(c, mask, a, tmp, 4.0f); TPRELU(c, a, b, mask); TLRELU(c, a, 0.1f);"
    ),
    "remainders": "TREM(c, a, b, tmp); TREMS(c, a, 3.0f, tmp); TFMOD(c, a, b); TFMODS(c, a, 3.0f);",
    "powers": "TPOW(c, a, b, tmp); TPOWS(c, a, 2.0f, tmp);",
    "sums": (
        "TAXPY(c, a, 2.0f); TMULADDDST(c, a, b); TFUSEDMULADD(c, a, b); TFUSEDMULADDRELU(c, a, b);"
        "TSUBRELU(c, a, b); TADDC(c, a, b, tmp); TSUBC(c, a, b, tmp);"
        "TADDSC(c, a, 1.0f, b); TSUBSC(c, a, 1.0f, b);"
        "TADDRELUCONV(h, a, b); TSUBRELUCONV(h, a, b); TADDDEQRELU(h, i, j, 0.5f, k);"
    ),
    "partial": "TPARTADD(c, a, b); TPARTMUL(c, a, b); TPARTMAX(c, a, b); TPARTMIN(c, a, b);",
    "quantised": (
        "auto bytes = placed<int8_t>(0xb000); auto ubytes = placed<uint8_t>(0xc000);"
        "Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor, 16, 1> scale, offset;"
        "TASSIGN(scale, 0xd000); TASSIGN(offset, 0xd100);"
        "TQUANT<QuantType::INT8_SYM>(bytes, a, scale, tmp);"
        "TQUANT<QuantType::INT8_ASYM>(ubytes, a, scale, tmp, &offset);"
        "TDEQUANT(c, bytes, scale, offset);"
    ),
    "made": (
        "TCI<Square<int32_t>, int32_t, 0>(i, 5); TCI<Square<int32_t>, Square<float>, int32_t, 1>(i, 5, tmp);"
        "TTRI<Square<float>, 1>(c, -1); TPRINT(i); TPRINT<PrintFormat::Width10_Precision6>(c);"
    ),
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("calls", FORMS.values(), ids=FORMS)
def test_every_call_form_compiles_and_runs(calls, target, tmp_path):
    source = tmp_path / "forms.cpp"
    source.write_text(KERNEL.replace("CALLS", calls), encoding="utf-8")
    done = insight_trace.simulate(source, {0: np.zeros(16, np.float32)}, core_type="aiv", target=target)
    assert done.failure is None, str(done.failure)
    # every op of the line left something behind
    columns = done.instructions
    lines = {columns.stacks[i] for i in columns.stack}
    assert len(columns) > calls.count(";"), lines


@pytest.mark.parametrize("target", TARGETS)
def test_a_whole_kernel_computes_what_numpy_does(target, tmp_path):
    source = tmp_path / "gelu.cpp"
    source.write_text(
        KERNEL.replace(
            "CALLS",
            """
    using Matrix = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1024, 1024, 1024, 64, 1>>;
    Matrix in(at(args[0])), out(at(args[1]));
    TLOAD(a, in);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(b, a, -1.702f);
    pipe_barrier(PIPE_V);
    TEXP(b, b);
    pipe_barrier(PIPE_V);
    TADDS(b, b, 1.0f);
    pipe_barrier(PIPE_V);
    TDIV(c, a, b);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(out, c);
""",
        ),
        encoding="utf-8",
    )
    x = np.random.default_rng(3).normal(size=(16, 64)).astype(np.float32)
    done = insight_trace.simulate(source, {0: x, 1: np.zeros_like(x)}, core_type="aiv", target=target)
    assert done.failure is None, str(done.failure)
    power = np.exp((x * np.float32(-1.702)).astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(done.outputs[1]).reshape(16, 64), x / (power + np.float32(1)))
