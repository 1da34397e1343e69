"""Arguments get values that make the kernel work, each with the reason."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from insight_trace.dtypes import dtype_named
from insight_trace.errors import InputError
from insight_trace.model import Role
from insight_trace.ptoas.buffer_content import content_of, write_content
from insight_trace.ptoas.cpp_signature import parse_cpp
from insight_trace.ptoas.launch_arguments import Wishes, kernel_arguments
from insight_trace.ptoas.planned_kernel import BufferArg, Content, Purpose, ValueArg
from insight_trace.ptoas.pto_parser import parse_pto

CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 4, 8, 16, 64, 128))
VIEW = (
    "%v = pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>\n"
)


def prepared(body: str, parameters: str, cpp: str, **wishes):
    text = f"func.func @k({parameters}) {{\n{CONSTANTS}\n{body}\nreturn\n}}"
    (kernel,) = parse_cpp(f"AICORE void k({cpp}) {{}}").kernels
    return kernel_arguments(kernel, parse_pto(text, "k.pto"), Wishes(**wishes))


def part(offset: str, size: str = "%c16") -> str:
    return (
        f"%q{offset[1:]} = pto.partition_view %v, offsets = [{offset}, %c0], sizes = [{size}, %c64]"
        " : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x64xf32>\n"
    )


def test_an_offset_is_zero_so_that_the_partition_stays_inside_its_view():
    result = prepared(VIEW + part("%n"), "%p: !pto.ptr<f32>, %n: index", "__gm__ float* v1, int64_t v2")
    buffer, offset = result.arguments
    assert (buffer.elements, offset.value, offset.why) == (16 * 64, 0, "index")
    assert not result.warnings


def test_an_offset_that_was_set_too_far_is_warned_about_with_its_name():
    result = prepared(
        VIEW + part("%n"), "%p: !pto.ptr<f32>, %n: index", "__gm__ float* v1, int64_t v2", scalars={"n": 1}
    )
    assert result.arguments[0].elements == 17 * 64
    assert "outside of its view; n decide it" in result.warnings[0]


def test_a_loop_bound_makes_the_loop_turn_without_leaving_the_view():
    body = (
        VIEW.replace("%c16,", "%c64,")
        + "scf.for %i = %c0 to %n step %c1 {\n%o = arith.muli %i, %c16 : index\n"
    )
    result = prepared(body + part("%o") + "}", "%p: !pto.ptr<f32>, %n: index", "__gm__ float* v1, int64_t v2")
    assert (result.arguments[1].value, result.arguments[1].why) == (4, "loop bound")
    narrow = prepared(
        body.replace("%c64, %c64]", "%c16, %c64]") + part("%o") + "}",
        "%p: !pto.ptr<f32>, %n: index",
        "__gm__ float* v1, int64_t v2",
    )
    assert narrow.arguments[1].value == 1


def test_a_valid_length_fills_its_tile():
    body = "%t = pto.alloc_tile valid_row = %n : !pto.tile_buf<loc=vec, dtype=f32, rows=48, cols=16, v_row=?>"
    result = prepared(body, "%n: index", "int64_t v1")
    assert (result.arguments[0].value, result.arguments[0].why) == (48, "valid length of a tile")


def test_hidden_arguments_are_known_by_name_and_the_lane_is_left_to_the_core():
    result = prepared(
        "",
        "%__pypto_spmd_block_idx: i32, %__pypto_spmd_block_num: i32, %__pypto_spmd_subblock_idx: i32",
        "int32_t v1, int32_t v2, int32_t v3",
    )
    assert [(a.value, a.per_lane) for a in result.arguments] == [(0, False), (1, False), (0, True)]


def test_both_lanes_fit_into_a_buffer_that_the_lane_indexes():
    body = (
        VIEW + "%l = arith.index_cast %__pypto_spmd_subblock_idx : i32 to index\n"
        "%o = arith.muli %l, %c16 : index\n"
    )
    result = prepared(
        body + part("%o"),
        "%p: !pto.ptr<f32>, %__pypto_spmd_subblock_idx: i32",
        "__gm__ float* v1, int32_t v2",
    )
    assert result.arguments[0].elements == 32 * 64


def test_a_tensor_element_that_bounds_a_loop_is_not_zero():
    body = (
        VIEW
        + "%e = pto.load_scalar %m[%c4] : !pto.ptr<i32> -> i32\n%n = arith.index_cast %e : i32 to index\n"
        "scf.for %i = %c0 to %n step %c1 {\n" + part("%c0") + "}"
    )
    result = prepared(body, "%p: !pto.ptr<f32>, %m: !pto.ptr<i32>", "__gm__ float* v1, __gm__ int32_t* v2")
    control = result.arguments[1]
    assert (control.elements, control.content, control.low, control.role) == (
        5,
        Content.CONSTANT,
        4,
        Role.INPUT,
    )
    assert content_of(control, 0).tolist() == [4] * 5


def test_a_block_table_holds_indices_that_stay_inside_the_pool():
    body = (
        VIEW.replace("%c16,", "%c128,")
        + "%e = pto.load_scalar %m[%c8] : !pto.ptr<i32> -> i32\n%b = arith.index_cast %e : i32 to index\n"
        "%o = arith.muli %b, %c16 : index\n" + part("%o")
    )
    result = prepared(body, "%p: !pto.ptr<f32>, %m: !pto.ptr<i32>", "__gm__ float* v1, __gm__ int32_t* v2")
    table = content_of(result.arguments[1], 3)
    assert result.arguments[1].content is Content.INDEX
    assert table.min() >= 0
    assert table.max() <= 7
    assert table.any()
    assert result.arguments[0].elements == 128 * 64


def test_an_integer_input_of_unseen_use_stays_zero_and_says_so():
    tile = "!pto.tile_buf<loc=vec, dtype=i32, rows=16, cols=64>"
    body = (
        VIEW.replace("xf32", "xi32")
        + part("%c0").replace("xf32", "xi32").replace("%q", "%part")
        + f"%t = pto.alloc_tile : {tile}\n"
    )
    name = body[body.index("%part") :].split(" ")[0]
    body += f"pto.tload ins({name} : !pto.partition_tensor_view<16x64xi32>) outs(%t : {tile})"
    result = prepared(body, "%p: !pto.ptr<i32>", "__gm__ int32_t* v1")
    assert result.arguments[0].content is Content.ZERO
    assert "--input p=FILE" in result.warnings[0]


def test_two_versions_of_one_tensor_have_two_labels():
    view = "%{}_view = pto.make_tensor_view %{}, shape = [%c4], strides = [%c1] : !pto.tensor_view<?xf32>\n"
    body = (
        view.format("x__ssa_v0", "arg0") + view.format("x__ssa_v3", "arg1") + view.format("x__ssa_v3", "arg1")
    )
    result = prepared(
        body, "%arg0: !pto.ptr<f32>, %arg1: !pto.ptr<f32>", "__gm__ float* v1, __gm__ float* v2"
    )
    assert [a.label for a in result.arguments] == ["x", "x.arg1"]


def test_an_ffts_base_and_raw_dispatch_arguments_are_memory_of_the_runtime():
    result = prepared(
        "pto.set_ffts %f : !pto.ptr<i64>",
        "%f: !pto.ptr<i64>, %__pypto_deferred_raw_args: !pto.ptr<i64>",
        "__gm__ int64_t* v1, __gm__ int64_t* v2",
    )
    assert [a.purpose for a in result.arguments] == [Purpose.FFTS, Purpose.WORKSPACE]


def test_memory_for_an_unknown_operation_is_assumed_and_said():
    result = prepared("pto.mystery %p : !pto.ptr<f32>", "%p: !pto.ptr<f32>", "__gm__ float* v1")
    assert result.arguments[0].nbytes == 1 << 20
    assert "assumed" in result.warnings[0]


def test_small_types_have_their_own_size():
    parameters = "%a: !pto.ptr<f8E4M3FN>, %b: !pto.ptr<i4>, %c: !pto.ptr<hif8>"
    result = prepared("", parameters, "__gm__ uint8_t* v1, __gm__ uint8_t* v2, __gm__ uint8_t* v3")
    assert [a.dtype.size for a in result.arguments] == [1, 1, 1]


def test_scalars_of_every_type_have_a_literal_that_compiles():
    values = [
        ValueArg(0, "v1", "a", "bool", 1, ""),
        ValueArg(0, "v1", "a", "float", 0.5, ""),
        ValueArg(0, "v1", "a", "pto::MrgSortExecutedNumList", (1, 2, 3, 4), ""),
        ValueArg(0, "v1", "a", "int64_t", -3, ""),
    ]
    assert [v.literal for v in values] == [
        "true",
        "static_cast<float>(0.5f)",
        "pto::MrgSortExecutedNumList{1, 2, 3, 4}",
        "static_cast<int64_t>(-3LL)",
    ]


@pytest.mark.parametrize(
    ("parameters", "cpp", "what"),
    [
        (
            "%p: !pto.ptr<f32>",
            "__gm__ float* v1, int32_t v2",
            "takes 1 arguments, but the C\\+\\+ function k takes 2",
        ),
        ("%p: !pto.ptr<f32>", "int32_t v1", "argument 0 is !pto.ptr<f32> here"),
        ("%p: !pto.ptr<f7>", "__gm__ strange* v1", "unknown type"),
    ],
)
def test_files_of_different_builds_are_told_apart(parameters, cpp, what):
    with pytest.raises(InputError, match=what):
        prepared("", parameters, cpp)


def buffer(dtype: str, elements: int, content: Content, **more) -> BufferArg:
    found = dtype_named(dtype)
    assert found is not None
    return BufferArg(2, "v3", "x", found, elements, content, "", **more)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e8m0fnu"])
def test_random_floats_are_finite_not_all_equal_and_repeatable(dtype):
    argument = buffer(dtype, 5000, Content.RANDOM)
    values = content_of(argument, 7)
    again = content_of(argument, 7)
    wide = values.astype(np.float32)
    assert values.tobytes() == again.tobytes()
    assert content_of(argument, 8).tobytes() != values.tobytes()
    assert np.isfinite(wide).all()
    assert len(np.unique(wide)) > 1


def test_bfloat16_bits_are_rounded_to_nearest():
    values = content_of(buffer("bfloat16", 4000, Content.RANDOM), 1)
    exact = content_of(buffer("float32", 4000, Content.RANDOM), 1)
    assert (values == exact.astype(ml_dtypes.bfloat16)).all()


def test_roots_and_quotients_get_positive_numbers():
    assert content_of(buffer("float32", 1000, Content.RANDOM, positive=True), 0).min() >= 0.25


@given(st.integers(-100, 100), st.integers(0, 50), st.integers(1, 300))
def test_indices_stay_in_their_range(low, width, count):
    values = content_of(buffer("int32", count, Content.INDEX, low=low, high=low + width), 0)
    assert values.min() >= low
    assert values.max() <= low + width


def test_a_file_gives_the_content_raw_or_as_npy(tmp_path):
    data = np.arange(6, dtype=np.int32)
    np.save(tmp_path / "a.npy", data.reshape(2, 3))
    data.tofile(tmp_path / "a.bin")
    for name in ("a.npy", "a.bin"):
        argument = buffer("int32", 6, Content.FILE, file=tmp_path / name)
        assert content_of(argument, 0).tolist() == data.tolist()
        write_content(argument, 0, tmp_path / "out.bin")
        assert (tmp_path / "out.bin").read_bytes() == data.tobytes()


def test_a_file_of_another_size_is_refused_with_both_sizes(tmp_path):
    np.arange(6, dtype=np.int32).tofile(tmp_path / "a.bin")
    with pytest.raises(InputError, match="has 24 bytes, but x takes 28"):
        content_of(buffer("int32", 7, Content.FILE, file=tmp_path / "a.bin"), 0)
    np.save(tmp_path / "b.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"not a readable \.npy file: .*Python objects"):
        content_of(buffer("int32", 7, Content.FILE, file=tmp_path / "b.npy"), 0)
