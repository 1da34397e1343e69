"""What kernels call beside tile ops: communication on one rank, counters, scaled products, refusals."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from insight_trace.finding import Severity
from insight_trace.model import CoreType
from insight_trace.simulate import simulate
from insight_trace.simulate.embedded.compile_errors import first_error
from tests.simulate.dispatching import kernel, outputs, run
from tests.simulate.kernel_text import write_kernel


def _loopback(wanted: int, engine: int = 0) -> tuple[NDArray[np.float32], list[object]]:
    data = np.arange(960, dtype=np.float32).reshape(10, 96)
    return data, [data, np.zeros_like(data), np.zeros(8, np.int32), wanted, engine]


def test_a_put_and_a_signal_of_one_rank_come_back_to_it() -> None:
    data, slots = _loopback(2)
    found = outputs(run([kernel("loopback.cpp", CoreType.AIV)], slots, [1, 2]))
    np.testing.assert_array_equal(found[1], data * 2)
    assert found[2][0] == 2


def test_a_signal_that_never_comes_is_a_deadlock() -> None:
    _, slots = _loopback(3)
    failure = run([kernel("loopback.cpp", CoreType.AIV)], slots, [1]).failure
    assert failure
    assert "core0.veccore0 waits for the signal at 0x" in failure.message
    assert "to be >= 3 at loopback.cpp:" in failure.message


def test_a_dma_engine_beside_the_core_has_done_at_once_what_it_was_asked_for() -> None:
    data, slots = _loopback(2, 1)
    found = outputs(run([kernel("loopback.cpp", CoreType.AIV)], slots, [1]))
    np.testing.assert_array_equal(found[1], data)


def test_a_second_of_waiting_takes_no_hundred_million_instructions() -> None:
    simulation = run([kernel("wait_a_second.cpp", CoreType.AIV)], [np.zeros(8, np.int32)], [0])
    waited = outputs(simulation)[0][0]
    assert 50_000_000 <= waited < 52_000_000
    assert len(simulation.instructions) < 10_000


def _stored(values: NDArray[Any]) -> NDArray[np.uint8]:
    """As in memory: one byte each, or two 4-bit floats to a byte."""
    raw = values.view(np.uint8)
    if values.dtype != ml_dtypes.float4_e2m1fn:
        return raw
    return (raw[:, ::2] & 15) | (raw[:, 1::2] << 4)


def _in_boxes(a_scale: NDArray[np.uint8], b_scale: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], ...]:
    """Boxes of 16 rows x 2 groups, and of 2 groups x 16 columns."""
    a = a_scale.reshape(2, 16, 2, 2).transpose(0, 2, 1, 3)
    b = b_scale.reshape(2, 2, 4, 16).transpose(2, 0, 3, 1)
    return a.reshape(-1).copy(), b.reshape(-1).copy()


def _by_line(a_scale: NDArray[np.uint8], b_scale: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], ...]:
    """Rows of a as they are; of b all columns for one pair of groups, then for the next."""
    return a_scale.reshape(-1).copy(), b_scale.reshape(2, 2, 64).transpose(0, 2, 1).reshape(-1).copy()


def _by_pair(a_scale: NDArray[np.uint8], b_scale: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], ...]:
    """Of a all rows for one pair of groups, then for the next; columns of b one after the other."""
    return a_scale.reshape(32, 2, 2).transpose(1, 0, 2).reshape(-1).copy(), b_scale.T.reshape(-1).copy()


@pytest.mark.parametrize(
    ("code", "kind", "stored_scales"),
    [
        (0, ml_dtypes.float8_e4m3fn, _in_boxes),
        (1, ml_dtypes.float8_e5m2, _in_boxes),
        (2, ml_dtypes.float4_e2m1fn, _in_boxes),
        (4, ml_dtypes.float8_e4m3fn, _by_line),
        (5, ml_dtypes.float8_e4m3fn, _by_pair),
    ],
)
def test_scaled_products_of_narrow_floats_match_numpy(code: int, kind: type, stored_scales: Any) -> None:
    random = np.random.default_rng(code)
    a = random.uniform(-2, 2, (32, 128)).astype(kind)
    b = random.uniform(-2, 2, (128, 64)).astype(kind)
    a_scale = random.integers(120, 132, (32, 4)).astype(np.uint8)
    b_scale = random.integers(120, 132, (4, 64)).astype(np.uint8)
    a_stored, b_stored = stored_scales(a_scale, b_scale)
    slots = [_stored(a), a_stored, _stored(b), b_stored, np.zeros((32, 64), np.float32), code]
    found = outputs(run([kernel("scaled_product.cpp", CoreType.AIC)], slots, [4], target="a5"))[4]

    def wide(values: NDArray[np.uint8], scales: NDArray[np.uint8], axis: int) -> NDArray[np.float64]:
        return values.astype(np.float64) * np.repeat(2.0 ** (scales.astype(np.float64) - 127), 32, axis)

    expected = 2 * (wide(a, a_scale, 1) @ wide(b, b_scale, 0))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("code", "kind"), [(6, ml_dtypes.float4_e2m1fn), (7, ml_dtypes.float8_e4m3fn)])
def test_parts_of_narrow_tiles_and_scales_without_pairs_match_numpy(code: int, kind: type) -> None:
    random = np.random.default_rng(code)
    a = random.uniform(-2, 2, (32, 128)).astype(kind)
    columns = random.uniform(-2, 2, (64, 128)).astype(kind)
    a_scale, b_scale = (random.integers(120, 132, shape).astype(np.uint8) for shape in ((32, 4), (64, 4)))
    slots = [_stored(a), a_scale, _stored(columns), b_scale, np.zeros((32, 64), np.float32), code]
    found = outputs(run([kernel("scaled_product.cpp", CoreType.AIC)], slots, [4], target="a5"))[4]

    def wide(values: NDArray[np.uint8], scales: NDArray[np.uint8]) -> NDArray[np.float64]:
        return values.astype(np.float64) * np.repeat(2.0 ** (scales.astype(np.float64) - 127), 32, 1)

    np.testing.assert_allclose(found, wide(a, a_scale) @ wide(columns, b_scale).T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("code", "kind"), [(8, ml_dtypes.float8_e4m3fn), (9, ml_dtypes.float4_e2m1fn)])
def test_scaled_products_of_a_vector_match_numpy(code: int, kind: type) -> None:
    """TGEMV_MX alone, with a bias, and added to what is there."""
    random = np.random.default_rng(code)
    a, b = (random.integers(-4, 5, shape).astype(kind) for shape in ((1, 128), (128, 64)))
    a_scale = random.integers(125, 130, (1, 4)).astype(np.uint8)
    b_scale = random.integers(125, 130, (4, 64)).astype(np.uint8)
    c = np.zeros((32, 64), np.float32)
    c[0] = random.integers(-99, 99, 64)
    b_stored = _in_boxes(np.zeros((32, 4), np.uint8), b_scale)[1]
    slots = [_stored(a), a_scale, _stored(b), b_stored, c, code]
    found = outputs(run([kernel("scaled_product.cpp", CoreType.AIC)], slots, [4], target="a5"))[4]
    wide = [values.astype(np.float64) for values in (a, b)]
    once = (wide[0] * np.repeat(2.0 ** (a_scale - 127.0), 32, 1)) @ (
        wide[1] * np.repeat(2.0 ** (b_scale - 127.0), 32, 0)
    )
    np.testing.assert_array_equal(found[1:4], np.concatenate([once, once + c[:1], 2 * once + c[:1]]))


def test_scaled_products_of_quarters_match_numpy() -> None:
    """float4_e1m2: sign, then quarters up to 1.75."""
    random = np.random.default_rng(3)
    a, b = (random.integers(0, 16, shape).astype(np.uint8) for shape in ((32, 128), (128, 64)))
    ones = np.full((32, 4), 127, np.uint8), np.full((4, 64), 127, np.uint8)
    packed = [codes[:, ::2] | (codes[:, 1::2] << 4) for codes in (a, b)]
    a_stored, b_stored = _in_boxes(*ones)
    slots = [packed[0], a_stored, packed[1], b_stored, np.zeros((32, 64), np.float32), 3]
    simulation = run([kernel("scaled_product.cpp", CoreType.AIC)], slots, [4], target="a5", check=True)
    found = outputs(simulation)[4]
    # scales have memories of their own: they overwrite no tile
    assert not [f for f in simulation.findings if f.severity is not Severity.NOTE]
    values = np.array([sign * i / 4 for sign in (1, -1) for i in range(8)])
    np.testing.assert_array_equal(found, (2 * (values[a] @ values[b])).astype(np.float32))


@pytest.mark.parametrize(("mode", "kind"), [(0, ml_dtypes.float8_e4m3fn), (1, ml_dtypes.float4_e2m1fn)])
def test_the_scaled_product_of_the_checkout_matches_numpy(
    simpler_checkout: Path, mode: int, kind: type
) -> None:
    folder = "tests/st/a5/tensormap_and_ringbuffer/mx_fp_gemm/kernels/aic"
    random = np.random.default_rng(mode)
    a, b = (random.uniform(-2, 2, shape).astype(kind) for shape in ((128, 64), (64, 64)))
    scales = random.integers(120, 132, 2).astype(np.uint8)  # one for each group of 32
    a_boxes, b_boxes = np.tile(scales, 128), np.tile(scales, 64)
    slots = [_stored(a), a_boxes, _stored(b), b_boxes, np.zeros((128, 64), np.float32), mode]
    cube = kernel(simpler_checkout / folder / "kernel_fp_gemm.cpp", CoreType.AIC)
    found = outputs(run([cube], slots, [4], target="a5"))[4]
    factors = np.repeat(4.0 ** (scales.astype(np.float64) - 127), 32)
    expected = (a.astype(np.float64) * factors) @ b.astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    ("log", "refused"),
    [
        (
            "/k/base.hpp:21:10: fatal error: basic_api/kernel_basic_intf.h: No such file or directory",
            "AscendC",
        ),
        ("/k/a.cpp:3:10: fatal error: 'kernel_operator.h' file not found", "AscendC"),
        ("/k/body.cce:4:20: error: standard attributes in middle of decl-specifiers", "raw CCE"),
    ],
)
def test_vendor_bodies_are_refused_as_what_they_are(log: str, refused: str) -> None:
    assert refused in first_error(log, Path("/k/entry.cpp")).refused


def test_a_missing_header_of_the_kernels_own_is_no_vendor_body() -> None:
    log = "/k/a.cpp:3:10: fatal error: mine/shapes.h: No such file or directory"
    assert not first_error(log, Path("/k/a.cpp")).refused


def _counter_kernel(folder: Path) -> Path:
    """Loads sixteen lines that nobody has touched, and keeps the counter of the time when they are there."""
    return write_kernel(
        folder,
        """
    auto *seen = reinterpret_cast<__gm__ int32_t *>(data_in(args, 1)) + get_block_idx() * 16;
    LineTile tile;
    TASSIGN(tile, 0);
    for (int i = 0; i < 16; ++i) {
        Line line(data_in(args, 0) + i * 64);
        TLOAD(tile, line);
    }
    pipe_barrier(PIPE_ALL);
    *seen = static_cast<int32_t>(get_sys_cnt());
