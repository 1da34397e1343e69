"""Builds of kernel projects as they are found: what their CMake files and host compilers ask of a toolkit is there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from insight_trace.program import launchers, linker, tiling_library
from insight_trace.simulate.embedded.toolchain import Toolchain
from tests.program.test_own_programs import HEAD, KERNEL, run_exec

TILES = HEAD.split("template <class T> T *on_device")[0]
needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
CONFIGURE = "cmake -DSOC_VERSION=Ascend910B1 -DRUN_MODE=npu -S . -B build > log 2>&1 && cmake --build build >> log 2>&1"


def test_every_kernel_of_a_source_has_a_launcher_whatever_its_linkage(tmp_path: Path) -> None:
    source = tmp_path / "kernels.cpp"
    source.write_text(
        'extern "C" __global__ __aicore__ void one(GM_ADDR x, uint32_t n) {}\n'
        "__global__ __aicore__ void two(GM_ADDR x) {}\n__aicore__ inline void inner(GM_ADDR x) {}\n"
    )
    launchers.write(source, tmp_path / "shim.cpp", tmp_path / "include")
    assert sorted(path.name for path in (tmp_path / "include").iterdir()) == [
        "aclrtlaunch_one.h",
        "aclrtlaunch_two.h",
    ]
    assert "uint32_t n);" in (tmp_path / "include" / "aclrtlaunch_one.h").read_text()


LOADS = """
#include <acl/acl.h>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>
#define OK(call) do { int e_ = call; if (e_) printf("%s -> %d\\n", #call, e_); } while (0)
int main() {
    float h[128] = {3};
    void *d = nullptr;
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&d, sizeof h, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpy(d, sizeof h, h, sizeof h, ACL_MEMCPY_HOST_TO_DEVICE));
    aclrtBinHandle file = nullptr, other = nullptr;
    aclrtFuncHandle kernel = nullptr, sum = nullptr;
    OK(aclrtBinaryLoadFromFile("out/fatbin/kernels/kernels.o", nullptr, &file));
    OK(aclrtBinaryGetFunction(file, "plus_one", &kernel));
    struct { void *x, *y; int rows; } packed{d, d, 2};
    OK(aclrtLaunchKernel(kernel, 2, &packed, sizeof packed, nullptr));
    printf("%d ", aclrtLaunchKernel(kernel, 2, &packed, 12, nullptr)); // too few bytes

    std::ifstream in("out/fatbin/kernels/kernels.o", std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
    OK(aclrtBinaryLoadFromData(bytes.data(), bytes.size(), nullptr, &other));
    OK(aclrtBinaryGetFunction(other, "plus_table", &sum));
    aclrtArgsHandle arguments = nullptr;
    aclrtParamHandle place = nullptr;
    void *buffer = nullptr;
    OK(aclrtKernelArgsInit(sum, &arguments));
    OK(aclrtKernelArgsAppend(arguments, &d, sizeof d, nullptr));
    OK(aclrtKernelArgsAppendPlaceHolder(arguments, &place));
    OK(aclrtKernelArgsGetPlaceHolderBuffer(arguments, place, 8, &buffer));
    *static_cast<int32_t *>(buffer) = 2;
    OK(aclrtKernelArgsFinalize(arguments));
    OK(aclrtLaunchKernelWithConfig(sum, 1, nullptr, nullptr, arguments, nullptr));
    struct { void *x; void *rows; int32_t count[2]; } host{d, nullptr, {2, 0}};
    aclrtPlaceHolderInfo where{8, 16};
    OK(aclrtLaunchKernelWithHostArgs(sum, 1, nullptr, nullptr, &host, sizeof host, &where, 1));

    OK(aclrtSynchronizeDevice());
    OK(aclrtMemcpy(h, sizeof h, d, sizeof h, ACL_MEMCPY_DEVICE_TO_HOST));
    printf("%g %g %d %d ", h[0], h[127], aclrtBinaryGetFunction(file, "minus", &kernel),
           aclrtBinaryLoadFromFile("CMakeLists.txt", nullptr, &other));
    OK(aclrtBinaryUnLoad(file));
    printf("%d\\n", aclrtBinaryUnLoad(file));
}
"""


@needs_cmake
def test_kernels_in_a_file_of_their_own_are_loaded_and_launched_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.16)
project(add CXX)
set(CMAKE_INSTALL_PREFIX "${CMAKE_CURRENT_LIST_DIR}/out" CACHE STRING "" FORCE)
include($ENV{ASCENDC_CMAKE_DIR}/ascendc.cmake)
ascendc_fatbin_library(kernels kernel.cpp)
add_executable(host host.cpp)
target_compile_options(host PRIVATE -Wall -Werror)
target_link_libraries(host PRIVATE host_intf_pub ascendcl)
""")
    table = KERNEL.replace("plus_one", "plus_table").replace(
        "__gm__ float *y, int rows", "__gm__ int32_t *count"
    )
    table = table.replace("int row =", "int rows = *count, row =").replace("gy(y +", "gy(x +")
    kernels = (KERNEL + table).replace("__global__", 'extern "C" __global__')
    (tmp_path / "kernel.cpp").write_text(TILES + kernels)
    (tmp_path / "host.cpp").write_text(LOADS)
    line = f"{CONFIGURE} && cmake --install build >> log 2>&1 && build/host"
    ran = run_exec(tmp_path, "sh", "-c", line)
    assert ran.returncode == 0, (tmp_path / "log").read_text() + ran.stderr
    assert ran.stdout == "100000 6 3 100000 100003 107017\n"
    assert "parameter 1 of plus_one ends at 16" in ran.stderr
    assert "the file has no kernel minus" in ran.stderr


