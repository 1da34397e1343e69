"""What the tile library offers around its ops: events, deduced shapes, the block's variables, chip guards."""

from pathlib import Path

import numpy as np
import pytest

from insight_trace.model import CoreType, Kernel
from tests.simulate.dispatching import outputs, run
from tests.simulate.kernel_text import write_kernel

_EVENTS = """\
    LineTile a, b;
    TASSIGN<0x0>(a);
    TASSIGN<0x1000>(b);
    Line from(data_in(args, 0)), to(data_in(args, 1));
    Event<Op::TLOAD, Op::TADD> loaded;
    Event<Op::TADD, Op::TMUL> added;
    Event<Op::TMUL, Op::TSTORE_VEC> done;
    loaded = TLOAD(a, from);
    added = TADD(b, a, a, loaded);
    done = TMUL(b, b, a, added);
    TSTORE(to, b, done);"""


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_an_event_sets_its_flag_after_one_op_and_waits_for_it_before_another(
    tmp_path: Path, target: str
) -> None:
    source = write_kernel(tmp_path, _EVENTS)
    x = np.arange(64, dtype=np.float32)
    kernel = Kernel("events", source, CoreType.AIV)
    simulation = run([kernel], [x, np.zeros_like(x)], [1], target=target)
    np.testing.assert_array_equal(outputs(simulation)[1], 2 * x * x)
    assert not simulation.findings
    names = [simulation.instructions.names[i] for i in simulation.instructions.name]
    assert names.count("SET_FLAG") == names.count("WAIT_FLAG") == 2
    # both on the vector pipe: a barrier, which a5 does not need
    assert names.count("BAR") == (1 if target == "a2a3" else 0)


_GUARDED = """\
    auto shape = Shape(1, 1, 1, 1, 64);
    auto stride = Stride(64, 64, 64, 64, 1);
    GlobalTensor<float, decltype(shape), decltype(stride)> to(data_in(args, 0), shape, stride);
    LineTile tile;
    TASSIGN(tile, 0);
#if defined(__DAV_C220_VEC__) || defined(__DAV_C310_VEC__)
    TEXPANDS(tile, float(block_idx + 10 * block_num));
    PtoSetWaitFlag<PIPE_V, PIPE_MTE3>();
    TSTORE(to, tile);
#endif
    static_assert(PIPE_FIX == 10 && PIPE_MTE3 == 5, "the numbers of the device");"""


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_chip_guards_and_the_variables_of_a_block_are_there(tmp_path: Path, target: str) -> None:
    source = write_kernel(tmp_path, _GUARDED)
    kernel = Kernel("guarded", source, CoreType.AIV)
    found = outputs(run([kernel], [np.zeros(64, np.float32)], [0], target=target))[0]
    np.testing.assert_array_equal(found, np.full(64, 10, np.float32))
