"""Which pages the tasks of a run load from."""

from pathlib import Path

import numpy as np

from insight_trace.chips import load_chip
from insight_trace.run.pages import PageTable, loaded_of, task_pages
from insight_trace.simulate import simulate
from tests.simulate.kernel_text import write_kernel

MB = 1 << 20


def pages(table: PageTable, begin: int, end: int) -> list[int]:
    _, found = table.between(np.array([0]), np.array([begin]), np.array([end]))
    return found.tolist()


def test_a_small_buffer_has_small_pages_and_a_large_one_large_ones():
    table = PageTable(load_chip(target="a2a3"), [(0x10000, 10_000), (0x4000_0000, 5 * MB)])
    assert pages(table, 0x10000, 0x10000 + 8192) == [0, 1]
    assert pages(table, 0x10000 + 8192, 0x10000 + (64 << 10)) == [2]  # told in steps: not past its end
    assert pages(table, 0x4000_0000 + MB, 0x4000_0000 + 5 * MB) == [3, 4, 5]
    elsewhere = pages(table, 0x9000_0000, 0x9000_0000 + 1)  # the runtime's own
    assert elsewhere == pages(table, 0x9000_0000 + MB, 0x9000_0000 + MB + 1)
    assert min(elsewhere) > 5


def test_pages_of_a_kernel_are_counted_once():
    found = task_pages(np.array([2, 0, 2, 2]), np.array([7, 1, 7, 5]), 3)
    assert [found.of(kernel) for kernel in range(3)] == [[1], [], [5, 7]]


def test_what_a_core_loads_is_told_by_slot_and_joined(tmp_path: Path) -> None:
    body = """\
    using Rows = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1024, 1024, 1024, 64, 1>>;
    using Square = Tile<TileType::Vec, float, 16, 64, BLayout::RowMajor, 16, 64>;
    Square a, b;
    TASSIGN(a, 0);
    TASSIGN(b, 0x1000);
    Rows first(data_in(args, 0)), second(data_in(args, 0) + 1024), far(data_in(args, 0) + 8192), to(data_in(args, 1));
    TLOAD(a, first);
    TLOAD(a, second);
    TLOAD(b, far);
    pipe_barrier(PIPE_ALL);
    TSTORE(to, b);
    pipe_barrier(PIPE_ALL);"""
    arguments = {0: np.zeros(16384, np.float32), 1: np.zeros(1024, np.float32)}
    done = simulate(write_kernel(tmp_path, body), arguments, core_type="aiv")
    assert done.failure is None
    # two tiles of 4 KB, and one 32 KB behind; nobody waits for the pages of a store
    assert loaded_of(done) == (((0, 0, 8192), (0, 32768, 36864)),)