""",
    )


def test_the_counter_of_a_core_alone_is_the_time_of_the_trace(tmp_path: Path) -> None:
    source = np.ones((16, 64), np.float32)
    done = simulate(_counter_kernel(tmp_path), {0: source, 1: np.zeros(16, np.int32)}, core_type="aiv")
    assert done.failure is None, done.failure
    rows = done.instructions
    read = max(i for i, name in enumerate(rows.name) if rows.names[name] == "MOV_XD_SPR")
    assert int(rows.end[read]) > 2000  # with what memory takes
    ticks = int(rows.end[read]) * 50 / done.mhz
    assert abs(int(done.outputs[1][0]) - ticks) <= 1


def test_each_of_several_cores_reads_a_counter_that_knows_its_own_work(tmp_path: Path) -> None:
    source, seen = np.ones((16, 64), np.float32), np.zeros(64, np.int32)
    kernel = _counter_kernel(tmp_path)
    done, shaken = (
        simulate(kernel, {0: source, 1: seen.copy()}, core_type="aiv", block_count=4, perturb=perturb)
        for perturb in (0, 7)
    )
    ticks = done.outputs[1][::16]
    assert (ticks > 2000 * 50 / done.mhz).all()
    np.testing.assert_array_equal(done.outputs[1], shaken.outputs[1])


def test_a_fresh_tile_that_is_assigned_to_one_changes_its_valid_part_and_not_its_place(
    tmp_path: Path,
) -> None:
    body = """
    using Part = Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor, -1, -1>;
    using PartLine = GlobalTensor<float, Shape<1, 1, 1, 1, -1>, Stride<64, 64, 64, 64, 1>>;
    Part first(1, 64), second(1, 64);
    TASSIGN(first, 0);
    TASSIGN(second, 1024);
    Line line(data_in(args, 0));
    TLOAD(first, line);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    second = Part(1, 32);
    TEXPANDS(second, 7.0f);
    pipe_barrier(PIPE_ALL);
    Line whole(data_in(args, 1));
    TSTORE(whole, first);
    first = second;
    PartLine part(data_in(args, 2), Shape<1, 1, 1, 1, -1>(32));
    TSTORE(part, first);
"""
    source = np.arange(64, dtype=np.float32)
    zeros = np.zeros(64, np.float32)
    done = simulate(write_kernel(tmp_path, body), {0: source, 1: zeros, 2: zeros}, core_type="aiv")
    assert done.failure is None, done.failure
    np.testing.assert_array_equal(done.outputs[1], source)
    np.testing.assert_array_equal(done.outputs[2], np.where(source < 32, 7, 0))
