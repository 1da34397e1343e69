"""tools/pto_isa_coverage.py: device tests of a checkout run on the embedded cores, and are counted."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "pto_isa_coverage.py"
LAUNCHES = TOOL.with_name("pto_isa_launches.py")

_KERNEL = """\
#include <pto/pto-inst.hpp>
#include "acl/acl.h"
using namespace pto;

template <typename T, int N>
__global__ AICORE void runDouble(__gm__ T __out__* out, __gm__ T __in__* in)
{
    Tile<TileType::Vec, T, 1, N> tile;
    TASSIGN(tile, 0x0);
    GlobalTensor<T, Shape<1, 1, 1, 1, N>, Stride<1, 1, 1, N, 1>> from(in), to(out);
    TLOAD(tile, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADD(tile, tile, tile);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, tile);
}
template <typename T, int N> void LaunchDouble(T* out, T* in, void* stream)
{
    runDouble<T, N>
        <<<1, nullptr, stream>>>(out, in);
}
template void LaunchDouble<float, 512>(float* out, float* in, void* stream);

// Two blocks store to the same place: who is last?
__global__ AICORE void runLast(__gm__ float __out__* out, __gm__ float __in__* in)
{
    Tile<TileType::Vec, float, 1, 512> tile;
    TASSIGN(tile, 0x0);
    GlobalTensor<float, Shape<1, 1, 1, 1, 512>, Stride<1, 1, 1, 512, 1>> from(in), to(out);
    TLOAD(tile, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TMULS(tile, tile, float(2 - get_block_idx()));
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, tile);
}
void LaunchLast(float* out, float* in, void* stream)
{
    runLast<<<2, nullptr, stream>>>(out, in);
}
"""
_MAIN = """\
#include "acl/acl.h"
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
class DoubleTest : public testing::Test {
protected:
    void SetUp() override {}
};
template <typename T, int N> void LaunchDouble(T* out, T* in, void* stream);
void LaunchLast(float* out, float* in, void* stream);
static void check(size_t elements, bool last = false)
{
    auto* info = testing::UnitTest::GetInstance()->current_test_info();
    std::string folder = std::string("../") + info->test_suite_name() + "." + info->name();
    float *host, *in, *out, golden[512] = {};
    size_t bytes = 512 * sizeof(float);
    aclrtMallocHost((void**)&host, bytes);
    struct stat facts;
    stat((folder + "/golden.bin").c_str(), &facts);
    std::ifstream(folder + "/input.bin", std::ios::binary).read((char*)host, bytes);
    std::ifstream(folder + "/golden.bin", std::ios::binary).read((char*)golden, bytes);
    aclrtMalloc((void**)&in, elements * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc((void**)&out, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(in, bytes, host, elements * sizeof(float), ACL_MEMCPY_HOST_TO_DEVICE);
    if (last) LaunchLast(out, in, nullptr);
    else LaunchDouble<float, 512>(out, in, nullptr);
    aclrtMemcpy(host, bytes, out, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    for (int i = 0; i < 512; ++i) EXPECT_EQ(host[i], golden[i]) << i;
}
TEST_F(DoubleTest, doubled) { check(512); }
TEST_F(DoubleTest, tripled) { check(512); }
TEST_F(DoubleTest, once_doubled) { check(512); }
TEST_F(DoubleTest, short_input) { check(32); }
TEST_F(DoubleTest, zeroed) { check(512); }
TEST_F(DoubleTest, absent) { check(512); }
TEST_F(DoubleTest, blind) {}
TEST_F(DoubleTest, last) { check(512, true); }
"""
_DATA = """\
import os
import numpy as np
values = np.arange(512, dtype=np.float32)
for name, factor in (("doubled", 2), ("tripled", 3), ("once_doubled", 3), ("short_input", 2), ("zeroed", 0),
                     ("last", 2)):
    os.makedirs(f"DoubleTest.{name}", exist_ok=True)
    (values * bool(factor)).tofile(f"DoubleTest.{name}/input.bin")
    (values * factor).tofile(f"DoubleTest.{name}/golden.bin")
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    base = tmp_path / "checkout" / "tests" / "npu" / "a2a3" / "src" / "st" / "testcase"
    for name, kernel in (
        ("double", _KERNEL),
        ("broken", "#include <pto/pto-inst.hpp>\nvoid f() { TNOSUCH(1); }\n"),
    ):
        folder = base / name
        folder.mkdir(parents=True)
        (folder / f"{name}_kernel.cpp").write_text(kernel, encoding="utf-8")
        (folder / "main.cpp").write_text(_MAIN, encoding="utf-8")
        (folder / "gen_data.py").write_text(_DATA, encoding="utf-8")
        (folder / "CMakeLists.txt").write_text(f"pto_vec_st({name})\n", encoding="utf-8")
    # an earlier generator knew what the kernel gives
    root, script = tmp_path / "checkout", base / "double" / "gen_data.py"
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b"]
    script.write_text(_DATA.replace('("once_doubled", 3)', '("once_doubled", 2)'), encoding="utf-8")
    subprocess.run([*git[:3], "init", "-q"], check=True)
    for text in (script.read_text(encoding="utf-8"), _DATA):
        script.write_text(text, encoding="utf-8")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "data"], check=True)
    return root


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pto_isa_launches", LAUNCHES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pto_isa_launches"] = module
    spec.loader.exec_module(module)
    return module


