"""AscendC kernels over an asc-devkit checkout (INSIGHT_TRACE_ASCENDC): right ones pass, a mistake has its line.

Nothing of the checkout is kept. The first tests need none.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from insight_trace.errors import RequestError
from insight_trace.model import CoreType, Kernel
from insight_trace.program import tiling_library
from insight_trace.program.compile import with_workspaces
from insight_trace.program.core_kinds import Reach, held_by, infer, vector_cores
from insight_trace.program.on_chip_arrays import with_on_chip_arrays
from insight_trace.program.specialisations import as_overloads, as_partial
from insight_trace.simulate.embedded import ascendc
from tests.simulate import dispatching

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import ascendc_coverage

# --- without a checkout ----------------------------------------------------------------------------------


def test_a_folder_that_is_no_checkout_is_a_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no checkout of asc-devkit"):
        ascendc.checkout(tmp_path)


def test_a_source_is_ascendc_when_it_or_a_header_of_its_own_includes_the_library(tmp_path: Path) -> None:
    (tmp_path / "kernel.h").write_text('#include "kernel_operator.h"\n')
    (tmp_path / "direct.cpp").write_text("  #  include <kernel_operator.h>\n")
    (tmp_path / "indirect.cpp").write_text('#include "kernel.h"\n')
    (tmp_path / "tiles.cpp").write_text("#include <pto/pto-inst.hpp>\n")
    found = {path.stem: ascendc.is_ascendc(path, [tmp_path]) for path in tmp_path.glob("*.cpp")}
    assert found == {"direct": True, "indirect": True, "tiles": False}


def test_tiling_definitions_become_structs_in_the_order_of_their_fields() -> None:
    text = """
    BEGIN_TILING_DATA_DEF(Shape)
    TILING_DATA_FIELD_DEF(uint32_t, rows);
    TILING_DATA_FIELD_DEF_ARR(int64_t, 4, dims);
    TILING_DATA_FIELD_DEF_STRUCT(Other, other);
    END_TILING_DATA_DEF;
    """
    made = ascendc.tiling_structs([text])
    fields = re.search(r"struct Shape \{(.*)\};", made, re.S)
    assert fields
    assert fields[1].split(";")[:3] == [
        "\n    uint32_t rows = 0",
        "\n    int64_t dims[4] = {}",
        "\n    Other other",
    ]
    assert "using AscendC::tiling::Shape;" in made


def test_what_the_linker_misses_is_named_by_class_and_function() -> None:
    said = (
        "x.o: undefined reference to `AscendC::GetErfMaxMinTmpSize(ge::Shape const&, unsigned int)'\n"
        "x.o: undefined reference to `matmul_tiling::MatmulApiTilingBase::SetBias(bool)'\n"
        "x.o: undefined reference to `vtable for matmul_tiling::MatmulApiTiling'\n"
        "x.o: undefined reference to `aclrtMalloc'\n"
    )
    assert tiling_library.missing(said) == {
        "GetErfMaxMinTmpSize", "MatmulApiTilingBase::SetBias", "MatmulApiTiling::",
    }  # fmt: skip


def test_the_kernels_of_a_launched_variable_are_those_that_its_values_name() -> None:
    text = "constexpr auto one = []() { if constexpr (n) { return a; } else { return b<1>; } }(); auto *two = &c;"
    kernels = {"a", "b", "c"}
    assert held_by(text, "one", kernels) == {"a", "b"}
    assert held_by(text, "two", kernels) == {"c"}
    assert held_by(text, "unknown", kernels) == kernels


@pytest.mark.parametrize(
    ("word", "kind", "cores"),
    [
        ("AIV_ONLY", CoreType.AIV, 2),
        ("AIC_ONLY", CoreType.AIC, 2),
        ("MIX_AIC_1_1", CoreType.MIX, 1),
        ("MIX_AIC_1_2", CoreType.MIX, 2),
        ("MIX_AIV_1_0", CoreType.AIV, 2),
    ],
)
def test_the_task_type_of_a_kernel_says_which_cores_it_is_for(word: str, kind: CoreType, cores: int) -> None:
    text = f'void f(int *x) {{ (void)"KERNEL_TASK_TYPE_DEFAULT(" "KERNEL_TYPE_{word}"; Mmad(x); Add(x); }}'
    reach = Reach(text)
    assert infer("f", reach, reach) is kind
    assert vector_cores("f", text, reach) == cores


def test_a_mix_has_as_many_vector_cores_as_its_declaration_says() -> None:
    text = "\n".join(
        f"__attribute__((insight_trace_mix_core_1_{count})) void {name}() {{}}"
        for name, count in (("f", 1), ("g", 2))
    )
    assert [vector_cores(name, text, None) for name in ("f", "g")] == [1, 2]


def test_a_member_class_that_is_specialised_in_its_class_gets_a_parameter() -> None:
    text = """template <class T> struct Outer {
    template <class U>
    struct Inner { using type = U; };
    template <>
    struct Inner<void> { using type = int; };
};
template <class T> struct Free {};
template <> struct Free<void> {};
"""
    made = as_partial(text)
    assert "template <class U, int insight_trace_any = 0>" in made
    assert "template <int insight_trace_any>\n    struct Inner<void, insight_trace_any> {" in made
    assert made.endswith(text[text.index("template <class T> struct Free") :])


def test_a_member_that_is_specialised_in_its_class_becomes_an_overload() -> None:
    text = """struct Kernel {
    template <int32_t CORE = g_coreType>
    inline void operator()(P const &p);
    template <>
    inline void operator()<AscendC::AIC>(P const &p) { cube(); }
    template <>
    inline void operator()<AscendC::AIV>(P const &p) { vector(); }
};
template <> void f<int>(int);
"""
    made = as_overloads(text)
    assert made.count("\n") == text.count("\n")
    assert made.count("enable_if_t<CORE == (AscendC::AI") == 2
    assert "operator()<" not in made
    assert made.endswith("template <> void f<int>(int);\n")
    assert as_overloads(made) == made


def test_the_commands_of_a_readme_are_those_of_its_first_build(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(
        "```cpp\ncmake is no command here\n```\n  ```bash\n  export AT=/cann\n  export N=1 # a number\n"
        "  cmake -DCMAKE_ASC_ARCHITECTURES=dav-3510 ..;make -j;\n"
        "  ./demo   # run\n  ```\n```bash\ncmake -DCMAKE_ASC_RUN_MODE=cpu ..\n```\n"
    )
    found = ascendc_coverage.commands(page, "dav-2201")
    assert found == ("export N=1", "cmake -DCMAKE_ASC_ARCHITECTURES=dav-2201 ..;make;", "./demo")


def test_an_array_in_a_memory_of_the_core_is_a_place_there_and_every_other_such_word_goes() -> None:
    ub = "__attribute__((insight_trace_in_UB))"
    text = (
        f"{ub} float outside[4];\nvoid f({ub} float *x, {ub} half *lists[4]) {{\n    {ub} float a[N / 2];\n"
        f"    {ub} std::pair<int, int>\n        b[2][3];\n    {ub} float *c[4];\n    g(({ub} float *)a);\n}}\n"
    )
    made = with_on_chip_arrays(text)
    assert "insight_trace_in" not in made
    assert made.count("\n") == text.count("\n")
    places = re.findall(
        r"(\S.*?) \(&(\w+)\)(\[.*\]) = ::insight_trace::on_chip_array<(.*)>\(.*Space::(\w+), \d+u\);", made
    )
    assert places == [
        ("float", "a", "[N / 2]", "float[N / 2]", "UB"),
        ("std::pair<int, int>", "b", "[2][3]", "std::pair<int, int>[2][3]", "UB"),
    ]
    assert " float *c[4];" in made
    assert made.startswith(" float outside[4];")


def test_what_was_declared_in_a_memory_of_the_core_becomes_a_tensor_of_that_memory() -> None:
    """The last declaration of a name counts; a plain pointer is one to global memory."""
    l1, bias = ("__attribute__((insight_trace_in_" + space + "))" for space in ("L1", "Bias"))
    made = with_on_chip_arrays(
        f"void g({l1} float *c) {{ MakeMemPtr(c + 8); }}\n"
        f"void f(half *c) {{\n    {bias} half x[4];\n    MakeTensor(MakeMemPtr(c), MakeMemPtr( x));\n"
        "    MakeMemPtr<Location::L0A>(x); MakeMemPtr(x(3));\n}"
    )
    assert re.findall(r"MakeMemPtr[^;]*?\)", made) == [
        "MakeMemPtr<::AscendC::Te::Location::L1>(c + 8)",
        "MakeMemPtr(c)",
        "MakeMemPtr<::AscendC::Te::Location::BIAS>( x)",
        "MakeMemPtr<Location::L0A>(x)",
        "MakeMemPtr(x(3)",
    ]


@pytest.mark.parametrize("matmul", [True, False])
def test_a_kernel_with_a_workspace_for_messages_names_it_and_with_matmul_clears_it(matmul: bool) -> None:
    text = "void f(int a, __attribute__((insight_trace_kfc_workspace)) uint8_t *w, int b) { g(w); }"
    made = with_workspaces("void clearWorkspace(uint8_t *);" * matmul + text)
    assert "::__set_kfc_workspace_addr(w);" in made
    assert ("::AscendC::clearWorkspace(w);" in made) == matmul
    assert made.index("GetUserWorkspace(w)") < made.index("g(w)")


@pytest.mark.parametrize(
    ("defines", "name"), [(["-DHAVE_WORKSPACE"], "t"), (["-DHAVE_WORKSPACE=1", "-DHAVE_TILING"], "w")]
)
def test_a_build_says_which_parameter_of_its_kernels_is_the_workspace(defines: list[str], name: str) -> None:
    kernel = "__attribute__((insight_trace_kernel)) void f(uint8_t *a, uint8_t *w, uint8_t *t) {{ g({0}w); }}"
    plain, named = kernel.format(""), kernel.format("").replace("*w", "*k", 1)
    made = with_workspaces(
        f"{plain}\n__attribute__((insight_trace_kernel)) void f(int);\nvoid h(int b) {{ }}", defines
    )
    enter = (
        f"if ({name}) {{ ::__set_kfc_workspace_addr({name}); {name} = ::AscendC::GetUserWorkspace({name}); }}"
    )
    assert f"{{{enter} g(w); }}" in made
    assert made.count("__set_kfc_workspace_addr") == 1
    assert with_workspaces(named) == named


# --- with one --------------------------------------------------------------------------------------------

HEAD = """
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "acl/acl.h"
#include "kernel_operator.h"
using namespace AscendC;
constexpr int kCount = 1000, kTile = 256;
"""
KERNEL = """
class Plus {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe *pipe) {
        gx.SetGlobalBuffer((__gm__ float *)x, kCount);
        gy.SetGlobalBuffer((__gm__ float *)y, kCount);
        pipe->InitBuffer(in, 2, kTile * sizeof(float));
        pipe->InitBuffer(out, 2, kTile * sizeof(float));
    }
    __aicore__ inline void Process() {
        for (int first = 0; first < kCount; first += kTile) {
            const uint32_t count = kCount - first < kTile ? kCount - first : kTile;
            LocalTensor<float> a = in.AllocTensor<float>();
            DataCopyPad(a, gx[first], {1, uint32_t(count * sizeof(float)), 0, 0, 0}, {false, 0, 0, 0});
            in.EnQue(a);
            LocalTensor<float> b = in.DeQue<float>();
            LocalTensor<float> c = out.AllocTensor<float>();
            Adds(c, b, 1.0f, count);
            c.SetValue(0, c.GetValue(0) * 2.0f); // by the scalar unit
            out.EnQue(c);
            in.FreeTensor(b);
            LocalTensor<float> d = out.DeQue<float>();
            DataCopyPad(gy[first], d, {1, uint32_t(count * sizeof(float)), 0, 0, 0});
            out.FreeTensor(d);
        }
    }
