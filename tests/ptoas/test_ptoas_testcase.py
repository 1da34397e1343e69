"""The standalone test case for CANN: complete, C linkage on both sides, the same inputs as ours."""

import dataclasses
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from insight_trace.errors import InputError
from insight_trace.profile import ProfileRequest, list_kernels
from insight_trace.profile.testcase import (
    own_case,
    render_testcase,
    template_environment,
    write_testcase,
    write_zero_inputs,
)
from insight_trace.ptoas.buffer_content import content_of
from insight_trace.ptoas.planned_kernel import BufferArg, Content, ProfileKernel, Purpose, ValueArg

ROOT = Path(__file__).resolve().parent.parent.parent
KERNELS = {k.name: k for k in list_kernels(ProfileRequest(ROOT / "examples" / "pypto_build"))}
FILES = {"kernel.cpp", "kernel_source.cpp", "launch.cpp", "main.cpp", "CMakeLists.txt", "golden.py"}

# What a host compiler needs to check the syntax of device code: empty words, and a launch that is a call.
SHIM = """#pragma once
#include <cstdint>
#define __gm__
#define AICORE
#define __global__
struct half { uint16_t bits; };
struct bfloat16_t { uint16_t bits; };
namespace pto { struct MrgSortExecutedNumList { uint16_t a, b, c, d; }; }
inline int get_subblockid() { return 0; }
inline void set_flag(int, int, int) {}
inline void wait_flag(int, int, int) {}
inline void pipe_barrier(int) {}
enum { PIPE_MTE3, PIPE_S, EVENT_ID0, PIPE_ALL };
"""
ACL = """#pragma once
#include <cstddef>
typedef void *aclrtStream;
enum { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEMCPY_HOST_TO_DEVICE };
int aclInit(const char *); int aclFinalize(); int aclrtSetDevice(int); int aclrtResetDevice(int);
int aclrtCreateStream(aclrtStream *); int aclrtDestroyStream(aclrtStream);
int aclrtSynchronizeStream(aclrtStream);
int aclrtMalloc(void **, size_t, int); int aclrtFree(void *); int aclrtMallocHost(void **, size_t);
int aclrtFreeHost(void *); int aclrtMemcpy(void *, size_t, const void *, size_t, int);
"""
FFTS = "#pragma once\n#include <cstdint>\nint rtGetC2cCtrlAddr(uint64_t *, uint32_t *);\n"


