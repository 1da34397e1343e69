"""Kernel entries are found as a compiler would see them."""

import pytest

from insight_trace.errors import InputError
from insight_trace.ptoas.cpp_signature import EntryForm, parse_cpp, read_cpp


def names(text: str) -> list[str]:
    return [kernel.name for kernel in parse_cpp(text).kernels]


@pytest.mark.parametrize(
    ("head", "form"),
    [
        ("AICORE void", EntryForm.BARE),
        ("__global__ AICORE void", EntryForm.GLOBAL),
        ('extern "C" __global__ AICORE void', EntryForm.EXTERN_GLOBAL),
        ('extern "C" __global__ __aicore__ void', EntryForm.EXTERN_GLOBAL),
        ("[aicore] void", EntryForm.BARE),
    ],
)
def test_each_form_of_an_entry_is_known(head, form):
    (kernel,) = parse_cpp(f"using namespace pto;\n{head} k(__gm__ float* v1, int32_t v2) {{ }}").kernels
    assert kernel.name == "k"
    assert kernel.functions[0].form is form
    assert [(p.name, p.type, p.is_pointer) for p in kernel.parameters] == [
        ("v1", "float", True),
        ("v2", "int32_t", False),
    ]


def test_a_block_with_c_linkage_counts_as_extern():
    (kernel,) = parse_cpp('extern "C" {\n__global__ AICORE void k(__gm__ half* v1) {}\n}').kernels
    assert kernel.functions[0].form is EntryForm.EXTERN_GLOBAL


@pytest.mark.parametrize(
    "pointer",
    [
        "__gm__ float *v1",
        "__gm__ const float* v1",
        "const __gm__ float * __restrict__ v1",
        "float __gm__ *v1",
        "__gm__ float const* v1",
        "float const __gm__* const v1",
    ],
)
def test_const_may_stand_anywhere(pointer):
    (kernel,) = parse_cpp(f"AICORE void k({pointer}) {{}}").kernels
    (parameter,) = kernel.parameters
    assert (parameter.name, parameter.type, parameter.is_pointer) == ("v1", "float", True)


def test_structures_and_long_type_names_are_kept_whole():
    (kernel,) = parse_cpp("AICORE void k(pto::MrgSortExecutedNumList v1, unsigned int v2 = 3) {}").kernels
    assert [p.type for p in kernel.parameters] == ["pto::MrgSortExecutedNumList", "unsigned int"]


def test_a_cube_and_a_vector_half_are_one_kernel_and_the_longer_half_gives_the_parameters():
    text = "AICORE void g_aic(__gm__ float* v1) {}\nAICORE void g_aiv(__gm__ float* v1, int32_t v2) {}"
    (kernel,) = parse_cpp(text).kernels
    assert kernel.name == "g"
    assert [f.name for f in kernel.functions] == ["g_aic", "g_aiv"]
    assert len(kernel.parameters) == 2


@pytest.mark.parametrize("name", ["x_aic", "x_aiv"])
def test_half_a_name_is_a_whole_kernel(name):
    assert names(f"AICORE void {name}(__gm__ float* v1) {{}}") == [name]


def test_comments_strings_and_macros_hold_no_kernels():
    text = """
    // __global__ AICORE void old(__gm__ float* v1) {
    /* AICORE void older() { } */
    #define AICORE_KERNEL(x) AICORE void x() { }
    static const char* help = "AICORE void quoted() { }";
    AICORE void k(__gm__ float* v1) { /* } */ const char* c = "}"; }
    """
    assert names(text) == ["k"]


def test_helpers_are_no_entries():
    text = """
    static AICORE void helper(int x) { }
    template <typename T> AICORE void generic(T x) { }
    AICORE inline void small(int x) { }
    AICORE void called(__gm__ float* v1) { }
    AICORE void k(__gm__ float* v1) { called(v1); }
    """
    assert names(text) == ["k"]


def test_several_kernels_of_a_file_are_all_found():
    text = "__global__ AICORE void a(__gm__ float* v1) {}\n__global__ AICORE void b(__gm__ half* v1) {}"
    assert names(text) == ["a", "b"]
    assert names(text.replace("__global__ ", "")) == ["a", "b"]


def test_a_global_with_static_halves_is_one_kernel():
    text = """
    static AICORE void cube(__gm__ float* v1) {}
    static AICORE void vector(__gm__ float* v1) {}
    __global__ AICORE void entry(__gm__ float* v1) { cube(v1); vector(v1); }
    """
    assert names(text) == ["entry"]


def test_sections_say_which_cores_the_code_is_for():
    assert parse_cpp("#if defined(__DAV_CUBE__)\n#endif").sections == {"cube"}
    assert parse_cpp("#ifdef __DAV_VEC__\n#endif\n// #if defined(__DAV_CUBE__)").sections == {"vector"}


def test_a_file_without_a_kernel_says_what_one_looks_like(tmp_path):
    path = tmp_path / "none.cpp"
    path.write_text("int main() { return 0; }")
    with pytest.raises(InputError, match="an entry is"):
        read_cpp(path)
