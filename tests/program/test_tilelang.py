# ruff: noqa: E501
"""Programs as tilelang-ascend's PTO target makes them, over the templates of a checkout, against NumPy.

Its compiler is on no index and takes a build of TVM, so the sources here are written by hand in the forms that its code
generator has (`src/target/codegen_ascend_pto.cc`): the same templates, guards, addresses and host function, compiled by
the command line of its `libgen.py`. Each is named after the example or test whose operations it has.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.program.test_own_programs import run_exec

RNG = np.random.default_rng(11)
UB = "tl::ascend_pto::TileUbDataND<{}> {}; TASSIGN({}, {});"


class Made(NamedTuple):
    """A kernel's parameters by name and type, its blocks, its body, its arrays, and what the last one becomes."""

    parameters: dict[str, str]
    blocks: int
    body: str
    arrays: Callable[[], list[np.ndarray]]
    expected: Callable[..., np.ndarray]
    tolerance: float = 0.0


def ub(name: str, element: str, rows: int, columns: int, address: int) -> str:
    return UB.format(f"{element}, {rows}, {columns}, {rows}, {columns}", name, name, address)


def load(what: str, element: str, rows: int, columns: int, stride: int, address: int, valid: str = "") -> str:
    return (
        f"tl::ascend_pto::copy_gm_to_ub_dynamic<{element}, {element}, 1, 1, 1, {rows}, {columns}, 1, 1, 1, {stride}, 1, "
        f"{rows}, {columns}, pto::PadValue::Zero>({what}, pto::Shape<1, 1, 1, {rows}, {columns}>(), "
        f"pto::Stride<1, 1, 1, {stride}, 1>(), {address}, 0, {valid or f'{rows}, {columns}'});"
    )


def store(
    what: str, element: str, rows: int, columns: int, stride: int, address: int, valid: str = ""
) -> str:
    return (
        f"tl::ascend_pto::copy_ub_to_gm_dynamic<{element}, {element}, 1, 1, 1, {rows}, {columns}, 1, 1, 1, {stride}, 1, "
        f"{rows}, {columns}>({what}, pto::Shape<1, 1, 1, {rows}, {columns}>(), pto::Stride<1, 1, 1, {stride}, 1>(), "
        f"{address}, 0, {valid or f'{rows}, {columns}'});"
    )


def flag(source: str, target: str, number: int = 0) -> str:
    pipes = f"<PIPE_{source}, PIPE_{target}>({number});"
    return f"tl::ascend_pto::set_flag_pipeline{pipes} tl::ascend_pto::wait_flag_pipeline{pipes}"


def on_vector(*lines: str) -> str:
    return "\n".join(
        ["#if defined(__DAV_C220_VEC__)", "set_mask_norm(); set_vector_mask(-1, -1);", *lines, "#endif"]
    )


def on_cube(*lines: str) -> str:
    return "\n".join(["#if defined(__DAV_C220_CUBE__)", *lines, "#endif"])


BARRIER = "pipe_barrier(PIPE_V);"
LOADED, COMPUTED = flag("MTE2", "V"), flag("V", "MTE3")


def l1(name: str, rows: int, columns: int, address: int) -> str:
    return f"tl::ascend_pto::TileMatL1<half, {rows}, {columns}, {rows}, {columns}> {name}; TASSIGN({name}, {address});"


def load_l1(what: str, rows: int, columns: int, stride: int, address: int) -> str:
    return (
        f"tl::ascend_pto::copy_gm_to_l1_dynamic<half, half, 1, 1, 1, {rows}, {columns}, 1, 1, 1, {stride}, 1, {rows}, "
        f"{columns}>({what}, pto::Shape<1, 1, 1, {rows}, {columns}>(), pto::Stride<1, 1, 1, {stride}, 1>(), {address}, 0, "
        f"{rows}, {columns});"
    )


def store_l0c(what: str, element: str, rows: int, columns: int, stride: int) -> str:
    return (
        f"tl::ascend_pto::copy_l0c_to_gm_dynamic<{element}, float, 1, 1, 1, {rows}, {columns}, 1, 1, 1, {stride}, 1, {rows}, "
        f"{columns}, false>({what}, pto::Shape<1, 1, 1, {rows}, {columns}>(), pto::Stride<1, 1, 1, {stride}, 1>(), 0, 0, "
        f"{rows}, {columns});"
    )


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