@pytest.fixture(scope="module")
def headers(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    root = tmp_path_factory.mktemp("headers")
    for name, text in (("pto/pto-inst.hpp", SHIM), ("acl/acl.h", ACL), ("runtime/rt_ffts.h", FFTS)):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


def compiles(path: Path, headers: Path, *flags: str) -> None:
    command = [
        "g++",
        "-std=c++17",
        "-fsyntax-only",
        "-Wall",
        "-Werror",
        "-Wno-unused-function",
        f"-I{headers}",
    ]
    done = subprocess.run([*command, *flags, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_every_kernel_of_the_example_gets_a_test_case_that_compiles(name, tmp_path, headers):
    kernel = KERNELS[name]
    case = tmp_path / "case"
    write_testcase(kernel, case)
    assert {path.name for path in case.iterdir()} == FILES
    assert stat.S_IMODE(case.stat().st_mode) == 0o700
    assert (case / "kernel_source.cpp").read_bytes() == kernel.source.read_bytes()
    compiles(case / "main.cpp", headers)
    launch = tmp_path / "launch_as_call.cpp"
    launch.write_text((case / "launch.cpp").read_text().replace("<<<1, nullptr, stream>>>", ""))
    compiles(launch, headers, "-Wno-unused-parameter")
    # the tile headers are not here, so the body is taken out; entry, wrapper and linkage remain
    source = (case / "kernel_source.cpp").read_text()
    (case / "kernel_source.cpp").write_text('#include "pto/pto-inst.hpp"\n' + hollow(source))
    for side in ("__DAV_CUBE__", "__DAV_VEC__"):
        compiles(case / "kernel.cpp", headers, f"-D{side}", f"-I{case}")


def hollow(source: str) -> str:
    """The kernel functions of a source with empty bodies."""
    heads = re.findall(r'^(?:extern "C" )?(?:__global__ )?AICORE void \w+\([^)]*\)', source, re.MULTILINE)
    return "".join(f"{head} {{}}\n" for head in heads)


def symbols(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if f" {name}(" in line and "__global__" in line]


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("matmul_64", "matmul_64"),
        ("matmul_k_loop", "matmul_k_loop"),
        ("vector_add", "vector_add_insight_entry"),
    ],
)
def test_both_sides_declare_the_entry_with_c_linkage_whatever_the_source_says(name, symbol):
    files = render_testcase(KERNELS[name])
    for file in ("kernel.cpp", "launch.cpp"):
        (line,) = symbols(files[file], symbol)
        assert line.startswith('extern "C" __global__ AICORE void ')


def test_a_mix_calls_each_half_on_its_core_and_the_lane_comes_from_the_core():
    text = render_testcase(KERNELS["up_group_0"])["kernel.cpp"]
    cube = text.index("#if defined(__DAV_CUBE__)")
    vector = text.index("#if defined(__DAV_VEC__)")
    assert cube < text.index("up_relu_aic(v1, v2, v3, v4);") < vector
    assert "up_relu_aiv(v1, v2, v3, v4, static_cast<int32_t>(get_subblockid()));" in text[vector:]


def test_source_lines_are_kept_unless_refused():
    text = render_testcase(KERNELS["matmul_64"])["CMakeLists.txt"]
    assert 'source view" ON)' in text
    assert "list(APPEND KERNEL_OPTIONS -g)" in text
    without = render_testcase(KERNELS["matmul_64"], debug_lines=False)["CMakeLists.txt"]
    assert 'source view" OFF)' in without
    assert " -s" not in without.replace("-std", "")


@pytest.mark.parametrize("name", ["matmul_64", "gather_columns", "row_blocks_by_length", "decode.vector_add"])
def test_golden_writes_the_bytes_that_the_embedded_simulator_gets(name, tmp_path):
    kernel = KERNELS[name]
    write_testcase(kernel, tmp_path / "case")
    subprocess.run([sys.executable, "golden.py"], cwd=tmp_path / "case", check=True)
    for argument in kernel.buffers:
        written = (tmp_path / "case" / f"{argument.name}.bin").read_bytes()
        assert written == content_of(argument, kernel.seed).tobytes()


def test_zero_files_of_the_right_size_stand_in_for_a_golden_that_failed(tmp_path):
    kernel = KERNELS["matmul_64"]
    case = own_case(kernel, tmp_path / "case", tmp_path / "build")
    assert len(write_zero_inputs(case)) == len(kernel.buffers)
    assert write_zero_inputs(case) == ()
    assert (tmp_path / "case" / "v1.bin").stat().st_size == 64 * 64 * 2


def test_a_given_file_is_part_of_the_case_and_golden_leaves_it_alone(tmp_path):
    kernel = KERNELS["gather_columns"]
    given = tmp_path / "x.bin"
    given.write_bytes(bytes(range(256)))
    arguments = list(kernel.arguments)
    arguments[0] = dataclasses.replace(arguments[0], content=Content.FILE, file=given)
    kernel = dataclasses.replace(kernel, arguments=tuple(arguments))
    write_testcase(kernel, tmp_path / "case")
    assert "v1.bin" not in (tmp_path / "case" / "golden.py").read_text()
    assert (tmp_path / "case" / "v1.bin").read_bytes() == given.read_bytes()


def with_arguments(*arguments: BufferArg | ValueArg) -> ProfileKernel:
    return dataclasses.replace(KERNELS["matmul_64"], arguments=arguments)


def test_an_ffts_base_comes_from_the_runtime(tmp_path, headers):
    first = KERNELS["matmul_64"].buffers[0]
    kernel = with_arguments(dataclasses.replace(first, purpose=Purpose.FFTS))
    text = render_testcase(kernel)["main.cpp"]
    assert "rtGetC2cCtrlAddr" in text
    assert "aclrtMalloc(&v1" not in text
    (tmp_path / "main.cpp").write_text(text)
    compiles(tmp_path / "main.cpp", headers)


def test_a_structure_and_a_bool_are_passed_as_values_of_their_type(tmp_path, headers):
    kernel = with_arguments(
        ValueArg(0, "v1", "a", "pto::MrgSortExecutedNumList", (128,) * 4, ""),
        ValueArg(1, "v2", "b", "bool", 1, ""),
        ValueArg(2, "v3", "c", "float", 1.0, ""),
    )
    text = render_testcase(kernel)["launch.cpp"]
    assert "pto::MrgSortExecutedNumList{128, 128, 128, 128}, true, static_cast<float>(1.0f)" in text
    (tmp_path / "launch.cpp").write_text(text.replace("<<<1, nullptr, stream>>>", ""))
    compiles(tmp_path / "launch.cpp", headers, "-Wno-unused-parameter")


@pytest.mark.parametrize("evil", ['x"; int y', "v1) {}", "a b-c", "", "x;system"])
def test_a_name_that_is_no_name_never_gets_into_a_file(evil):
    kernel = with_arguments(ValueArg(0, evil, "a", "int32_t", 1, ""))
    with pytest.raises(InputError, match="cannot stand in C"):
        render_testcase(kernel)


def test_a_template_cannot_write_what_no_filter_checked():
    with pytest.raises(TypeError, match="without a filter"):
        template_environment().from_string("{{ text }}").render(text="raw")
