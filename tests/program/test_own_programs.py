"""Programs of a user's own under `insight-trace exec`: right ones pass, wrong ones say what is wrong and where."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "own_program" / "add.cpp"
COMPILE = "bisheng -xcce --npu-arch=dav-2201 -O2 -g {source} -o {made} -lascendcl -lruntime"


def run_exec(
    folder: Path, *command: str, options: tuple[str, ...] = ("--trace", "none")
) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "insight_trace", "exec", *options, "--", *command]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600)


def run_program(folder: Path, text: str, *arguments: str, options: tuple[str, ...] = ("--trace", "none")):
    """A C++ program compiled and run as a user does it, in one command."""
    (folder / "program.cpp").write_text(text)
    line = COMPILE.format(source="program.cpp", made="program") + " && ./program " + " ".join(arguments)
    return run_exec(folder, "sh", "-c", line, options=options)


def line_of(text: str, marker: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if marker in line)


HEAD = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <acl/acl.h>
#include <runtime/rt.h>
#include <pto/pto-inst.hpp>
using namespace pto;
using Row = Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor>;
using Global = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<64, 64, 64, 64, 1>>;
template <class T> T *on_device(int count) {
    void *made = nullptr;
    if (aclrtMalloc(&made, count * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST)) exit(9);
    return static_cast<T *>(made);
}
"""
KERNEL = """
__global__ AICORE void plus_one(__gm__ float *x, __gm__ float *y, int rows) {
#if defined(__DAV_VEC__)
    Row a;
    TASSIGN(a, 0);
    for (int row = get_block_idx(); row < rows; row += get_block_num()) {
        Global gx(x + row * 64), gy(y + row * 64);
        TLOAD(a, gx);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TADDS(a, a, 1.0f);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(gy, a); // the store
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
#endif
}
"""


def test_a_program_with_a_kernel_runs_unchanged_and_each_launch_has_a_workspace(tmp_path: Path) -> None:
    line = COMPILE.format(source=EXAMPLE, made="add") + " && ./add"
    ran = run_exec(tmp_path, "sh", "-c", line, options=("-o", "traces", "--also", "npusim,perf-sim"))
    assert ran.returncode == 0, ran.stderr
    assert "error 0, 0 of 32768 wrong" in ran.stdout
    assert re.search(r"^add +1 +8 +aiv ", ran.stderr, re.M)
    workspace = tmp_path / "traces" / "add_0"
    record = json.loads((workspace / "replay.json").read_text())
    assert [one["status"] for one in record["outputs"]] == ["verified"]
    (made,) = workspace.glob("insight_export/OPPROF_*/simulator/visualize_data.bin")
    assert made.samefile(workspace / "add.bin")  # what to import, by the kernel's name
    reports = {path.name for path in (workspace / "kernel_0_reports").iterdir()}
    assert reports == {"summary.json", *(f"trace_core{block}.json" for block in range(8))}
    assert {"add_pipeline_summary.csv", "pmu.csv"} <= {path.name for path in workspace.iterdir()}
    stats = subprocess.run(
        [sys.executable, "-m", "insight_trace", "stats", str(workspace)], capture_output=True, text=True
    )
    assert stats.returncode == 0, stats.stderr
    assert sorted(path.name for path in EXAMPLE.parent.iterdir()) == [
        "add.cpp"
    ]  # nothing is left in the user's folder


@pytest.mark.upstream
@pytest.mark.parametrize(("arch", "chip"), [("dav-2201", "Ascend910B1"), ("dav-3510", "Ascend950PR_9599")])
def test_a_program_compiles_over_the_tile_library_of_a_checkout(
    tmp_path: Path, pto_isa_checkout: Path, arch: str, chip: str
) -> None:
    asked = "#ifndef INSIGHT_TRACE_LIBRARY\n#error these are our own headers\n#endif\nusing namespace pto;"
    (tmp_path / "add.cpp").write_text(EXAMPLE.read_text().replace("using namespace pto;", asked))
    line = f"bisheng -xcce --npu-arch={arch} add.cpp -o add -lascendcl && ./add"
    options = ("--trace", "none", "--pto-isa-root", str(pto_isa_checkout), "--soc-version", chip)
    done = run_exec(tmp_path, "sh", "-c", line, options=options)
    assert (done.returncode, done.stdout) == (0, "error 0, 0 of 32768 wrong\n"), done.stderr


