"""Kernels call reductions, broadcasts and rearrangements in every form of the public tile API."""

import numpy as np
import pytest

from insight_trace.simulate import simulate

HEAD = """
#include <cstdint>
#include <pto/pto-inst.hpp>
#include "tensor.h"
using namespace pto;
template <class T, int R, int C, BLayout L = BLayout::RowMajor, int VR = R, int VC = C>
using Vec = Tile<TileType::Vec, T, R, C, L, VR, VC>;
template <int R, int C, PadValue P>
using Padded = Tile<TileType::Vec, float, R, C, BLayout::RowMajor, R, C, SLayout::NoneBox, 512, P>;
template <class T> T *data_of(int64_t slot) {
    auto *tensor = reinterpret_cast<Tensor *>(slot);
    return reinterpret_cast<T *>(tensor->buffer.addr) + tensor->start_offset;
}
template <class T, int R, int C>
GlobalTensor<T, Shape<1, 1, 1, R, C>, Stride<R * C, R * C, R * C, C, 1>> view(T *at) {
    return {at};
}
"""


def run(tmp_path, body: str, arguments):
    source = tmp_path / "kernel.cpp"
    source.write_text(HEAD + 'extern "C" void kernel_entry(int64_t *args) {\n' + body + "\n}\n")
    there, result = (simulate(source, arguments, core_type="aiv", target=target) for target in ("a5", "a2a3"))
    assert there.failure is None, str(there.failure)
    assert result.failure is None, str(result.failure)
    for slot, values in result.outputs.items():
        np.testing.assert_array_equal(there.outputs[slot], values)
    return result


def test_a_reshaped_tile_is_the_same_memory_and_no_instruction(tmp_path):
    body = """
        Vec<float, 16, 1, BLayout::ColMajor> column;
        Vec<float, 1, 16> row;
        Vec<float, 1, 8> right;
        TASSIGN(column, 0x100);
        TRESHAPE(row, column);
        TSUBVIEW(right, row, 0, 8);
        for (int i = 0; i < 16; ++i) column.SetValue(i, i);
        auto *out = data_of<float>(args[0]);
        for (int i = 0; i < 8; ++i) out[i] = right.GetValue(i);
    """
    result = run(tmp_path, body, {0: np.zeros(8, np.float32)})
    np.testing.assert_array_equal(result.outputs[0], np.arange(8, 16))
    names = {result.instructions.names[i] for i in result.instructions.name}
    assert names == {"LD_XD_XN_IMM", "ST_XD_XN_IMM", "END"}


def test_a_merge_tells_the_kernel_how_far_it_came(tmp_path):
    body = """
        using List = Vec<float, 1, 64>;
        List a, b, c, d, dst;
        Vec<float, 1, 256> tmp;
        TASSIGN(a, 0); TASSIGN(b, 0x200); TASSIGN(c, 0x400); TASSIGN(d, 0x600); TASSIGN(dst, 0x800);
        TASSIGN(tmp, 0x1000);
        // lists of 32 pairs: a is used up first, c and d stay where they are
        for (int i = 0; i < 32; ++i) {
            a.SetValue(2 * i, 1000 - i); b.SetValue(2 * i, 990 - i);
            c.SetValue(2 * i, 10 - i); d.SetValue(2 * i, 5 - i);
        }
        MrgSortExecutedNumList two{}, three{}, four{}, none{9, 9, 9, 9};
        TMRGSORT<List, decltype(tmp), List, List, true>(dst, two, tmp, a, b);
        TMRGSORT<List, decltype(tmp), List, List, List, true>(dst, three, tmp, a, b, c);
        TMRGSORT<List, decltype(tmp), List, List, List, List, true>(dst, four, tmp, a, b, c, d);
        TMRGSORT<List, decltype(tmp), List, List, false>(dst, none, tmp, a, b);
        static_assert(GETMRGSORTTMPSIZE<List, List, List>() == 192);
        auto *out = data_of<int32_t>(args[0]);
        int32_t counts[] = {two.mrgSortList0, two.mrgSortList1, three.mrgSortList0, three.mrgSortList1,
                            three.mrgSortList2, four.mrgSortList0, four.mrgSortList3, none.mrgSortList0};
        for (int i = 0; i < 8; ++i) out[i] = counts[i];
    """
    result = run(tmp_path, body, {0: np.zeros(8, np.int32)})
    # a's last value 969 comes after b's 990 … 970
    np.testing.assert_array_equal(result.outputs[0], [32, 21, 32, 21, 0, 32, 0, 9])


