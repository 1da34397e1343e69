"""A kernel that goes wrong: a result that says whose fault it is, what happened and on which line."""

import re
import signal
from pathlib import Path

import numpy as np
import pytest

from insight_trace import simulate
from insight_trace.errors import RequestError
from insight_trace.outcome import Failure, Fault
from insight_trace.simulate.embedded import runner
from insight_trace.supervisor import Ended
from tests.simulate.kernel_text import line_of, write_kernel


def fails(source: Path, values: dict | None = None, **options) -> Failure:
    failure = simulate(source, {0: np.zeros(64, np.float32)} if values is None else values, **options).failure
    assert failure is not None
    return failure


def ends_at(failure: Failure, source: Path, text: str) -> None:
    assert Path(failure.file).name == source.name
    assert failure.line == line_of(source, text)


def test_a_kernel_that_does_not_compile_gives_its_first_error_and_a_log(tmp_path):
    source = write_kernel(tmp_path, "    int x = undeclared_thing;\n    int y = second_thing;")
    failure = fails(source)
    assert failure.fault is Fault.KERNEL
    assert "does not compile" in failure.message
    assert "undeclared_thing" in failure.message
    assert "second_thing" not in failure.message
    ends_at(failure, source, "undeclared_thing")
    assert "second_thing" in Path(failure.log).read_text()


def test_an_error_inside_our_headers_is_told_in_one_line_at_the_kernels_own(tmp_path):
    source = write_kernel(tmp_path, "    LineTile tile;\n    TADDS(tile, tile, tensor_in(args, 0));")
    failure = fails(source)
    assert failure.fault is Fault.KERNEL
    assert "\n" not in failure.message
    assert len(failure.message) < 400
    ends_at(failure, source, "TADDS")


def test_a_tile_op_that_we_lack_is_named_with_its_line(tmp_path):
    source = write_kernel(tmp_path, "    LineTile tile;\n    TNOSUCHOP(tile, tile);")
    failure = fails(source)
    assert failure.fault is Fault.NOT_SUPPORTED
    assert failure.message == "TNOSUCHOP is not supported"
    ends_at(failure, source, "TNOSUCHOP")


def test_a_type_that_an_op_cannot_take_is_named_with_its_line(tmp_path):
    body = """\
    using Bytes = Tile<TileType::Vec, int8_t, 1, 64, BLayout::RowMajor, 1, 64>;
    Bytes a;
    TASSIGN(a, 0);
    TEXP(a, a);"""
    source = write_kernel(tmp_path, body)
    failure = fails(source)
    assert failure.fault in (Fault.NOT_SUPPORTED, Fault.KERNEL)
    assert "TEXP" in failure.message
    ends_at(failure, source, "TEXP")


def test_a_source_that_is_not_there_is_a_wrong_request(tmp_path):
    with pytest.raises(RequestError, match=r"no kernel source .*absent\.cpp"):
        simulate(tmp_path / "absent.cpp", {})


def test_a_source_without_an_entry_is_told(tmp_path):
    source = tmp_path / "empty.cpp"
    source.write_text("int nothing;\n")
    failure = fails(source)
    assert failure.fault is Fault.INPUT
    assert failure.message == "the kernel has no function kernel_entry"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({0: "text"}, "slot 0: str is neither an array nor a number"),
        ({0: None}, "slot 0: NoneType is neither an array nor a number"),
        ({48: 1}, "slot 48 belongs to the context pointers"),
        ({-1: 1}, "slot -1 is negative"),
        ({0: np.zeros(3, np.complex64)}, "slot 0: kernels have no element type complex64"),
        ({0: 2**70}, "slot 0: "),
        ({0: np.zeros((1,) * 6, np.float32)}, "slot 0: 6 dimensions"),
    ],
)
def test_an_argument_of_a_wrong_kind_is_refused_in_one_line(tmp_path, values, message):
    with pytest.raises(RequestError) as caught:
        simulate(write_kernel(tmp_path, ""), values)
    assert caught.value.what.startswith(message)
    assert "\n" not in caught.value.what


def test_a_crash_names_the_kernels_line(tmp_path):
    source = write_kernel(tmp_path, "    *reinterpret_cast<volatile int *>(args[1]) = 7;")
    failure = fails(source, {0: np.zeros(64, np.float32), 1: 16})
    assert failure.fault is Fault.KERNEL
    assert failure.signal == signal.SIGSEGV
    assert "0x10" in failure.message
    ends_at(failure, source, "= 7;")


def test_an_endless_loop_ends_at_the_time_limit(tmp_path):
    source = write_kernel(
        tmp_path, "    pipe_barrier(PIPE_ALL);\n    volatile int64_t n = 0;\n    while (true) n = n + 1;"
    )
    failure = fails(source, seconds=0.5)
    assert failure.fault is Fault.KERNEL
    assert failure.limit == "time"
    assert failure.message == "still running after 0.5 s"
    ends_at(failure, source, "pipe_barrier")


def test_a_kernel_that_takes_too_much_memory_ends_at_the_limit(tmp_path):
    body = """\
    auto *bytes = reinterpret_cast<__gm__ volatile uint8_t *>(tensor_in(args, 0)->buffer.addr);
    for (int round = 0; round < 1000; ++round)
        for (uint64_t i = 0; i < tensor_in(args, 0)->buffer.size; i += 4096) bytes[i] = 1;"""
    source = write_kernel(tmp_path, body)
    failure = fails(source, {0: np.broadcast_to(np.float32(0), 1 << 26)}, memory_limit=100 << 20)
    assert failure.fault is Fault.KERNEL
    assert failure.limit == "memory", str(failure)
    assert re.fullmatch(r"used \d+ MiB, over its limit of 100 MiB", failure.message)


