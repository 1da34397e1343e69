"""What a kernel prints reaches its user, and no more of it than a person could read."""

import numpy as np
import pytest

import insight_trace
from tests.simulate.op_harness import TARGETS

HEAD = """#include <cstdio>
#include <pto/pto-inst.hpp>
using namespace pto;
extern "C" void kernel_entry(int64_t *args) {
"""


def _run(tmp_path, body, target="a2a3"):
    source = tmp_path / "prints.cpp"
    source.write_text(HEAD + body + "\n}\n")
    return insight_trace.simulate(
        source, {0: np.zeros(16, np.float32)}, core_type="aiv", seconds=20, target=target
    )


@pytest.mark.parametrize("target", TARGETS)
def test_printf_and_tprint_of_a_kernel_are_kept_with_the_result(target, tmp_path):
    body = """
    Tile<TileType::Vec, float, 1, 8> tile;
    TASSIGN(tile, 0);
    TEXPANDS(tile, 2.5f);
    printf("hello from slot %d\\n", 0);
    TPRINT(tile);
    """
    result = _run(tmp_path, body, target)
    assert result.failure is None
    assert "hello from slot 0" in result.printed
    assert "2.5" in result.printed


def test_a_kernel_that_prints_too_much_keeps_only_the_beginning(tmp_path):
    result = _run(tmp_path, 'for (int i = 0; i < 200000; ++i) printf("0123456789%d\\n", i);')
    assert result.failure is None
    assert result.printed.startswith("01234567890\n")
    assert len(result.printed) <= 1 << 20
