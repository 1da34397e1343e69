"""Blocks in several processes: the same bytes as in one, and one process where blocks meet."""

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import Struct

from insight_trace.__main__ import main
from insight_trace.cache import Cache
from insight_trace.errors import RequestError
from insight_trace.model import CoreType, Kernel
from insight_trace.outcome import Simulation
from insight_trace.simulate import simulate
from insight_trace.simulate.embedded import job_files, simulator
from insight_trace.simulate.embedded.compiler import Compiler
from insight_trace.simulate.embedded.core_plan import VARIABLE, shares_of_blocks
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded
from insight_trace.simulate.embedded.toolchain import Toolchain
from tests.simulate.dispatching import KERNELS, arguments
from tests.simulate.kernel_text import write_kernel
from tests.simulate.test_scalar_memory import with_hooks

Ways = list[bool]  # of each start of the runner: whether it gave up


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    """Says so of builds under sanitizers too, which see all that is not a plain load or store."""
    monkeypatch.setattr(Toolchain, "sees_plain_accesses", True)
    seen: Ways = []
    start = simulator.run_job

    def watched(*given: Any) -> Any:
        result = start(*given)
        seen.append(result.together)
        return result

    monkeypatch.setattr(simulator, "run_job", watched)
    return seen


def digest(run: Simulation) -> str:
    """Of all that a run tells, but of the process ids and addresses that it may not depend on."""
    told = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, np.ndarray):
            told.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        elif isinstance(value, Struct):
            for name in value.__struct_fields__:
                told.update(name.encode())
                add(getattr(value, name))
        elif isinstance(value, dict):
            for key in sorted(value):
                told.update(str(key).encode())
                add(value[key])
        elif field_is_text(value):
            told.update(repr(value).encode())

    def field_is_text(value: Any) -> bool:
        return isinstance(value, str | int | float | tuple | None.__class__)

    add(run)
    return told.hexdigest()


def _gemm(cores: int, **options: Any) -> Simulation:
    random = np.random.default_rng(3)
    left = random.uniform(-1, 1, (384, 128)).astype(np.float16)
    right = random.uniform(-1, 1, (128, 2048)).astype(np.float16)
    slots = {0: left, 1: right, 2: np.zeros((384, 2048), np.float32), 3: 384, 4: 2048, 5: 128}
    return simulate(KERNELS / "gemm.cpp", slots, core_type="aic", block_count=24, host_cores=cores, **options)


@pytest.mark.parametrize("options", [{}, {"timing_only": True}, {"check": True}, {"target": "a5"}])
def test_a_kernel_of_24_blocks_is_the_same_on_one_two_and_five_host_cores(
    options: dict[str, Any], ways: Ways
) -> None:
    alone = _gemm(1, **options)
    assert alone.failure is None, alone.failure
    assert {digest(_gemm(cores, **options)) for cores in (2, 5)} == {digest(alone)}
    assert not any(ways)
    assert len(ways) == 3