def test_the_exit_code_is_the_programs_own(tmp_path: Path) -> None:
    assert run_exec(tmp_path, "sh", "-c", "exit 7").returncode == 7
    assert run_exec(tmp_path, "sh", "-c", "kill -9 $$").returncode == 137
    missing = run_exec(tmp_path, "no-such-program")
    assert missing.returncode == 2
    assert "no-such-program" in missing.stderr


def test_a_thousand_launches_go_to_one_engine_and_equal_ones_have_the_result_of_the_first(
    tmp_path: Path,
) -> None:
    text = (
        HEAD
        + KERNEL
        + """
int main() {
    float *x = on_device<float>(4 * 64), *y = on_device<float>(4 * 64);
    std::vector<float> h(256, 1.0f);
    aclrtMemcpy(x, 1024, h.data(), 1024, ACL_MEMCPY_HOST_TO_DEVICE);
    for (int i = 0; i < 1000; ++i) {
        plus_one<<<2, nullptr, nullptr>>>(i % 2 ? y : x, i % 2 ? x : y, 4); // each result is the next one's input
        if (aclrtSynchronizeDevice()) return 1;
    }
    aclrtMemcpy(h.data(), 1024, x, 1024, ACL_MEMCPY_DEVICE_TO_HOST);
    printf("%g\\n", h[17]);
}
"""
    )
    ran = run_program(tmp_path, text, options=("--trace", "none", "--json"))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "1001"
    launches = json.loads(ran.stderr[ran.stderr.index("{\n") :])["launches"]
    assert len(launches) == 1000
    assert sum(one["seconds"] for one in launches) < 60


