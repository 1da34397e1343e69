"""Copies, loads into L0, products and the way out of the accumulator, as single instructions, against NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from insight_trace.model import CoreType, Kernel
from tests.simulate.dispatching import outputs, run
from tests.simulate.kernel_text import write_kernel

RNG = np.random.default_rng(31)


def _run(folder: Path, body: str, slots: list[NDArray[Any]], kind: CoreType, output: int) -> NDArray[Any]:
    simulation = run([Kernel("raw", write_kernel(folder, body), kind)], slots, [output])
    return np.asarray(outputs(simulation)[output])


# --- copies


def test_a_padded_load_writes_padding_and_fills_up_its_blocks(tmp_path: Path) -> None:
    """Two elements before and one behind each piece; without padding the first element fills up the block."""
    x = RNG.integers(1, 100, (3, 20)).astype(np.float32)
    body = """\
    auto *ub = (__ubuf__ float *)0x100, *plain = (__ubuf__ float *)0x1000;
    auto *in = (__gm__ float *)data_in(args, 0);
    set_mov_pad_val(0x40e00000);
    copy_gm_to_ubuf_align_b32(ub, in, 0, 3, 13 * 4, 2, 1, 7 * 4, 1);
    copy_gm_to_ubuf_align_b32(plain, in, 0, 3, 13 * 4, 0, 0, 7 * 4, 0);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm((__gm__ float *)data_in(args, 1), ub, 0, 3, 2, 1, 0);
    copy_ubuf_to_gm((__gm__ float *)data_in(args, 1) + 48, plain, 0, 3, 2, 0, 0);"""
    found = _run(tmp_path, body, [x, np.zeros((6, 16), np.float32)], CoreType.AIV, 1)
    padded = np.full((3, 16), 7, np.float32)
    padded[:, 2:15] = x[:, :13]
    np.testing.assert_array_equal(found[:3], padded)
    filled = np.repeat(x[:, :1], 16, axis=1)
    filled[:, :13] = x[:, :13]
    np.testing.assert_array_equal(found[3:], filled)


@pytest.mark.parametrize(
    ("how", "combined"),
    [("add", np.add), ("max", np.maximum), ("min", np.minimum)],
    ids=["add", "max", "min"],
)
@pytest.mark.parametrize(
    ("kind", "code", "name"),
    [("float", "f32", "float32"), ("half", "f16", "float16"), ("int32_t", "s32", "int32")],
)
def test_stores_obey_what_set_atomic_says(
    tmp_path: Path, how: str, combined: Any, kind: str, code: str, name: str
) -> None:
    x, there = (RNG.integers(-9, 9, 64).astype(name) for _ in range(2))
    body = f"""\
    auto *ub = (__ubuf__ {kind} *)0x0;
    copy_gm_to_ubuf(ub, (__gm__ {kind} *)data_in(args, 0), 0, 1, 64 * sizeof({kind}) / 32, 0, 0);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    set_atomic_{how}();
    set_atomic_{code}();
    auto *out = (__gm__ {kind} *)data_in(args, 1);
    copy_ubuf_to_gm(out, ub, 0, 1, 32 * sizeof({kind}) / 32, 0, 0);
    copy_ubuf_to_gm_align_b16(out + 32, ub + 32, 0, 1, 20 * sizeof({kind}), 0, 0, 0, 0);
    set_atomic_none();
    pipe_barrier(PIPE_ALL);
    copy_ubuf_to_gm_align_b16(out + 52, ub + 52 / 16 * 16, 0, 1, 12 * sizeof({kind}), 0, 0, 0, 0);"""
    found = _run(tmp_path, body, [x, there], CoreType.AIV, 1)
    np.testing.assert_array_equal(found[:52], combined(x, there)[:52])
    np.testing.assert_array_equal(found[52:], x[48:60])


# --- cube

_LOAD = """\
    auto *left = (__gm__ T *)data_in(args, 0), *right = (__gm__ T *)data_in(args, 1);
    auto *l1 = (__cbuf__ T *)0x0, *l1b = (__cbuf__ T *)0x10000;
    auto *a = (__ca__ T *)0x0;
    auto *b = (__cb__ T *)0x0;
    auto *c = (__cc__ ACC *)0x0;
    copy_gm_to_cbuf_multi_nd2nz_ND(l1, left, 0, 1, ROWS, COLS, 0, COLS, ROWS, 1, 0);
    copy_gm_to_cbuf_multi_nd2nz_ND(l1b, right, 0, 1, K, N, 0, N, K, 1, 0);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