def test_a_window_may_be_declared_past_the_end_of_the_memory(tmp_path):
    """Generated kernels address a row of a large tile with a tile of that large shape."""
    body = """
        Vec<float, 16, 512, BLayout::RowMajor, 1, 64> window; // 32 KB, of which 256 bytes are there
        Vec<float, 8, 1, BLayout::ColMajor, 1, 1> sum, largest;
        Vec<float, 1, 64> row, tmp, twice;
        Vec<int32_t, 1, 64> index;
        TASSIGN(window, 192 * 1024 - 256); TASSIGN(sum, 0); TASSIGN(largest, 0x100); TASSIGN(row, 0x200);
        TASSIGN(tmp, 0x400); TASSIGN(twice, 0x600); TASSIGN(index, 0x800);
        for (int i = 0; i < 64; ++i) { window.SetValue(i, i); index.SetValue(i, 63 - i); }
        TROWSUM(sum, window, tmp);
        TROWMAX(largest, window, tmp);
        TGATHER(row, window, index, index);
        TROWEXPANDMUL(twice, window, largest);
        auto *out = data_of<float>(args[0]);
        float found[] = {sum.GetValue(0), largest.GetValue(0), row.GetValue(0), twice.GetValue(2)};
        for (int i = 0; i < 4; ++i) out[i] = found[i];
    """
    result = run(tmp_path, body, {0: np.zeros(4, np.float32)})
    np.testing.assert_array_equal(result.outputs[0], [64 * 63 / 2, 63, 63, 126])