GEMM = Made(
    {"A": "half", "B": "half", "C": "half"}, 4,
    "auto bx = cid / 2; auto by = cid % 2;\n" + on_cube(
        l1("A_L1", 128, 64, 0), l1("B_L1", 64, 256, 16384),
        "TileAcc<float, 128, 256, 128, 256> C_L0; TASSIGN(C_L0, 0);",
        "for (int32_t k = 0; k < 2; ++k) {",
        load_l1("A + (bx * 128 * 128 + k * 64)", 128, 64, 128, 0),
        load_l1("B + (k * 64 * 512 + by * 256)", 64, 256, 512, 16384),
        "tl::ascend_pto::gemm_v0<half, float, 128, 256, 64, 128, 256, 64, 64, false, false>(A_L1, B_L1, C_L0, (k == 0));", "}",
        store_l0c("C + (bx * 128 * 512 + by * 256)", "half", 128, 256, 512),
    ),
    lambda: [normal(256, 128, dtype=np.float16), normal(128, 512, dtype=np.float16), zeros(256, 512, dtype=np.float16)],
    lambda a, b, _: a.astype(np.float32) @ b.astype(np.float32), 1e-2,
)  # fmt: skip

TANH = Made(
    {"A": "float", "B": "float"}, 25,
    "auto bx = cid / 5; auto by = cid % 5;\n" + on_vector(
        *(ub(name, "float", 32, 64, 8192 * index) for index, name in enumerate(("a_ub", "b_ub", "n_ub", "d_ub", "z_ub"))),
        "int32_t row = bx * 64 + vid * 32; int32_t rows = min(32, 300 - row); int32_t columns = min(64, 300 - by * 64);",
        load("A + (row * 300 + by * 64)", "float", 32, 64, 300, 0, "rows, columns"), LOADED,
        "TEXPANDS(z_ub, 0.000000e+00f);", BARRIER, "TSUB(n_ub, z_ub, a_ub);", BARRIER, "TEXP(a_ub, a_ub);", BARRIER,
        "TEXP(n_ub, n_ub);", BARRIER, "TSUB(b_ub, a_ub, n_ub);", BARRIER, "TADD(d_ub, a_ub, n_ub);", BARRIER,
        "TDIV(b_ub, b_ub, d_ub);", COMPUTED,
        store("B + (row * 300 + by * 64)", "float", 32, 64, 300, 8192, "rows, columns"),
    ),
    lambda: [normal(300, 300), zeros(300, 300)], lambda a, _: np.tanh(a), 1e-5,
)  # fmt: skip

GEMV = Made(
    {"x": "half", "A": "half", "y": "half"}, 2,
    "auto bn = (cid * 2 + vid) % 4;\n" + on_vector(
        ub("x_ub", "half", 1, 64, 0), ub("x_32", "float", 1, 64, 128), ub("A_ub", "half", 32, 64, 512),
        ub("A_32", "float", 32, 64, 8192), ub("y_one", "float", 1, 32, 16384), ub("y_all", "float", 1, 32, 16640),
        ub("y_ub", "half", 1, 32, 16896), ub("tmp", "float", 32, 64, 20480),
        "TEXPANDS(y_all, 0.000000e+00f);", BARRIER, "for (int32_t bk = 0; bk < 2; ++bk) {", flag("V", "MTE2", 1),
        load("x + (bk * 64)", "half", 1, 64, 64, 0), load("A + (bn * 32 * 128 + bk * 64)", "half", 32, 64, 128, 512), LOADED,
        "TCVT(x_32, x_ub, pto::RoundMode::CAST_NONE); TCVT(A_32, A_ub, pto::RoundMode::CAST_NONE);", BARRIER,
        "for (int32_t i = 0; i < 32; ++i) {",
        "tl::ascend_pto::binary_tile<tl::ascend_pto::BinaryOp::TMUL, float, 64>(8192, 8192, 128, i * 64, i * 64, 0, 4);", "}",
        BARRIER, "tl::ascend_pto::TileUbDataDN<float, 32, 1, 32, 1> y_dn; TASSIGN(y_dn, 16384);",
        "TROWSUM(y_dn, A_32, tmp);", BARRIER, "TADD(y_all, y_all, y_one);", BARRIER, "}",
        "TCVT(y_ub, y_all, pto::RoundMode::CAST_NONE);", COMPUTED, store("y + (bn * 32)", "half", 1, 32, 32, 16896),
    ),
    lambda: [normal(128, dtype=np.float16), normal(128, 128, dtype=np.float16), zeros(128, dtype=np.float16)],
    lambda x, a, _: a.astype(np.float32) @ x.astype(np.float32), 2e-2,
)  # fmt: skip