"""
_AFTER = """\
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    MAD
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    set_nd_para(1);
    OUT
"""
_ROWS_OUT = (
    "copy_matrix_cc_to_gm((__gm__ ACC *)data_in(args, 2), c, 0, N, M, N, M, 0, NoQuant, 0, false, true);"
)


def _cube(loads: str, out: str = _ROWS_OUT, multiply: str = "", **words: Any) -> str:
    plain = "mad(c, a, b, M, K, N, 0, false, false, true);"
    text = _LOAD + loads + _AFTER.replace("MAD", multiply or plain).replace("OUT", out)
    for word, value in {**words, "T": words.get("T", "half")}.items():
        text = __import__("re").sub(rf"\b{word}\b", str(value), text)
    return text.replace("nd2nz_ND", f"nd2nz_{words['ND']}")


def test_a_window_of_one_pixel_loads_part_of_a_matrix_and_turns_it(tmp_path: Path) -> None:
    """Rows 16..47 and columns 16..63 of the left one; the right one lies by rows and becomes columns of k."""
    big, b = (
        RNG.integers(-4, 5, (64, 80)).astype(np.float16),
        RNG.integers(-4, 5, (48, 32)).astype(np.float16),
    )
    loads = """\
    set_fmatrix(64 | 1 << 16);
    img2colv2_cbuf_to_ca(a, l1, 48, 32, 16, 16, 1, 1, 1, 1, 1, 1, false, false, false, false, 80);
    set_fmatrix_b(48 | 1 << 16);
    img2colv2_cbuf_to_cb(b, l1b, 32, 48, 0, 0, 1, 1, 1, 1, 1, 1, false, false, false, true, 32);
"""
    text = _cube(loads, ND="b16", ACC="float", ROWS=64, COLS=80, M=32, K=48, N=32)
    found = _run(tmp_path, text, [big, b, np.zeros((32, 32), np.float32)], CoreType.AIC, 2)
    np.testing.assert_array_equal(found, big[16:48, 16:64].astype(np.float32) @ b.astype(np.float32))


def test_floats_are_turned_on_the_way_to_the_left_side(tmp_path: Path) -> None:
    a, b = RNG.integers(-4, 5, (32, 48)).astype(np.float32), RNG.integers(-4, 5, (32, 16)).astype(np.float32)
    loads = """\
    set_fmatrix(32 | 1 << 16);
    img2colv2_cbuf_to_ca(a, l1, 48, 32, 0, 0, 1, 1, 1, 1, 1, 1, false, false, true, false, 48);
    set_fmatrix_b(32 | 1 << 16);
    img2colv2_cbuf_to_cb(b, l1b, 16, 32, 0, 0, 1, 1, 1, 1, 1, 1, false, false, false, true, 16);
