"""What travels with a workspace, which names are kept apart, and where buffers start."""

import subprocess
import sys
import time

import numpy as np
import pytest
from msgspec.structs import replace
from replay_cases import ADD, CUBE, F32, LANE, job

from insight_trace.arguments.slots import Fill, ReplayArguments, Zero, make_tensor
from insight_trace.errors import InputError, JobError, RequestError
from insight_trace.model import CoreType, Kernel, Role, Tier
from insight_trace.simulate.msprof.carried_sources import file_scope_names, lay_out, shared_names
from insight_trace.simulate.msprof.toolkit_processes import capture, run_logged
from insight_trace.simulate.msprof.vendor_workspace import generate, read_outputs, write_workspace


def write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def kernel(source, core=CoreType.AIV, **rest):
    return Kernel("K", source, core, **rest)


def test_headers_travel_with_the_kernel_and_the_toolkits_stay(tmp_path):
    source = write(
        tmp_path / "scene/kernels/aiv/k.cpp",
        '#include <pto/pto-inst.hpp>\n#include "../common/a.h"\n#include "tensor.h"\n  # include "near.h"\n'
        "#include <extra/x.h>\n",
    )
    write(tmp_path / "scene/kernels/common/a.h", '#include "b.h"\n')
    write(tmp_path / "scene/kernels/common/b.h", '#include "a.h"\n')  # a circle ends
    write(tmp_path / "scene/kernels/aiv/near.h")
    write(tmp_path / "scene/include/extra/x.h")
    write(tmp_path / "scene/kernels/aiv/unrelated.h")
    layout = lay_out((kernel(source, include_dirs=(str(tmp_path / "scene/include"), "/absent")),))
    assert [name for name, _ in layout.files] == [
        "kernels/include/extra/x.h",
        "kernels/kernels/aiv/k.cpp",
        "kernels/kernels/aiv/near.h",
        "kernels/kernels/common/a.h",
        "kernels/kernels/common/b.h",
    ]
    assert layout.include_dirs == ("kernels/include",)
    assert (
        '"${CMAKE_CURRENT_SOURCE_DIR}/kernels/include"'
        in generate(job(kernels=(layout_kernel(source, tmp_path),)))["CMakeLists.txt"]
    )


def layout_kernel(source, tmp_path):
    return kernel(source, include_dirs=(str(tmp_path / "scene/include"),))


def test_a_source_that_is_missing_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match=r"absent\.cpp"):
        lay_out((kernel(tmp_path / "absent.cpp"),))


@pytest.mark.parametrize("kernels", [(), (ADD, LANE, replace(ADD, source=CUBE.source)), (ADD, ADD, ADD)])
def test_more_members_than_cores_are_refused(kernels):
    with pytest.raises(RequestError):
        lay_out(kernels)


def test_one_source_for_all_members_is_copied_once_and_runs_on_both_lanes():
    members = [replace(ADD, core_type=core) for core in (CoreType.AIC, CoreType.AIV, CoreType.AIV)]
    layout = lay_out(members)
    assert len(layout.cube) == len(layout.vector) == 1
    assert layout.both_lanes
    assert not layout.vector[0].renamed


SOURCE = """
#include <x>
#define MACRO(a) { a; }
// static int commented() { return 1; }
/* int blocked() { } */
using namespace pto;
using pto::Tile;
using Alias = Tile<float>;
static_assert(sizeof(int) == 4, "int width() {");
constexpr int kRows = 16;
static const float table[2] = {1.0f, 2.0f};
struct Shape { int rows() { return kRows; } };
enum class Mode : int { A, B };
void declared(int x);
template <typename T, int N = 4>
static __attribute__((always_inline)) inline T helper(T value) { if (value) { f(value); } return "}"[0]; }
namespace { int hidden(int a) { return a; } }
namespace named { int inside() { return 1; } }
extern "C" { void kernel_entry(long *args) { int local = 1; } }
"""


def test_definitions_at_file_scope_are_found_and_nothing_else():
    assert file_scope_names(SOURCE) == {
        "Alias",
        "kRows",
        "table",
        "Shape",
        "Mode",
        "helper",
        "hidden",
        "kernel_entry",
    }


def test_only_names_that_both_define_are_renamed():
    assert shared_names("int a() {} int b() {}", "int b() {} int c();") == ("b",)
    assert shared_names("using pto::X; void f();", "using pto::X; void f();") == ()