ROW_MAX = Made(
    {"Input": "float", "Output": "float"}, 1,
    on_vector(
        ub("in_ub", "float", 4, 8, 0), ub("out_ub", "float", 1, 8, 128), ub("tmp", "float", 4, 8, 256),
        "if (vid == 0) {", load("Input", "float", 4, 8, 8, 0), LOADED,
        "tl::ascend_pto::TileUbDataND<float, 4, 8, 4, 4> part; TASSIGN(part, 0);",
        "tl::ascend_pto::TileUbDataDN<float, 8, 1, 4, 1> out_dn; TASSIGN(out_dn, 128);",
        "TEXPANDS(out_ub, 0.000000e+00f);", BARRIER, "TROWMAX(out_dn, part, tmp);", COMPUTED,
        store("Output", "float", 1, 8, 8, 128), "}",
    ),
    lambda: [normal(4, 8), zeros(1, 8)],
    lambda x, _: np.concatenate([x[:, :4].max(1), np.zeros(4, np.float32)])[None],
)  # fmt: skip

COLUMN_MAX = Made(
    {"Input": "float", "Output": "float"}, 1,
    on_vector(
        ub("in_ub", "float", 5, 8, 0), ub("out_ub", "float", 1, 8, 160), "if (vid == 0) {",
        load("Input", "float", 5, 8, 8, 0), LOADED,
        "tl::ascend_pto::TileUbDataND<float, 5, 8, 3, 8> part; TASSIGN(part, 0);", "TCOLMAX(out_ub, part);", COMPUTED,
        store("Output", "float", 1, 8, 8, 160), "}",
    ),
    lambda: [normal(5, 8), zeros(1, 8)], lambda x, _: x[:3].max(0)[None],
)  # fmt: skip

ATOMIC_ADD = Made(
    {"C": "float"}, 4,
    on_vector(
        ub("src_ub", "float", 4, 32, 0), "TEXPANDS(src_ub, 1.000000e+00f);", COMPUTED,
        "tl::ascend_pto::atomic_add_ub_to_gm_dynamic<float, float, 1, 1, 1, 4, 32, 1, 1, 1, 32, 1, 4, 32>(C, "
        "pto::Shape<1, 1, 1, 4, 32>(), pto::Stride<1, 1, 1, 32, 1>(), 0, 0, 4, 32);",
    ),
    lambda: [zeros(4, 32)], lambda _: np.full((4, 32), 8, np.float32),
)  # fmt: skip

TOPK = Made(
    {"x": "float", "y": "float"}, 1,
    on_vector(
        ub("x_ub", "float", 1, 128, 0), ub("y_ub", "float", 1, 32, 512), "if (vid == 0) {",
        load("x", "float", 1, 128, 128, 0), LOADED, "tl::ascend_pto::Sort<float, 128, 100, 16>(512, 0, 1024);", COMPUTED,
        store("y", "float", 1, 32, 32, 512), "}",
    ),
    lambda: [RNG.permutation(128).astype(np.float32), zeros(16, 2)],
    lambda x, _: np.stack([np.sort(x[:100])[::-1][:16], np.argsort(x[:100])[::-1][:16]], 1),
)  # fmt: skip

