"""Vector instructions under the device compiler's names against NumPy: values, masks, repeats, strides, registers.

Every kernel gets 32 KiB at UB 0x0 and stores the 32 KiB from 0x10000 on; what it does not write there holds -7.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from insight_trace.model import CoreType, Kernel
from tests.simulate.dispatching import outputs, run
from tests.simulate.kernel_text import write_kernel

RNG = np.random.default_rng(31)
BYTES = 32 * 1024
_KERNEL = """\
    auto *f = (__ubuf__ float *)0x0;
    auto *h = (__ubuf__ half *)0x0;
    auto *i = (__ubuf__ int32_t *)0x0;
    auto *s = (__ubuf__ int16_t *)0x0;
    auto *u = (__ubuf__ uint32_t *)0x0;
    auto *b = (__ubuf__ uint8_t *)0x0;
    auto *F = (__ubuf__ float *)0x10000;
    auto *H = (__ubuf__ half *)0x10000;
    auto *I = (__ubuf__ int32_t *)0x10000;
    auto *S = (__ubuf__ int16_t *)0x10000;
    auto *U = (__ubuf__ uint32_t *)0x10000;
    auto *B = (__ubuf__ uint8_t *)0x10000;
    copy_gm_to_ubuf(f, data_in(args, 0), 0, 1, 1024, 0, 0);
    copy_gm_to_ubuf(F, data_in(args, 1), 0, 1, 1024, 0, 0);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    set_mask_norm();
    set_vector_mask(-1, -1);
    BODY
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(data_in(args, 1), F, 0, 1, 1024, 0, 0);
    pipe_barrier(PIPE_ALL);"""


def _run(folder: Path, body: str, memory: NDArray[Any]) -> NDArray[np.uint8]:
    """The 32 KiB that the kernel leaves, as bytes."""
    source = np.zeros(BYTES, np.uint8)
    source[: memory.nbytes] = np.ascontiguousarray(memory).view(np.uint8).reshape(-1)
    kernel = Kernel("vector", write_kernel(folder, _KERNEL.replace("BODY", body)), CoreType.AIV)
    simulation = run([kernel], [source.view(np.float32), np.full(BYTES // 4, -7, np.float32)], [1])
    return np.asarray(outputs(simulation)[1]).view(np.uint8).reshape(-1)


def _floats(low: float, high: float, count: int = 2048) -> NDArray[np.float32]:
    return RNG.uniform(low, high, count).astype(np.float32)


def test_products_are_added_to_the_result_and_shifts_and_leaks_take_a_number(tmp_path: Path) -> None:
    x = _floats(-4, 4)
    found = _run(
        tmp_path,
        """vcopy(I, i, 4, 1, 1, 8, 8);
    pipe_barrier(PIPE_V);
    vmla(F, f + 256, f + 512, 1, 1, 1, 1, 8, 8, 8);
    vmadd(F + 64, f + 256, f + 512, 1, 1, 1, 1, 8, 8, 8);
    vmaddrelu(F + 128, f + 256, f + 512, 1, 1, 1, 1, 8, 8, 8);
    vaxpy(F + 192, f + 256, 1.5f, 1, 1, 1, 8, 8);
    vlrelu(F + 256, f, 0.25f, 1, 1, 1, 8, 8);
    vaddrelu(F + 320, f, f + 64, 1, 1, 1, 1, 8, 8, 8);
    vsubrelu(F + 384, f, f + 64, 1, 1, 1, 1, 8, 8, 8);
    vshl(I + 448, i, 3, 1, 1, 1, 8, 8);
    vshr(I + 512, i, 5, 1, 1, 1, 8, 8, false);
    vshr(U + 576, u, 5, 1, 1, 1, 8, 8, false);""",
        x,
    ).view(np.float32)
    a, p, q = x[:256].reshape(4, 64), x[256:320], x[512:576]
    words = x[:64].view(np.int32)
    want = {
        0: p * q + a[0],
        64: p * a[1] + q,
        128: np.maximum(p * a[2] + q, 0),
        192: p * np.float32(1.5) + a[3],
        256: np.where(a[0] > 0, a[0], a[0] * np.float32(0.25)),
        320: np.maximum(a[0] + a[1], 0),
        384: np.maximum(a[0] - a[1], 0),
        448: (words << 3).view(np.float32),
        512: (words >> 5).view(np.float32),
        576: (words.view(np.uint32) >> 5).view(np.float32),
    }
    for place, expected in want.items():
        np.testing.assert_array_equal(
            found[place : place + 64].view(np.int32), expected.view(np.int32), str(place)
        )


def test_a_mask_keeps_lanes_zero_repeats_do_nothing_and_a_stride_of_zero_adds_up(tmp_path: Path) -> None:
    x = RNG.integers(-50, 50, 2048).astype(np.float32)
    found = _run(
        tmp_path,
        """vadd(F, f, f, 0, 1, 1, 1, 8, 8, 8); // nothing
    vector_dup(F + 64, 0.0f, 1, 1, 1, 8, 0);
    pipe_barrier(PIPE_V);
    vadd(F + 64, f, F + 64, 8, 1, 1, 1, 0, 8, 0); // eight repeats into one
    set_vector_mask(0, 0xf00f);
    vadds(F + 128, f, 1.0f, 2, 1, 1, 8, 8);
    set_vector_mask(-1, -1);
    vadd(F + 256, f, f + 8, 1, 2, 2, 4, 8, 8, 8); // every second block, every fourth
    set_mask_count();
    set_vector_mask(0, 100);
    vmuls(F + 512, f, 2.0f, 0, 1, 1, 8, 8); // the count says how many, not the repeats
    set_vector_mask(0, 0);
    vmuls(F + 768, f, 2.0f, 1, 1, 1, 8, 8);
    set_mask_norm();""",
        x,
    ).view(np.float32)
    assert (found[:64] == -7).all()
    np.testing.assert_array_equal(found[64:128], x[:512].reshape(8, 64).sum(axis=0))
    lanes = np.flatnonzero([0xF00F >> lane & 1 for lane in range(64)])
    want = np.full((2, 64), -7, np.float32)
    want[:, lanes] = x[:128].reshape(2, 64)[:, lanes] + 1
    np.testing.assert_array_equal(found[128:256].reshape(2, 64), want)
    blocks = x.reshape(-1, 8)
    np.testing.assert_array_equal(found[256:384].reshape(-1, 8)[::2], blocks[0:16:2] + blocks[1:33:4][:8])
    assert (found[256:384].reshape(-1, 8)[1::2] == -7).all()
    np.testing.assert_array_equal(found[512:612], 2 * x[:100])
    assert (found[612:1024] == -7).all()


def test_halves_are_held_at_the_largest_number_unless_ctrl_keeps_infinities(tmp_path: Path) -> None:
    x = np.array([60000, -60000, 65504, 1, 0] * 26, np.float16)[:128]
    y = np.array([60000, -60000, 65504, 1, 0] * 26, np.float16)[:128]
    zeros = np.zeros(128, np.float16)
    found = _run(
        tmp_path,
        """vadd(H, h, h + 128, 1, 1, 1, 1, 8, 8, 8);
    vdiv(H + 128, h + 256, h + 256, 1, 1, 1, 1, 8, 8, 8); // 0 / 0
    set_ctrl(sbitset1(get_ctrl(), 48));
    vadd(H + 256, h, h + 128, 1, 1, 1, 1, 8, 8, 8);
    vdiv(H + 384, h + 256, h + 256, 1, 1, 1, 1, 8, 8, 8);
    set_ctrl(sbitset0(get_ctrl(), 48));""",
        np.concatenate([x, y, zeros]),
    ).view(np.float16)
    with np.errstate(over="ignore"):
        total = x + y
    np.testing.assert_array_equal(found[:128], np.clip(total, -65504, 65504))
    assert (found[128:256] == 0).all()
    np.testing.assert_array_equal(found[256:384], total)
    assert np.isnan(found[384:512]).all()


def test_a_sum_of_halves_is_a_tree_of_neighbours_rounded_and_held_at_every_level(tmp_path: Path) -> None:
    x = np.zeros((2, 128), np.float16)
    x[0, :4] = [60000, 60000, -30000, 100]
    x[1] = RNG.uniform(-100, 100, 128)
    body = """vcadd(H, h, 2, 1, 1, 8, false);
    vcgadd(H + 128, h, 2, 1, 1, 8);
    vcpadd(H + 256, h, 2, 1, 1, 8);
    vcadd(H + 512, h, 2, 1, 1, 8, true);
    vcadd(H + 512, h + 128, 1, 1, 1, 8, true); // begins anew
    set_flag(PIPE_V, PIPE_S, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_S, EVENT_ID0);
    vector_dup(I + 512, (int32_t)get_acc_val(), 1, 1, 1, 8, 8);"""
    found = _run(tmp_path, body, x).view(np.float16)

    def level(values: NDArray[np.float16]) -> NDArray[np.float16]:
        with np.errstate(over="ignore"):
            return np.clip(values[..., ::2] + values[..., 1::2], -65504, 65504).astype(np.float16)

    tree = level(x)
    np.testing.assert_array_equal(found[256:384].reshape(2, 64), tree)
    for _ in range(3):
        tree = level(tree)
    np.testing.assert_array_equal(found[128:144].reshape(2, 8), tree)
    for _ in range(3):
        tree = level(tree)
    assert found[0] == 35584  # 65504 - 29904, to the nearest half
    np.testing.assert_array_equal(found[:2], tree[:, 0])
    assert (found[512:1024].view(np.float32) == -7).all()  # into the register alone
    assert found[1024] == tree[1, 0]


@pytest.mark.parametrize("largest", [True, False])
def test_extremes_come_with_the_index_of_the_first_and_nan_wins(tmp_path: Path, largest: bool) -> None:
    x = RNG.integers(-20, 20, 256).astype(np.float32).reshape(4, 64)
    x[2, 17] = x[2, 40] = np.nan
    name = "vcmax" if largest else "vcmin"
    found = _run(
        tmp_path,
        f"""{name}(F, f, 4, 1, 1, 8, VALUE_INDEX);
    {name}(F + 64, f, 4, 1, 1, 8, INDEX_VALUE);
    {name}(F + 128, f, 4, 1, 1, 8, ONLY_VALUE);
    {name}(F + 192, f, 4, 1, 1, 8, ONLY_INDEX);
    set_vector_mask(0, 0xff00);
    {name}(F + 256, f, 4, 2, 1, 8, VALUE_INDEX);""",
        x,
    )
    floats, words = found.view(np.float32), found.view(np.uint32)
    index = (np.argmax if largest else np.argmin)(x, axis=1)
    value = x[np.arange(4), index]
    np.testing.assert_array_equal(floats[0:8:2], value)
    np.testing.assert_array_equal(words[1:8:2], index)
    np.testing.assert_array_equal(words[64:72:2], index)
    np.testing.assert_array_equal(floats[65:72:2], value)
    np.testing.assert_array_equal(floats[128:132], value)
    np.testing.assert_array_equal(words[192:196], index)
    part = (np.argmax if largest else np.argmin)(x[:, 8:16], axis=1) + 8
    np.testing.assert_array_equal(words[257:273:4], part)


_ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "r": np.rint,
    "a": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "f": np.floor,
    "c": np.ceil,
    "z": np.trunc,
}


def test_every_rounding_of_floats_to_integers_matches_numpy(tmp_path: Path) -> None:
    x = np.concatenate(
        [RNG.uniform(-9, 9, 44), np.arange(-5, 5) + 0.5, [3e9, -3e9, 40000, -40000, np.nan, np.inf]]
    )
    x = np.resize(x, 64).astype(np.float32)
    calls = []
    for k, suffix in enumerate(_ROUNDINGS):
        calls.append(f"vconv_f322s32{suffix}(I + {k * 64}, f, 1, 1, 1, 8, 8);")
        calls.append(f"vconv_f322s16{suffix}(S + {1024 + k * 64}, f, 1, 1, 1, 4, 8);")
        calls.append(f"vconv_f322f32{suffix}(F + {1024 + k * 64}, f, 1, 1, 1, 8, 8);")
        calls.append(f"vconv_f322s64{suffix}((__ubuf__ int64_t *)B + {1024 + k * 32}, f, 1, 1, 1, 8, 4);")
    found = _run(tmp_path, "\n    ".join(calls), x)
    for k, rounded in enumerate(_ROUNDINGS.values()):
        whole = rounded(x.astype(np.float64))
        np.testing.assert_array_equal(found.view(np.float32)[1024 + k * 64 :][:64], whole.astype(np.float32))
        for dtype, view, place, count in (
            (np.int32, np.int32, k * 64, 64),
            (np.int16, np.int16, 1024 + k * 64, 64),
            (np.int64, np.int64, 1024 + k * 32, 32),
        ):
            limits = np.iinfo(dtype)
            held = [
                0 if v != v else limits.max if v >= limits.max else limits.min if v <= limits.min else int(v)
                for v in whole[:count]
            ]
            assert found.view(view)[place : place + count].tolist() == held, (dtype, k)


def test_narrow_floats_round_in_every_direction_and_to_odd(tmp_path: Path) -> None:
    x = np.concatenate(
        [_floats(-3, 3, 40), [1e-8, -1e-8, 70000, -70000, np.inf, np.nan, 65519, 65520, 6e-5, -3e-7]]
    )
    x = np.resize(x, 64).astype(np.float32)
    body = "\n    ".join(
        [f"vconv_f322f16{suffix}(H + {k * 128}, f, 1, 1, 1, 4, 8);" for k, suffix in enumerate("rafczo")]
        + [
            f"vconv_f322bf16{suffix}((__ubuf__ bfloat16_t *)H + {1024 + k * 128}, f, 1, 1, 1, 4, 8);"
            for k, suffix in enumerate("rafcz")
        ]
    )
    found = _run(tmp_path, body, x)
    for dtype, base, letters in ((np.float16, 0, "rafczo"), (ml_dtypes.bfloat16, 1024, "rafcz")):
        with np.errstate(invalid="ignore"):
            grid = np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(np.float64)
        grid = np.unique(grid[np.isfinite(grid)])
        most = grid[-1]
        for k, letter in enumerate(letters):
            got = found.view(dtype)[base + k * 128 :][:64].astype(np.float64)
            for value, result in zip(x.astype(np.float64), got, strict=True):
                if value != value:
                    assert result == 0
                    continue
                clipped = min(max(value, -most), most)
                low = grid[np.searchsorted(grid, clipped, side="right") - 1]
                high = grid[np.searchsorted(grid, clipped, side="left")]
                inner, outer = (low, high) if value > 0 else (high, low)
                nearest = inner if abs(clipped - inner) < abs(outer - clipped) else outer
                tie = abs(clipped - inner) == abs(outer - clipped)
                bits = {v: np.array(v, dtype).view(np.uint16) & 1 for v in (low, high)}
                even = low if bits[low] == 0 else high
                odd = low if bits[low] == 1 else high
                want = {
                    "r": even if tie else nearest, "a": outer if tie else nearest, "f": low, "c": high,
                    "z": inner, "o": clipped if low == high else odd,
                }[letter]  # fmt: skip
                assert result == want, (letter, value, result, want)


def test_integers_and_bytes_convert_and_ctrl_says_what_happens_past_the_end(tmp_path: Path) -> None:
    words = np.array([70000, -70000, 5, -5, 32767, 40000, 1 << 30, -(1 << 31)] * 8, np.int32)
    found = _run(
        tmp_path,
        """vconv_s322s16(S, i, 1, 1, 1, 4, 8);
    set_ctrl(sbitset1(get_ctrl(), 59));
    vconv_s322s16(S + 128, i, 1, 1, 1, 4, 8);
    set_ctrl(sbitset0(get_ctrl(), 59));
    vconv_s322f32(F + 128, i, 1, 1, 1, 8, 8);
    vconv_s322f32f(F + 192, i, 1, 1, 1, 8, 8);
    vconv_s322s64((__ubuf__ int64_t *)F + 128, i, 1, 1, 1, 8, 4);
    vconv_f162s8((__ubuf__ int8_t *)B + 2048, h + 1024, 1, 1, 1, 4, 8);
    vconv_f162u8(B + 2304, h + 1024, 1, 1, 1, 4, 8);
    vconv_f162s4((__ubuf__ void *)(B + 2560), h + 1024, 1, 1, 1, 2, 8);
    pipe_barrier(PIPE_V);
    vconv_s42f16(H + 1408, (__ubuf__ void *)(B + 2560), 1, 1, 1, 8, 2);
    vconv_s82f16(H + 1536, (__ubuf__ int8_t *)B + 2048, 1, 1, 1, 8, 4);
    set_deqscale((half)0.5f);
    vconv_deq(H + 1664, i + 2, 1, 1, 1, 4, 8);""",
        np.concatenate([words.view(np.uint8), np.zeros(2048 - 256, np.uint8),
                        np.linspace(-140, 140, 128).astype(np.float16).view(np.uint8)]),
    )  # fmt: skip
    np.testing.assert_array_equal(found.view(np.int16)[:64], np.clip(words, -32768, 32767))
    np.testing.assert_array_equal(found.view(np.int16)[128:192], words.astype(np.int16))
    np.testing.assert_array_equal(found.view(np.float32)[128:192], words.astype(np.float32))
    np.testing.assert_array_equal(found.view(np.int64)[128:160], words[:32])
    halves = np.linspace(-140, 140, 128).astype(np.float16)
    np.testing.assert_array_equal(found.view(np.int8)[2048:2176], np.clip(np.rint(halves), -128, 127))
    np.testing.assert_array_equal(found[2304:2432], np.clip(np.rint(halves), 0, 255))
    nibbles = np.clip(np.rint(halves), -8, 7).astype(np.int8)
    np.testing.assert_array_equal(
        found[2560:2624], (nibbles[::2] & 15 | (nibbles[1::2] & 15) << 4).view(np.uint8)
    )
    np.testing.assert_array_equal(found.view(np.float16)[1408:1536], nibbles)
    np.testing.assert_array_equal(found.view(np.float16)[1536:1664], np.clip(np.rint(halves), -128, 127))
    scaled = np.clip(words[2 : 66 - 2] * 0.5, -65504, 65504).astype(np.float16)
    np.testing.assert_array_equal(found.view(np.float16)[1664:1726], scaled)


def test_comparisons_give_bits_and_selections_take_them_in_three_ways(tmp_path: Path) -> None:
    x = RNG.integers(-3, 3, 512).astype(np.float32)
    x[5] = np.nan
    found = _run(
        tmp_path,
        """vcmpv_lt(B, f, f + 256, 2, 1, 1, 1, 8, 8, 8);
    vcmpv_ne(B + 32, f, f + 256, 2, 1, 1, 1, 8, 8, 8);
    vcmpvs_ge(B + 64, f, 1.0f, 2, 1, 1, 8, 8);
    vcmpvs_eq(B + 96, h, (half)0.0f, 2, 1, 1, 8, 8);
    vcmp_gt(f, f + 256, 1, 1, 1, 1, 8, 8, 8);
    vsel(F + 64, f, f + 256, 2, 1, 1, 1, 8, 8, 8, 0); // bits of the register
    get_cmpmask(B + 128);
    vector_dup(F + 256, 9.0f, 1, 1, 1, 8, 0);
    pipe_barrier(PIPE_V);
    set_cmpmask(F + 256);
    vsel(F + 320, f, (__ubuf__ void *)B, 2, 1, 1, 1, 8, 8, 8, 1); // a number, and bits from memory
    vector_dup(U + 512, (uint32_t)0x10000, 1, 1, 1, 8, 0);
    pipe_barrier(PIPE_V);
    set_cmpmask(U + 512);
    vsel(F + 640, f, f + 256, 2, 1, 1, 1, 8, 8, 8, 2); // the place of the bits""",
        x,
    )
    a, c = x[:128], x[256:384]

    def bits(of: NDArray[np.bool_]) -> NDArray[np.uint8]:
        return np.packbits(of, bitorder="little")

    np.testing.assert_array_equal(found[:16], bits(a < c))
    np.testing.assert_array_equal(found[32:48], bits(a != c))
    np.testing.assert_array_equal(found[64:80], bits(a >= 1))
    np.testing.assert_array_equal(found[96:128], bits(x.view(np.float16)[:256] == 0))
    first = np.tile((a > c)[:64], 2)
    np.testing.assert_array_equal(found[128:136], bits((a > c)[:64]))
    floats = found.view(np.float32)
    np.testing.assert_array_equal(floats[64:192], np.where(first, a, c))
    np.testing.assert_array_equal(floats[320:448], np.where(a < c, a, 9))
    np.testing.assert_array_equal(floats[640:768], np.where(a < c, a, c))