"""
    text = _cube(loads, ND="b32s", T="float", ACC="float", ROWS=32, COLS=48, M=48, K=32, N=16)
    found = _run(tmp_path, text, [a, b, np.zeros((48, 16), np.float32)], CoreType.AIC, 2)
    np.testing.assert_array_equal(found, a.T @ b)


def test_a_window_of_three_by_three_goes_over_a_padded_image(tmp_path: Path) -> None:
    """A convolution of 16 channels, 6 x 7 pixels, one pixel of padding all around, as one product."""
    image = RNG.integers(-3, 4, (42, 16)).astype(np.float16)  # H W C0
    weights = RNG.integers(-3, 4, (144, 16)).astype(np.float16)
    loads = """\
    set_fmatrix(7 | 6 << 16 | 0x01010101ull << 32);
    set_padding(0);
    img2colv2_cbuf_to_ca(a, l1, 144, 48, 0, 0, 1, 1, 3, 3, 1, 1, false, false, false, false, 16);
    set_fmatrix_b(144 | 1 << 16);
    img2colv2_cbuf_to_cb(b, l1b, 16, 144, 0, 0, 1, 1, 1, 1, 1, 1, false, false, false, true, 16);
"""
    out = _ROWS_OUT.replace("N, M, N, M, 0", "N, 42, N, 48, 0")
    text = _cube(loads, out, ND="b16", ACC="float", ROWS=42, COLS=16, M=48, K=144, N=16)
    found = _run(tmp_path, text, [image, weights, np.zeros((42, 16), np.float32)], CoreType.AIC, 2)
    around = np.zeros((8, 9, 16), np.float32)
    around[1:7, 1:8] = image.reshape(6, 7, 16)
    rows = [around[y : y + 3, x : x + 3].ravel() for y in range(6) for x in range(7)]
    np.testing.assert_array_equal(found, np.stack(rows) @ weights.astype(np.float32))


def test_squares_of_bytes_are_turned_and_scaled_on_the_way_out(tmp_path: Path) -> None:
    """int8 by int8, the right one turned in squares of 32 x 32; out as int8 by one scale, with its offset."""
    a, b = RNG.integers(-9, 10, (32, 64)).astype(np.int8), RNG.integers(-9, 10, (64, 32)).astype(np.int8)
    loads = """\
    for (int i = 0; i < 2; ++i)
        load_cbuf_to_ca(a + i * 1024, l1 + i * 512, 0, 2, 2, 0, 0, false, inc);
    for (int i = 0; i < 2; ++i)
        load_cbuf_to_cb_transpose(b + i * 1024, l1b, i, 1, 2, 1, inc, 0);
""".replace("inc", "__cce_scalar::inc")
    scale, offset = np.float32(0.125), 3
    word = int(scale.view(np.uint32)) | offset << 37 | 1 << 46
    out = f"""set_quant_pre({word}ull);
    copy_matrix_cc_to_gm((__gm__ int8_t *)data_in(args, 2), c, 0, N, M, N, M, 0, REQ8, 0, false, true);"""
    text = _cube(loads, out, ND="b8", T="int8_t", ACC="int32_t", ROWS=32, COLS=64, M=32, K=64, N=32)
    found = _run(tmp_path, text, [a, b, np.zeros((32, 32), np.int8)], CoreType.AIC, 2)
    product = a.astype(np.int32) @ b.astype(np.int32)
    want = np.clip(np.rint(np.clip(product * scale, -256, 255)) + offset, -128, 127)
    np.testing.assert_array_equal(found, want.astype(np.int8))


@pytest.mark.parametrize(
    ("rows", "cols", "turns"),
    [
        (16, 32, "load_cbuf_to_cb_transpose(b, l1b, 0, 2, 1, 0, __cce_scalar::inc, 1);"),
        # as the 950 has it: the two boxes of a square apart
        (32, 16, """for (int i = 0; i < 2; ++i)
            insight_trace::load_boxes(insight_trace::Space::L0B, b + i * 256, l1b, i, 1, 1, 0, true, false,
                                      insight_trace::Site::here(), 0, 2, 4, 1);"""),
    ],
)  # fmt: skip
def test_squares_of_words_are_two_boxes_side_by_side_and_so_when_turned(
    tmp_path: Path, rows: int, cols: int, turns: str
) -> None:
    a = RNG.integers(-9, 10, (16, rows)).astype(np.float32)
    b = RNG.integers(-9, 10, (rows, cols)).astype(np.float32)
    loads = f"load_cbuf_to_ca(a, l1, 0, {rows // 8}, 1, 0, 0, false, __cce_scalar::inc);\n{turns}\n"
    text = _cube(loads, ND="b32s", T="float", ACC="float", ROWS=16, COLS=rows, M=16, K=rows, N=cols)
    found = _run(tmp_path, text, [a, b, np.zeros((16, cols), np.float32)], CoreType.AIC, 2)
    np.testing.assert_array_equal(found, a @ b)


@pytest.mark.parametrize("by_image", [False, True], ids=["boxes", "image"])
def test_integers_of_four_bits_are_multiplied_and_turned_in_squares_of_64(
    tmp_path: Path, by_image: bool
) -> None:
    """Two in a byte, the first in its low half; the right one is turned in squares of 64 x 64."""
    a, b = RNG.integers(-8, 8, (32, 128)), RNG.integers(-8, 8, (128, 64))

    def packed(numbers: NDArray[Any]) -> NDArray[Any]:
        return ((numbers[:, ::2] & 15) | (numbers[:, 1::2] & 15) << 4).astype(np.uint8).view(np.int8)

    left = """\
    for (int i = 0; i < 2; ++i)
        load_cbuf_to_ca_s4(a + i * 1024, l1 + i * 512, 0, 2, 2, 0, 0, false, inc);