def test_every_case_of_a_checkout_is_counted_by_how_it_ended(checkout: Path, tmp_path: Path) -> None:
    scratch, report = tmp_path / "scratch", tmp_path / "report.json"
    command = [sys.executable, str(TOOL), "--pto-isa", str(checkout), "--scratch", str(scratch)]
    for _ in range(2):  # the second time from what was kept
        done = subprocess.run([*command, "--json", str(report)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[-6] == "1 of 2 folders compile unmodified"
        wanted = "total=16 right=2 wrong=1 refused=1 unsupported=0 uncompiled=8 nodata=2 stale=1 raced=1"
        assert lines[-5] == f"PTO_ISA a2a3 {wanted}"
        assert lines[-4].split()[:5] == ["1", "of", "the", "right", "ones"]
        assert lines[-3].strip() == "DoubleTest.zeroed"
        assert lines[-2].startswith("PTO_ISA a5 total=0 ")
    folders = {folder["name"]: folder for folder in json.loads(report.read_text(encoding="utf-8"))}
    outcomes = {one["case"]: one for one in folders["double"]["outcomes"]}
    assert outcomes["DoubleTest.doubled"]["state"] == "right"
    assert outcomes["DoubleTest.tripled"]["state"] == "wrong"
    assert outcomes["DoubleTest.once_doubled"]["message"].startswith("right by the generator of ")
    assert outcomes["DoubleTest.short_input"]["place"] == "double_kernel.cpp:11"
    assert outcomes["DoubleTest.last"]["message"].startswith("right in made-up order ")
    # zeros equal zeros: without data, or with nothing compared, a case proves nothing
    assert outcomes["DoubleTest.absent"]["state"] == "nodata"
    assert outcomes["DoubleTest.absent"]["message"] == "golden.bin is not there"
    assert outcomes["DoubleTest.blind"]["message"] == "right without its kernels"
    assert outcomes["DoubleTest.zeroed"]["idle"] is True
    assert "TNOSUCH" in folders["broken"]["outcomes"][0]["message"]


def test_a_launch_becomes_a_call_and_every_line_stays_where_it_was() -> None:
    text = _tool().rewrite_launches(_KERNEL)
    assert "<<<" not in text
    assert "launch<0 * 100000 + __LINE__>(1, [&]() { runDouble<T, N>(out, in); })" in text
    assert text.count("\n") == _KERNEL.count("\n")
    assert text.splitlines()[-1] == _KERNEL.splitlines()[-1]


def test_a_launch_whose_name_a_macro_makes_becomes_a_call_too() -> None:
    text = _tool().rewrite_launches(
        "    CONCAT(run, CASE)<half, 16>\n        <<<1, nullptr, stream>>>(out, in);\n"
    )
    assert "{ CONCAT(run, CASE)<half, 16>(out, in); })" in text
    assert text.count("\n") == 2