private:
    GlobalTensor<float> gx, gy;
    TQue<QuePosition::VECIN, 1> in;
    TQue<QuePosition::VECOUT, 1> out;
};
__global__ __vector__ void plus_one(GM_ADDR x, GM_ADDR y) {
    TPipe pipe;
    Plus op;
    op.Init(x, y, &pipe);
    op.Process();
}
"""
MAIN = """
int main() {
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtStream stream;
    aclrtCreateStream(&stream);
    std::vector<float> x(kCount), y(kCount, -1.0f);
    for (int i = 0; i < kCount; ++i) x[i] = float(i) * 0.5f;
    void *dx, *dy;
    aclrtMalloc(&dx, kCount * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&dy, kCount * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(dx, kCount * sizeof(float), x.data(), kCount * sizeof(float), ACL_MEMCPY_HOST_TO_DEVICE);
    plus_one<<<1, nullptr, stream>>>((uint8_t *)dx, (uint8_t *)dy);
    if (aclrtSynchronizeStream(stream)) return 3;
    aclrtMemcpy(y.data(), kCount * sizeof(float), dy, kCount * sizeof(float), ACL_MEMCPY_DEVICE_TO_HOST);
    int wrong = 0;
    for (int i = 0; i < kCount; ++i) wrong += y[i] != (x[i] + 1.0f) * (i % kTile ? 1.0f : 2.0f);
    printf("%d of %d wrong\\n", wrong, kCount);
    return wrong != 0;
}
"""
# The scalar unit reads what the vector unit wrote: a flag between them, both ways.
WAITED = """
            event_t written = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
            SetFlag<HardEvent::V_S>(written);
            WaitFlag<HardEvent::V_S>(written);
            c.SetValue(0, c.GetValue(0) * 2.0f); // by the scalar unit
            event_t read = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_MTE3));
            SetFlag<HardEvent::S_MTE3>(read);
            WaitFlag<HardEvent::S_MTE3>(read);
