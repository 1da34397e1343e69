"""Kernel sources of custom operators run alone: with their tiling data field by field, their key and their names."""

from pathlib import Path

import numpy as np
import pytest

import insight_trace
from insight_trace.errors import InsightTraceError, RequestError
from insight_trace.program.compile import beside_the_c_library
from insight_trace.program.op_kernels import op_kernel

TILING = """
#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(ScaleTilingData)
  TILING_DATA_FIELD_DEF(uint32_t, length);
  TILING_DATA_FIELD_DEF_ARR(float, 2, factors);
  TILING_DATA_FIELD_DEF(uint16_t, odd);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Floor, ScaleTilingData)
BEGIN_TILING_DATA_DEF(OtherTilingData)
  TILING_DATA_FIELD_DEF(uint32_t, nothing);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Floor_2, OtherTilingData)
}
"""
KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
// `floor`: the C library has a function of that name
extern "C" __global__ __aicore__ void floor(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    GET_TILING_DATA(data, tiling);
    TPipe pipe;
    TQue<TPosition::VECIN, 1> in;
    TQue<TPosition::VECOUT, 1> out;
    pipe.InitBuffer(in, 1, data.length * sizeof(DTYPE_X));
    pipe.InitBuffer(out, 1, data.length * sizeof(DTYPE_X));
    GlobalTensor<DTYPE_X> from, to;
    from.SetGlobalBuffer((__gm__ DTYPE_X *)x);
    to.SetGlobalBuffer((__gm__ DTYPE_X *)y);
    auto a = in.AllocTensor<DTYPE_X>();
    DataCopy(a, from, data.length);
    in.EnQue(a);
    a = in.DeQue<DTYPE_X>();
    auto b = out.AllocTensor<DTYPE_X>();
    if (TILING_KEY_IS(1)) {
        Muls(b, a, (DTYPE_X)data.factors[1], data.length);
    } else if (TILING_KEY_IS(3)) {
        Adds(b, a, (DTYPE_X)data.odd, data.length);
    }
    out.EnQue(b);
    in.FreeTensor(a);
    b = out.DeQue<DTYPE_X>();
    DataCopy(to, b, data.length);
    out.FreeTensor(b);
}
"""


def project(folder: Path) -> Path:
    for name, text in (("op_host/floor_tiling.h", TILING), ("op_kernel/floor.cpp", KERNEL)):
        (folder / name).parent.mkdir()
        (folder / name).write_text(text)
    return folder / "op_kernel" / "floor.cpp"


def test_the_tiling_data_of_an_operator_is_that_which_is_registered_for_it_and_its_key(
    tmp_path: Path,
) -> None:
    source = project(tmp_path)
    found = op_kernel(source, [], ["TILING_KEY_VAR=1", "DTYPE_X=half"])
    assert found is not None
    assert (found.tiling, found.defines) == (
        "ScaleTilingData",
        ("DTYPE_X=half", "HAVE_WORKSPACE", "HAVE_TILING"),
    )
    assert "#define TILING_KEY_VAR 1" in found.header
    other = op_kernel(source, [], ["TILING_KEY_VAR=2", "DTYPE_X=half"])
    assert other is not None
    assert other.tiling == "OtherTilingData"
    with pytest.raises(RequestError, match="asks for its tiling key"):
        op_kernel(source, [], [])
    source.write_text("__global__ void f() {}")
    assert op_kernel(source, [], []) is None


def test_a_kernel_that_is_named_like_a_function_of_the_c_library_gets_another_name_in_its_own_source() -> (
    None
):
    mine = (
        '# 1 "/home/me/pow.cpp"\n__attribute__((insight_trace_kernel)) void pow(int *x);\n'
        'void g() { pow(0); a.pow(1); s("pow"); std::pow(2, 3); }\n'
    )
    theirs = '# 1 "/usr/include/math.h" 3\ndouble pow(double, double);\n'
    made = beside_the_c_library(theirs + mine)
    assert theirs in made
    assert 'void pow_(int *x);\nvoid g() { pow_(0); a.pow_(1); s("pow"); std::pow(2, 3); }' in made
    assert beside_the_c_library(theirs) == theirs


@pytest.mark.parametrize("key", [1, 3])
def test_the_kernel_of_an_operator_runs_from_its_source(
    tmp_path: Path, asc_devkit_checkout: Path, key: int, monkeypatch
) -> None:
    monkeypatch.setenv("INSIGHT_TRACE_ASCENDC", str(asc_devkit_checkout))
    source = project(tmp_path)
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    kernel = insight_trace.kernel(source, defines=(f"TILING_KEY_VAR={key}", "DTYPE_X=float"))
    kernel(x, y, None, {"length": 256, "factors": [9, 0.5], "odd": 7})
    assert (y == (x * 0.5 if key == 1 else x + 7)).all()
    raw = np.array([256, 0, 0, 0], np.uint32)
    raw[1:3].view(np.float32)[:] = 1, 2
    raw[3:].view(np.uint16)[0] = 5
    kernel(x, y, None, raw)
    assert (y == (x * 2 if key == 1 else x + 5)).all()
    with pytest.raises(InsightTraceError, match="DTYPE_X") as caught:
        insight_trace.kernel(source, defines=(f"TILING_KEY_VAR={key}",))(x, y, None, raw)
    assert "DTYPE_X=half" in caught.value.hint