@pytest.mark.parametrize("dynamic", [False, True])
def test_every_form_compiles_and_issues(tmp_path, dynamic):
    valid = ", -1, -1" if dynamic else ""
    sizes = "(16, 64)" if dynamic else ""
    body = f"""
        using Full = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor{valid}>;
        using Column = Vec<float, 16, 1, BLayout::ColMajor>;
        using Row = Vec<float, 1, 64>;
        using Index = Vec<int32_t, 16, 64>;
        Full x{sizes}, y{sizes}, tmp{sizes};
        Column column, values;
        Row row;
        Index index;
        Vec<uint32_t, 16, 1, BLayout::ColMajor> where;
        Vec<uint32_t, 1, 64> below;
        Vec<uint32_t, 1, 64> numbers;
        Vec<float, 1, 128> pairs, merged;
        Vec<float, 64, 16> turned;
        Vec<float, 16, 128> wide;
        Padded<16, 64, PadValue::Min> padded;
        Padded<16, 128, PadValue::Zero> grown;
        TASSIGN(x, 0); TASSIGN(y, 0x1000); TASSIGN(tmp, 0x2000);
        TASSIGN(column, 0x3000); TASSIGN(row, 0x3100);
        TASSIGN(values, 0x3200); TASSIGN(where, 0x3300); TASSIGN(below, 0x3400); TASSIGN(index, 0x4000);
        TASSIGN(numbers, 0x3600); TASSIGN(pairs, 0x5000); TASSIGN(merged, 0x5400); TASSIGN(turned, 0x6000);
        TASSIGN(wide, 0x8000); TASSIGN(padded, 0xb000); TASSIGN(grown, 0xd000);

        TROWMAX(column, x, tmp); TROWMIN(column, x, tmp); TROWSUM(column, x, tmp); TROWPROD(column, x, tmp);
        TROWARGMAX(where, x, tmp); TROWARGMIN(where, x, tmp);
        TROWARGMAX(values, where, x, tmp); TROWARGMIN(values, where, x, tmp);
        TCOLMAX(row, x); TCOLMIN(row, x); TCOLSUM(row, x); TCOLSUM(row, x, tmp, true); TCOLPROD(row, x);
        TCOLARGMAX(below, x, tmp); TCOLARGMIN(below, x, tmp);
        TCOLARGMAX(row, below, x, tmp); TCOLARGMIN(row, below, x, tmp);
        TPAIRREDUCESUM(y, x);
        TROWEXPAND(y, column); TROWEXPANDADD(y, x, column); TROWEXPANDSUB(y, x, column);
        TROWEXPANDMUL(y, x, column);
        TROWEXPANDDIV(y, x, column); TROWEXPANDDIV<DivAlgorithm::HIGH_PRECISION>(y, x, column);
        TROWEXPANDDIV<DivAlgorithm::DEFAULT>(y, x, column, tmp); TROWEXPANDMAX(y, x, column, tmp);
        TROWEXPANDMIN(y, x, column); TROWEXPANDEXPDIF(y, x, column);
        TCOLEXPAND(y, row); TCOLEXPANDADD(y, x, row); TCOLEXPANDSUB(y, x, row); TCOLEXPANDMUL(y, x, row);
        TCOLEXPANDDIV(y, x, row); TCOLEXPANDDIV<DivAlgorithm::HIGH_PRECISION>(y, x, row);
        TCOLEXPANDMAX(y, x, row); TCOLEXPANDMIN(y, x, row); TCOLEXPANDEXPDIF(y, x, row);

        TFILLPAD(padded, x); TFILLPAD_INPLACE(padded, x); TFILLPAD_EXPAND(grown, x);
        TFILLPAD<TFillPadMode::InPlace>(padded, x); TFILLPAD<TFillPadMode::Expand>(grown, x);
        TGATHER(y, x, index, index);
        TGATHER<Vec<float, 1, 64>, Vec<float, 1, 128>, MaskPattern::P0101>(row, pairs);
        TGATHER<Full, Full, MaskPattern::P1111, GatherAxis::GATHER_COL>(y, x);
        TGATHERB(y, x, index);
        TSCATTER(y, x, index); TSCATTER<MaskPattern::P1010>(wide, x);
        TTRANS(turned, x, tmp);
        TSORT32(pairs, row, numbers); TSORT32(pairs, row, numbers, tmp);
        Vec<float, 1, 256> four, sorted;
        TASSIGN(four, 0x10000); TASSIGN(sorted, 0x10400);
        TMRGSORT(sorted, four, 64u);
        TCONCAT(wide, x, y);
        if (args[0] < 0) TINTERLEAVE(tmp, y, x, x); // the 950 alone runs them
        if (args[0] < 0) TDEINTERLEAVE(tmp, y, x, x);
        if (args[0] < 0) TDEINTERLEAVE(tmp, y, wide);
        auto table = view<float, 16, 64>(data_of<float>(args[0]));
        Vec<int32_t, 1, 16> rows;
        TASSIGN(rows, 0x12000);
        MGATHER(x, table, rows); MGATHER<Coalesce::Row>(x, table, rows);
        MGATHER<Coalesce::Elem, GatherOOB::Clamp>(x, table, index);
        MSCATTER(table, x, rows); MSCATTER<Coalesce::Row, ScatterAtomicOp::Add>(table, x, rows);
        MSCATTER<Coalesce::Elem, ScatterAtomicOp::None, ScatterOOB::Skip>(table, x, index);
        MSCATTER<Coalesce::Elem, ScatterAtomicOp::Add, ScatterOOB::Wrap, ScatterConflict::Default>(
            table, x, index);
    """
    result = run(tmp_path, body, {0: np.ones((16, 64), np.float32)})
    names = {result.instructions.names[i] for i in result.instructions.name}
    assert {
        "VCMAX",
        "VCMIN",
        "VCADD",
        "VCPADD",
        "VBRCB",
        "VREDUCEV2",
        "VGATHER",
        "VGATHERB",
        "VBS32",
    } <= names
    assert {"VMS4v2", "VNCHWCONV", "MOV_OUT_TO_UB_ALIGN", "MOV_UB_TO_OUT_ALIGN"} <= names
    lines = {stack.rsplit(":", 1)[1] for stack in result.instructions.stacks if "kernel.cpp" in stack}
    assert len(lines) > 20  # every instruction names the kernel line that asked for it
