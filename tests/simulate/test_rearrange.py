"""Elements that change place: gather, scatter, transpose, concatenate, interleave; against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.outcome import Fault
from tests.conftest import or_half
from tests.simulate.op_harness import Option, dtype, failure_of, run_tile_op, scalar, tile

DST, IDX, TMP, MORE = 0x8000, 0x10000, 0x18000, 0x20000
KEPT = 77
NARROW = ["float32", "float16", "bfloat16", "int32", "int16", "uint16", "uint32"]
ALL = [*NARROW, "int8", "uint8"]
PATTERNS = {1: (2, 0), 2: (2, 1), 3: (4, 0), 4: (4, 1), 5: (4, 2), 6: (4, 3), 7: (1, 0)}
BY_ROW, BY_COLUMN = Option(0), Option(1)


def random_values(data, shape: tuple[int, int], kind: str) -> np.ndarray:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    return rng.integers(0, 120, shape).astype(dtype(kind).numpy)


@st.composite
def shapes(draw: st.DrawFn, kind: str, most_cols: int = 10) -> tuple[int, int, int, int]:
    cols = draw(st.integers(1, most_cols)) * (32 // dtype(kind).size)
    rows = draw(st.integers(1, 20))
    return rows, cols, draw(st.integers(1, rows)), draw(st.integers(1, cols))


def assert_changed_only(got: np.ndarray, want: np.ndarray, part: tuple[slice, slice]) -> None:
    np.testing.assert_array_equal(got[part], want)
    rest = got.copy()
    rest[part] = KEPT
    np.testing.assert_array_equal(rest.astype(int), KEPT)


@pytest.mark.parametrize("kind", NARROW)
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_gather_by_index_takes_elements_of_the_flat_source(kind, data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes(kind))
    source = random_values(data, (data.draw(st.integers(1, 8)), 64), kind)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    index = rng.integers(0, source.size, (rows, cols)).astype(np.int32)
    result = run_tile_op(
        "TGATHER",
        tile(np.full((rows, cols), KEPT), DST, dtype_name=kind, valid=(valid_rows, valid_cols)),
        tile(source, 0, dtype_name=kind),
        tile(index, IDX),
        tile(np.zeros((rows, cols), np.int32), TMP),
    )
    part = slice(valid_rows), slice(valid_cols)
    assert_changed_only(result.matrix(0), source.ravel()[index][part], part)
    masks = ["MOV_SPR_XN"]
    row = [*masks, "VMULS", "BAR", "VGATHER"]
    assert result.instructions == [*masks, *row * valid_rows, *masks * 2]


@pytest.mark.parametrize("kind", NARROW)
@settings(max_examples=or_half(20))
@given(data=st.data())
def test_gather_by_pattern_packs_what_it_picks(kind, data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes(kind))
    number = data.draw(st.sampled_from(sorted(PATTERNS)))
    group, which = PATTERNS[number]
    source = random_values(data, (rows, cols), kind)
    picked = source[:valid_rows, :valid_cols][:, which::group].ravel()
    block = 32 // dtype(kind).size
    room = max(1, -(-picked.size // block)) * block
    result = run_tile_op(
        "TGATHER",
        tile(np.full((1, room), KEPT), DST, dtype_name=kind),
        tile(source, 0, dtype_name=kind, valid=(valid_rows, valid_cols)),
        Option(number),
        BY_ROW,
    )
    assert_changed_only(result.matrix(0), picked[None, :], (slice(1), slice(picked.size)))
    assert result.instructions.count("VREDUCEV2") == 1


@settings(max_examples=or_half(20))
@given(data=st.data())
def test_patterns_also_pick_and_place_whole_rows(data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes("float32"))
    number = data.draw(st.sampled_from(sorted(PATTERNS)))
    group, which = PATTERNS[number]
    source = random_values(data, (rows, cols), "float32")
    picked = source[:valid_rows, :valid_cols][which::group]
    part = slice(len(picked)), slice(valid_cols)
    gathering = (
        tile(np.full((rows, cols), KEPT, np.float32), DST),
        tile(source, 0, valid=(valid_rows, valid_cols)),
        Option(number),
        BY_COLUMN,
    )
    assert_changed_only(run_tile_op("TGATHER", *gathering, target="a5").matrix(0), picked, part)
    # a2a3 copies whole blocks of a row
    np.testing.assert_array_equal(run_tile_op("TGATHER", *gathering, target="a2a3").matrix(0)[part], picked)
    scattered = run_tile_op(
        "TSCATTER",
        tile(np.full((rows * group, cols), KEPT, np.float32), MORE, valid=(valid_rows * group, valid_cols)),
        tile(source, 0, valid=(valid_rows, valid_cols)),
        Option(number),
        BY_COLUMN,
        whole_blocks=True,
    )
    want = np.full((rows * group, cols), KEPT if group == 1 else 0, np.float32)
    want[which : valid_rows * group : group, :valid_cols] = source[:valid_rows, :valid_cols]
    np.testing.assert_array_equal(scattered.a5.matrix(0), want)


@pytest.mark.parametrize(("kind", "mode"), [("float32", 4), ("float32", 0), ("float16", 4), ("int32", 0)])
@settings(max_examples=or_half(15))
@given(data=st.data())
def test_gather_by_comparison_lists_positions_and_counts_them(kind, mode, data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes(kind, 4))
    source = random_values(data, (rows, cols), kind) % 4
    limit_kind = "int16" if kind == "float16" else "int32"
    limits = random_values(data, (1, 32), limit_kind) % 4
    offset = data.draw(st.integers(0, 1000))
    result = run_tile_op(
        "TGATHER",
        tile(np.full((rows, cols), KEPT, np.int32), DST),
        tile(source, 0, dtype_name=kind, valid=(valid_rows, valid_cols)),
        tile(limits, IDX),
        tile(np.full((1, 32), KEPT, np.int32), IDX + 0x1000),
        tile(np.zeros((rows, 64), np.uint8), TMP),
        scalar(offset, "INT32"),
        Option(mode),
    )
    for r in range(valid_rows):
        valid, limit = source[r, :valid_cols].astype(int), int(limits[0, r])
        hits = np.flatnonzero(valid > limit if mode == 4 else valid == limit)
        np.testing.assert_array_equal(result.matrix(0)[r, : hits.size], offset + r * cols + hits)
        assert result.matrix(3)[0, r] == hits.size


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@settings(max_examples=or_half(15))
@given(data=st.data())
def test_gather_of_blocks_follows_byte_offsets(kind, data):
    block = 32 // dtype(kind).size
    # a2a3 reads the offsets of what is left of all rows one after the other: whole repeats, or less than one
    rows, blocks = data.draw(st.integers(1, 10)), data.draw(st.integers(1, 8) | st.just(16))
    source = random_values(data, (16, 8 * block), kind)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    chosen = rng.integers(0, source.size // block, (rows, -(-blocks // 8) * 8))
    result = run_tile_op(
        "TGATHERB",
        tile(np.full((rows, blocks * block), KEPT), DST, dtype_name=kind),
        tile(source, 0, dtype_name=kind),
        tile((chosen * 32).astype(np.uint32), IDX),
    )
    want = source.reshape(-1, block)[chosen[:, :blocks]].reshape(rows, blocks * block)
    np.testing.assert_array_equal(result.matrix(0), want)


@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=or_half(15))
@given(data=st.data())
def test_scatter_by_index_clears_the_tile_and_the_last_writer_wins(kind, data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes(kind, 4))
    source = random_values(data, (rows, cols), kind)
    index_kind = "int32" if dtype(kind).size == 4 else "uint16"
    places = random_values(data, (rows, -(-cols // 16) * 16), index_kind)
    result = run_tile_op(
        "TSCATTER",
        tile(np.full((4, 64), KEPT), MORE, dtype_name=kind),
        tile(source, 0, dtype_name=kind),
        tile(places, IDX, valid=(valid_rows, valid_cols)),
    )
    want = np.zeros(256, dtype(kind).numpy)
    for r in range(valid_rows):
        for c in range(valid_cols):
            want[int(places[r, c])] = source[r, c]
    np.testing.assert_array_equal(result.matrix(0).ravel(), want)


@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=or_half(15))
@given(data=st.data())
def test_scatter_by_pattern_spreads_a_row(kind, data):
    rows, cols, valid_rows, valid_cols = data.draw(shapes(kind, 4))
    number = data.draw(st.sampled_from(sorted(set(PATTERNS) - {7})))
    group, which = PATTERNS[number]
    source = random_values(data, (rows, cols), kind)
    result = run_tile_op(
        "TSCATTER",
        tile(np.full((rows, cols * group), KEPT), MORE, dtype_name=kind),
        tile(source, 0, dtype_name=kind, valid=(valid_rows, valid_cols)),
        Option(number),
        BY_ROW,
    )
    want = np.zeros((rows, cols * group), dtype(kind).numpy)
    want[:valid_rows, which : valid_cols * group : group] = source[:valid_rows, :valid_cols]
    np.testing.assert_array_equal(result.matrix(0), want)


@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=or_half(15))
@given(data=st.data())
def test_transposition_swaps_rows_and_columns(kind, data):
    block = 32 // dtype(kind).size
    rows, cols = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 5)) * block
    valid = data.draw(st.integers(1, rows)), data.draw(st.integers(1, cols))
    out_cols = -(-rows // block) * block
    source = random_values(data, (rows, cols), kind)
    result = run_tile_op(
        "TTRANS",
        tile(np.full((cols, out_cols), KEPT), MORE, dtype_name=kind, valid=(valid[1], valid[0])),
        tile(source, 0, dtype_name=kind, valid=valid),
        tile(np.zeros((cols, out_cols)), DST, dtype_name=kind),
        whole_blocks=True,
    )
    want, part = source[: valid[0], : valid[1]].T, (slice(valid[1]), slice(valid[0]))
    np.testing.assert_array_equal(result.matrix(0)[part], want)
    assert_changed_only(result.a5.matrix(0), want, part)


def test_transposition_goes_in_boxes_where_it_can_and_one_by_one_where_not():
    wide = run_tile_op(
        "TTRANS",
        tile(np.zeros((16, 32), np.float32), MORE),
        tile(np.zeros((32, 16), np.float32), 0),
        tile(np.zeros((16, 32), np.float32), DST),
    ).instructions
    assert wide == [*(["MOVEVA"] * 4 + ["VNCHWCONV"]) * 2, "BAR", "MOV_UB_TO_UB"]
    eight = np.zeros((8, 8), np.float32)
    small = run_tile_op("TTRANS", tile(eight, MORE), tile(eight, 0), tile(eight, DST)).instructions
    assert small.count("LD_XD_XN_IMM") == small.count("ST_XD_XN_IMM") == 64


@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=or_half(15))
@given(data=st.data())
def test_concatenation_puts_the_second_tile_beside_the_first(kind, data):
    rows, cols, valid_rows, first = data.draw(shapes(kind, 5))
    second = data.draw(st.integers(1, cols))
    block = 32 // dtype(kind).size
    a, b = random_values(data, (rows, cols), kind), random_values(data, (rows, cols), kind)
    width = -(-(first + second) // block) * block
    operands = (
        tile(np.full((rows, width), KEPT), MORE, dtype_name=kind, valid=(valid_rows, first + second)),
        tile(a, 0, dtype_name=kind, valid=(valid_rows, first)),
        tile(b, DST, dtype_name=kind, valid=(valid_rows, second)),
    )
    result = run_tile_op("TCONCAT", *operands, whole_blocks=True)
    want = np.concatenate([a[:valid_rows, :first], b[:valid_rows, :second]], axis=1)
    np.testing.assert_array_equal(result.matrix(0)[:valid_rows, : first + second], want)
    assert_changed_only(result.a5.matrix(0), want, (slice(valid_rows), slice(first + second)))
    by_element = result.instructions.count("ST_XD_XN_IMM")
    assert by_element == (0 if first % block == 0 else valid_rows * second)
    assert run_tile_op("TCONCAT", *operands, timing_only=True).instructions == result.instructions


@pytest.mark.parametrize("with_result", [False, True])
@settings(max_examples=or_half(15))
@given(data=st.data())
def test_concatenation_can_take_its_counts_from_tiles(with_result, data):
    rows, cols = data.draw(st.integers(1, 6)), 64
    a, b = random_values(data, (rows, cols), "float32"), random_values(data, (rows, cols), "float32")
    counts = random_values(data, (2, rows), "int32") % cols + 1
    width = data.draw(st.integers(1, 16)) * 8

    def count_tile(values: np.ndarray, address: int):
        padded = np.zeros((rows, 8), np.int32)
        padded[:, 0] = values * 4  # counted in bytes of indices
        return tile(padded, address)

    result_count = (count_tile(np.zeros(rows, np.int32), TMP),) if with_result else ()
    result = run_tile_op(
        "TCONCAT",
        tile(np.full((rows, width), KEPT, np.float32), MORE),
        tile(a, 0),
        tile(b, DST),
        *result_count,
        count_tile(counts[0], IDX),
        count_tile(counts[1], IDX + 0x1000),
    )
    for r in range(rows):
        line = np.concatenate([a[r, : counts[0, r]], b[r, : counts[1, r]]])[:width]
        np.testing.assert_array_equal(result.matrix(0)[r, : line.size], line)
        np.testing.assert_array_equal(result.matrix(0)[r, line.size :], KEPT)
        if with_result:
            assert result.matrix(3)[r, 0] == line.size * 4


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int8"])
@settings(max_examples=or_half(15))
@given(data=st.data())
def test_interleaving_and_its_inverse(kind, data):
    block = 32 // dtype(kind).size
    rows, cols = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 8)) * block
    a, b = random_values(data, (rows, cols), kind), random_values(data, (rows, cols), kind)
    out = np.full((rows, cols), KEPT)

    def pair(op: str, first: np.ndarray, second: np.ndarray):
        result = run_tile_op(
            op,
            tile(out, MORE, dtype_name=kind),
            tile(out, TMP, dtype_name=kind),
            tile(second, DST, dtype_name=kind),
            tile(first, 0, dtype_name=kind),
            target="a5",
        )
        return result.matrix(1), result.matrix(0)

    low, high = pair("TINTERLEAVE", a, b)
    both = np.stack([a, b], axis=2).reshape(rows, 2 * cols)
    np.testing.assert_array_equal(np.concatenate([low, high], axis=1), both)
    even, odd = pair("TDEINTERLEAVE", low, high)
    np.testing.assert_array_equal(even, a)
    np.testing.assert_array_equal(odd, b)
    single = run_tile_op(
        "TDEINTERLEAVE",
        tile(out, MORE, dtype_name=kind),
        tile(out, TMP, dtype_name=kind),
        tile(both, 0, dtype_name=kind),
        target="a5",
    )
    np.testing.assert_array_equal(single.matrix(1), a)
    np.testing.assert_array_equal(single.matrix(0), b)


@pytest.mark.parametrize(
    ("op", "said"), [("TGATHER", "element -1"), ("TSCATTER", "index -1"), ("TTRANS", "do not fit")]
)
def test_misuse_is_the_kernels_fault(op, said):
    eight, index = np.zeros((8, 8), np.float32), np.full((8, 8), -1, np.int32)
    operands = {
        "TGATHER": (tile(eight, DST), tile(eight, 0), tile(index, IDX), tile(index, TMP)),
        "TSCATTER": (tile(eight, DST), tile(eight, 0), tile(index, IDX)),
        "TTRANS": (tile(eight, DST), tile(np.zeros((16, 8), np.float32), 0), tile(eight, TMP)),
    }[op]
    failure = failure_of(op, *operands)
    assert failure.fault is Fault.KERNEL
    assert said in failure.message
