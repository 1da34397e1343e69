"""Names of the tile API that kernels use beside its ops."""

from pathlib import Path

import numpy as np
import pytest

from insight_trace.model import CoreType, Kernel
from insight_trace.simulate import simulate
from tests.simulate.dispatching import outputs, run
from tests.simulate.kernel_text import write_kernel

BEFORE = """\
namespace detail {
inline float twice(float x) { return 2 * x; }
}
using namespace pto;
template <class T> T smallest(T a, T b) { return min(a, b); }
"""
BODY = """\
    Shape<1, 1, 1, DYNAMIC, 64> shape(5);
    Stride<1, 1, 1, DYNAMIC, 1> stride(64);
    static_assert(PTO_UBUF_SIZE_BYTES == UB_BYTES && SYNC_AIV_ONLY_ALL < SYNC_FLAG_ID_MAX);
    static_assert(SYNC_AIC_FLAG != SYNC_AIV_FLAG && SYNC_AIC_AIV_FLAG);
#if ON_950
    static_assert(__DAV_C310__);
#endif
    auto *out = data_in(args, 0);
    out[0] = shape.shape[3];
    out[1] = stride.stride[3];
    out[2] = max(3, 4) + min(2.5f, 7.0f) + smallest<uint64_t>(9, 8);
    out[3] = detail::twice(21);"""


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_shapes_limits_flags_and_a_users_own_namespace(tmp_path: Path, target: str) -> None:
    memory = {"a2a3": 192, "a5": 256}[target]
    body = BODY.replace("UB_BYTES", str(memory << 10)).replace("ON_950", str(int(target == "a5")))
    kernel = Kernel("names", write_kernel(tmp_path, body, before=BEFORE), CoreType.AIV)
    found = outputs(run([kernel], [np.zeros(8, np.float32)], [0], target=target))[0]
    np.testing.assert_array_equal(found[:4], [5, 64, 14.5, 42])


def test_a_quotient_that_is_no_number_has_the_sign_that_the_devices_compiler_gives_it(tmp_path: Path) -> None:
    source = write_kernel(tmp_path, "data_in(args, 0)[0] = -(0.0 / 0.0);\ndata_in(args, 0)[1] = 0.0 / 0.0;")
    done = simulate(source, {0: np.zeros(64, np.float32)}, core_type="aiv")
    assert done.failure is None, done.failure
    assert done.outputs[0].view(np.uint32)[:2].tolist() == [0xFFC00000, 0x7FC00000]