def test_launches_of_templates_macros_structs_and_several_streams(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
struct Params { int rows; float add; __gm__ float *out; };
template <class T, int N> AICORE void body(__gm__ T *x, Params p) {
#if defined(__DAV_VEC__)
    Row a;
    TASSIGN(a, 0);
    Global gx(x), gy(p.out);
    TLOAD(a, gx);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(a, a, p.add + N);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(gy, a);
#endif
}
template <class T, int N> __global__ AICORE void shifted(__gm__ T *x, Params p) { body<T, N>(x, p); }
template <class T> void launch_it(T *x, Params p, aclrtStream s) { shifted<T, 3><<<1, 0, s>>>(x, p); }
#define LAUNCH(n, x, p, s) shifted<float, n><<<1, nullptr, s>>>(x, p)
int main() {
    std::vector<float> h(64, 1.0f), out(64);
    float *x = on_device<float>(64), *y = on_device<float>(64);
    aclrtMemcpy(x, 256, h.data(), 256, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtStream s = nullptr, t = nullptr;
    aclrtCreateStream(&s);
    aclrtCreateStream(&t);
    launch_it(x, Params{1, 0.5f, y}, s);
    aclrtSynchronizeStream(s);
    aclrtMemcpy(out.data(), 256, y, 256, ACL_MEMCPY_DEVICE_TO_HOST);
    printf("%g ", out[5]);
    aclrtEvent a, b;
    aclrtCreateEvent(&a);
    aclrtCreateEvent(&b);
    aclrtRecordEvent(a, t);
    LAUNCH(7, x, (Params{1, 0.25f, y}), t); LAUNCH(9, x, (Params{1, 0.25f, y}), t);
    aclrtRecordEvent(b, t);
    aclrtSynchronizeStream(t);
    aclrtMemcpy(out.data(), 256, y, 256, ACL_MEMCPY_DEVICE_TO_HOST);
    float ms = 0;
    aclrtEventElapsedTime(&ms, a, b);
    printf("%g %d <<<not a launch>>>\\n", out[63], ms > 0 && ms < 1);
}
"""
    )
    ran = run_program(tmp_path, text)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "4.5 10.25 1 <<<not a launch>>>"


def test_kernels_may_be_compiled_for_one_kind_of_core_only(tmp_path: Path) -> None:
    (tmp_path / "program.cpp").write_text(
        HEAD
        + KERNEL
        + """
int main() {
    float *x = on_device<float>(64);
    aclrtMemset(x, 256, 0, 256);
    plus_one<<<1, nullptr, nullptr>>>(x, x, 1);
    const int error = aclrtSynchronizeDevice();
    float h[64];
    aclrtMemcpy(h, 256, x, 256, ACL_MEMCPY_DEVICE_TO_HOST);
    printf("%d %g\\n", error, h[63]);
}
"""
    )
    line = "bisheng -xcce --cce-aicore-arch=dav-c220-vec program.cpp -o program -lascendcl && ./program"
    ran = run_exec(tmp_path, "sh", "-c", line)
    assert ran.stdout.strip() == "0 1", ran.stderr


def test_a_kernel_that_gives_up_is_an_error_and_the_program_goes_on(tmp_path: Path) -> None:
    text = (
        HEAD
        + KERNEL
        + """
__global__ AICORE void stuck(__gm__ float *x) {
#if defined(__DAV_VEC__)
    Row a;
    TASSIGN(a, 0);
    TADDS(a, a, 1.0f);
    abort();
#endif
}
int main() {
    float *x = on_device<float>(64);
    stuck<<<1, nullptr, nullptr>>>(x);
    printf("%d\\n", aclrtSynchronizeDevice());
    plus_one<<<1, nullptr, nullptr>>>(x, x, 1);
    printf("%d\\n", aclrtSynchronizeDevice());
}
"""
    )
    ran = run_program(tmp_path, text)
    assert ran.stdout.split() == ["507035", "0"], ran.stderr
    assert "the kernel aborted (signal 6)\n" in ran.stderr


def test_a_missing_wait_is_said_without_asking(tmp_path: Path) -> None:
    text = (
        HEAD
        + KERNEL.replace("        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n", "", 1).replace(
            "        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);\n", "", 1
        )
        + """
int main() {
    float *x = on_device<float>(64), *y = on_device<float>(64);
    std::vector<float> h(64, 2.0f);
    aclrtMemcpy(x, 256, h.data(), 256, ACL_MEMCPY_HOST_TO_DEVICE);
    plus_one<<<1, nullptr, nullptr>>>(x, y, 1);
    return aclrtSynchronizeDevice();
}
"""
    )
    ran = run_program(tmp_path, text, options=("-o", "traces"))
    line = line_of(text, "TADDS(a, a, 1.0f)")
    assert re.search(rf"program\.cpp: .*\(line {line}, V\) .*with nothing that orders them", ran.stderr), (
        ran.stderr
    )


def test_functions_that_are_not_there_say_so_by_name(tmp_path: Path) -> None:
    text = """
#include <cstdio>
#include <acl/acl.h>
extern "C" int aclSomethingNew(int);
int main() { printf("%d ", aclmdlLoadFromFile("m.om", nullptr) != 0); printf("%d\\n", aclSomethingNew(3) != 0); }
"""
    ran = run_program(tmp_path, text)
    assert ran.stdout.split() == ["1", "1"]
    assert "aclmdlLoadFromFile is not there" in ran.stderr
    assert "aclSomethingNew is not there" in ran.stderr


def test_a_python_program_compiles_loads_and_launches_by_ctypes(tmp_path: Path) -> None:
    (tmp_path / "kernel.cpp").write_text(
        HEAD
        + KERNEL
        + 'extern "C" void call_kernel(uint32_t blocks, void *stream, uint8_t *x, uint8_t *y, int rows) {\n'
        "    plus_one<<<blocks, nullptr, stream>>>((float *)x, (float *)y, rows);\n}\n"
    )
    (tmp_path / "run.py").write_text("""
import ctypes, subprocess
import numpy as np
subprocess.run(["bisheng", "-fPIC", "-shared", "-xcce", "--npu-arch=dav-2201", "-mllvm", "-cce-aicore-stack-size=0x8000",
                "-O2", "-std=gnu++17", "kernel.cpp", "-o", "kernel.so"], check=True)
lib, acl = ctypes.CDLL("./kernel.so"), ctypes.CDLL("libascendcl.so")
x = np.arange(128, dtype=np.float32)
y = np.zeros_like(x)
size = ctypes.c_size_t(x.nbytes)
dx, dy = ctypes.c_void_p(), ctypes.c_void_p()
for one in (dx, dy):
    assert acl.aclrtMalloc(ctypes.byref(one), size, 0) == 0
assert acl.aclrtMemcpy(dx, size, ctypes.c_void_p(x.ctypes.data), size, 1) == 0
lib.call_kernel(2, None, dx, dy, 2)
assert acl.aclrtSynchronizeDevice() == 0
assert acl.aclrtMemcpy(ctypes.c_void_p(y.ctypes.data), size, dy, size, 2) == 0
assert (y == x + 1).all()
print("right")
""")
    ran = run_exec(tmp_path, sys.executable, "run.py")
    assert ran.stdout.strip() == "right", ran.stderr
    assert ran.returncode == 0


def test_libraries_of_one_source_have_their_own_kernels(tmp_path: Path) -> None:
    source = (
        HEAD
        + KERNEL.replace("TADDS(a, a, 1.0f);", "TADDS(a, a, STEP);")
        + """
extern "C" void call_kernel(void *x, void *y) { plus_one<<<1, nullptr, nullptr>>>((float *)x, (float *)y, 1); }
"""
    )
    (tmp_path / "kernel.cpp").write_text(source)
    (tmp_path / "run.py").write_text("""
import ctypes, subprocess
import numpy as np
steps = (1.0, 2.5, 8.0)
for step in steps:
    flags = ["-fPIC", "-shared", "-xcce", "--npu-arch=dav-2201", f"-DSTEP={step}f"]
    subprocess.run(["bisheng", *flags, "kernel.cpp", "-o", f"kernel_{step}.so"], check=True)
libraries = {step: ctypes.CDLL(f"./kernel_{step}.so") for step in steps}
acl = ctypes.CDLL("libascendcl.so")
x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
size, dx, dy = ctypes.c_size_t(x.nbytes), ctypes.c_void_p(), ctypes.c_void_p()
for one in (dx, dy):
    assert acl.aclrtMalloc(ctypes.byref(one), size, 0) == 0
assert acl.aclrtMemcpy(dx, size, ctypes.c_void_p(x.ctypes.data), size, 1) == 0
for step in (*steps, *steps[::-1]):
    libraries[step].call_kernel(dx, dy)
    assert acl.aclrtSynchronizeDevice() == 0
    assert acl.aclrtMemcpy(ctypes.c_void_p(y.ctypes.data), size, dy, size, 2) == 0
    print(y[0])
""")
    ran = run_exec(tmp_path, sys.executable, "run.py")
    assert ran.stdout.split() == ["1.0", "2.5", "8.0", "8.0", "2.5", "1.0"], ran.stderr


def test_torch_has_an_npu_device_and_pytest_runs_on_it(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    if not os.environ.get("INSIGHT_TRACE_LONG_TESTS") and not _torch_device_is_built():
        pytest.skip("compiling torch's npu device takes a minute: INSIGHT_TRACE_LONG_TESTS=1")
    (tmp_path / "kernel.cpp").write_text(
        HEAD
        + KERNEL
        + 'extern "C" void call_kernel(uint32_t blocks, void *stream, uint8_t *x, uint8_t *y, int rows) {\n'
        "    plus_one<<<blocks, nullptr, stream>>>((float *)x, (float *)y, rows);\n}\n"
    )
    (tmp_path / "test_it.py").write_text("""
import copy, ctypes, io, subprocess
import torch_npu  # before torch, as build files import it
import pytest, torch

@pytest.fixture(scope="session")
def lib():
    flags = ["-fPIC", "-shared", "-xcce", "--npu-arch=dav-2201"]
    subprocess.run(["bisheng", *flags, "kernel.cpp", "-o", "kernel.so"], check=True)
    return ctypes.CDLL("./kernel.so")

@pytest.mark.parametrize("rows", [1, 5])
def test_plus_one(lib, rows):
    x = torch.randn(rows, 64, device="npu")
    y = torch.empty_like(x)
    begin, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    begin.record()
    stream = torch.npu.current_stream()._as_parameter_
    lib.call_kernel(4, stream, ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), rows)
    end.record()
    torch.npu.synchronize()
    assert 0 < begin.elapsed_time(end) < 1
    torch.testing.assert_close(y, x + 1)

def test_names_that_programs_use():
    x = torch.ones(4, 4, device="npu:1")
    kept = io.BytesIO()
    torch.save(x, kept)
    kept.seek(0)
    assert torch.equal(torch.load(kept), copy.deepcopy(x))
    with torch.autocast("npu", dtype=torch.float16):
        assert (x @ x).dtype is torch.float16
    with torch.npu.amp.autocast():
        assert (x + x).dtype is torch.float32
    x.record_stream(torch.npu.Stream())
    with torch.npu.stream(torch.npu.Stream()):
        assert torch_npu._C._npu_getCurrentRawStream(0) == torch.npu.current_stream().npu_stream != 0
    torch.npu.synchronize(device=0)
    assert x.unfold(0, 2, 1).device == x.device
    with pytest.raises(RuntimeError, match="Invalid device id 99"):
        torch.zeros(1, device="npu:99")
    with torch_npu.profiler.profile(activities=[torch_npu.profiler.ProfilerActivity.NPU]) as profile:
        profile.step()
    with pytest.raises(NotImplementedError, match="npu_fusion_attention"):
        torch_npu.npu_fusion_attention(x)
""")
    ran = run_exec(tmp_path, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3 passed" in ran.stdout


def _torch_device_is_built() -> bool:
    from insight_trace.cache import default_root

    return any((default_root() / "torch").glob("*/lib/libtorch_npu.so"))


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_a_cmake_build_with_the_asc_language_and_a_library_of_kernels(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.16)
project(add CXX)
include($ENV{ASCEND_HOME_PATH}/compiler/tikcpp/ascendc_kernel_cmake/ascendc.cmake)
ascendc_library(kernels STATIC kernel.cpp)
add_executable(host host.cpp)
target_link_libraries(host PRIVATE kernels)
add_executable(add add.asc)
target_link_libraries(add PRIVATE tiling_api platform m dl ascendcl)
""")
    shutil.copyfile(EXAMPLE, tmp_path / "add.asc")
    (tmp_path / "kernel.cpp").write_text(
        HEAD.split("template <class T> T *on_device")[0]
        + KERNEL.replace("__global__", 'extern "C" __global__')
    )
    (tmp_path / "host.cpp").write_text("""
#include <acl/acl.h>
#include <cstdio>
#include "aclrtlaunch_plus_one.h"
int main() {
    float h[128] = {3};
    void *d = nullptr;
    aclrtMalloc(&d, sizeof h, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(d, sizeof h, h, sizeof h, ACL_MEMCPY_HOST_TO_DEVICE);
    ACLRT_LAUNCH_KERNEL(plus_one)(2, nullptr, d, d, 2);
    const int error = aclrtSynchronizeDevice();
    aclrtMemcpy(h, sizeof h, d, sizeof h, ACL_MEMCPY_DEVICE_TO_HOST);
    printf("%d %g %g\\n", error, h[0], h[127]);
}
""")
    configure = "cmake -DSOC_VERSION=Ascend910B1 -DCMAKE_ASC_ARCHITECTURES=dav-2201 -S . -B build > log 2>&1"
    line = f"{configure} && cmake --build build >> log 2>&1 && ./build/host && ./build/add"
    ran = run_exec(tmp_path, "sh", "-c", line)
    assert ran.returncode == 0, (tmp_path / "log").read_text() + ran.stderr
    assert "0 4 1\n" in ran.stdout
    assert "0 of 32768 wrong" in ran.stdout


