"""`insight-trace export` writes what the vendor's exporter writes for the same logs."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from insight_made_up import rows_of, small_trace
from msgspec.structs import replace

from insight_trace.__main__ import main
from insight_trace.chips import LogFamily, find_chip
from insight_trace.errors import InputError, RequestError
from insight_trace.insight import open_trace, throughput_counters, validate, write_insight_directory
from insight_trace.insight.camodel.lines import parse_cache_miss, parse_line
from insight_trace.insight.camodel.logged_operands import bank_conflicts, bytes_moved, vector_utilisation
from insight_trace.insight.camodel.read import ExportOptions, read_dump
from insight_trace.insight.camodel.registers import live_registers
from insight_trace.insight.container import BlockType, blocks_of
from insight_trace.model import Pipe

SETS = [("910B", "Ascend910B1"), ("sample", "Ascend910B1"), ("91095", "Ascend950PR_9599")]


def _export(capsys, dump, out, *more):
    assert main(["export", str(dump), "-o", str(out), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def _blocks(path):
    with path.open("rb") as file:
        return [(block.type, block.version, block.read(file)) for block in blocks_of(path)]


@pytest.mark.parametrize(("name", "soc"), SETS)
def test_export_equals_the_vendors_own(shared_data, tmp_path, capsys, name, soc):
    folder = shared_data / "camodel" / name
    answer = _export(capsys, folder / "dump", tmp_path, "--soc-version", soc)
    ours, expected = tmp_path / answer["directory"], folder / "expected_simulator"
    assert (ours / "trace.json").read_bytes() == (expected / "trace.json").read_bytes()
    cores = sorted(path.name for path in expected.iterdir() if path.is_dir())
    assert sorted(path.name for path in ours.iterdir() if path.is_dir()) == cores
    for core in cores:
        assert (ours / core / "trace.json").read_bytes() == (expected / core / "trace.json").read_bytes()
        for kind in ("instr", "code"):
            (mine,) = (ours / core).glob(f"*_{kind}_exe_*.csv")
            (theirs,) = (expected / core).glob(f"*_{kind}_exe_*.csv")
            assert mine.read_bytes() == theirs.read_bytes()
    mine, theirs = _blocks(ours / "visualize_data.bin"), _blocks(expected / "visualize_data.bin")
    assert mine[0] == theirs[0]
    assert [block[:2] for block in mine] == [block[:2] for block in theirs]
    for (type_, _, one), (_, _, other) in zip(mine, theirs, strict=True):
        if type_ == BlockType.API_INSTR and b"RealStallCycles" in other:
            # upstream leaves it uninitialised beside user marks
            table = json.loads(other)
            for row in table["Instructions"]:
                del row["RealStallCycles"]
            del table["Instructions Dtype"]["Instructions"]["RealStallCycles"]
            other = json.dumps(table, separators=(",", ":")).encode()
        assert one == other


@pytest.mark.parametrize(("name", "soc"), SETS)
def test_the_vendors_output_keeps_every_rule_and_opens(shared_data, name, soc):
    expected = shared_data / "camodel" / name / "expected_simulator"
    assert [each for each in validate(expected) if each.rule != "path"] == []
    trace = open_trace(expected)
    assert trace.mhz == find_chip(soc).mhz
    exported, _ = read_dump(shared_data / "camodel" / name / "dump", ExportOptions(soc_version=soc))
    theirs, ours = rows_of(trace), rows_of(exported)
    # the timeline names no detail for a user mark, and flags of the logs have no recorded partner
    strip = lambda row: row[:7] + ((row[7],) if row[1] != "USERMARK" else ())  # noqa: E731
    assert sorted(map(strip, theirs), key=repr) == sorted(map(strip, ours), key=repr)


def test_our_own_logs_give_the_same_instructions_again(tmp_path):
    trace = small_trace()
    directory = write_insight_directory(trace, tmp_path, dump_logs=True)
    again, _ = read_dump(directory.parent / "dump")
    # a quote is no character of the log's grammar, so that detail differs
    key = lambda row: (row[0], row[1], row[2], row[4], row[5], row[6])  # noqa: E731
    assert sorted(map(key, rows_of(again))) == sorted(map(key, rows_of(trace)))


def _logs(folder, popped, ended, core="core0.veccore0", **more):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{core}.instr_popped_log.dump").write_text("\n".join(popped) + "\n")
    (folder / f"{core}.instr_log.dump").write_text("\n".join(ended) + "\n")
    for kind, lines in more.items():
        (folder / f"{core}.{kind.replace('__', '.')}.dump").write_text("\n".join(lines) + "\n")
    return folder


def _line(tick, pc, text="ADD  XD:X1=0x1,", pipe="SCALAR", number=""):
    return f"[info] [{tick:08d}] (PC: 0x{pc:x}) {pipe:<9}: (Binary: 0x00000000) {number}{text}"


_AFTER = ": (Binary: 0x80400000)"


@pytest.mark.parametrize(
    ("text", "pipe", "name", "detail"),
    [
        (
            "[182](PC: 0x10ce8004) SCALAR : (Binary: 0x02000080) scalar_neg(dType:0x0,  x[0]= 0x0, xn:0)",
            *(Pipe.SCALAR, "scalar_neg", "dType:0x0,x[0]=0x0,xn:0"),
        ),
        (
            f"[info] [5] (PC: 0x1)@CORE01 VEC ISSUE {_AFTER} MOVEMASK  dtype:B16 XD:0xff; Id:4",
            *(Pipe.VECTOR, "MOVEMASK", "dtype:B16XD:0xff"),
        ),
        (
            f"[info] [5] (PC: 0x1) FIX_PIPE {_AFTER} FIX_L0C_TO_DST  Src:L0C32,",
            *(Pipe.FIXP, "FIX_L0C_TO_DST", "Src:L0C32,"),
        ),
        (f"[info] [5] (PC: 0x1) LSU {_AFTER} scalar_ld_imm(x)", Pipe.SCALAR, "scalar_ld_imm", "x"),
        (f"[info] [5] (PC: 0x1) WHAT {_AFTER} NOP", Pipe.ALL, "NOP", ""),
        (
            f"[info] [5] (PC: 0x1) SCALAR {_AFTER} MOV_SPR_XN  SPR:COND, XN:X1=0x0,",
            *(Pipe.USERMARK, "MOV_SPR_XN", "SPR:COND,XN:X1=0x0,"),
        ),
    ],
)
def test_every_variant_of_a_line_is_read(text, pipe, name, detail):
    line = parse_line(text, popped=False)
    assert (line.pipe, line.name, line.detail) == (pipe, name, detail)


@pytest.mark.parametrize(
    "text",
    [
        "[info] 23071: icache read address is 0x10f86a80, size is 0x00000080, type:1, last:0, status is MISS",
        "[23071]: icache read address is 0x10f86a80, size is 0x00000080, status is MISS",
        "@23071: icache read address is 0x10f86a80, size is 0x00000080, status is MISS",
    ],
)
def test_every_variant_of_a_cache_miss_is_read(text):
    assert parse_cache_miss(text)[:2] == (23071, 0x10F86A80)
    assert parse_cache_miss(text.replace("MISS", "HIT")) is None


def test_micro_operations_count_as_one_instruction(tmp_path):
    popped = [_line(10, 4), _line(50, 4)]
    ended = [_line(12, 4), _line(15, 4), _line(18, 4), _line(60, 4)]
    trace, _ = read_dump(_logs(tmp_path, popped, ended))
    assert list(zip(trace.instructions.start, trace.instructions.end, strict=True)) == [(10, 18), (50, 60)]


def test_a_start_one_cycle_after_another_replaces_it_and_wrong_order_is_dropped(tmp_path):
    popped = [_line(10, 4), _line(11, 4), _line(90, 8)]
    ended = [_line(20, 4), _line(80, 8)]
    trace, _ = read_dump(_logs(tmp_path, popped, ended))
    assert list(zip(trace.instructions.start, trace.instructions.end, strict=True)) == [(11, 20)]


def test_chips_of_the_950_family_are_paired_by_id(tmp_path):
    popped = [_line(10, 4, number="(ID: 000002) "), _line(11, 4, number="(ID: 000001) ")]
    ended = [_line(30, 4, number="(ID: 000001) "), _line(20, 4, number="(ID: 000002) ")]
    trace, _ = read_dump(_logs(tmp_path, popped, ended), ExportOptions(soc_version="Ascend950PR_9599"))
    assert list(zip(trace.instructions.start, trace.instructions.end, strict=True)) == [(11, 30), (10, 20)]


def test_rotated_parts_are_read_oldest_first(tmp_path):
    folder = _logs(tmp_path, [_line(30, 4)], [_line(15, 4), _line(25, 4), _line(35, 4)])
    (folder / "core0.veccore0.instr_popped_log.1.dump").write_text(_line(20, 4) + "\n")
    (folder / "core0.veccore0.instr_popped_log.2.dump").write_text(_line(10, 4) + "\n")
    trace, _ = read_dump(folder)
    assert trace.instructions.start.tolist() == [10, 20, 30]


def test_cores_get_their_logical_names(tmp_path):
    setup = [
        _line(1, 4, "MOV_XD_SPR  XD:X1=0x3, SPR:BLOCKID,"),
        _line(2, 8, "MOV_XD_SPR  XD:X1=0x1, SPR:SUBBLOCKID,"),
    ]
    folder = _logs(tmp_path, setup, setup, core="core7.veccore1")
    assert read_dump(folder)[0].instructions.cores == ("core3.veccore1",)
    options = ExportOptions(core_ids=frozenset({3}))
    assert read_dump(folder, options)[0].instructions.cores == ("core3.veccore1",)
    with pytest.raises(InputError):
        read_dump(folder, ExportOptions(core_ids=frozenset({4})))


def test_flags_are_left_out_without_the_resource_metric(tmp_path, capsys):
    flag = "SET_FLAG  PIPE:MTE2, TRIGGER PIPE:SCALAR, FLAG ID:0,"
    lines = [_line(1, 4), _line(2, 8, flag)]
    folder = _logs(tmp_path / "dump", lines, lines)
    answer = _export(capsys, folder, tmp_path / "out", "--aic-metrics", "pipeutilization")
    assert answer["instructions"] == 1


def test_overhead_draws_fetch_and_decode_before_each_instruction(tmp_path, capsys):
    folder = _logs(
        tmp_path / "dump",
        [_line(100, 4)],
        [_line(110, 4)],
        ifu__icache_log=["[info] 80: lookup_tag is fetch req addr:0x4"],
        ccu_log=["[info] 90: is_single_issue instr, pc:0x4"],
    )
    answer = _export(capsys, folder, tmp_path / "out", "--aic-metrics", "ResourceConflictRatio,Overhead")
    events = json.loads((tmp_path / answer["directory"] / "trace.json").read_text())["traceEvents"]
    drawn = [each for each in events if each["ph"] == "X"]
    assert [(each["name"], each["group_id"]) for each in drawn] == [
        ("cache_time", "ADD0"),
        ("ccu_time", "ADD0"),
        ("ADD", "ADD0"),
    ]
    assert [each["dur"] for each in drawn] == [float(np.float32(10 / 1850))] * 3
    assert validate(tmp_path / answer["directory"]) == []
    assert len(open_trace(tmp_path / answer["directory"]).instructions) == 1


def test_throughput_comes_from_the_movers_logs(tmp_path, capsys):
    folder = _logs(tmp_path / "dump", [_line(1, 4)], [_line(2, 4)])
    lines = []
    for request in range(8):
        lines.append(f"[info] {1850 + request}: UBWIF instr_id: 1, req_id: {request}, size: 0.")
        lines.append(f"[info] {1850 + request}: BRIF addr: 0x0, instr_id: 1, req_id: {request}, size: 1024.")
    (folder / "core0.mte_log.dump").write_text("\n".join(lines) + "\n")
    answer = _export(capsys, folder, tmp_path / "out", "--aic-metrics", "PMSampling")
    events = json.loads((tmp_path / answer["directory"] / "trace.json").read_text())["traceEvents"]
    points = {
        (each["name"], each["ts"]): each["args"]["throughput(MB/s)"] for each in events if each["ph"] == "C"
    }
    assert points["GM_TO_UB", 1] == pytest.approx(8 * 1024 * 1e6 / 1048576)
    assert points["GM_TO_TOTAL", 1] == points["GM_TO_UB", 1]
    assert points["UB_TO_GM", 1] == 0.0
    assert points["GM_TO_UB", 2] == 0.0
    assert open_trace(tmp_path / answer["directory"]).counters[0].name == "GM_TO_UB"


def test_simt_instructions_lie_on_the_lane_of_their_warp(tmp_path, capsys):
    text = "SIMT_IADD  [Rd:4|R],[Rn:5|R],[warpId:3],[schId:1]"
    ended = "SIMT_IADD  [prdctMask:ff],[execMask:0f]"
    folder = _logs(
        tmp_path / "dump",
        [_line(1, 4, text, "RVECEX", "(ID: 000001) ")],
        [_line(9, 4, ended, "RVECEX", "(ID: 000001) ")],
    )
    answer = _export(capsys, folder, tmp_path / "out", "--soc-version", "Ascend950PR_9599")
    directory = tmp_path / answer["directory"]
    events = json.loads((directory / "trace.json").read_text())["traceEvents"]
    (drawn,) = [each for each in events if each["ph"] == "X"]
    assert (drawn["tid"], drawn["cname"]) == ("WARP_3", "thread_state_running")
    assert drawn["args"]["detail"].endswith(", [threadNum:4]")
    assert {"WARP_-1", "WARP_3"} <= {each["tid"] for each in events}
    trace = open_trace(directory)
    assert trace.instructions.pipe.tolist() == [int(Pipe.RVECEX)]


def test_flags_between_cores_of_a_block_get_an_arrow(tmp_path, capsys):
    setting = "SET_INTRA_BLOCK  PIPE:FIXP, mode:4, sync_id:17,"
    waiting = "WAIT_INTRA_BLOCK  PIPE:MTE2, mode:4, sync_id:1,"
    lines = [_line(5, 4, setting, "SCALAR", "(ID: 000001) ")]
    _logs(tmp_path / "dump", lines, lines, core="core0.cubecore0")
    lines = [_line(9, 8, waiting, "SCALAR", "(ID: 000001) ")]
    _logs(tmp_path / "dump", lines, lines, core="core0.veccore1")
    answer = _export(capsys, tmp_path / "dump", tmp_path / "out", "--soc-version", "Ascend950PR_9599")
    directory = tmp_path / answer["directory"]
    events = json.loads((directory / "trace.json").read_text())["traceEvents"]
    found = [(each["ph"], each["pid"], each["tid"]) for each in events if each.get("id") == "intra_0"]
    assert found == [
        ("B", "core0.cubecore0", "FIXP"),
        ("E", "core0.cubecore0", "FIXP"),
        ("B", "core0.veccore1", "MTE2"),
        ("E", "core0.veccore1", "MTE2"),
        ("s", "core0.cubecore0", "FIXP"),
        ("t", "core0.veccore1", "MTE2"),
    ]
    assert validate(directory) == []


def test_nested_user_marks_are_left_out_with_a_warning(tmp_path):
    mark = "MOV_SPR_XN  SPR:LPCNT, XN:X6=0x80000001,"
    lines = [_line(1, 4), _line(2, 8, mark), _line(3, 12, mark)]
    trace, _ = read_dump(_logs(tmp_path, lines, lines))
    assert Pipe.USERMARK not in trace.instructions.pipe.tolist()
    assert any("Mark 0x1 is nested" in text for text in trace.warnings)


def test_registers_bytes_conflicts_and_lanes_follow_the_operands():
    names = ["MOV_XD_IMM", "MOVK", "MOV_XD_SPR", "ADD", "NOP"]
    details = ["XD:X29=0x7f80,", "XD:X29=0x1,", "XD:X15=0,", "XD:X29=0x1,XN:X29=0x1,XM:X15=0,", ""]
    assert live_registers(LogFamily.A2, names, details).tolist() == [1, 1, 2, 2, 0]
    assert live_registers(LogFamily.A1, names, details) is None
    move = "XD:X0=0x0,XN:X1=0x0,XM:X2=0x40020,"
    assert bytes_moved(LogFamily.A2, "MOV_OUT_TO_UB", move) == 4 * 32 * 2
    assert bytes_moved(LogFamily.A2, "ADD", move) == 0
    assert bytes_moved(LogFamily.A2, "LOAD_2D", "XD:X0=0,XN:X1=0,XM:X2=0x30000,") == 3 * 512
    aligned = "XD:X0=0,XN:X1=0,XM:X2=0x210010,XT:X3=0,Src:UB,"
    assert bytes_moved(LogFamily.A2, "MOV_SRC_TO_DST_ALIGN", aligned) == 64
    assert bytes_moved(LogFamily.INFER, "mov_out_to_ub", "xdValue:0x0,xnValue:0x0,xmValue:0x40020") == 256
    config = (1 << 56) | (8 << 24) | (1 << 16) | (16 << 8) | 1
    vector = f"XD:X0=0,XN:X1=0,XM:X2=0x2000,XT:X3=0x{config:x},Dtype:F16,"
    assert bank_conflicts(LogFamily.A2, "VADD", vector) == (8, 0)
    assert bank_conflicts(LogFamily.A2, "ADD", vector) == (-1, -1)
    mask = ["XN:X1=0xffffffffffffffff,Pos:0,", "XN:X1=0xffffffffffffffff,Pos:1,"]
    used = vector_utilisation(LogFamily.A2, ["MOVEMASK", "MOVEMASK", "VADD"], [*mask, vector])
    assert used.tolist()[:2] == [-1.0, -1.0]
    assert used[2] == pytest.approx(128 * 2 / (255 * 256) * 100)


def test_chips_have_their_clock_and_family():
    clocks = {"Ascend910B4": 1650, "Ascend910B4-1": 1850, "910_9382": 1850, "Ascend950PR_9599": 1800}
    clocks |= {"Ascend950DT_9571": 1650, "Ascend310P3": 1060, "310B4": 500}
    for name, mhz in clocks.items():
        assert find_chip(name).mhz == mhz, name
    assert find_chip("Ascend910_9382").family.logs is LogFamily.A3
    with pytest.raises(RequestError, match="not a chip"):
        read_dump(Path(), ExportOptions(soc_version="Pentium"))


def test_lines_of_the_kernel_come_from_its_debug_information(tmp_path, capsys):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc to make an object file with debug information")
    source = tmp_path / "kernel.c"
    source.write_text(
        "static inline __attribute__((always_inline)) int twice(int x) {\n  return x * 2 + 7;\n}\n"
        "int kernel(int x) {\n  return twice(x) * 3;\n}\n"
    )
    folder = tmp_path / "dump"
    folder.mkdir()
    subprocess.run(
        [compiler, "-g", "-O1", "-c", str(source), "-o", str(folder / "aicore_binary.o")],
        check=True,
        cwd=tmp_path,
    )
    lines = [_line(10 + offset, 0x10F86000 + offset) for offset in range(0, 8)]
    _logs(folder, lines, lines)
    (folder / "pc_start_addr.txt").write_text("0x10f86000")
    answer = _export(capsys, folder, tmp_path / "out")
    trace = open_trace(tmp_path / answer["directory"])
    stacks = set(trace.instructions.stacks)
    assert any(stack.startswith(f"{source}:") for stack in stacks)
    assert f"{source}:2\n{source}:5" in stacks, "an inlined line shows where it was called"
    assert trace.sources == {str(source): source.read_bytes()}
    assert validate(tmp_path / answer["directory"]) == []


@pytest.mark.parametrize("missing", ["instr_log", "instr_popped_log"])
def test_one_of_two_logs_alone_is_an_error_that_says_which_is_missing(tmp_path, capsys, missing):
    folder = _logs(tmp_path / "dump", [_line(1, 4)], [_line(2, 4)])
    (folder / f"core0.veccore0.{missing}.dump").unlink()
    assert main(["export", str(folder), "-o", str(tmp_path / "out")]) == 1
    text = capsys.readouterr().err
    assert f"{missing} is missing" in text
    assert not (tmp_path / "out").exists()


def test_a_log_cut_in_the_middle_of_a_line_is_read_up_to_there(tmp_path):
    folder = _logs(tmp_path, [_line(1, 4), _line(5, 8)], [_line(2, 4), _line(6, 8)])
    path = folder / "core0.veccore0.instr_log.dump"
    path.write_bytes(path.read_bytes()[:-70])
    trace, _ = read_dump(folder)
    assert len(trace.instructions) == 1
    assert trace.warnings == ("core0.veccore0: 1 lines of instr_log are no instructions",)


def test_bytes_that_are_no_text_and_endless_lines_do_no_harm(tmp_path):
    folder = _logs(tmp_path, [_line(1, 4)], [_line(2, 4)])
    with (folder / "core0.veccore0.instr_log.dump").open("ab") as file:
        file.write(b"\x00\xff" * 300_000 + b"\n" + _line(99999999999999999999999, 4).encode())
    trace, _ = read_dump(folder)
    assert len(trace.instructions) == 1
    assert trace.warnings


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["export"], "DUMP and -o OUT are needed"),
        (["export", "--validate", "x", "-o", "y"], "takes no DUMP"),
        (["export", "/nonexistent", "-o", "y"], "is not a folder"),
        (["export", "--validate", "/nonexistent"], "does not exist"),
        (["export", ".", "-o", "y", "--aic-metrics", "Speed"], "no metric 'Speed'"),
        (["export", ".", "-o", "y", "--core-id", "a"], "not numbers joined by |"),
        (["export", ".", "-o", "y", "--soc-version", "Z80"], "not a chip"),
    ],
)
def test_a_wrong_request_is_answered_in_one_line(capsys, arguments, words):
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_logs_of_a_family_with_several_clocks_ask_for_their_chip(shared_data, tmp_path, capsys):
    assert main(["export", str(shared_data / "camodel" / "91095" / "dump"), "-o", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "logs of a 950" in said
    assert "--soc-version Ascend950PR_9599 (1800 MHz)" in said
    _logs(tmp_path / "logs", [_line(1, 4, "scalar_neg(x)")], [_line(2, 4, "scalar_neg(x)")])
    assert main(["export", str(tmp_path / "logs"), "-o", str(tmp_path)]) == 2
    assert "logs of a 310P" in capsys.readouterr().err
    assert main(["export", str(shared_data / "camodel" / "910B" / "dump"), "-o", str(tmp_path)]) == 0
    assert "1850 MHz, taken as Ascend910B1" in capsys.readouterr().out


def test_a_folder_without_logs_says_how_to_get_them(tmp_path, capsys):
    assert main(["export", str(tmp_path), "-o", str(tmp_path / "out")]) == 1
    assert "--dump=on" in capsys.readouterr().err


def test_the_command_runs_as_a_person_runs_it(shared_data, tmp_path):
    command = [sys.executable, "-m", "insight_trace", "export"]
    done = subprocess.run(
        [*command, str(shared_data / "camodel" / "910B"), "-o", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    path = done.stdout.splitlines()[-1].split()[-1]
    checked = subprocess.run([*command, "--validate", path], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    assert "rules of MindStudio Insight hold" in checked.stdout


@pytest.fixture
def pypto_reader(pypto_checkout):
    """PyPTO's own reader of the container, from a checkout."""
    path = pypto_checkout / "python" / "pypto" / "tools" / "clean_sim_trace.py"
    spec = importlib.util.spec_from_file_location("pypto_clean_sim_trace", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pypto_reads_our_container_when_sources_are_left_out(pypto_reader, tmp_path):
    directory = write_insight_directory(small_trace(), tmp_path / "without", include_source=False)
    blocks = dict(pypto_reader.iter_blocks((directory / "visualize_data.bin").read_bytes()))
    assert set(blocks) == {BlockType.TRACE, BlockType.API_INSTR}
    clean, skipped = pypto_reader.rebuild_trace(json.loads(blocks[BlockType.TRACE]))
    assert skipped == 0
    assert sum(event["ph"] == "s" for event in clean["traceEvents"]) == 2
    metrics = pypto_reader.reshape_metrics(json.loads(blocks[BlockType.API_INSTR]))
    assert metrics["cores"] == ["core0.cubecore0", "core0.veccore0", "core0.veccore1"]
    # with sources it stops: it expects the size of a SOURCE block to count the path field
    directory = write_insight_directory(small_trace(), tmp_path / "with")
    with pytest.raises(ValueError, match="corrupt SOURCE block"):
        list(pypto_reader.iter_blocks((directory / "visualize_data.bin").read_bytes()))


def test_throughput_is_worked_out_from_the_bytes_that_instructions_moved():
    trace = small_trace()
    series = {each.name: each for each in throughput_counters(trace.instructions, trace.mhz)}
    assert list(series) == ["GM_TO_UB", "GM_TO_TOTAL"]  # those that are zero throughout are left out
    times, rates = series["GM_TO_UB"].micros, series["GM_TO_UB"].megabytes_per_second
    assert (times[0], times[-1], rates[-1]) == (0.001, 331 / 1850, 0.0)
    lasting = np.diff(np.r_[0.0, times[1:]])
    assert float((rates[:-1] * lasting).sum() * 1048576 / 1e6) == pytest.approx(2 * 4096)
    even = 2 * 4096 / (288 / 1850) * 1e6 / 1048576  # both cores, while they load
    assert rates.max() == pytest.approx(even)
    assert series["GM_TO_TOTAL"].megabytes_per_second.tolist() == rates.tolist()
    assert throughput_counters(replace(trace.instructions, process_bytes=np.full(13, -1)), 1850.0) == ()


_pieces = st.sampled_from(
    [
        *(
            "[info] ",
            "[00000005]",
            "[99999999999999]",
            " (PC: 0x10f86000) ",
            "(PC: 0x1)",
            "SCALAR   ",
            "VEC ",
            ": ",
        ),
        *(
            "(Binary: 0x073a7f80) ",
            "(ID: 000123) ",
            "MOV_XD_IMM  ",
            "SET_FLAG  ",
            "NOP_PIPE",
            "XD:X29=0x7f80, ",
        ),
        *(
            "SPR:LPCNT, XN:X6=0x80000001,",
            "SPR:LPCNT, XN:X6=0xc0000001,",
            "[warpId:3],[schId:1]",
            "\n",
            "\x00",
            "é",
        ),
        *("23071: icache read address is 0x10f86a80, size is 0x00000080, status is MISS", "poped from IQ"),
    ]
)
_whole = st.builds(
    _line,
    st.integers(0, 200),
    st.sampled_from([4, 8, 12]),
    st.sampled_from(["ADD  XD:X1=0x1,", "NOP_PIPE", "BAR  PIPE:ALL,", "WAIT_FLAG  PIPE:MTE2, FLAG ID:0,"]),
)
_texts = st.lists(st.one_of(st.lists(_pieces, max_size=9).map("".join), _whole), max_size=12)


@given(_texts, _texts, st.sampled_from(["Ascend910B1", "Ascend950PR_9599", "Ascend310P3", "Ascend310B1"]))
def test_any_log_gives_a_valid_directory_or_an_error(tmp_path_factory, popped, ended, soc):
    folder = _logs(
        tmp_path_factory.mktemp("logs") / "dump", popped, ended, ifu__icache_log=ended, icache_log=popped
    )
    try:
        trace, extras = read_dump(folder, ExportOptions(soc_version=soc, overhead=True, throughput=True))
    except InputError:
        return
    directory = write_insight_directory(trace, folder.parent, extras=extras)
    assert validate(directory) == []