"""
    if by_image:
        left = """\
    set_fmatrix(32 | 1 << 16);
    img2colv2_cbuf_to_ca_s4(a, l1, 128, 32, 0, 0, 1, 1, 1, 1, 1, 1, false, false, false, false, 128);
"""
    loads = (
        left
        + """\
    for (int i = 0; i < 2; ++i)
        load_cbuf_to_cb_transpose_s4(b + i * 2048, l1b + i * 2048, 0, 1, 1, 0, inc, 0);
"""
    )
    text = _cube(
        loads.replace("inc", "__cce_scalar::inc"), multiply="mad_s4(c, a, b, M, 128, 64, 0, false, false, true);",
        out=_ROWS_OUT.replace("N, M, N", "64, M, 64"),
        ND="b8", T="int8_t", ACC="int32_t", ROWS=32, COLS=64, M=32, K=128, N=32,
    )  # fmt: skip
    found = _run(tmp_path, text, [packed(a), packed(b), np.zeros((32, 64), np.int32)], CoreType.AIC, 2)
    np.testing.assert_array_equal(found, (a @ b).astype(np.int32))


def test_a_bias_starts_the_sum_and_boxes_leave_as_columns_of_boxes(tmp_path: Path) -> None:
    """The bias comes as halves and becomes floats in its table; its address is the high half of the accumulator's."""
    a = RNG.integers(-4, 5, (33, 32)).astype(np.float16)  # its last row is the bias
    b = RNG.integers(-4, 5, (32, 32)).astype(np.float16)
    loads = """\
    copy_gm_to_cbuf(l1b + 0x4000, left + 32 * 32, 0, 1, 2, 0, 0, PAD_NONE);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    copy_cbuf_to_bt((__biasbuf__ float *)0x40, l1b + 0x4000, 1, 1, 1, 0, 0);
    set_fmatrix(32 | 1 << 16);
    img2colv2_cbuf_to_ca(a, l1, 32, 32, 0, 0, 1, 1, 1, 1, 1, 1, false, false, false, false, 32);
    set_fmatrix_b(32 | 1 << 16);
    img2colv2_cbuf_to_cb(b, l1b, 32, 32, 0, 0, 1, 1, 1, 1, 1, 1, false, false, false, true, 32);
"""
    multiply = "mad((__cc__ float *)((uint64_t)c | 0x40ull << 32), a, b, M, K, N, 0, false, true, false);"
    # relu, to halves, in boxes of 16 x 16
    out = "copy_matrix_cc_to_gm((__gm__ half *)data_in(args, 2), c, 0, N, M, M, M, 0, F322F16, 1, false, false);"
    text = _cube(loads, out, multiply, ND="b16", ACC="float", ROWS=32, COLS=32, M=32, K=32, N=32)
    found = _run(tmp_path, text, [a, b, np.zeros((2, 32, 16), np.float16)], CoreType.AIC, 2)
    want = np.maximum(a[:32].astype(np.float32) @ b.astype(np.float32) + a[32].astype(np.float32), 0)
    np.testing.assert_array_equal(found, want.reshape(32, 2, 16).transpose(1, 0, 2).astype(np.float16))


