"""Kernels over the tile library of a pto-isa checkout, unmodified, on our instructions."""

from pathlib import Path

import numpy as np
import pytest

from insight_trace.errors import RequestError
from insight_trace.model import CoreType, Kernel
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded
from insight_trace.simulate.embedded.toolchain import LIBRARY_VARIABLE, Toolchain
from tests.simulate.dispatching import arguments, outputs
from tests.simulate.kernel_text import line_of, write_kernel

BODY = """\
    using Rows = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1024, 1024, 1024, 64, 1>>;
    using Column = GlobalTensor<float, Shape<1, 1, 1, 16, 1>, Stride<16, 16, 16, 1, 1>, Layout::DN>;
    Tile<TileType::Vec, float, 16, 64> x, y, scratch;
    Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor> sums;
    TASSIGN(x, 0x0);
    TASSIGN(y, 0x1000);
    TASSIGN(scratch, 0x2000);
    TASSIGN(sums, 0x3000);
    Rows in(data_in(args, 0));
    Column out(data_in(args, 1));
    TLOAD(x, in);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(y, x, 1.0f);
    pipe_barrier(PIPE_V);
    TROWSUM(sums, y, scratch);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(out, sums);"""


def test_a_path_that_is_no_checkout_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestError, match="is no checkout of pto-isa"):
        Toolchain.find(tmp_path)
    monkeypatch.setenv(LIBRARY_VARIABLE, str(tmp_path))
    with pytest.raises(RequestError, match="is no checkout of pto-isa"):
        Toolchain.find()


def test_the_librarys_ops_give_numpys_numbers_and_the_kernels_lines(
    tmp_path: Path, pto_isa_checkout: Path
) -> None:
    source = write_kernel(tmp_path, BODY)
    x = np.random.default_rng(5).integers(-9, 9, (16, 64)).astype(np.float32)
    toolchain = Toolchain.find(pto_isa_checkout)
    simulation = run_embedded(
        [Kernel("sums", source, CoreType.AIV)],
        arguments([x, np.zeros((16, 1), np.float32)], [1]),
        EmbeddedOptions(),
        toolchain,
    )
    np.testing.assert_array_equal(outputs(simulation)[1], (x + 1).sum(axis=1, keepdims=True))
    found = simulation.instructions
    names = [found.names[i] for i in found.name]
    lines = {found.stacks[found.stack[i]] for i, name in enumerate(names) if name == "VADDS"}
    assert [line.rsplit("/")[-1] for line in lines] == [f"kernel.cpp:{line_of(source, 'TADDS')}"]