def test_msprof_op_simulator_runs_the_program_and_leaves_its_folder(tmp_path: Path) -> None:
    line = (
        COMPILE.format(source=EXAMPLE, made="add")
        + " && msprof op simulator --kernel-name=add --output=out ./add"
    )
    ran = run_exec(tmp_path, "sh", "-c", line)
    assert ran.returncode == 0, ran.stderr
    assert "0 of 32768 wrong" in ran.stdout
    (folder,) = (tmp_path / "out").glob("OPPROF_*")
    assert (folder / "simulator" / "visualize_data.bin").stat().st_size > 0
    assert (folder / "simulator" / "trace.json").is_file()
    profiled = run_exec(tmp_path, "msprof", "op", "--launch-count=2", "--output=prof", "--application=./add")
    assert profiled.returncode == 0, profiled.stderr
    assert "0 of 32768 wrong" in profiled.stdout
    assert "msprof op profiles on a device and writes nothing here" in profiled.stderr
    assert "1 launches on" in profiled.stderr
    assert "./gone is no program" in run_exec(tmp_path, "msprof", "--ascendcl=on", "./gone").stderr


def test_a_kernel_may_be_launched_from_another_source_than_its_own(tmp_path: Path) -> None:
    tiles = HEAD.split("template <class T> T *on_device")[0]
    (tmp_path / "kernel.cpp").write_text(tiles + KERNEL)
    (tmp_path / "launch.cpp").write_text(
        tiles + "__global__ AICORE void plus_one(__gm__ float *x, __gm__ float *y, int rows);\n"
        "void launch(float *x, void *stream) { plus_one<<<2, nullptr, stream>>>(x, x, 2); }\n"
    )
    (tmp_path / "main.cpp").write_text("""
#include <acl/acl.h>
#include <cstdio>
void launch(float *x, void *stream);
int main() {
    float h[128] = {3};
    void *d = nullptr;
    aclrtMalloc(&d, sizeof h, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(d, sizeof h, h, sizeof h, ACL_MEMCPY_HOST_TO_DEVICE);
    launch(static_cast<float *>(d), nullptr);
    const int error = aclrtSynchronizeDevice();
    aclrtMemcpy(h, sizeof h, d, sizeof h, ACL_MEMCPY_DEVICE_TO_HOST);
    printf("%d %g %g\\n", error, h[0], h[127]);
}
""")
    compiled = "bisheng -xcce --npu-arch=dav-2201 -fPIC -c {0}.cpp -o {0}.o"
    lines = [
        compiled.format("kernel"),
        compiled.format("launch"),
        "bisheng -shared --cce-fatobj-link kernel.o launch.o -o libkernel.so",
        'g++ main.cpp -I"$ASCEND_HOME_PATH/include" -L. -lkernel -L"$ASCEND_HOME_PATH/lib64" -lascendcl -o main',
        'LD_LIBRARY_PATH=".:$LD_LIBRARY_PATH" ./main',
    ]
    ran = run_exec(tmp_path, "sh", "-c", " && ".join(lines))
    assert ran.stdout.strip() == "0 4 1", ran.stderr