@needs_cmake
def test_a_build_that_asks_for_the_cpu_mode_too_is_configured_and_its_target_says_that_it_is_not_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.16)
project(add CXX)
find_package(tikicpulib REQUIRED)
add_executable(on_cpu main.cpp)
target_link_libraries(on_cpu PRIVATE tikicpulib::Ascend910B1)
""")
    (tmp_path / "main.cpp").write_text("int main() {}\n")
    ran = run_exec(
        tmp_path, "sh", "-c", "cmake -S . -B build > log 2>&1 && touch configured; cmake --build build"
    )
    assert (tmp_path / "configured").is_file(), (tmp_path / "log").read_text()
    assert ran.returncode != 0
    assert "CPU mode is not simulated" in ran.stderr


def test_any_compiler_links_a_function_that_is_not_there_and_the_program_says_where_it_called_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "main.cpp").write_text("""
#include <acl/acl.h>
#include <cstdio>
extern "C" int aclnnAdd(void *);
int main() { printf("%d\\n", aclnnAdd(nullptr)); }
""")
    line = 'g++ -g main.cpp -I"$ASCEND_HOME_PATH/include" -L"$ASCEND_HOME_PATH/lib64" -lascendcl -o main && ./main'
    ran = run_exec(tmp_path, "sh", "-c", line)
    assert ran.stdout == "200001\n", ran.stderr
    assert "aclnnAdd is not there" in ran.stderr
    (tmp_path / "main.cpp").write_text("int other(); int main() { return other(); }\n")
    ran = run_exec(tmp_path, "sh", "-c", "g++ main.cpp -o main")
    assert ran.returncode == 1
    assert "undefined reference to `other()'" in ran.stderr


TILED = """
#include <cstdio>
#include "tiling/platform/platform_ascendc.h"
#include "tiling/tiling_api.h"
#include "kernel_tiling/kernel_tiling.h"
using namespace matmul_tiling;
int main() {
    auto *platform = platform_ascendc::PlatformAscendCManager::GetInstance();
    MultiCoreMatmulTiling tiling(*platform);
    tiling.SetDim(2);
    tiling.SetAType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16, false);
    tiling.SetBType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16, false);
    tiling.SetCType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT);
    tiling.SetOrgShape(256, 128, 64);
    tiling.SetShape(256, 128, 64);
    optiling::TCubeTiling made;
    const long error = tiling.GetTiling(made);
    AscendC::tiling::TCubeTiling seen;
    made.SaveToBuffer(&seen, sizeof seen);
    printf("%ld %d %d %d\\n", error, seen.M, seen.N, seen.usedCoreNum);
}
"""


def test_host_code_of_any_compiler_has_the_tiling_functions_of_a_checkout(
    tmp_path: Path, asc_devkit_checkout: Path
) -> None:
    (tmp_path / "main.cpp").write_text(TILED)
    line = 'g++ -std=c++17 main.cpp -I"$ASCEND_HOME_PATH/include" -L"$ASCEND_HOME_PATH/lib64" -ltiling_api -o main && ./main'
    words = [sys.executable, "-m", "insight_trace", "exec", "--trace", "none", "--", "sh", "-c", line]
    environment = {**os.environ, "INSIGHT_TRACE_ASCENDC": str(asc_devkit_checkout)}
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=900, env=environment)
    assert ran.stdout == "0 256 128 2\n", ran.stderr


RT_KERNEL = """
extern "C" __global__ __aicore__ void scaled(__gm__ float *x, __gm__ float *y, float scale) {
    Row a;
    TASSIGN(a, 0);
    Global from(x), to(y);
    TLOAD(a, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(a, a, scale);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, a);
}
"""
RT_HOST = """
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>
#include "runtime/rt.h"
static char stub;
int main() {
    rtSetDevice(0);
    std::ifstream in("kernel.o", std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
    rtDevBinary_t file{RT_DEV_BINARY_MAGIC_ELF_AIVEC, 0, bytes.data(), bytes.size()};
    void *handle, *x, *y;
    int error = rtDevBinaryRegister(&file, &handle);
    error += rtFunctionRegister(handle, &stub, "scaled", (void *)"scaled", 0);
    float h[64];
    for (int i = 0; i < 64; ++i) h[i] = i;
    rtMalloc(&x, sizeof h, RT_MEMORY_HBM, 0);
    rtMalloc(&y, sizeof h, RT_MEMORY_HBM, 0);
    rtMemcpy(x, sizeof h, h, sizeof h, RT_MEMCPY_HOST_TO_DEVICE);
    struct { void *x, *y; float scale; } arguments{x, y, 3.0f};
    error += rtKernelLaunch(&stub, 1, &arguments, sizeof arguments, nullptr, nullptr);
    error += rtStreamSynchronize(nullptr);
    rtMemcpy(h, sizeof h, y, sizeof h, RT_MEMCPY_DEVICE_TO_HOST);
    printf("%d %g %d\\n", error, h[63], rtKernelLaunch(h, 1, &arguments, sizeof arguments, nullptr, nullptr));
}
"""


def test_a_kernel_that_is_compiled_alone_is_registered_and_launched_by_the_lower_runtime(
    tmp_path: Path,
) -> None:
    (tmp_path / "kernel.cpp").write_text(HEAD + RT_KERNEL)
    (tmp_path / "host.cpp").write_text(RT_HOST)
    line = (
        "ccec -c -O2 -xcce --cce-aicore-arch=dav-c220-vec --cce-aicore-only kernel.cpp -o part.o"
        " && ld.lld -m aicorelinux -Ttext=0 part.o -static -o kernel.o"
        " && g++ host.cpp -o host -I$ASCEND_HOME_PATH/include -L$ASCEND_HOME_PATH/lib64 -lruntime && ./host"
    )
    ran = run_exec(tmp_path, "sh", "-c", line)
    assert ran.stdout.strip() == "0 189 100000", ran.stderr
    assert "rtFunctionRegister was not called for this stub" in ran.stderr


@needs_cmake
def test_a_build_for_the_torch_of_another_time_is_compiled_for_that_of_this_machine(tmp_path: Path) -> None:
    """`-D_GLIBCXX_USE_CXX11_ABI=0` against a torch with the other form of std::string makes libraries that do not load."""
    (tmp_path / "torch.py").write_text("class _C:\n    _GLIBCXX_USE_CXX11_ABI = True\n")
    (tmp_path / "host.cpp").write_text("int main() {}\n")
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.16)
project(old LANGUAGES CXX)
find_package(ASC REQUIRED)
foreach(name options definitions other)
  add_library(${name} SHARED host.cpp)
endforeach()
target_link_libraries(options PRIVATE torch_npu)
target_link_libraries(definitions PRIVATE torch_npu)
target_compile_options(options PRIVATE -D_GLIBCXX_USE_CXX11_ABI=0)
target_compile_definitions(definitions PRIVATE _GLIBCXX_USE_CXX11_ABI=0)
target_compile_definitions(other PRIVATE _GLIBCXX_USE_CXX11_ABI=0)
""")
    ran = run_exec(tmp_path, "sh", "-c", "PYTHONPATH=. cmake -S . -B build")
    assert ran.stdout.count("as the torch of this machine is") == 2, ran.stdout + ran.stderr
    flags = {
        name: (tmp_path / "build" / "CMakeFiles" / f"{name}.dir" / "flags.make").read_text()
        for name in ("options", "definitions", "other")
    }
    assert "CXX11_ABI=1" in flags["options"]
    assert "CXX11_ABI=1" in flags["definitions"]
    assert "CXX11_ABI=0" in flags["other"]


