"""Counters of a device beside those of a simulation, by hand for one load, one product and one sum."""

from pathlib import Path

import numpy as np
import pytest

from insight_trace.run.counters import counted
from insight_trace.simulate import simulate
from tests.simulate.kernel_text import write_kernel


def test_a_sum_of_one_tile_counts_its_requests_by_path(tmp_path: Path) -> None:
    body = """\
    using Rows = GlobalTensor<float, Shape<1, 1, 1, 64, 64>, Stride<4096, 4096, 4096, 64, 1>>;
    using Square = Tile<TileType::Vec, float, 64, 64, BLayout::RowMajor, 64, 64>;
    Square a, b;
    TASSIGN(a, 0);
    TASSIGN(b, 0x8000);
    Rows from(data_in(args, 0)), to(data_in(args, 1));
    TLOAD(a, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(b, a, 1.0f);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, b);
    pipe_barrier(PIPE_ALL);"""
    tile = np.zeros((64, 64), np.float32)  # 16 KB: 128 requests of 128 bytes, 64 of 256
    done = simulate(write_kernel(tmp_path, body), {0: tile, 1: tile}, core_type="aiv", l2="cold")
    assert done.failure is None
    found = counted(done)
    assert found["ub_write_bw_mte"] == found["ub_read_bw_mte"] == 128
    assert found["ub_read_bw_vector"] == found["ub_write_bw_vector"] == 64
    assert (found["ub_read_req"], found["ub_write_req"]) == (64 + 128, 64 + 128)
    assert found["l2_read_req"] == pytest.approx(128)
    assert found["l2_write_req"] == 128
    assert found["requests to memory, reads"] == pytest.approx(
        128, abs=8
    )  # and what the scalar unit looked at
    assert found["vec_fp32_exec"] == 1
    assert found["l1_read_req"] == found["l0a_write_req"] == found["cube_fp16_exec"] == 0