def test_a_pool_of_forty_gigabytes_is_allocated_only_around_its_view(tmp_path):
    start = 20 * 2**30 // 4
    pool = make_tensor(
        0,
        F32,
        (16, 16),
        Fill(1.0),
        Tier.FILLED,
        start_offset=start,
        recorded_size=40 * 2**30,
        role=Role.INOUT,
    )
    asked = job("aiv", arguments=ReplayArguments((pool,)))
    host = generate(asked)["replay_host.cpp"]
    assert f"{{{1024 + 256 * 1024}ULL, {start * 4}ULL}}," in host
    assert '{0, "payloads/slot00.bin", 0ULL, 1024ULL},' in host
    write_workspace(asked, tmp_path)
    assert (tmp_path / "payloads/slot00.bin").stat().st_size == 1024


def test_wide_gaps_between_rows_take_no_room_on_disk(tmp_path):
    wide = make_tensor(0, F32, (2, 4), Fill(1.0), Tier.FILLED, strides=(2**26, 1))
    write_workspace(job("aiv", arguments=ReplayArguments((wide,))), tmp_path)
    stat = (tmp_path / "payloads/slot00.bin").stat()
    assert stat.st_size == (2**26 + 4) * 4
    assert stat.st_blocks * 512 < 8 * 2**20


def test_slots_that_share_a_buffer_share_the_allocation():
    one = make_tensor(0, F32, (4,), Fill(1.0), Tier.FILLED)
    two = replace(make_tensor(3, F32, (2,), Zero(), Tier.OUTPUT, start_offset=2), shares=0)
    host = generate(job("aiv", arguments=ReplayArguments((one, two))))["replay_host.cpp"]
    buffers = host.split("kBuffers = {")[1].split("};")[0]
    assert buffers.count("ULL},") == 1
    assert "{3, 0, 16ULL, 2ULL" in host


def test_outputs_of_a_wrong_size_are_refused(tmp_path):
    out = make_tensor(1, F32, (4,), Zero(), Tier.OUTPUT, role=Role.OUTPUT)
    write(tmp_path / "outputs/slot01.bin", "x" * 15)
    with pytest.raises(InputError, match=r"slot01\.bin"):
        read_outputs(ReplayArguments((out,)), tmp_path)
    (tmp_path / "outputs/slot01.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    assert read_outputs(ReplayArguments((out,)), tmp_path)[1].view(np.float32)[:4].tolist() == [0, 1, 2, 3]


def test_a_program_that_cannot_be_started_is_an_error_with_its_name(tmp_path):
    with pytest.raises(JobError, match="absent-program"):
        run_logged(["absent-program"], tmp_path / "log", cwd=tmp_path, environment={}, seconds=5)
    assert capture(["absent-program"], environment={}, seconds=5) == (None, b"")


def test_a_log_is_there_while_the_program_runs_and_says_how_it_ended(tmp_path):
    code = "import sys; print('hello', flush=True); sys.exit(3 if 'hello' in open('log').read() else 4)"
    done = run_logged(
        [sys.executable, "-c", code], tmp_path / "log", cwd=tmp_path, environment={}, seconds=60
    )
    assert done.code == 3
    assert done.text == "hello\n"
    assert (tmp_path / "log").read_text().endswith("[exit 3]\n")


def test_a_short_program_that_does_not_end_is_ended():
    started = time.monotonic()
    assert capture([sys.executable, "-c", "import time; time.sleep(60)"], environment={}, seconds=0.3) == (
        None,
        b"",
    )
    assert time.monotonic() - started < 20


def test_a_program_that_ignores_the_polite_signal_is_ended_too(tmp_path):
    code = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    )
    done = run_logged(
        [sys.executable, "-c", code], tmp_path / "log", cwd=tmp_path, environment={}, seconds=1.0
    )
    assert done.timed_out
    pid = (tmp_path / "pid").read_text()
    assert subprocess.run(["kill", "-0", pid], capture_output=True).returncode != 0


def test_every_kernel_of_simpler_can_be_laid_out(simpler_checkout):
    sources = [p for p in simpler_checkout.rglob("*.cpp") if b"void kernel_entry" in p.read_bytes()]
    assert len(sources) > 100
    for source in sources:
        layout = lay_out((kernel(source),))
        assert layout.vector[0].source in dict(layout.files)
        assert "kernel_entry" in file_scope_names(source.read_text(errors="replace")), source


def test_the_two_vector_kernels_of_the_mixed_example_are_kept_apart(simpler_checkout):
    folder = simpler_checkout / "tests/st/a2a3/tensormap_and_ringbuffer/mixed_example/kernels"
    members = [
        kernel(folder / "aic/kernel_matmul.cpp", CoreType.AIC),
        kernel(folder / "aiv/kernel_add.cpp"),
        kernel(folder / "aiv/kernel_mul.cpp"),
    ]
    layout = lay_out(members)
    assert [member.renamed for member in layout.vector] == [("get_num_tiles", "kernel_entry")] * 2
