"""Register instructions of the 950 against NumPy: predicates, distributions, conversions, reductions, any address.

One kernel runs all of them: row r of the 64 rows of 256 bytes that it stores is what the r-th one left.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from insight_trace.model import CoreType, Kernel
from tests.simulate.dispatching import outputs, run
from tests.simulate.kernel_text import write_kernel

_ROWS, _BYTES = 64, 256
_KERNEL = """\
    auto *f = (__ubuf__ float *)0x0;
    auto *out = (__ubuf__ uint8_t *)0x10000;
    copy_gm_to_ubuf(f, data_in(args, 0), 0, 1, 64, 0, 0);
    copy_gm_to_ubuf(out, data_in(args, 1), 0, 1, 512, 0, 0);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    __VEC_SCOPE__ {
        vector_f32 x, y, z;
        vector_f16 h;
        vector_s32 i;
        vector_u8 b;
        vector_u16 s, t;
        vector_u32 u;
        vector_bool all = pset_b32(PAT_ALL), some, p, q;
        vector_align state;
        auto keep = [&](auto &reg, int row) { vsts((vector_u8 &)reg, out, row * 256, NORM_B8, pset_b8(PAT_ALL)); };
        vlds(x, f, 0, NORM);
        vlds(y, f, 64, NORM);
        uint32_t left = 40;
        some = plt_b32(left, POST_UPDATE);
        vadd(z, x, y, some);                        keep(z, 0);
        vmuls(z, x, 2.0f, some, MODE_MERGING);      keep(z, 1);
        vcmp_gt(p, x, y, all); vsel(z, x, y, p);    keep(z, 2);
        vlds(z, f, 3, BRC_B32);                     keep(z, 3);
        vlds(z, f, 0, E2B_B32);                     keep(z, 4);
        vlds((vector_u32 &)u, (__ubuf__ uint16_t *)f, 0, UNPK_B16); keep(u, 5);
        vlds(y, z, f, 0, DINTLV_B32);               keep(y, 6); keep(z, 7);
        vlds(y, f, 64, NORM);
        vcadd(z, x, some);                          keep(z, 8);
        vcmax(z, x, all);                           keep(z, 9);
        vcgmax(z, x, all);                          keep(z, 10);
        vcvt(h, x, all, ROUND_R, RS_ENABLE, PART_ODD); keep(h, 11);
        vcvt(z, h, pset_b16(PAT_ALL), PART_ODD);    keep(z, 12);
        vcvt(i, x, all, ROUND_F, RS_ENABLE);        keep(i, 13);
        vci(i, 5, INC_ORDER);                       keep(i, 14);
        vci(i, 5, DEC_ORDER);                       keep(i, 15);
        vintlv(z, (vector_f32 &)u, x, y);           keep(z, 16); keep(u, 17);
        vdup(z, x, all, POS_LOWEST, MODE_ZEROING);  keep(z, 18);
        vcmps_lt(q, x, 0.0f, all); pnot(q, q, all);
        sprclr(SPR_AR);
        vsqz(z, x, q, MODE_STORED);                 keep(z, 19);
        vstur(state, z, (__ubuf__ float *)(out + 20 * 256), POST_UPDATE);
        vsqz(z, y, some, MODE_STORED);
        vstur(state, z, (__ubuf__ float *)(out + 20 * 256), POST_UPDATE);
        vstar(state, (__ubuf__ float *)(out + 20 * 256));
        sprsts(SPR_AR, (__ubuf__ uint32_t *)(out + 22 * 256), 0);
        auto *to = (__ubuf__ float *)(out + 23 * 256 + 4);
        vstus(state, 3, x, to, POST_UPDATE);
        vstus(state, 9, y, to, POST_UPDATE);
        vstas(state, to, 0, POST_UPDATE);
        vldas(state, f + 7);
        vldus(z, state, f + 7);                     keep(z, 24);
        vci(i, 63, DEC_ORDER);
        vadds(i, i, -63, all);
        vgather2(z, f, (vector_u32 &)i, some);      keep(z, 25);
        vscatter(x, (__ubuf__ float *)(out + 26 * 256), (vector_u32 &)i, all);
        vmull(u, (vector_u32 &)z, (vector_u32 &)x, (vector_u32 &)y, all); keep(u, 27); keep(z, 28);
        vaddc(p, i, (vector_s32 &)x, (vector_s32 &)y, all); keep(i, 29);
        vaddcs(q, i, (vector_s32 &)x, (vector_s32 &)y, p, all); keep(i, 30);
        vsts(x, (__ubuf__ float *)(out + 31 * 256), 0, ONEPT_B32, some);
        vsts((vector_u16 &)x, (__ubuf__ uint8_t *)(out + 32 * 256), 0, PK_B16, pset_b16(PAT_H));
        vdup(t, 0, pset_b16(PAT_ALL), MODE_ZEROING);
        chistv2(t, (vector_u8 &)x, pset_b8(PAT_ALL), Bin_N1); keep(t, 33);
        psts(some, (__ubuf__ uint32_t *)(out + 34 * 256), 0, NORM);
        ppack(p, some, LOWER); punpack(p, p, LOWER);
        psts(p, (__ubuf__ uint32_t *)(out + 34 * 256), 32, NORM);
        vector_f16 g, sum;
        vcvt(h, x, all, ROUND_R, RS_ENABLE, PART_EVEN);
        vcvt(g, y, all, ROUND_R, RS_ENABLE, PART_EVEN);
        vcvt(sum, x, all, ROUND_R, RS_ENABLE, PART_EVEN);
        vmadd(sum, g, h, pset_b16(PAT_ALL));        keep(sum, 35);
        vlds(z, f, 0, NORM);
        vmadd(z, y, x, all);                        keep(z, 36);
        vcvt(g, y, all, ROUND_R, RS_ENABLE, PART_ODD);
        vor(sum, h, g, pset_b16(PAT_ALL));          keep(sum, 37);
        vcvt(i, x, all, ROUND_Z, RS_ENABLE);
        vector_s32 j, k;
        vcvt(j, y, all, ROUND_A, RS_ENABLE);
        vmod(k, i, j, all);                         keep(k, 38);
        vlds(x, f, 384, NORM);
        vlds(y, f, 448, NORM);
        vdiv(z, x, y, all);                         keep(z, 39);
        vexp(z, x, all);                            keep(z, 40);
        vln(z, x, all);                             keep(z, 41);
        vsqrt(z, x, all);                           keep(z, 42);
        vlds(x, f, 0, NORM);
        vlds(y, f, 64, NORM);
        vsts(x, y, (__ubuf__ float *)(out + 43 * 256), 0, INTLV_B32, some);
        vcmps_lt(p, x, 0.0f, pset_b32(PAT_VL16));
        vsts(x, y, (__ubuf__ float *)(out + 45 * 256), 0, INTLV_B32, p);
        vector_bool halves = pset_b16(PAT_ALL);
        vdup(s, 0x0300, halves, MODE_ZEROING);
        vdup(t, 0x3c00, halves, MODE_ZEROING);
        vdiv(h, (vector_f16 &)t, (vector_f16 &)s, halves); keep(h, 47);
        vdiv(h, (vector_f16 &)s, (vector_f16 &)t, halves); keep(h, 48);
        vsqrt(h, (vector_f16 &)s, halves);          keep(h, 49);
        vlds(u, (__ubuf__ uint32_t *)f, 0, NORM);
        movvp(p, u, 3);
        psts(p, (__ubuf__ uint32_t *)(out + 50 * 256), 0, NORM);
        movvp(p, (vector_u16 &)u, 5);
        psts(p, (__ubuf__ uint32_t *)(out + 50 * 256), 32, NORM);
        mem_bar(VST_VLD);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(data_in(args, 1), out, 0, 1, 512, 0, 0);
    pipe_barrier(PIPE_ALL);"""

# each with its divisor: what a division does with subnormal numbers
_PAIRS = [(-126, 2), (-125, -127), (-130, 1), (-130, -20), (-140, -145)]
_DIVIDENDS = np.full(64, 1.5, np.float32)
_DIVISORS = np.full(64, 3, np.float32)
_DIVIDENDS[:5] = [2.0**a for a, _ in _PAIRS]
_DIVISORS[:5] = [2.0**b for _, b in _PAIRS]
_DIVIDENDS[5:7], _DIVISORS[5:7] = [1, -88], [-5.01923249665106e-39, 2]


@pytest.fixture(scope="module")
def memory() -> NDArray[np.float32]:
    made = np.random.default_rng(95).uniform(-9, 9, 512).astype(np.float32)
    made[384:448] = _DIVIDENDS
    made[448:512] = _DIVISORS
    return made


@pytest.fixture(scope="module")
def ran(memory: NDArray[np.float32], tmp_path_factory: pytest.TempPathFactory) -> Any:
    source = write_kernel(tmp_path_factory.mktemp("registers"), _KERNEL)
    kernel = Kernel("registers", source, CoreType.AIV)
    return run([kernel], [memory, np.full(_ROWS * _BYTES // 4, -7, np.float32)], [1], target="a5")


def _tree(values: NDArray[np.float32]) -> np.float32:
    while len(values) > 1:
        values = values[0::2] + values[1::2]
    return np.float32(values[0])


def test_each_instruction_leaves_what_numpy_computes(ran: Any, memory: NDArray[np.float32]) -> None:
    rows = np.asarray(outputs(ran)[1]).view(np.uint8).reshape(_ROWS, _BYTES)
    x, y = memory[:64], memory[64:128]
    on = np.arange(64) < 40
    zero = np.zeros(64, np.float32)
    added = np.where(on, x + y, zero)
    squeezed = x[x >= 0]
    bits = x.view(np.uint32).astype(np.uint64), y.view(np.uint32).astype(np.uint64)
    total = bits[0] + bits[1]
    first = np.zeros(64, np.float32)
    first[0] = _tree(np.where(on, x, zero))
    largest = np.zeros(64, np.uint32)
    largest[0], largest[1] = x.max().view(np.uint32), x.argmax()
    blocks = np.zeros(64, np.float32)
    blocks[:8] = x.reshape(8, 8).max(1)
    odd = np.zeros(128, np.float16)
    odd[1::2] = x.astype(np.float16)
    both = np.stack([x, y], 1).reshape(-1)
    kept = np.concatenate([squeezed, y[:40]])
    counts = np.cumsum(np.bincount(x.view(np.uint8), minlength=256))[128:].astype(np.uint16)
    predicate = np.repeat(on, 4) & (np.arange(256) % 4 == 0)
    wanted: dict[int, Any] = {
        0: added,
        1: np.where(on, x * np.float32(2), added),
        2: np.maximum(x, y),
        3: np.full(64, memory[3]),
        4: np.repeat(memory[:8], 8),
        5: memory.view(np.uint16)[:64].astype(np.uint32),
        6: memory[0:128:2],
        7: memory[1:128:2],
        8: first,
        9: largest,
        10: blocks,
        11: odd,
        12: x.astype(np.float16).astype(np.float32),
        13: np.floor(x).astype(np.int32),
        14: np.arange(5, 69, dtype=np.int32),
        15: np.arange(68, 4, -1, dtype=np.int32),
        16: both[:64],
        17: both[64:],
        18: np.full(64, x[0]),
        19: np.concatenate([squeezed, np.zeros(64 - len(squeezed), np.float32)]),
        24: memory[7:71],
        25: np.where(on, x[::-1], zero),
        26: x[::-1],
        27: (bits[0] * bits[1] & 0xFFFFFFFF).astype(np.uint32),
        28: (bits[0] * bits[1] >> 32).astype(np.uint32),
        29: total.astype(np.uint32),
        30: (total + (total >> 32)).astype(np.uint32),
        33: counts,
    }
    # products of halves are rounded before the sum, those of floats are not
    h, g = x.astype(np.float16), y.astype(np.float16)
    once = (g.astype(np.float64) * h + h).astype(np.float16)
    assert (once != g * h + h).any(), "these numbers would not tell the two apart"
    wanted[35] = np.stack([g * h + h, np.zeros(64, np.float16)], 1)
    wanted[36] = (y.astype(np.float64) * x + x).astype(np.float32)
    assert (wanted[36] != y * x + x).any()
    wanted[37] = np.stack([h, g], 1)
    for row, value in wanted.items():
        assert rows[row].tobytes() == np.ascontiguousarray(value).tobytes(), f"row {row}"
    floats = rows.view(np.float32)
    assert rows[20:22].tobytes()[: kept.nbytes] == kept.tobytes()
    assert rows[22].view(np.uint32)[0] == kept.nbytes
    assert floats[23, 1:13].tolist() == [*x[:3], *y[:9]]
    assert floats[23, 0] == floats[23, 13] == -7, "a store to any address writes nothing around it"
    assert floats[31, :2].tolist() == [x[0], -7], "one element, whatever the predicate"
    assert rows[32, :64].tolist() == x.view(np.uint8)[0:128:2].tolist()
    assert np.array_equal(np.unpackbits(rows[34, :32], bitorder="little"), predicate)
    assert rows[34, :32].tobytes() == rows[34, 32:64].tobytes()
    whole = (
        np.trunc(x).astype(np.int32),
        np.where(y < 0, np.ceil(y - 0.5), np.floor(y + 0.5)).astype(np.int32),
    )
    some = whole[1] != 0
    assert rows[38].view(np.int32)[some].tolist() == (whole[0][some] % whole[1][some]).tolist(), (
        "the sign of the divisor"
    )
    assert floats[43:45].reshape(-1).tolist() == [*both[:80], *[-7] * 48], "pairs of which the lane is on"
    negative = np.repeat((x < 0) & (np.arange(64) < 16), 2)
    assert floats[45:47].reshape(-1).tolist() == np.where(negative, both, -7).tolist()
    words = rows.view(np.uint32)
    assert words[39, :6].tolist() == [0, 0x7F800000, 0, 0, 0x7FFFFFFF, 0xFF800000]
    assert floats[39, 6:8].tolist() == [-44, 0.5]
    assert floats[40, 1:7].tolist()[-1] == 0, "exp(-88) is subnormal"
    assert floats[40, :5].tolist() == [1] * 5
    assert floats[41, :5].tolist() == pytest.approx(
        [-126 * math.log(2), -125 * math.log(2)] + [-math.inf] * 3
    )
    for at, piece, size in ((0, slice(24, 32), 4), (32, slice(80, 96), 2)):
        spread = np.repeat(np.unpackbits(x.view(np.uint8)[piece], bitorder="little"), size)
        assert np.unpackbits(rows[50, at : at + 32], bitorder="little").tolist() == spread.tolist()
    subnormal = 0x300 * 2.0**-24
    assert rows[47:50].view(np.float16)[:, 5].tolist() == [
        np.float16(1 / subnormal), 0, np.float16(math.sqrt(subnormal)),
    ], "a subnormal half is taken as it is, and is no result"  # fmt: skip
    assert floats[42, :5].tolist() == pytest.approx([2.0**-63, 2.0**-62.5, 0, 0, 0])


def test_a_function_is_one_push_and_a_record_for_each_kind_of_instruction(ran: Any) -> None:
    columns = ran.instructions
    names = [columns.names[i] for i in columns.name]
    assert names.count("VF") == 1
    assert {"RV_VADD", "RV_VMULS", "RV_VCADD", "RV_VCMAX"} <= set(names), set(names)


_UNWRITTEN = """\
    auto *f = (__ubuf__ float *)0x0;
    copy_gm_to_ubuf(f, data_in(args, 0), 0, 1, 8, 0, 0);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    __VEC_SCOPE__ {
        vector_u32 x, y, z, zero;
        vector_bool all = pset_b32(PAT_ALL);
        vlds(x, f, 0, NORM);
        vxor(zero, zero, zero, all);
        vsel(z, x, y, all);
        vor(z, z, zero, all);
        LAST;
        vsts(z, (__ubuf__ uint32_t *)f, 0, NORM_B32, all);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(data_in(args, 0), f, 0, 1, 8, 0, 0);
    pipe_barrier(PIPE_ALL);"""


def _run_with(last: str, folder: Path) -> Any:
    kernel = Kernel("unwritten", write_kernel(folder, _UNWRITTEN.replace("LAST", last)), CoreType.AIV)
    return run([kernel], [np.arange(64, dtype=np.float32)], [0], target="a5")


@pytest.mark.parametrize("last", ["vand(z, x, y, all)", "vmula(y, x, x, all)", "vcmp_lt(all, x, y, all)"])
def test_numbers_of_a_register_that_nothing_was_written_to_are_refused(last: str, tmp_path: Path) -> None:
    failure = _run_with(last, tmp_path).failure
    assert failure is not None
    name = last.split("(")[0]
    assert f"{name} takes a vector register that nothing was written to" in str(failure)


def test_lanes_that_no_instruction_uses_may_be_unwritten(tmp_path: Path) -> None:
    done = _run_with("vand(z, z, y, pset_b32(PAT_ALLF), MODE_MERGING)", tmp_path)
    assert np.array_equal(outputs(done)[0], np.arange(64, dtype=np.float32))


def test_a_register_has_the_size_that_kernels_ask_for(tmp_path: Path) -> None:
    lanes = "static_assert(sizeof(vector_f16) == 256 && sizeof(vector_u32[2]) == 512); vor(z, z, zero, all)"
    assert np.array_equal(outputs(_run_with(lanes, tmp_path))[0], np.arange(64, dtype=np.float32))