SOFTMAX = Made(
    {"x": "float", "y": "float"}, 2,
    "auto row = (cid * 2 + vid) * 16;\n" + on_vector(
        ub("x_ub", "float", 16, 64, 0), ub("one", "float", 1, 16, 4096), ub("tmp", "float", 16, 64, 8192),
        "tl::ascend_pto::TileUbDataDN<float, 16, 1, 16, 1> one_dn; TASSIGN(one_dn, 4096);",
        load("x + (row * 64)", "float", 16, 64, 64, 0), LOADED, "TROWMAX(one_dn, x_ub, tmp);", BARRIER,
        "tl::ascend_pto::TROWEXPANDSUB_row_vec<float, 16, 64, 16>(x_ub, x_ub, one, 4096, 0);", BARRIER, "TEXP(x_ub, x_ub);", BARRIER,
        "TROWSUM(one_dn, x_ub, tmp);", BARRIER,
        "tl::ascend_pto::TROWEXPANDDIV_row_vec<float, 16, 64, 16>(x_ub, x_ub, one, 4096, 0);", COMPUTED,
        store("y + (row * 64)", "float", 16, 64, 64, 0),
    ),
    lambda: [normal(64, 64), zeros(64, 64)],
    lambda x, _: (e := np.exp(x - x.max(1, keepdims=True))) / e.sum(1, keepdims=True), 1e-5,
)  # fmt: skip

SILU = Made(
    {"x": "float", "y": "float"}, 2,
    "auto row = (cid * 2 + vid) * 16;\n" + on_vector(
        ub("x_ub", "float", 16, 64, 0), ub("y_ub", "float", 16, 64, 4096), ub("tmp", "float", 16, 64, 8192),
        load("x + (row * 64)", "float", 16, 64, 64, 0), LOADED,
        "tl::ascend_pto::TSILU<float, 16, 64>(y_ub, x_ub, tmp);", COMPUTED, store("y + (row * 64)", "float", 16, 64, 64, 4096),
    ),
    lambda: [normal(64, 64), zeros(64, 64)], lambda x, _: x / (1 + np.exp(-x)), 1e-5,
)  # fmt: skip

MATMUL_ADD = Made(
    {"A": "half", "B": "half", "D": "float", "W": "float", "C": "float"}, 2,
    on_cube(
        l1("A_L1", 64, 64, 0), l1("B_L1", 64, 64, 8192), "TileAcc<float, 64, 64, 64, 64> C_L0; TASSIGN(C_L0, 0);",
        load_l1("A + (cid * 64 * 64)", 64, 64, 64, 0), load_l1("B", 64, 64, 64, 8192),
        "tl::ascend_pto::gemm_v0<half, float, 64, 64, 64, 64, 64, 64, 64, false, false>(A_L1, B_L1, C_L0, true);",
        store_l0c("W + (cid * 64 * 64)", "float", 64, 64, 64), "tl::ascend_pto::set_cross_flag<PIPE_FIX>(0, 2);",
    ) + "\n" + on_vector(
        ub("c_ub", "float", 32, 64, 0), ub("d_ub", "float", 32, 64, 8192), "int32_t row = cid * 64 + vid * 32;",
        load("D + (row * 64)", "float", 32, 64, 64, 8192), "tl::ascend_pto::wait_cross_flag(0);",
        load("W + (row * 64)", "float", 32, 64, 64, 0), LOADED, "TADD(c_ub, c_ub, d_ub);", COMPUTED,
        store("C + (row * 64)", "float", 32, 64, 64, 0),
    ),
    lambda: [normal(128, 64, dtype=np.float16), normal(64, 64, dtype=np.float16), normal(128, 64), zeros(128, 64), zeros(128, 64)],
    lambda a, b, d, *_: a.astype(np.float32) @ b.astype(np.float32) + d, 1e-3,
)  # fmt: skip

PROGRAMS = {
    "gemm/example_gemm_pto_developer": GEMM,
    "activation/tanh": TANH,
    "gemv/example_gemv_v": GEMV,
    "reduce/example_row_reduce_max_slice_buffer": ROW_MAX,
    "reduce/example_col_reduce_max_slice_buffer": COLUMN_MAX,
    "tile_atomic_add": ATOMIC_ADD,
    "sort (topk)": TOPK,
    "softmax": SOFTMAX,
    "activation/silu": SILU,
    "developer_mode/matmul_add": MATMUL_ADD,
}