def test_a_transfer_past_a_buffer_names_the_slot_and_the_line(tmp_path):
    body = """\
    LineTile tile;
    TASSIGN(tile, 0);
    Line far(data_in(args, 0) + (1 << 20));
    TLOAD(tile, far);"""
    source = write_kernel(tmp_path, body)
    failure = fails(source)
    assert failure.fault is Fault.KERNEL
    assert failure.message.startswith("GM access of 256 bytes at 0x")
    assert "slot 0" in failure.message
    ends_at(failure, source, "TLOAD")


def test_a_tile_past_its_memory_is_told(tmp_path):
    body = """\
    LineTile tile;
    TASSIGN(tile, 192 * 1024 - 64);
    Line in(data_in(args, 0));
    TLOAD(tile, in);"""
    source = write_kernel(tmp_path, body)
    failure = fails(source)
    assert failure.fault is Fault.KERNEL
    assert "UB" in failure.message
    ends_at(failure, source, "TLOAD")


def test_a_flag_that_nothing_sets_is_a_deadlock_with_its_pipes_and_line(tmp_path):
    source = write_kernel(
        tmp_path, "    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID3);\n    pipe_barrier(PIPE_ALL);"
    )
    failure = fails(source)
    assert failure.fault is Fault.KERNEL
    assert failure.message.startswith(
        "deadlock: pipe V waits for flag MTE2 -> V, event 3, which nothing sets"
    )
    assert failure.line in (line_of(source, "wait_flag"), line_of(source, "pipe_barrier"))


def test_a_core_that_waits_for_a_silent_one_is_a_deadlock_with_its_name(tmp_path):
    source = write_kernel(tmp_path, "    wait_flag_dev(3);")
    failure = fails(source, block_count=2)
    assert failure.fault is Fault.KERNEL
    waits = "deadlock: core0.veccore0 waits for cross-core flag 3 from core0.cubecore0 at kernel.cpp:"
    assert failure.message.startswith(waits)
    assert "core1.veccore0 waits for" in failure.message
    ends_at(failure, source, "wait_flag_dev")


@pytest.mark.parametrize(("event", "kept"), [(105, 1), (-1, 7)])
def test_of_an_events_number_three_bits_are_kept(tmp_path, event, kept):
    """A library of the vendor's leaves one unset that both sides of a flag read."""
    body = f"    set_flag(PIPE_MTE2, PIPE_V, {event});\n    wait_flag(PIPE_MTE2, PIPE_V, {kept});"
    simulation = simulate(write_kernel(tmp_path, body), {0: np.zeros(64, np.float32)})
    assert simulation.failure is None
    (remark,) = (one.message for one in simulation.findings if "three bits" in one.message)
    assert remark.startswith(f"event {event} is event {kept}")


def test_a_trap_is_the_kernels(tmp_path):
    failure = fails(write_kernel(tmp_path, "    trap();"))
    assert (failure.fault, failure.message) == (Fault.KERNEL, "the kernel executed trap()")


OURS = Path(runner.__file__).parent


@pytest.mark.parametrize(
    ("said", "fault", "file", "line"),
    [
        (
            "/k/my.cpp:7:13: runtime error: store to misaligned address 0x01 for type 'int'",
            Fault.KERNEL, "/k/my.cpp", 7,
        ),
        (
            f"{OURS}/engine/core.cpp:31:5: runtime error: signed integer overflow",
            Fault.OUR_BUG, f"{OURS}/engine/core.cpp", 31,
        ),
        (
            "==9==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6\n"
            "    #0 0x7 in memcpy ../../../../src/libsanitizer/asan/memcpy.inc:827\n"
            "    #1 0x7 in copy /usr/include/c++/12/bits/stl_algobase.h:431\n"
            f"    #2 0x7 in TADD {OURS}/engine/ops/elementwise.cpp:40",
            Fault.OUR_BUG, f"{OURS}/engine/ops/elementwise.cpp", 40,
        ),
        ("==9==ERROR: AddressSanitizer: out of memory", Fault.OUR_BUG, "", 0),
        ("no word of why", Fault.KERNEL, "", 0),
    ],
)  # fmt: skip
def test_a_sanitizers_report_belongs_to_whose_source_it_names(said, fault, file, line):
    failure = runner._silent_end(Ended(1, said.encode(), 0.1), said, 60)
    assert (failure.fault, failure.file, failure.line) == (fault, file, line)
    assert "\n" not in failure.message


def test_a_crash_is_told_although_the_heap_of_its_thread_can_be_used_no_more(tmp_path):
    body = """\
    char *piece = static_cast<char *>(malloc(24));
    mprotect(reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(piece) & ~4095ull), 1 << 16, PROT_READ);
    piece = static_cast<char *>(malloc(3000));
    *piece = 1;"""
    source = write_kernel(tmp_path, body)
    source.write_text("#include <cstdlib>\n#include <sys/mman.h>\n" + source.read_text())
    failure = fails(source)
    assert failure.signal == signal.SIGSEGV
    assert "touched address" in failure.message


def test_a_crash_is_told_with_the_instructions_before_it_however_early_it_comes(tmp_path):
    body = """\
    LineTile tile;
    TASSIGN(tile, 0);
    TEXPANDS(tile, 1.0f);
    *reinterpret_cast<volatile int *>(0x123456789abc) = 1;"""
    source = write_kernel(tmp_path, body)
    runs = [simulate(source, {0: np.zeros(64, np.float32)}) for _ in range(12)]
    assert {run.failure.signal for run in runs} == {signal.SIGSEGV}
    (count,) = {len(run.instructions.start) for run in runs}
    assert count > 0
