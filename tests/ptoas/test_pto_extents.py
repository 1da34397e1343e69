"""Every buffer gets its true extent: views, partitions at the ends of their loops, scalars, pipe slots."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insight_trace.errors import InputError
from insight_trace.ptoas.kernel_plan import kernels_of_pto
from insight_trace.ptoas.launch_arguments import Wishes, kernel_arguments
from insight_trace.ptoas.planned_kernel import BufferArg
from insight_trace.ptoas.pto_parser import parse_pto


def arguments_of(text: str, **wishes):
    module = parse_pto(text)
    (kernel,) = kernels_of_pto(module)
    return kernel_arguments(kernel, module, Wishes(**wishes))


def sizes(text: str, **wishes) -> list[int]:
    return [a.elements for a in arguments_of(text, **wishes).arguments if isinstance(a, BufferArg)]


def kernel(body: str, parameters: str = "%p: !pto.ptr<f32>") -> str:
    constants = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 8, 16, 32, 64, 100))
    return f"func.func @k({parameters}) {{\n{constants}\n{body}\nreturn\n}}"


VIEW = "%v = pto.make_tensor_view %p, shape = [%c16, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf32>"


def test_a_view_reaches_from_its_first_to_its_last_element():
    assert sizes(kernel(VIEW)) == [512]
    padded = VIEW.replace("strides = [%c32", "strides = [%c100")
    assert sizes(kernel(padded)) == [15 * 100 + 31 + 1]


def test_a_view_without_strides_is_dense():
    text = "%v = pto.make_tensor_view %p, shape = [%c4, %c8] : !pto.tensor_view<?x?xf32>"
    assert sizes(kernel(text)) == [32]


def test_a_constant_may_have_any_name():
    text = "%width = arith.constant 48 : index\n" + VIEW.replace("%c32", "%width")
    assert sizes(kernel(text)) == [16 * 48]


def test_a_partition_beyond_the_view_counts_with_its_offset():
    body = VIEW + (
        "\nscf.for %i = %c0 to %c4 step %c1 {\n"
        "%o = arith.muli %i, %c8 : index\n"
        "%q = pto.partition_view %v, offsets = [%o, %c0], sizes = [%c8, %c32] : !pto.tensor_view<?x?xf32>"
        " -> !pto.partition_tensor_view<8x32xf32>\n}"
    )
    assert sizes(kernel(body)) == [32 * 32]


def test_a_pointer_that_was_moved_counts_from_where_it_points():
    body = "%m = pto.addptr %p, %c100 : <f32> -> <f32>\n" + VIEW.replace("%p,", "%m,")
    assert sizes(kernel(body)) == [612]


def test_january_text_reads_the_same():
    body = (
        "%v = pto.make_tensor_view %p, shape = [%c16, %c32] strides = [%c32, %c1] : !pto.tensor_view<2xf32>\n"
        "%s = pto.subview %v, offsets = [%c0, %c0], sizes = [16, 32] : !pto.tensor_view<2xf32>"
        " -> !pto.tile_view<16x32xf32>\n"
        "%t = pto.alloc_tile : <loc=ub, dtype=f32, rows=16, cols=32>"
    )
    assert sizes(kernel(body)) == [512]


def test_a_dynamic_dimension_takes_the_size_that_was_asked_for():
    text = kernel(VIEW.replace("[%c16", "[%n"), "%p: !pto.ptr<f32>, %n: index")
    assert sizes(text) == [256 * 32]
    assert sizes(text, dynamic_dim=40) == [40 * 32]
    assert sizes(text, scalars={"n": 7}) == [7 * 32]


def test_computed_dimensions_and_casts_are_followed():
    body = (
        "%w = arith.index_cast %n : i32 to index\n%d = arith.muli %w, %c3 : index\n"
        "%e = arith.ceildivsi %d, %c2 : index\n" + VIEW.replace("[%c16", "[%e")
    )
    text = kernel(body, "%p: !pto.ptr<f32>, %n: i32")
    assert sizes(text, scalars={"n": 5}) == [8 * 32]


def test_views_that_a_branch_yields_keep_their_argument():
    body = VIEW + (
        "\n%r = scf.if %b -> (!pto.tensor_view<?x?xf32>) {\nscf.yield %v : !pto.tensor_view<?x?xf32>\n"
        "} else {\n"
        "scf.yield %v : !pto.tensor_view<?x?xf32>\n}\n"
        "%q = pto.partition_view %r, offsets = [%c16, %c0], sizes = [%c16, %c32] : !pto.tensor_view<?x?xf32>"
        " -> !pto.partition_tensor_view<16x32xf32>"
    )
    assert sizes(kernel(body, "%p: !pto.ptr<f32>, %b: i1")) == [32 * 32]


def test_a_view_that_a_loop_carries_keeps_its_argument():
    body = VIEW + (
        "\n%r = scf.for %i = %c0 to %c4 step %c1 iter_args(%w = %v) -> (!pto.tensor_view<?x?xf32>) {\n"
        "scf.yield %w : !pto.tensor_view<?x?xf32>\n}\n"
        "%q = pto.partition_view %r, offsets = [%c16, %c0], sizes = [%c16, %c32] : !pto.tensor_view<?x?xf32>"
        " -> !pto.partition_tensor_view<16x32xf32>"
    )
    assert sizes(kernel(body)) == [32 * 32]


def test_a_branch_inside_a_branch_stays_guarded():
    inner = "scf.if %one {\n%q = pto.partition_view %v, offsets = [%c16, %c0], sizes = [%c16, %c32]"
    inner += " : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x32xf32>\n}\n"
    text = VIEW + "\n%one = arith.constant true\nscf.if %b {\n" + inner + "}"
    open_ = arguments_of(kernel(text, "%p: !pto.ptr<f32>, %b: i1"), scalars={"b": 0})
    assert open_.arguments[0].elements == 32 * 32
    assert not open_.warnings


def test_a_number_that_a_loop_carries_is_followed_to_its_last_value():
    body = VIEW + (
        "\n%r = scf.for %i = %c0 to %c4 step %c1 iter_args(%at = %c0) -> (index) {\n"
        "%q = pto.partition_view %v, offsets = [%at, %c0], sizes = [%c8, %c32] : !pto.tensor_view<?x?xf32>"
        " -> !pto.partition_tensor_view<8x32xf32>\n"
        "%next = arith.addi %at, %c8 : index\nscf.yield %next : index\n}"
    )
    assert sizes(kernel(body)) == [32 * 32]


@pytest.mark.parametrize(
    ("attributes", "elements"),
    [
        ("dir_mask = 1, slot_size = 1024", 8 * 1024 // 4),
        ("dir_mask = 3, slot_size = 1024", 2 * 4 * 1024 // 4),
        ("dir_mask = 2, slot_size = 65536, slot_num = 2", 32768),
    ],
)
def test_a_pipe_buffer_has_the_bytes_of_its_slots(attributes, elements):
    body = f"pto.aic_initialize_pipe {{{attributes}}} (gm_slot_buffer = %p : !pto.ptr<f32>)"
    assert sizes(kernel(body)) == [elements]


@pytest.mark.parametrize("size", ["-1e308", "1e9", "-4", "9" * 5000])
def test_a_pipe_buffer_of_no_size_is_refused(size):
    body = (
        f"pto.aic_initialize_pipe {{dir_mask = 1, slot_size = {size}}} (gm_slot_buffer = %p : !pto.ptr<f32>)"
    )
    with pytest.raises(InputError, match="is no size"):
        sizes(kernel(body))


def test_scalar_accesses_count():
    body = "%x = pto.load_scalar %p[%c100] : !pto.ptr<f32> -> f32\n"
    body += "pto.store_scalar %x, %p[%c3] : !pto.ptr<f32>, f32"
    assert sizes(kernel(body)) == [101]


def test_a_call_passes_its_pointers_on():
    text = (
        "func.func @k(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>) {\nfunc.call @inner(%b) : (!pto.ptr<f32>) -> ()\n"
        "return\n}\n" + kernel(VIEW).replace("@k", "private @inner")
    )
    assert sizes(text) == [64, 512]


def test_a_memref_argument_declares_its_own_size():
    text = kernel("", "%p: memref<32x64xf16, strided<[?, 1], offset: ?>, #pto.address_space<gm>>")
    assert sizes(text) == [2048]


def test_a_size_that_no_machine_has_is_refused_before_memory_is_taken():
    huge = "%h = arith.constant 1000000000000 : index\n" + VIEW.replace("[%c16", "[%h")
    with pytest.raises(InputError, match="would need"):
        sizes(kernel(huge))


def test_numbers_that_square_themselves_line_after_line_end_as_unknown():
    squares = "%s0 = arith.constant 99999999999 : index\n"
    squares += "".join(f"%s{n + 1} = arith.muli %s{n}, %s{n} : index\n" for n in range(60))
    assert sizes(kernel(squares + VIEW)) == [512]


loops = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 5), st.integers(1, 3), st.integers(0, 9)), max_size=3
)


@given(loops, st.integers(1, 6), st.integers(1, 6), st.integers(6, 20))
def test_nested_loops_reach_exactly_what_running_them_reaches(nest, rows, columns, pitch):
    """Loops (lower, trips, step, factor) whose counters, each times a factor, add up to the row offset."""
    lines = [f"%n{n} = arith.constant {n} : index" for n in range(200)]
    lines.append(
        f"%v = pto.make_tensor_view %p, shape = [%n1, %n{columns}], strides = [%n{pitch}, %n1]"
        " : !pto.tensor_view<?x?xf32>"
    )
    offset = "%n0"
    for depth, (lower, trips, step, factor) in enumerate(nest):
        lines.append(f"scf.for %i{depth} = %n{lower} to %n{lower + trips * step} step %n{step} {{")
        lines.append(f"%m{depth} = arith.muli %i{depth}, %n{factor} : index")
        lines.append(f"%o{depth} = arith.addi {offset}, %m{depth} : index")
        offset = f"%o{depth}"
    lines.append(
        f"%q = pto.partition_view %v, offsets = [{offset}, %n0], sizes = [%n{rows}, %n{columns}]"
        " : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<1x1xf32>"
    )
    lines += ["}"] * len(nest)
    reached = [0]
    for lower, trips, step, factor in nest:
        reached = [at + x * factor for at in reached for x in range(lower, lower + trips * step, step)]
    expected = max((at + rows - 1) * pitch + columns for at in reached)
    text = "func.func @k(%p: !pto.ptr<f32>) {\n" + "\n".join(lines) + "\nreturn\n}"
    assert sizes(text) == [max(expected, columns)]