def test_each_column_has_its_scale_and_several_matrices_leave_at_once(tmp_path: Path) -> None:
    """Scales from the fixpipe's buffer; two matrices of 16 rows, 1024 bytes apart, go 40 elements apart."""
    a = RNG.integers(-4, 5, (32, 32)).astype(np.float16)
    b = RNG.integers(-4, 5, (32, 16)).astype(np.float16)
    scales = np.array([2.0 ** (i % 5 - 2) for i in range(16)], np.float32)
    words = np.zeros((1, 32), np.float32)
    words[0, ::2] = scales
    loads = """\
    copy_gm_to_cbuf((__cbuf__ float *)0x20000, (__gm__ float *)data_in(args, 3), 0, 1, 4, 0, 0, PAD_NONE);
    set_flag(PIPE_MTE2, PIPE_FIX, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_FIX, EVENT_ID1);
    copy_cbuf_to_fbuf((__fbuf__ uint64_t *)0x80, (__cbuf__ uint64_t *)0x20000, 1, 1, 0, 0);
    set_fpc(0x80 >> 7 << 8);
    set_fmatrix(32 | 1 << 16);
    img2colv2_cbuf_to_ca(a, l1, 32, 32, 0, 0, 1, 1, 1, 1, 1, 1, false, false, false, false, 32);
    set_fmatrix_b(32 | 1 << 16);
    img2colv2_cbuf_to_cb(b, l1b, 16, 32, 0, 0, 1, 1, 1, 1, 1, 1, false, false, false, true, 16);
"""
    out = """pipe_barrier(PIPE_FIX);
    set_nd_para(2 | 1 << 16 | 320ull << 32);
    copy_matrix_cc_to_gm((__gm__ half *)data_in(args, 2), c, 0, 16, 16, 20, 32, 0, VQF322F16_PRE, 0, false, true);"""
    text = _cube(loads, out, ND="b16", ACC="float", ROWS=32, COLS=32, M=32, K=32, N=16)
    found = _run(tmp_path, text, [a, b, np.full((32, 20), -1, np.float16), words], CoreType.AIC, 2)
    want = (a.astype(np.float32) @ b.astype(np.float32)) * scales
    np.testing.assert_array_equal(found[:, :16], want.astype(np.float16))
    assert (found[:, 16:] == -1).all()


def test_a_plain_dereference_of_on_chip_memory_is_a_load_of_the_scalar_unit(tmp_path: Path) -> None:
    """What is written so is there for instructions, lies below 4 GiB, and stands in the trace."""
    body = """\
    pto::Tile<pto::TileType::Vec, float, 1, 64> tile;
    pto::TASSIGN(tile, 0x200);
    auto *place = tile.data();
    for (int i = 0; i < 64; ++i) place[i] = i * 0.5f;
    if ((uint64_t)place >> 32 || ((uint64_t)place & 0xfffff) != 0x200) place[0] = -1;
    set_flag(PIPE_S, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_S, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm((__gm__ float *)data_in(args, 0), (__ubuf__ float *)(uint32_t)(uint64_t)place, 0, 1, 8, 0, 0);"""
    kernel = Kernel("raw", write_kernel(tmp_path, body), CoreType.AIV)
    simulation = run([kernel], [np.zeros(64, np.float32)], [0])
    np.testing.assert_array_equal(outputs(simulation)[0], np.arange(64) * np.float32(0.5))
    names = [simulation.instructions.names[i] for i in simulation.instructions.name]
    assert names.count("ST_XD_XN_IMM") == 64
    assert not simulation.findings