"""
SCALAR = "            c.SetValue(0, c.GetValue(0) * 2.0f); // by the scalar unit\n"
RIGHT = HEAD + KERNEL.replace(SCALAR, WAITED) + MAIN


def run(
    folder: Path, root: Path, text: str, *options: str, arch: str = "dav-2201"
) -> subprocess.CompletedProcess[str]:
    (folder / "program.asc").write_text(text)
    line = f"bisheng -xasc --npu-arch={arch} -O2 program.asc -o program && ./program"
    words = [sys.executable, "-m", "insight_trace", "exec", *options, "--", "sh", "-c", line]
    environment = {**os.environ, "INSIGHT_TRACE_ASCENDC": str(root)}
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=600, env=environment, check=False
    )


def test_a_kernel_with_queues_and_scalar_accesses_is_right(tmp_path: Path, asc_devkit_checkout: Path) -> None:
    ran = run(tmp_path, asc_devkit_checkout, RIGHT, "--check", "-o", "traces")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "0 of 1000 wrong" in ran.stdout
    assert not re.search("nothing that orders them|past the end|which nothing has written", ran.stderr)


def test_what_a_device_lets_a_kernel_do_is_said_with_the_users_line(
    tmp_path: Path, asc_devkit_checkout: Path
) -> None:
    text = RIGHT.replace("V_S>(written);", "V_S>(written + 16 + GetBlockIdx()); // wide", 1)
    ran = run(tmp_path, asc_devkit_checkout, text, "--trace", "none")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "// wide" in line)
    assert re.findall(r"of an event's number .*\n  in the kernel at (\S+)", ran.stderr) == [
        f"{tmp_path}/program.asc:{line}"
    ]


def test_a_release_build_and_macros_of_its_own_start_the_same_cores(
    tmp_path: Path, asc_devkit_checkout: Path
) -> None:
    (tmp_path / "program.asc").write_text(RIGHT)
    line = "bisheng -xasc --npu-arch=dav-2201 -O3 -DNDEBUG{0} program.asc -o program && ./program"
    words = [sys.executable, "-m", "insight_trace", "exec", "--trace", "none", "--", "sh", "-c"]
    environment = {**os.environ, "INSIGHT_TRACE_ASCENDC": str(asc_devkit_checkout)}
    for macro in ("", " -D_GNU_SOURCE=2"):  # nothing precompiled serves it
        ran = subprocess.run(
            [*words, line.format(macro)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=900,
            env=environment,
        )
        assert "0 of 1000 wrong" in ran.stdout, ran.stderr
        assert re.search(r"^plus_one +1 +1 +aiv ", ran.stderr, re.M), ran.stderr


# Core 0 makes what core 1 reads. Core 0 comes first, so that the word is there when core 1 looks for it.
HANDED_OVER = """
__global__ __vector__ void hand_over(GM_ADDR x, GM_ADDR y, GM_ADDR words) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer, word;
    pipe.InitBuffer(buffer, 256);
    pipe.InitBuffer(word, 32);
    LocalTensor<float> a = buffer.Get<float>();
    LocalTensor<int32_t> w = word.Get<int32_t>();
    GlobalTensor<float> from, to;
    GlobalTensor<int32_t> shared;
    from.SetGlobalBuffer((__gm__ float *)x, 64);
    to.SetGlobalBuffer((__gm__ float *)y, 64);
    shared.SetGlobalBuffer((__gm__ int32_t *)words, 64);
    if (GetBlockIdx() == 0) {
        Duplicate(a, 7.0f, 64);
        PipeBarrier<PIPE_ALL>();
        if (!LATE) DataCopy(from, a, 64);
        IBSet(shared, w, 0, 0);
        if (LATE) DataCopy(from, a, 64);
    } else {
        IBWait(shared, w, 0, 0);
        DataCopy(a, from, 64);
        PipeBarrier<PIPE_ALL>();
        DataCopy(to, a, 64);
    }
}
int main() {
    aclInit(nullptr);
    aclrtSetDevice(0);
    void *x, *y, *words;
    aclrtMalloc(&x, 256, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&y, 256, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&words, 256, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemset(x, 256, 0, 256);
    aclrtMemset(words, 256, 0, 256);
    hand_over<<<2, nullptr, nullptr>>>((uint8_t *)x, (uint8_t *)y, (uint8_t *)words);
    return aclrtSynchronizeStream(nullptr);
}
"""


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("arch", "chip"), [("dav-2201", "Ascend910B1"), ("dav-3510", "Ascend950PR_9599")])
def test_a_word_that_is_there_at_the_first_look_orders_what_came_before_it_alone(
    tmp_path: Path, asc_devkit_checkout: Path, late: bool, arch: str, chip: str
) -> None:
    text = f"#define LATE {int(late)}\n{HEAD}{HANDED_OVER}"
    options = ("--check", "-o", "traces", "--soc-version", chip)
    ran = run(tmp_path, asc_devkit_checkout, text, *options, arch=arch)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ("with nothing that orders the two cores" in ran.stderr) == late, ran.stderr


def test_a_checkout_can_be_named_on_the_command_line(tmp_path: Path, asc_devkit_checkout: Path) -> None:
    (tmp_path / "program.asc").write_text(RIGHT)
    line = "bisheng -xasc --npu-arch=dav-2201 -O2 program.asc -o program && ./program"
    words = [
        sys.executable,
        "-m",
        "insight_trace",
        "exec",
        "--trace",
        "none",
        "--ascendc-root",
        str(asc_devkit_checkout),
    ]
    ran = subprocess.run(
        [*words, "--", "sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_constant_of_a_kernel_is_made_of_its_bytes(tmp_path: Path, asc_devkit_checkout: Path) -> None:
    constant = """
struct Step { int32_t rows; float scale; };
constexpr uint8_t kBytes[] = {2, 0, 0, 0, 0, 0, 0x80, 0x3f};
template <const uint8_t *Bytes> struct Held { static constexpr Step value = convert_from_bytes<Step>(Bytes); };
static_assert(Held<kBytes>::value.rows == 2);
"""
    text = RIGHT.replace("\nclass Plus {", constant + "class Plus {", 1)
    text = text.replace("Adds(c, b, 1.0f, count)", "Adds(c, b, Held<kBytes>::value.scale, count)", 1)
    assert "kBytes>::value.scale" in text
    assert "struct Step" in text
    ran = run(tmp_path, asc_devkit_checkout, text, "--trace", "none")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "0 of 1000 wrong" in ran.stdout


def test_printf_assert_and_dump_tensor_of_a_kernel_are_shown(
    tmp_path: Path, asc_devkit_checkout: Path
) -> None:
    text = RIGHT.replace(
        "            in.FreeTensor(b);\n",
        "            in.FreeTensor(b);\n            DumpTensor(c, 7, 8);\n",
        1,
    )
    text = text.replace(
        "    op.Process();\n", '    AscendC::printf("number %d and %f\\n", 42, 0.5f);\n    op.Process();\n', 1
    )
    text = text.replace("    plus_one<<<", "    for (int i = 0; i < 3; ++i) plus_one<<<", 1)
    ran = run(tmp_path, asc_devkit_checkout, text, "--trace", "none")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    # the third launch is equal to the second
    assert ran.stdout.count("[AIV Block 0/1] number 42 and 0.500000") == 3
    assert "DumpTensor: desc=7, 8 elements" in ran.stdout
    assert "2.000000 1.500000 2.000000" in ran.stdout


EXTERN = """
#include <cstdint>
#include "tensor.h"
#include "intrinsic.h"
#include "kernel_operator.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *x = reinterpret_cast<__gm__ Tensor *>(args[0]);
    auto *y = reinterpret_cast<__gm__ Tensor *>(args[1]);
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> in;
    AscendC::TQue<AscendC::TPosition::VECOUT, 2> out;
    pipe.InitBuffer(in, 2, 256 * sizeof(float));
    pipe.InitBuffer(out, 2, 256 * sizeof(float));
    AscendC::GlobalTensor<float> from, to;
    from.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(x->buffer.addr) + x->start_offset);
    to.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(y->buffer.addr) + y->start_offset);
    for (int i = 0; i < 4; ++i) {
        auto a = in.AllocTensor<float>();
        AscendC::DataCopy(a, from[i * 256], 256);
        in.EnQue(a);
        a = in.DeQue<float>();
        auto b = out.AllocTensor<float>();
        AscendC::Exp(b, a, 256);
        out.EnQue(b);
        in.FreeTensor(a);
        b = out.DeQue<float>();
        AscendC::DataCopy(to[i * 256], b, 256);
        out.FreeTensor(b);
    }
}
"""


def test_an_extern_kernel_of_a_build_may_be_written_in_ascendc(
    tmp_path: Path, asc_devkit_checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSIGHT_TRACE_ASCENDC", str(asc_devkit_checkout))
    (tmp_path / "kernel.cpp").write_text(EXTERN)
    x = np.random.default_rng(1).uniform(-1, 1, (16, 64)).astype(np.float32)
    simulation = dispatching.run(
        [Kernel("k", tmp_path / "kernel.cpp", CoreType.AIV)], [x, np.zeros_like(x)], [1]
    )
    np.testing.assert_allclose(dispatching.outputs(simulation)[1], np.exp(x), rtol=1e-6)


MISTAKES = {
    "a store without DeQue": (
        "LocalTensor<float> d = out.DeQue<float>();", "LocalTensor<float> d = c;", "out.EnQue(c)"
    ),
    "a computation before the load is there": (
        "LocalTensor<float> b = in.DeQue<float>();", "LocalTensor<float> b = a;", "Adds(c, b"
    ),
    "a load past the end in the tail": (
        "DataCopyPad(a, gx[first], {1, uint32_t(count * sizeof(float)), 0, 0, 0}, {false, 0, 0, 0});",
        "DataCopy(a, gx[first], kTile * 4);", "DataCopy(a, gx[first]",
    ),
    "a store past the end in the tail": (
        "DataCopyPad(gy[first], d, {1, uint32_t(count * sizeof(float)), 0, 0, 0});",
        "DataCopy(gy[first], d, kTile);", "DataCopy(gy[first], d",
    ),
    "a scalar read without a flag": (
        "SetFlag<HardEvent::V_S>(written);\n            WaitFlag<HardEvent::V_S>(written);", "", "c.SetValue(0",
    ),
    "a wait for a flag that nobody sets": (
        "SetFlag<HardEvent::V_S>(written);\n", "", "WaitFlag<HardEvent::V_S>",
    ),
    "a computation past the end of UB": ("Adds(c, b, 1.0f, count);", "Adds(c[49000], b, 1.0f, count);", "Adds(c[49000]"),
    "buffers that are larger than UB": (
        "pipe->InitBuffer(out, 2, kTile * sizeof(float));", "pipe->InitBuffer(out, 2, 200 << 10);", "Adds(c, b",
    ),
    "a scalar read past every buffer": (
        "const uint32_t count =", "if (gx.GetValue(1 << 20) > 0) return;\n            const uint32_t count =",
        "gx.GetValue(1 << 20)",
    ),
    "an assertion": (
        "const uint32_t count =", "ascendc_assert(first < 512);\n            const uint32_t count =", "ascendc_assert",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found_with_the_users_line(
    mistake: str, tmp_path: Path, asc_devkit_checkout: Path
) -> None:
    before, after, marker = MISTAKES[mistake]
    assert before in RIGHT
    text = RIGHT.replace(before, after, 1)
    ran = run(tmp_path, asc_devkit_checkout, text, "--check", "-o", "traces")
    line = next(number for number, one in enumerate(text.splitlines(), 1) if marker in one)
    assert re.search(rf"(?:program\.asc:|line ){line}\b", ran.stderr), (
        f"line {line}\n{ran.stdout}{ran.stderr}"
    )
    if "load is there" in mistake:
        assert re.search(rf"the EnQue of line \d+ has no DeQue before line {line}\b", ran.stderr), ran.stderr
