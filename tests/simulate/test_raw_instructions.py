"""Instructions of the vector and the cube unit that kernels issue themselves, against NumPy."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from insight_trace.model import CoreType, Kernel
from insight_trace.outcome import Fault
from tests.simulate.dispatching import outputs, run
from tests.simulate.kernel_text import line_of, write_kernel

RNG = np.random.default_rng(11)
_VECTOR = """\
    auto *x = (__ubuf__ float *)0x0, *y = (__ubuf__ float *)0x2000, *z = (__ubuf__ float *)0x4000;
    auto *narrow = (__ubuf__ half *)0x8000;
    copy_gm_to_ubuf(x, data_in(args, 0), 0, 1, 256, 0, 0);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    set_mask_norm();
    set_vector_mask(-1, -1);
    BODY
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(data_in(args, 1), z, 0, 1, 256, 0, 0);"""


def _vector(folder: Path, body: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
    kernel = Kernel("raw", write_kernel(folder, _VECTOR.replace("BODY", body)), CoreType.AIV)
    simulation = run([kernel], [x, np.full(2048, -7, np.float32)], [1])
    assert not simulation.findings
    return np.asarray(outputs(simulation)[1])


def test_masks_and_steps_say_which_lanes_are_computed(tmp_path: Path) -> None:
    x = RNG.uniform(0.5, 4, 2048).astype(np.float32)
    # the second source stays where it is; results lie two repeats apart; every other lane below 40
    found = _vector(
        tmp_path,
        """vector_dup(z, -7.0f, 32, 1, 1, 8, 0);
    pipe_barrier(PIPE_V);
    set_vector_mask(0, 0x5555555555ull);
    vadd(z, x, x, 8, 1, 1, 1, 16, 8, 0);
    pipe_barrier(PIPE_V);
    vmuls(z, z, 2.0f, 8, 1, 1, 16, 16);
    set_vector_mask(-1, -1);
    vexp(z + 64, x, 8, 1, 1, 16, 8);""",
        x,
    ).reshape(16, 2, 64)[:8]
    rows = x.reshape(32, 64)
    want = np.full((8, 64), -7, np.float32)
    want[:, :40:2] = 2 * (rows[:8] + rows[:1])[:, :40:2]
    np.testing.assert_array_equal(found[:, 0], want)
    np.testing.assert_array_equal(found[:, 1], np.exp(rows[:8].astype(np.float64)).astype(np.float32))


def test_repeats_and_blocks_fold_to_one_and_one_spreads_to_a_block(tmp_path: Path) -> None:
    x = RNG.integers(-50, 50, 2048).astype(np.float32)
    found = _vector(
        tmp_path,
        """vcmax(y, x, 32, 1, 1, 8, ONLY_VALUE);
    vcadd(z, x, 32, 1, 1, 8, false);
    vcgadd(z + 64, x, 4, 1, 1, 8);
    pipe_barrier(PIPE_V);
    vbrcb(z + 256, y, 1, 8, 4);""",
        x,
    )
    rows = x.reshape(32, 64)
    np.testing.assert_array_equal(found[:32], rows.sum(axis=1))
    np.testing.assert_array_equal(found[64:96], rows[:4].reshape(32, 8).sum(axis=1))
    np.testing.assert_array_equal(
        found[256:512].reshape(32, 8), np.repeat(rows.max(axis=1)[:, None], 8, axis=1)
    )


def test_halves_lie_in_half_the_blocks_and_a_count_ends_within_a_repeat(tmp_path: Path) -> None:
    x = RNG.uniform(-4, 4, 2048).astype(np.float32)
    found = _vector(
        tmp_path,
        """vconv_f322f16(narrow, x, 32, 1, 1, 4, 8);
    pipe_barrier(PIPE_V);
    vadds(narrow, narrow, (half)0.3f, 16, 1, 1, 8, 8);
    pipe_barrier(PIPE_V);
    vector_dup(z, 0.0f, 32, 1, 1, 8, 0);
    pipe_barrier(PIPE_V);
    set_mask_count();
    set_vector_mask(0, 1000);
    vconv_f162f32(z, narrow, 1, 1, 1, 8, 4);
    set_mask_norm();""",
        x,
    )
    want = (x.astype(np.float16) + np.float16(0.3)).astype(np.float32)
    np.testing.assert_array_equal(found[:1000], want[:1000])
    assert not found[1000:].any()


_CUBE = """\
    constexpr int m = M, k = 64, n = 48, rows = (m + 15) / 16 * 16;
    auto *l1 = (__cbuf__ half *)0x0, *l1b = (__cbuf__ half *)0x8000;
    auto *a = (__ca__ half *)0x0;
    auto *b = (__cb__ half *)0x0;
    auto *c = (__cc__ float *)0x400;
    auto *left = (__gm__ half *)data_in(args, 0), *right = (__gm__ half *)data_in(args, 1);
    copy_gm_to_cbuf_multi_nd2nz_b16(l1, left, 0, 1, m, k, 0, k, rows, 1, 0);
    copy_gm_to_cbuf_multi_nd2nz_b16(l1b, right, 0, 1, k, n, 0, n, k, 1, 0);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    if (m == 1) // a row alone lies without boxes
        copy_gm_to_cbuf(l1, left, 0, 1, k / 16, 0, 0, PAD_NONE);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1);
    for (int i = 0; i < rows / 16; ++i)
        load_cbuf_to_ca(a + i * 16 * k, l1 + i * 256, 0, m == 1 ? 1 : k / 16, rows / 16, 0, 0, false,
                        (addr_cal_mode_t)0);
    for (int i = 0; i < k / 16; ++i)
        load_cbuf_to_cb_transpose(b + i * 16 * n, l1b + i * 256, 0, n / 16, k / 16, 0, (addr_cal_mode_t)0, 0);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    mad(c, a, b, m, k, n, 0, false, false, true);
    pipe_barrier(PIPE_M);
    mad(c, a, b, m, k, n, 0, false, false, false);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    set_nd_para(1);
    copy_matrix_cc_to_gm(data_in(args, 2), c, 0, n, m, 64, rows, 0, QuantMode_t::NoQuant, 0, false, true);"""


@pytest.mark.parametrize("m", [40, 1])
def test_boxes_are_made_loaded_multiplied_and_stored_as_rows(tmp_path: Path, m: int) -> None:
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((m, 64), (64, 48)))
    source = write_kernel(tmp_path, _CUBE.replace("= M,", f"= {m},"))
    kernel = Kernel("raw", source, CoreType.AIC)
    simulation = run([kernel], [a, b, np.full((m, 64), -1, np.float32)], [2])
    found = outputs(simulation)[2]
    np.testing.assert_array_equal(found[:, :48], 2 * (a.astype(np.float32) @ b.astype(np.float32)))
    assert (found[:, 48:] == -1).all()


def test_what_they_cannot_do_is_named_with_its_line(tmp_path: Path) -> None:
    body = _VECTOR.replace("BODY", "vshr((__ubuf__ int *)z, (__ubuf__ int *)x, 1, 1, 1, 1, 8, 8, true);")
    kernel = Kernel("raw", write_kernel(tmp_path, body), CoreType.AIV)
    failure = run([kernel], [np.zeros(2048, np.float32)] * 2, [1]).failure
    assert failure is not None
    assert failure.fault is Fault.NOT_SUPPORTED
    assert "vshr that rounds" in failure.message


def test_the_device_compilers_attribute_may_stand_between_the_words_of_a_declaration(tmp_path: Path) -> None:
    before = "#undef __aicore__\n#define __aicore__ [aicore]\ninline __aicore__ float twice(float x) { return 2 * x; }\n"
    source = write_kernel(tmp_path, "    data_in(args, 0)[0] = twice(21);\n    NOT_THERE", before=before)
    kernel = Kernel("attribute", source, CoreType.AIV)
    failure = run([kernel], [np.zeros(8, np.float32)], [0]).failure
    assert failure is not None
    assert failure.where.endswith(f"kernel.cpp:{line_of(source, 'NOT_THERE')}")
    source.write_text(source.read_text(encoding="utf-8").replace("NOT_THERE", ""), encoding="utf-8")
    assert outputs(run([kernel], [np.zeros(8, np.float32)], [0]))[0][0] == 42