# --- copies of many dimensions (950)

_X = RNG.integers(1, 1000, 16 * 32).astype(np.float32)
_ND = {
    "padded by a constant": (
        "{1, 32}, {1, 64}, {32, 16}, {15, 13}, {17, 3}, true",
        np.pad(_X.reshape(16, 32), ((13, 3), (15, 17)), constant_values=7),
    ),
    "padded by the nearest": (
        "{1, 32}, {1, 64}, {32, 16}, {15, 13}, {17, 3}, false",
        np.pad(_X.reshape(16, 32), ((13, 3), (15, 17)), mode="edge"),
    ),
    "turned": ("{1, 32}, {16, 1}, {32, 16}, {0, 0}, {0, 0}, true", _X.reshape(16, 32).T),
    "one row again and again": (
        "{1, 0}, {1, 32}, {32, 3}, {0, 0}, {0, 0}, true",
        np.tile(_X[:32], (3, 1)),
    ),
    "three dimensions in another order": (
        "{1, 4, 64}, {64, 1, 16}, {4, 16, 4}, {0, 0, 0}, {0, 0, 0}, true",
        _X[:256].reshape(4, 16, 4).transpose(2, 0, 1),
    ),
}


@pytest.mark.parametrize("case", _ND)
def test_a_copy_of_many_dimensions_moves_pads_and_turns(tmp_path: Path, case: str) -> None:
    words, want = _ND[case]
    body = f"""\
    struct Dims {{
        uint64_t from[5];
        uint32_t to[5], count[5];
        uint8_t before[5], behind[5];
        bool constant;
    }} d{{{words}}};
    auto count = [&](int i) {{ return d.count[i] ? d.count[i] : 1; }};
    uint64_t pads = 0;
    for (int i = 1; i < 5; ++i)
        pads |= (uint64_t(d.before[i]) | uint64_t(d.behind[i]) << 8) << (16 * i - 16);
    auto step = [&](int i) {{ return d.from[i] << 20 | d.to[i]; }};
    set_pad_cnt_nddma(pads);
    set_pad_val_nddma(0x40e00000);
    set_loop0_stride_nddma(step(0));
    set_loop1_stride_nddma(step(1));
    set_loop2_stride_nddma(step(2));
    set_loop3_stride_nddma(step(3));
    set_loop4_stride_nddma(step(4));
    auto *ub = (__ubuf__ float *)0x100;
    nd_dma_dci();
    nddma_out_to_ub_b32(ub, (__gm__ float *)data_in(args, 0), 0, count(0), count(1), count(2), count(3), count(4),
                        d.before[0], d.behind[0], d.constant, 0);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm((__gm__ float *)data_in(args, 1), ub, 0, 1, {want.nbytes} / 32, 0, 0);
    pipe_barrier(PIPE_ALL);"""
    source = write_kernel(tmp_path, body, before='#include "insight_trace/nd_copy.hpp"\n')
    slots = [_X, np.zeros(want.shape, np.float32)]
    done = run([Kernel("nd", source, CoreType.AIV)], slots, [1], target="a5")
    np.testing.assert_array_equal(np.asarray(outputs(done)[1]), want)