RUN = """
import ctypes, json, os, subprocess, sys
import numpy as np
home, root = os.environ["ASCEND_HOME_PATH"], sys.argv[1]
flags = ("--cce-aicore-arch=dav-c220 -DMEMORY_BASE -O2 -std=gnu++17 -xcce -mllvm -cce-aicore-stack-size=0x8000 "
         "-mllvm -cce-aicore-function-stack-size=0x8000 -mllvm -cce-aicore-record-overflow=true -mllvm -cce-aicore-addr-transform "
         "-mllvm -cce-aicore-dcci-insert-for-scalar=false -DL2_CACHE_HINT -I../../src/").split()
flags += [f"-I{root}/3rdparty/pto-isa/include", f"-I{home}/include", f"-I{home}/pkg_inc/runtime", f"-L{home}/lib64", f"-I{root}/src"]
flags += "-Wno-macro-redefined -lruntime -lstdc++ -lascendcl -lm -ltiling_api -lplatform -lc_sec -ldl -fPIC --shared".split()
acl = ctypes.CDLL("libascendcl.so")
pointer, size = ctypes.c_void_p, ctypes.c_size_t
for number in range(int(sys.argv[2])):
    subprocess.run(["bisheng", *flags, f"{number}.cpp", "-o", f"{number}.so"], check=True)
    library = ctypes.CDLL(f"./{number}.so")
    given = np.load(f"{number}.npz")
    arrays = [given[name] for name in given.files]
    buffers = [pointer() for _ in arrays]
    for array, buffer in zip(arrays, buffers):
        assert acl.aclrtMalloc(ctypes.byref(buffer), size(array.nbytes), 0) == 0
        assert acl.aclrtMemcpy(buffer, size(array.nbytes), pointer(array.ctypes.data), size(array.nbytes), 1) == 0
    library.call(*buffers, pointer())
    code = acl.aclrtSynchronizeDevice()
    out = np.zeros_like(arrays[-1])
    assert acl.aclrtMemcpy(pointer(out.ctypes.data), size(out.nbytes), buffers[-1], size(out.nbytes), 2) == 0
    np.save(f"{number}.npy", out)
    print(json.dumps([number, code]), flush=True)
"""


def source_of(made: Made) -> str:
    raw = ", ".join(f"__gm__ uint8_t *{name}_raw" for name in made.parameters)
    typed = "\n".join(
        f"  __gm__ {kind} *{name} = reinterpret_cast<__gm__ {kind} *>({name}_raw);"
        for name, kind in made.parameters.items()
    )
    given = ", ".join(f"uint8_t *{name}" for name in made.parameters)
    return f"""#include "tl_templates/pto/common.h"
#include <pto/pto-inst.hpp>
#include "acl/acl.h"
#include <runtime/rt_ffts.h>
using namespace pto;

extern "C" __global__ AICORE void main_kernel({raw}, uint64_t ffts_Addr) {{
{typed}
  auto cid = get_block_idx();
  set_ffts_base_addr(ffts_Addr);

  auto vid = get_subblockid();
{made.body}
}}

extern "C" void call({given}, void *stream)
{{
  uint32_t fftsLen{{0}};
  uint64_t fftsAddr{{0}};
  rtGetC2cCtrlAddr(&fftsAddr, &fftsLen);
  main_kernel<<<{made.blocks}, nullptr, stream>>>({", ".join(made.parameters)}, fftsAddr);
}}
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, int], str]:
    """All of them in one program; the code of each launch."""
    root = os.environ.get("INSIGHT_TRACE_TILELANG")
    if not root:
        pytest.skip("set INSIGHT_TRACE_TILELANG to a checkout of tilelang-ascend to run this test")
    folder = tmp_path_factory.mktemp("tilelang")
    for number, made in enumerate(PROGRAMS.values()):
        (folder / f"{number}.cpp").write_text(source_of(made))
        np.savez(folder / f"{number}.npz", *made.arrays())
    (folder / "run.py").write_text(RUN)
    ran = run_exec(folder, sys.executable, "run.py", root, str(len(PROGRAMS)), options=("--trace", "none"))
    return folder, dict(json.loads(line) for line in ran.stdout.splitlines()), ran.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_tilelang_gives_what_numpy_gives(
    name: str, results: tuple[Path, dict[int, int], str]
) -> None:
    folder, codes, said = results
    number, made = list(PROGRAMS).index(name), PROGRAMS[name]
    assert codes.get(number) == 0, said
    arrays = [array for _, array in np.load(folder / f"{number}.npz").items()]
    expected, got = made.expected(*arrays), np.load(folder / f"{number}.npy")
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=made.tolerance, atol=made.tolerance
    )