def test_gathers_take_offsets_and_patterns_keep_elements_in_order(tmp_path: Path) -> None:
    words = np.arange(1024, dtype=np.uint32) + 1000
    order = RNG.permutation(128).astype(np.uint32)
    words[:128] = order * 4 + 2048  # offsets of elements
    words[128:144] = RNG.permutation(16).astype(np.uint32) * 32 + 2048  # of blocks
    found = _run(
        tmp_path,
        """vgather(U, u, 0u, 8, 2);
    vgatherb(U + 128, u + 128, 0u, 8, 1, 2);
    vreducev2(U + 256, u + 512, u, 2, 1, 1, 8, 8); // even
    vreducev2(U + 384, u + 512, u, 2, 1, 5, 8, 8); // every fourth from 2
    vreducev2(U + 512, u + 512, u + 256, 2, 1, 0, 8, 1); // bits of memory
    set_flag(PIPE_V, PIPE_S, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_S, EVENT_ID0);
    vector_dup(I + 1024, (int32_t)get_rsvd_cnt(), 1, 1, 1, 8, 0);
    set_mask_count();
    set_vector_mask(0, 10);
    vreducev2(U + 768, u + 512, u, 2, 1, 7, 8, 8); // ten of each repeat
    set_mask_norm();""",
        words,
    ).view(np.uint32)
    data = words[512:640]
    np.testing.assert_array_equal(found[:128], data[order])
    np.testing.assert_array_equal(
        found[128:256], words[512:].reshape(-1, 8)[(words[128:144] - 2048) // 32].reshape(-1)
    )
    np.testing.assert_array_equal(found[256:320], data[::2])
    np.testing.assert_array_equal(found[384:416], data[2::4])
    keep = np.unpackbits(
        words[256:272].view(np.uint8).reshape(2, 32)[:, :8], axis=1, bitorder="little"
    ).astype(bool)
    np.testing.assert_array_equal(found[512 : 512 + keep.sum()], data.reshape(2, 64)[keep])
    assert found[1024] == keep.sum()
    np.testing.assert_array_equal(found[768:788], data.reshape(2, 64)[:, :10].reshape(-1))


def test_scores_are_sorted_with_their_indices_and_lists_are_merged(tmp_path: Path) -> None:
    scores = RNG.integers(0, 40, 128).astype(np.float32)
    index = np.arange(128, dtype=np.uint32) + 7
    found = _run(
        tmp_path,
        """vbitsort(F, f, u + 128, 4);
    pipe_barrier(PIPE_V);
    __ubuf__ float *lists[4] = {F, F + 64, F + 128, F + 192};
    vmrgsort4(F + 256, lists, 0x0020002000200020ull, 0x0f01ull);
    __ubuf__ float *two[4] = {F, F + 64, F, F};
    vmrgsort4(F + 1024, two, 0x0000000000200020ull, 0x1301ull); // until one is used up
    set_flag(PIPE_V, PIPE_S, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_S, EVENT_ID0);
    vector_dup(I + 2048, (int32_t)get_vms4_sr(), 1, 1, 1, 8, 0);""",
        np.concatenate([scores.view(np.uint32), index]),
    )
    floats, words = found.view(np.float32), found.view(np.uint32)
    for group in range(4):
        part = slice(32 * group, 32 * group + 32)
        order = np.argsort(-scores[part], kind="stable")
        np.testing.assert_array_equal(floats[64 * group : 64 * group + 64 : 2], scores[part][order])
        np.testing.assert_array_equal(words[64 * group + 1 : 64 * group + 64 : 2], index[part][order])
    order = np.argsort(-scores, kind="stable")
    np.testing.assert_array_equal(floats[256:512:2], scores[order])
    np.testing.assert_array_equal(words[257:512:2], index[order])
    first, second = int(words[2048] & 0xFFFF), int(words[2048] >> 16)
    assert max(first, second) == 32
    both = np.sort(np.concatenate([floats[:64:2], floats[64:128:2]]))[::-1]
    np.testing.assert_array_equal(floats[1024 : 1024 + 2 * (first + second) : 2], both[: first + second])


def test_blocks_at_sixteen_places_are_turned(tmp_path: Path) -> None:
    data = RNG.integers(0, 1 << 16, 512).astype(np.uint16)
    found = _run(
        tmp_path,
        """uint64_t from[16], to[16];
    for (int k = 0; k < 16; ++k) {
        from[k] = (uint64_t)(b + 32 * k);
        to[k] = (uint64_t)(B + 32 * k);
    }
    set_va_reg_sb(VA2, from);
    set_va_reg_sb(VA3, from + 8);
    set_va_reg_sb(VA0, to);
    set_va_reg_sb(VA1, to + 8);
    scatter_vnchwconv_b16(VA0, VA2, 1, 0, 0);
    for (int k = 0; k < 16; ++k) to[k] = (uint64_t)(B + 1024 + 32 * k);
    set_va_reg_sb(VA4, to);
    set_va_reg_sb(VA5, to + 8);
    scatter_vnchwconv_b32(VA4, VA2, 1, 0, 0);
    for (int k = 0; k < 16; ++k) to[k] = (uint64_t)(B + 2048 + 32 * k);
    set_va_reg_sb(VA6, to);
    set_va_reg_sb(VA7, to + 8);
    scatter_vnchwconv_b8(VA6, VA2, 1, 0, 0, false, false);
    scatter_vnchwconv_b8(VA6, VA2, 1, 0, 0, true, true);
    vtranspose((__ubuf__ uint16_t *)(B + 4096), (__ubuf__ uint16_t *)b);""",
        data,
    )
    square = data[:256].reshape(16, 16)
    np.testing.assert_array_equal(found[:512].view(np.uint16).reshape(16, 16), square.T)
    wide = data[:256].view(np.uint32).reshape(16, 8)
    np.testing.assert_array_equal(found[1024:1536].view(np.uint32).reshape(8, 16), wide.T)
    narrow = data[:256].view(np.uint8).reshape(16, 32)
    turned = found[2048:2560].reshape(16, 32)
    np.testing.assert_array_equal(turned[:, :16], narrow[:, :16].T)
    np.testing.assert_array_equal(turned[:, 16:], narrow[:, 16:].T)
    np.testing.assert_array_equal(found[4096:4608].view(np.uint16).reshape(16, 16), square.T)


def test_words_hold_the_arguments_of_a_call_as_well(tmp_path: Path) -> None:
    x = _floats(-4, 4)
    found = _run(
        tmp_path,
        """auto two = [](uint64_t d, uint64_t a, uint64_t b, uint64_t n) {
        return 1 | 1 << 8 | 1 << 16 | d << 24 | a << 32 | b << 40 | n << 56;
    };
    auto one = [](uint64_t d, uint64_t a, uint64_t n) { return 1 | 1 << 16 | d << 32 | a << 40 | n << 56; };
    vadd(F, f, f + 256, two(8, 8, 0, 2));
    vexp(F + 128, f, one(16, 8, 2));
    vadds(F + 512, f, 2.0f, one(8, 8, 1));
    vcadd(F + 640, f, (uint64_t)1 | 1ull << 16 | 8ull << 32 | 4ull << 56, false);
    vector_dup(F + 768, 3.0f, one(8, 0, 1));
    vconv_f322s32r(I + 1024, f, one(8, 8, 1));
    vsel(F + 1152, f, f + 64, two(8, 8, 8, 1));""",
        x,
    ).view(np.float32)
    np.testing.assert_array_equal(found[:128].reshape(2, 64), x[:128].reshape(2, 64) + x[256:320])
    exp = np.exp(x[:128].astype(np.float64)).astype(np.float32).reshape(2, 64)
    np.testing.assert_array_equal(found[128:192], exp[0])
    np.testing.assert_array_equal(found[256:320], exp[1])
    np.testing.assert_array_equal(found[512:576], x[:64] + 2)
    np.testing.assert_allclose(found[640:644], x[:256].reshape(4, 64).sum(axis=1), rtol=1e-5)
    assert (found[768:832] == 3).all()
    np.testing.assert_array_equal(found[1024:1088].view(np.int32), np.rint(x[:64]))
    np.testing.assert_array_equal(found[1152:1216], x[64:128])  # no bit is set


def test_two_halves_rectify_and_narrow_and_bytes_are_scaled_into_half_a_block(tmp_path: Path) -> None:
    x = np.linspace(-90, 90, 256).astype(np.float16)
    numbers = np.arange(-64, 64, dtype=np.int16) * 5
    scale = int(np.float32(0.5).view(np.uint32)) | 3 << 37 | 1 << 46
    found = _run(
        tmp_path,
        f"""vaddreluconv_f162s8((__ubuf__ int8_t *)B, h, h + 128, 1, 1, 1, 1, 4, 8, 8, false);
    vsubreluconv_f162s8((__ubuf__ int8_t *)B + 256, h + 128, h, 1, 1, 1, 1, 4, 8, 8, false);
    vmulconv_f162s8((__ubuf__ int8_t *)B + 512, h, h, 1, 1, 1, 1, 4, 8, 8);
    vector_dup(S + 512, (int16_t)0, 1, 1, 1, 8, 0);
    pipe_barrier(PIPE_V);
    set_deqscale((uint64_t){scale}ull);
    vconv_deqs162b8l((__ubuf__ int8_t *)B + 1024, s + 256, 1, 1, 1, 8, 8);
    vconv_deqs162b8h((__ubuf__ int8_t *)B + 1024, s + 256, 1, 1, 1, 8, 8);""",
        np.concatenate([x.view(np.int16), numbers]),
    )
    a, c = x[:128], x[128:]
    np.testing.assert_array_equal(
        found.view(np.int8)[:128], np.clip(np.rint(np.maximum(a + c, 0)), -128, 127)
    )
    np.testing.assert_array_equal(
        found.view(np.int8)[256:384], np.clip(np.rint(np.maximum(c - a, 0)), -128, 127)
    )
    np.testing.assert_array_equal(found.view(np.int8)[512:640], np.clip(np.rint(a * a), -128, 127))
    want = np.clip(np.rint(numbers * np.float32(0.5)) + 3, -128, 127).astype(np.int8).reshape(8, 16)
    blocks = found.view(np.int8)[1024:1280].reshape(8, 32)
    np.testing.assert_array_equal(blocks[:, :16], want)
    np.testing.assert_array_equal(blocks[:, 16:], want)