@pytest.mark.parametrize("cores", [1, 2])
def test_a_run_whose_tables_are_too_large_for_memory_is_run_again_on_a_disk_with_the_same_bytes(
    cores: int, ways: Ways, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = _gemm(1)
    monkeypatch.setattr(job_files, "_SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(job_files, "_TABLE_ROOM", 1 << 20)
    places: list[bool] = []
    start = job_files.job_directory

    def watched(*, in_memory: bool = True) -> Any:
        places.append(in_memory)
        return start(in_memory=in_memory)

    monkeypatch.setattr(job_files, "job_directory", watched)
    assert digest(_gemm(cores)) == digest(alone)
    assert places == [True, False]
    assert ways == [False, False]  # nor is it begun again in one process


_MIX = """\
    __gm__ float *own = data_in(args, 0) + get_block_idx(args) * 64;
#if defined(__DAV_CUBE__)
    own[1] = own[0] + 1.0f;
    ffts_cross_core_sync(PIPE_FIX, 1 | 2 << 4 | 2 << 8);
    wait_flag_dev(3);
    own[2] = own[1] * 2.0f;
#else
    wait_flag_dev(2);
    LineTile tile;
    TASSIGN(tile, 0);
    Line line(own);
    TLOAD(tile, line);
    set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
    data_in(args, 1)[get_block_idx(args) * 64] = tile.GetValue(1);
    ffts_cross_core_sync(PIPE_MTE3, 1 | 2 << 4 | 3 << 8);
#endif"""


def test_mixes_whose_blocks_keep_to_themselves_are_run_apart_with_the_same_bytes(
    tmp_path: Path, ways: Ways
) -> None:
    source = write_kernel(tmp_path, _MIX)
    members = [Kernel("mix", source, CoreType.AIC), Kernel("mix", source, CoreType.AIV)]
    first = np.zeros((7, 64), np.float32)
    first[:, 0] = np.arange(7)

    def run(cores: int) -> Simulation:
        given = arguments([first, np.zeros_like(first)], [0, 1], blocks=7)
        return run_embedded(members, given, EmbeddedOptions(host_cores=cores))

    alone, apart = run(1), run(2)
    assert apart.failure is None, apart.failure
    np.testing.assert_array_equal(apart.outputs[1][:, 0], np.arange(7) + 1)
    np.testing.assert_array_equal(apart.outputs[0][:, 2], 2 * np.arange(7) + 2)
    assert digest(alone) == digest(apart)
    assert ways == [False, False]


_LINE = "__gm__ float *all = data_in(args, 0);\n    int32_t block = get_block_idx(args);\n    "
_OWN = _LINE + "all[block * 16] = float(block);"
MEETINGS = {
    "writes where another wrote": _LINE + "all[0] = float(block);",
    "reads what another wrote": _LINE + "all[block * 16 + 16] = all[block * 16] + 1.0f;",
    "adds to the same place": _LINE + "all[0] += 1.0f;",
    "looks at what others may have written": _OWN + "dcci(all, SINGLE_CACHE_LINE);",
    "asks for the time": _OWN + "all[block * 16 + 1] = float(get_sys_cnt());",
    "waits for all blocks": _OWN
    + "ffts_cross_core_sync(PIPE_MTE3, 1 | 0 << 4 | 5 << 8);\n    wait_flag_dev(5);",
    "keeps a variable": _OWN + "static int count = 0;\n    all[block * 16 + 1] = float(++count);",
    "fails": _OWN + "if (block == 5) data_in(args, 0)[1 << 20] = 1.0f;",
    "traps": _OWN + "if (block == 5) trap();",
    "crashes": _OWN + "if (block == 5) *reinterpret_cast<volatile int *>(8) = 1;",
    "ends the process": _OWN + "if (block == 5) exit(7);",
}


BY_PLAIN_ACCESSES = ("writes where another wrote", "reads what another wrote", "adds to the same place")


@pytest.mark.parametrize(
    "what",
    [pytest.param(what, marks=with_hooks if what in BY_PLAIN_ACCESSES else ()) for what in MEETINGS],
)
def test_where_a_block_meets_another_or_fails_the_run_is_that_of_one_process(
    what: str, tmp_path: Path, ways: Ways
) -> None:
    source = write_kernel(tmp_path, MEETINGS[what], before="#include <cstdlib>\n")
    slots = {0: np.zeros((9, 16), np.float32)}
    alone, apart = (simulate(source, slots, block_count=8, host_cores=cores) for cores in (1, 2))
    assert digest(alone) == digest(apart)
    assert ways == [False, True, False]


def test_blocks_whose_plain_loads_and_stores_nobody_sees_run_in_one_process(
    tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Toolchain, "sees_plain_accesses", False)
    source = write_kernel(tmp_path, MEETINGS["reads what another wrote"])
    run = simulate(source, {0: np.zeros((9, 16), np.float32)}, block_count=8, host_cores=2)
    np.testing.assert_array_equal(run.outputs[0][:, 0], np.arange(9))
    assert ways == [False]


def test_only_kernels_compiled_with_hooks_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    zig = Toolchain(Compiler(("python", "-m", "ziglang", "c++"), "clang version 20"), Cache())
    plain = Toolchain(Compiler(("g++",), "g++ 12"), Cache())
    monkeypatch.delenv("INSIGHT_TRACE_SANITIZE", raising=False)
    assert (zig.sees_plain_accesses, plain.sees_plain_accesses) == (False, True)
    monkeypatch.setenv("INSIGHT_TRACE_SANITIZE", "address")
    assert not plain.sees_plain_accesses


def test_what_blocks_print_comes_in_their_order(tmp_path: Path, ways: Ways) -> None:
    source = write_kernel(
        tmp_path, 'printf("block %d\\n", get_block_idx(args));', before="#include <cstdio>\n"
    )
    run = simulate(source, {0: np.zeros(16, np.float32)}, block_count=6, host_cores=3)
    assert run.printed.split("\n")[:6] == [f"block {i}" for i in range(6)]
    assert ways == [False]


_SLEEPS = "#include <cstdio>\n#include <unistd.h>\n"


def test_a_process_that_is_done_takes_the_next_block(tmp_path: Path, ways: Ways) -> None:
    source = write_kernel(
        tmp_path,
        "if (get_block_idx(args) == 0) usleep(500000);\n    "
        'printf("%d %d\\n", get_block_idx(args), getpid());',
        before=_SLEEPS,
    )
    run = simulate(source, {0: np.zeros(16, np.float32)}, block_count=8, host_cores=2)
    blocks, processes = zip(*(line.split() for line in run.printed.splitlines()), strict=True)
    assert blocks == tuple("01234567")
    assert len(set(processes)) == 2
    assert processes.count(processes[0]) == 1, "the other process had the time to run all the others"
    assert ways == [False]


@pytest.mark.parametrize("depths", [(400, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 400), (60, 1, 300, 2, 90, 1)])
def test_the_same_bytes_whoever_runs_which_block(depths: tuple[int, ...], tmp_path: Path, ways: Ways) -> None:
    body = (
        "__gm__ float *own = data_in(args, 0) + get_block_idx(args) * 64;\n"
        "    const int depths[] = {" + ", ".join(map(str, depths)) + "};\n"
        """\
    LineTile tile;
    TASSIGN(tile, 0x100 * get_block_idx(args));
    Line line(own);
    for (int i = 0; i < depths[get_block_idx(args)]; ++i) {
        TLOAD(tile, line);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        if (get_block_idx(args) % 2)
            TADDS(tile, tile, 1.0f);
        else
            TMULS(tile, tile, 2.0f);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(line, tile);
        pipe_barrier(PIPE_ALL);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID3);"""
    )
    source = write_kernel(tmp_path, body)
    slots = {0: np.ones((6, 64), np.float32)}
    runs = [simulate(source, slots, block_count=6, host_cores=cores, check=True) for cores in (1, 2, 3, 6)]
    assert [run.failure for run in runs] == [None] * 4
    assert {digest(run) for run in runs} == {digest(runs[0])}
    assert not any(ways)


def test_a_kernel_that_prints_without_end_in_every_block_is_told_as_in_one_process(
    tmp_path: Path, ways: Ways
) -> None:
    source = write_kernel(tmp_path, 'while (true) puts("again and again");', before=_SLEEPS)
    run = simulate(source, {0: np.zeros(16, np.float32)}, block_count=4, host_cores=2)
    assert run.failure is not None
    assert "printed more than" in run.failure.message
    assert ways == [True, False]


def test_a_kernel_without_end_is_told_after_its_time_once(tmp_path: Path, ways: Ways) -> None:
    body = 'puts("so far");\n    fflush(stdout);\n    volatile int go = 1;\n    while (go) {\n    }'
    source = write_kernel(tmp_path, body, before=_SLEEPS)
    run = simulate(source, {0: np.zeros(16, np.float32)}, block_count=4, host_cores=2, seconds=1.0)
    assert run.failure is not None
    assert run.failure.limit == "time"
    assert run.printed.startswith("so far")
    assert ways == [False]


@pytest.mark.skipif(
    "INSIGHT_TRACE_SANITIZE" in os.environ, reason="a sanitizer that looks at types opens files, too"
)
def test_a_kernel_without_end_that_took_every_descriptor_is_told_once(tmp_path: Path, ways: Ways) -> None:
    body = "while (dup(0) >= 0) {\n    }\n    volatile int go = 1;\n    while (go) {\n    }"
    source = write_kernel(tmp_path, body, before=_SLEEPS)
    run = simulate(source, {0: np.zeros(16, np.float32)}, block_count=4, host_cores=2, seconds=1.0)
    assert run.failure is not None
    assert run.failure.limit == "time"
    assert ways == [False]


def test_no_more_processes_than_cores_or_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [shares_of_blocks(blocks, 4) for blocks in (1, 2, 3, 24)] == [1, 2, 3, 4]
    monkeypatch.setenv(VARIABLE, "1")
    assert shares_of_blocks(24, None) == 1
    monkeypatch.setenv(VARIABLE, "many")
    with pytest.raises(RequestError, match=VARIABLE):
        shares_of_blocks(24, None)


def test_a_replay_leaves_the_same_files(tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Path(__file__).parents[2] / "examples" / "spmd_multiblock" / "scene.py"
    kept = []
    for cores in "12":
        monkeypatch.setenv(VARIABLE, cores)
        folder = tmp_path / cores
        words = ["replay", str(scene), "--case", "Blocks48", "--func-id", "0", "-o"]
        assert main([*words, str(folder)]) == 0
        opprof = next(path.name for path in folder.rglob("OPPROF_*"))
        stamp = opprof.split("_")[1]
        kept.append(
            {
                str(path.relative_to(folder))
                .replace(opprof, "OPPROF")
                .replace(stamp, "TIME"): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted(folder.rglob("*"))
                if path.is_file() and path.suffix not in (".md", ".html") and path.name != "replay.json"
            }
        )
    assert ways == [False, False]
    assert any("visualize_data.bin" in name for name in kept[0])
    assert [name for name in kept[0] if kept[0][name] != kept[1].get(name)] == []
    assert kept[0].keys() == kept[1].keys()