def test_of_four_elements_along_k_a_sparse_product_takes_the_two_that_are_chosen(tmp_path: Path) -> None:
    """Two bits for each element of the right side, 16 lines of 32 to a box; a second one before the first is the first."""
    m, k, n = 32, 128, 32
    a, b = RNG.integers(-9, 10, (m, k)).astype(np.int8), RNG.integers(-9, 10, (k // 2, n)).astype(np.int8)
    choices = RNG.integers(0, 3, (k // 2, n))
    four = 4 * np.arange(k // 4)[:, None]
    first, second = four + choices[::2], four + np.maximum(choices[::2], 1 + choices[1::2])
    want = np.zeros((m, n), np.int32)
    for column in range(n):
        taken = a[:, np.stack([first[:, column], second[:, column]], 1).ravel()].astype(np.int32)
        want[:, column] = taken @ b[:, column].astype(np.int32)

    def in_boxes(lines: NDArray[Any], width: int) -> NDArray[Any]:  # columns of the right side are lines
        return lines.reshape(n // 16, 16, -1, width).transpose(2, 0, 1, 3).reshape(-1, 32)

    bits = (choices.T.reshape(n, -1, 4) << 2 * np.arange(4)).sum(2).astype(np.int8)
    body = f"""\
    auto *l1 = (__cbuf__ int8_t *)0x0, *dense = (__cbuf__ int8_t *)0x10000, *chosen = (__cbuf__ int8_t *)0x20000;
    auto *a = (__ca__ int8_t *)0x0;
    auto *b = (__cb__ int8_t *)0x800;
    auto *c = (__cc__ int32_t *)0x0;
    copy_gm_to_cbuf_multi_nd2nz_b8(l1, (__gm__ int8_t *)data_in(args, 0), 0, 1, {m}, {k}, 0, {k}, {m}, 1, 0);
    copy_gm_to_cbuf(dense, (__gm__ int8_t *)data_in(args, 1), 0, 1, 64, 0, 0, PAD_NONE);
    copy_gm_to_cbuf(chosen, (__gm__ int8_t *)data_in(args, 2), 0, 1, 16, 0, 0, PAD_NONE);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    for (int i = 0; i < {m // 16}; ++i)
        load_cbuf_to_ca(a + i * {16 * k}, l1 + i * 512, 0, {k // 32}, {m // 16}, 0, 0, false, __cce_scalar::inc);
    auto *both = (__cbuf__ int8_t *)((uint64_t)dense & 0xffffffff | (uint64_t)chosen << 32);
    load_cbuf_to_cb_sp(b + 512, both, 1, 3);
    load_cbuf_to_cb_sp(b, both, 0, 1);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    mad_sp(c, a, b, {m}, {k}, {n}, 0, false, true);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    set_nd_para(1);
    copy_matrix_cc_to_gm((__gm__ int32_t *)data_in(args, 3), c, 0, {n}, {m}, {n}, {m}, 0, NoQuant, 0, false, true);"""
    slots = [a, in_boxes(b.T.copy(), 32), in_boxes(bits, 8), np.zeros((m, n), np.int32)]
    np.testing.assert_array_equal(_run(tmp_path, body, slots, CoreType.AIC, 3), want)


@pytest.mark.parametrize("down", [False, True], ids=["up", "down"])
def test_boxes_come_from_global_memory_one_by_one(tmp_path: Path, down: bool) -> None:
    """Every other box of what lies there, from the third one on, with a box between two of them in L1."""
    boxes = RNG.integers(0, 100, (12, 512)).astype(np.int8)
    body = f"""\
    auto *l1 = (__cbuf__ int8_t *)0x400;
    auto *from = (__gm__ int8_t *)data_in(args, 0);
    load_gm_to_cbuf(l1, from, {9 if down else 2}, 4, 2, 1, 0, __cce_scalar::{"dec" if down else "inc"});
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    copy_cbuf_to_gm((__gm__ int8_t *)data_in(args, 1), l1, 0, 4, 16, 16, 0);"""
    found = _run(tmp_path, body, [boxes, np.zeros((4, 512), np.int8)], CoreType.AIC, 1)
    np.testing.assert_array_equal(found, boxes[[9, 7, 5, 3] if down else [2, 4, 6, 8]])