def test_host_code_of_another_source_calls_a_kernel_as_a_function(tmp_path: Path) -> None:
    """`kernel(blocks, nullptr, stream, …)`: what the vendor's compiler leaves for the host of a kernel with C linkage."""
    (tmp_path / "kernel.asc").write_text(HEAD + RT_KERNEL)
    (tmp_path / "host.cpp").write_text("""
#include <cstdio>
#include "acl/acl.h"
extern "C" void scaled(uint32_t blocks, void *l2, aclrtStream stream, uint8_t *x, uint8_t *y, float scale);
int main() {
    aclrtSetDevice(0);
    void *x, *y;
    float h[64];
    for (int i = 0; i < 64; ++i) h[i] = i;
    aclrtMalloc(&x, sizeof h, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&y, sizeof h, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(x, sizeof h, h, sizeof h, ACL_MEMCPY_HOST_TO_DEVICE);
    scaled(1, nullptr, nullptr, (uint8_t *)x, (uint8_t *)y, 3.0f);
    const int error = aclrtSynchronizeDevice();
    aclrtMemcpy(h, sizeof h, y, sizeof h, ACL_MEMCPY_DEVICE_TO_HOST);
    printf("%d %g\\n", error, h[63]);
}
""")
    line = (
        "bisheng -c --npu-arch=dav-2201 kernel.asc -o kernel.o && g++ -c host.cpp -o host.o -I$ASCEND_HOME_PATH/include"
        " && bisheng kernel.o host.o -o host -lascendcl && ./host"
    )
    ran = run_exec(tmp_path, "sh", "-c", line)
    assert ran.stdout.strip() == "0 189", ran.stderr


