"""What a kernel's source says about its arguments."""

import pytest

from insight_trace.errors import InputError, RequestError
from insight_trace.model import CoreType
from insight_trace.scene.kernel_source import kernel_shape, shape_of_source

ENTRY = 'extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {{ {} }}'


def shape(body, declared=None):
    return shape_of_source(ENTRY.format(body), declared)


def test_the_slots_that_are_read_are_found():
    found = shape("auto a = args[0]; use(args[ 2 ]); from_u64<float>(args[0x7]);")
    assert found.slots == (0, 2, 7)
    assert found.complete
    assert found.has_entry


def test_comments_and_strings_are_not_code():
    found = shape('/* args[9] */ const char *s = "args[8]"; // args[7]\n use(args[1]);')
    assert found.slots == (1,)


def test_another_name_of_the_array_is_understood():
    text = "void kernel_entry(__gm__ int64_t* slots) { use(slots[3]); }"
    assert shape_of_source(text, CoreType.AIV).slots == (3,)


def test_a_local_accessor_reads_the_slot_that_it_is_given():
    assert shape("auto *x = tensor_data(args, 4); tensor_desc<float>(args, 5);").slots == (4, 5)


@pytest.mark.parametrize(
    ("body", "local", "global_"),
    [
        ("get_block_idx(args);", True, False),
        ("get_block_num( args );", True, False),
        ("get_async_ctx(args);", True, False),
        ("get_sub_block_id(args);", False, True),
        ("get_dma_workspace(args, 0);", False, True),
        ("use(args[48]); use(args[49]);", True, True),
        ("use(args[SPMD_LOCAL_CONTEXT_INDEX]);", True, False),
        ("use(args[PAYLOAD_GLOBAL_CONTEXT_INDEX]);", False, True),
        ("use(args[0]); get_block_idx();", False, False),
    ],
)
def test_reading_a_context_is_seen(body, local, global_):
    found = shape(body)
    assert (found.reads_local_context, found.reads_global_context) == (local, global_)
    assert not {48, 49} & set(found.slots)


def test_a_slot_that_is_computed_makes_the_list_incomplete():
    assert not shape("for (int i = 0; i < 3; ++i) use(args[i]);").complete


def test_a_slot_outside_the_array_is_refused():
    with pytest.raises(InputError, match=r"reads args\[50\]"):
        shape("use(args[50]);")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("#ifdef __DAV_CUBE__\n#endif\n#ifdef __DAV_VEC__\n#endif", CoreType.MIX),
        ("#if defined(__DAV_CUBE__)\n#endif", CoreType.AIC),
        ("#ifdef __DAV_VEC__\n#endif", CoreType.AIV),
        ("TMATMUL(c, a, b);", CoreType.AIC),
        ("TADD(c, a, b);", CoreType.AIV),
    ],
)
def test_without_a_declaration_the_source_decides_the_core(body, expected):
    assert shape("\n" + body + "\n").core_type is expected


def test_a_declared_core_type_counts():
    assert shape("TMATMUL(c, a, b);", CoreType.AIV).core_type is CoreType.AIV


def test_a_source_that_is_not_there_is_a_wrong_request(tmp_path):
    with pytest.raises(RequestError, match="does not exist"):
        kernel_shape(tmp_path / "k.cpp")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("// not a TMATMUL kernel, no TileAcc<float>\n TADD(a, b, c);", CoreType.AIV),
        ('const char *s = "TMATMUL("; TADD(a, b, c);', CoreType.AIV),
        ("TMATMUL(acc, left, right);", CoreType.AIC),
        ("TGEMV_ACC(acc, left, right);", CoreType.AIC),
        ("TileLeft<half, 16, 16> left; TEXTRACT(left, mat, 0, 0);", CoreType.AIC),
        ("Tile<TileType::Right, half, 16, 16> right; TEXTRACT(right, mat, 0, 0);", CoreType.AIC),
        ("Tile<TileType::Vec, half, 16, 16> row; TEXTRACT(row, other, 0, 0);", CoreType.AIV),
    ],
)
def test_a_kernel_without_guards_is_for_the_core_that_has_its_tiles(body, kind, tmp_path):
    from insight_trace.simulate import kernel_from_source

    assert shape(body).core_type is kind
    source = tmp_path / "kernel.cpp"
    source.write_text(ENTRY.format(body))
    assert kernel_from_source(source).core_type is kind  # one answer everywhere


def test_a_source_for_both_kinds_of_core_is_asked_about(tmp_path):
    from insight_trace.simulate import kernel_from_source

    source = tmp_path / "kernel.cpp"
    source.write_text("#ifdef __DAV_CUBE__\n#endif\n#ifdef __DAV_VEC__\n#endif\n" + ENTRY.format(""))
    with pytest.raises(RequestError, match="both kinds of core"):
        kernel_from_source(source)
    assert kernel_from_source(source, "aic").core_type is CoreType.AIC