def test_what_failed_and_what_was_freed_are_named(tmp_path: Path) -> None:
    text = (
        HEAD
        + KERNEL
        + """
int main() {
    aclrtSetDevice(0);
    float *x = on_device<float>(64), *y = on_device<float>(64);
    aclrtFree(y);
    aclrtFree(x);
    plus_one<<<1, nullptr, nullptr>>>(x, y, 1);
    printf("%d\\n", aclrtSynchronizeDevice());
    x = on_device<float>(64), y = on_device<float>(64);
    plus_one<<<1, nullptr, nullptr>>>(x, y, 1);
    printf("%d\\n", aclrtSynchronizeDevice());
}
"""
    )
    (tmp_path / "program.cpp").write_text(text)
    ran = run_exec(
        tmp_path,
        "sh",
        "-c",
        "bisheng -xcce --npu-arch=dav-2201 program.cpp -o program -lascendcl && ./program",
    )
    assert ran.stdout.split() == ["507035", "0"], ran.stderr
    assert "buffer 1 (256 bytes) was there, and was freed" in ran.stderr
    assert re.search(r"1 failed: GM access of \d+ bytes at 0x\w+: buffer 1", ran.stderr), ran.stderr


def test_a_shared_library_gets_the_tiling_functions_that_its_linker_would_leave_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain = Toolchain.find()

    def compiled(name: str, text: str) -> str:
        (tmp_path / f"{name}.cpp").write_text(text)
        made = str(tmp_path / f"{name}.o")
        assert toolchain.compiler.run(["-fPIC", "-c", str(tmp_path / f"{name}.cpp"), "-o", made]).code == 0
        return made

    calls = compiled(
        "calls", "namespace matmul_tiling { int Answer(int); }\nint f() { return matmul_tiling::Answer(1); }"
    )
    defines = compiled("defines", "namespace matmul_tiling { int Answer(int) { return 42; } }")
    asked: list[set[str]] = []
    monkeypatch.setattr(tiling_library, "objects", lambda _, names: asked.append(set(names)) or [defines])
    library = str(tmp_path / "made.so")
    done = linker.link(
        toolchain,
        lambda more: toolchain.compiler.run(["-shared", "-o", library, calls, *more]),
        library=library,
    )
    assert done.code == 0
    assert asked == [{"Answer"}]
    assert "Answer" not in subprocess.run(["nm", "-D", "-u", library], capture_output=True, text=True).stdout
