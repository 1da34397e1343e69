"""What the existing profiling script and its generator get wrong, one by one, and how this does it.

A test named `script_N` is about gap N of the script, `generator_N` about gap N of its test case generator;
those that need a toolkit are in tests/msprof/test_profile_with_msprof.py. The last test here sees to it that
no gap is without one.

  script 1    the limit of msprof is minutes                  script 7    what counts as an empty trace
  script 2    a timeout keeps the log, ends every process     script 8    the target is in the build
  script 3    equal stems do not share results                script 9    which SoC is simulated
  script 4    group files with another name                   script 10   libraries of both kinds of host
  script 5    PTOAS's generator puts cases elsewhere          script 11   the toolkit is not written to
  script 6    a failure carries its cause                     script 12   parallel, and nothing is built twice

  generator 1  sizes whatever constants are called            generator 6  inputs are not all zero
  generator 2  offsets of partitions                          generator 7  pipe and FFTS buffers
  generator 3  hidden scalars, each lane its own index        generator 8  source lines
  generator 4  signatures are read as C++                     generator 9  a tensor that one half does not use
  generator 5  structures and small types                     generator 10 mangled entries link
"""

import dataclasses
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest
from scripted_runner import ScriptedRunner
from small_kernels import VECTOR_PTO, write_kernel

from insight_trace import commands
from insight_trace.__main__ import main
from insight_trace.commands import profile as command
from insight_trace.errors import JobError, RequestError
from insight_trace.options import RunOptions, VendorOptions, options_of
from insight_trace.profile import ProfileRequest, list_kernels, run_profile
from insight_trace.profile.kernel_runner import CorePipes
from insight_trace.profile.msprof_runner import cause_in, find_generator, generate_case, input_sizes, run_step
from insight_trace.profile.profile_run import near_empty
from insight_trace.profile.testcase import entry_symbol, render_testcase
from insight_trace.ptoas.buffer_content import content_of
from insight_trace.ptoas.cpp_signature import parse_cpp
from insight_trace.ptoas.kernel_plan import kernels_of_pto
from insight_trace.ptoas.launch_arguments import Wishes, kernel_arguments
from insight_trace.ptoas.planned_kernel import Content, Purpose
from insight_trace.ptoas.pto_parser import parse_pto

ROOT = Path(__file__).resolve().parent.parent.parent
KERNELS = {k.name: k for k in list_kernels(ProfileRequest(ROOT / "examples" / "pypto_build"))}


def arguments_of(text: str, **wishes):
    module = parse_pto(text, "k.pto")
    (kernel,) = kernels_of_pto(module)
    return kernel_arguments(kernel, module, Wishes(**wishes)).arguments


# --- the script ------------------------------------------------------------------------------------


def test_script_1_the_simulators_limit_is_counted_in_minutes_and_steps_in_seconds():
    import argparse

    parser = argparse.ArgumentParser()
    commands.prepare(parser, command)
    typed = parser.parse_args(["--msprof-timeout", "90", "--step-timeout", "12.5"])
    assert options_of(typed, VendorOptions).timeout_minutes == 90
    assert options_of(typed, RunOptions).seconds == 12.5


def test_script_2_a_timeout_keeps_the_log_and_leaves_no_process_behind(tmp_path):
    log, alive = tmp_path / "log", tmp_path / "alive"
    text = f"echo half way; (sleep 1.5; echo x > {alive}) & sleep 60"
    with pytest.raises(JobError, match=r"took more than 0\.5 s") as caught:
        run_step(["bash", "-c", text], log, timeout=0.5)
    assert "half way" in caught.value.hint
    assert "half way" in log.read_text()
    time.sleep(1.6)
    assert not alive.exists()


def test_script_2_the_log_can_be_read_while_the_step_runs(tmp_path):
    log = tmp_path / "log"
    worker = threading.Thread(target=run_step, args=(["bash", "-c", "echo early; sleep 1"], log))
    worker.start()
    limit = time.monotonic() + 30
    while "early" not in (log.read_text() if log.is_file() else "") and time.monotonic() < limit:
        time.sleep(0.01)
    running = worker.is_alive()
    worker.join()
    assert running


def test_script_3_equal_stems_do_not_share_their_results(tmp_path):
    for where in ("next_levels/a/ptoas", "next_levels/b/ptoas"):
        write_kernel(tmp_path / where, "same")
    result = run_profile(ProfileRequest(tmp_path), ScriptedRunner())
    traces = [row.cell("trace_json") for row in result.rows]
    assert len(set(traces)) == 2
    assert [row.cell("artifact_count") for row in result.rows] == ["4", "4"]


def test_script_4_a_group_file_may_have_another_name_than_its_functions():
    kernel = KERNELS["up_group_0"]
    assert kernel.entry == "up_relu"
    symbol = entry_symbol(kernel)
    assert f"void {symbol}(" in render_testcase(kernel)["kernel.cpp"]


GENERATOR = """
import argparse, pathlib
p = argparse.ArgumentParser()
for flag in ("--input", "--testcase", "--output-root", "--run-mode", "--soc-version", "--aicore-arch"):
    p.add_argument(flag)
o = p.parse_args()
if "broken" in o.input: raise SystemExit("error: no kernel here")
case = pathlib.Path(o.output_root) / pathlib.Path(o.input).parent.name / o.testcase
case.mkdir(parents=True)
(case / "main.cpp").write_text("")
"""


def test_script_5_a_case_of_the_foreign_generator_is_found_wherever_it_was_put(tmp_path):
    script = tmp_path / "ptoas/test/npu_validation/scripts/generate_testcase.py"
    script.parent.mkdir(parents=True)
    script.write_text(GENERATOR)
    kernel = dataclasses.replace(
        KERNELS["matmul_64"], source=write_kernel(tmp_path / "odd_place", "matmul_64")
    )
    how = {"soc_version": "Ascend910B1", "aicore_arch": "dav-c220", "timeout": 30.0}
    case = generate_case(tmp_path / "ptoas", kernel, tmp_path / "out", tmp_path / "log", **how)
    assert case == tmp_path / "out" / "odd_place" / "matmul_64"
    broken = dataclasses.replace(kernel, source=tmp_path / "broken.cpp")
    with pytest.raises(JobError) as caught:
        generate_case(tmp_path / "ptoas", broken, tmp_path / "out2", tmp_path / "log2", **how)
    assert caught.value.hint == "error: no kernel here"
    with pytest.raises(RequestError, match="name a checkout"):
        find_generator(tmp_path)


def test_sizes_of_inputs_can_be_read_from_a_generated_main():
    text = """
      size_t elemCount_v1 = 4096;
      size_t fileSize_v1 = elemCount_v1 * sizeof(aclFloat16);
      size_t fileSize = 32 * 32 * sizeof(float);
      size_t odd = strange * 4;
      ReadFile("./v1.bin", fileSize_v1, host, fileSize_v1);
      ReadFile("./v2.bin", fileSize, host, fileSize);
      ReadFile("./v3.bin", odd, host, odd);
    """
    assert input_sizes(text) == {"v1.bin": 8192, "v2.bin": 4096}


def test_script_6_a_failure_carries_its_cause(tmp_path):
    log = tmp_path / "log"
    run_step(["bash", "-c", "echo compiling; echo 'k.cpp:7:3: error: no TFOO'; echo 1 error; exit 1"], log)
    assert cause_in(log) == "k.cpp:7:3: error: no TFOO"
    result = run_profile(
        ProfileRequest(write_kernel(tmp_path / "b/ptoas", "k").parent.parent), ScriptedRunner(("k",))
    )
    assert result.rows[0].cell("message") == "kernel.cpp:7: error: 'TFOO' was not declared"


def test_script_7_the_empty_trace_test_knows_copies_small_kernels_and_each_side():
    copy, mix, small = KERNELS["strided_copy"], KERNELS["up_group_0"], KERNELS["gather_columns"]
    moves = CorePipes("core0.veccore0", {}, {"MTE2": 1, "MTE3": 1})
    assert near_empty(copy, (moves,)) == ""
    assert near_empty(small, (CorePipes("core0.veccore0", {"VECTOR": 3}, {"VECTOR": 1, "MTE2": 2}),)) == ""
    busy = CorePipes("core0.cubecore0", {"CUBE": 9999}, {"CUBE": 4, "MTE2": 8})
    idle = CorePipes("core0.veccore0", {"SCALAR": 99}, {"SCALAR": 9})
    assert "core0.veccore0" in near_empty(mix, (busy, idle))


def test_script_8_the_target_is_read_from_the_build(tmp_path):
    cpp = write_kernel(tmp_path / "ptoas", "k")
    cpp.with_suffix(".pto").write_text(VECTOR_PTO.replace("%NAME%", "k").replace('"a2a3"', '"a5"'))
    assert list_kernels(ProfileRequest(tmp_path))[0].arch == "a5"


def test_script_10_the_build_file_names_the_simulators_of_both_hosts():
    text = render_testcase(KERNELS["matmul_64"])["CMakeLists.txt"]
    for place in ("x86_64-linux/simulator", "aarch64-linux/simulator", "tools/simulator"):
        assert place in text


def test_script_12_kernels_run_side_by_side_and_finished_ones_are_kept(tmp_path):
    for index in range(6):
        write_kernel(tmp_path / "ptoas", f"k{index}")
    runner = ScriptedRunner(fail=("k5",), seconds=0.05)
    run_profile(ProfileRequest(tmp_path, jobs=3), runner)
    assert runner.most_at_once == 3
    again = ScriptedRunner()
    run_profile(ProfileRequest(tmp_path, resume=True), again)
    assert again.ran == ["k5"]


def test_an_unknown_flag_is_an_error_and_paths_are_the_callers(tmp_path, capsys, monkeypatch):
    write_kernel(tmp_path / "here" / "ptoas", "k")
    monkeypatch.chdir(tmp_path)
    assert main(["profile", "--build-dir", "here", "--list-funcs", "--targt", "zzz"]) == 2
    assert "--targt" in capsys.readouterr().err
    assert main(["profile", "--build-dir", "here", "--list-funcs"]) == 0


# --- the generator ---------------------------------------------------------------------------------

SQUARE = """func.func @k(%gm_src: !pto.ptr<f32>, %n: i32) {
  %width = arith.constant 32 : index
  %one = arith.constant 1 : index
  %rows = arith.index_cast %n : i32 to index
  %v = pto.make_tensor_view %gm_src, shape = [%ROWS%, %width]COMMA strides = [%width, %one] : !pto.tensor_view<?x?xf32>
  return
}"""


@pytest.mark.parametrize("comma", [",", ""])
def test_generator_1_sizes_do_not_hang_on_how_constants_and_arguments_are_called(comma):
    text = SQUARE.replace("COMMA", comma).replace("%ROWS%", "%width")
    assert arguments_of(text)[0].elements == 32 * 32
    computed = SQUARE.replace("COMMA", comma).replace("%ROWS%", "%rows")
    assert arguments_of(computed, scalars={"n": 5})[0].elements == 5 * 32


def test_generator_2_a_partitions_offset_is_part_of_the_size():
    text = """func.func @k(%arg0: !pto.ptr<bf16>, %arg1: index) {
      %c16 = arith.constant 16 : index
      %c1 = arith.constant 1 : index
      %c0 = arith.constant 0 : index
      %v = pto.make_tensor_view %arg0, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xbf16>
      %p = pto.partition_view %v, offsets = [%arg1, %c0], sizes = [%c16, %c16] : !pto.tensor_view<?x?xbf16> -> !pto.partition_tensor_view<16x16xbf16>
      return
    }"""  # noqa: E501
    buffer, offset = arguments_of(text)
    assert (buffer.elements, offset.value) == (256, 0)
    assert arguments_of(text, scalars={"arg1": 1})[0].elements == 17 * 16


def test_generator_3_hidden_scalars_get_the_values_of_block_0_of_1_and_each_lane_its_own():
    values = {a.label: a for a in KERNELS["spmd_axpy"].values}
    assert values["__pypto_spmd_block_idx"].value == 0
    assert values["__pypto_spmd_block_num"].value == 1
    (lane,) = KERNELS["up_group_0"].values
    assert lane.per_lane
    assert "get_subblockid()" in render_testcase(KERNELS["up_group_0"])["kernel.cpp"]


def test_generator_4_signatures_are_read_as_cpp():
    text = """
    // AICORE void old(__gm__ float* v1) {
    static AICORE void helper(__gm__ float* v1) { }
    AICORE void x_aic(__gm__ const float* v1, half __gm__* v2) { helper(v1); }
    AICORE void second(__gm__ float* v1) { }
    """
    kernels = parse_cpp(text).kernels
    assert [k.name for k in kernels] == ["x_aic", "second"]
    assert [(p.type, p.is_pointer) for p in kernels[0].parameters] == [("float", True), ("half", True)]
    (only_vector,) = parse_cpp("AICORE void y_aiv(__gm__ float* v1) { }").kernels
    assert only_vector.name == "y_aiv"


def test_generator_5_structures_and_small_types_have_their_own_size_and_value():
    text = "func.func @k(%a: !pto.ptr<f8E4M3FN>, %b: !pto.ptr<i4>, %c: !pto.ptr<hif8>) {\nreturn\n}"
    assert [a.dtype.size for a in arguments_of(text)] == [1, 1, 1]
    module = parse_pto("func.func @k(%a: vector<4xi16>) {\nreturn\n}")
    (kernel,) = parse_cpp("AICORE void k(pto::MrgSortExecutedNumList v1) {}").kernels
    (argument,) = kernel_arguments(kernel, module, Wishes()).arguments
    assert argument.literal == "pto::MrgSortExecutedNumList{128, 128, 128, 128}"


def test_generator_6_inputs_are_not_all_zero():
    bf16 = KERNELS["matmul_64"].buffers[0]
    assert content_of(bf16, 0).astype("float32").any()
    control = KERNELS["row_blocks_by_length"].buffers[1]
    assert content_of(control, 0).all()


def test_generator_7_the_pipe_buffer_has_its_real_size_and_the_ffts_base_comes_from_the_runtime():
    pipe = KERNELS["up_group_0"].buffers[3]
    assert (pipe.purpose, pipe.nbytes) == (Purpose.PIPE, 4 * 4096)
    text = "func.func @k(%f: !pto.ptr<i64>) {\npto.set_ffts %f : !pto.ptr<i64>\nreturn\n}"
    kernel = dataclasses.replace(KERNELS["matmul_64"], arguments=arguments_of(text))
    assert "rtGetC2cCtrlAddr" in render_testcase(kernel)["main.cpp"]


def test_generator_8_kernels_are_compiled_with_source_lines():
    text = render_testcase(KERNELS["matmul_64"])["CMakeLists.txt"]
    assert "list(APPEND KERNEL_OPTIONS -g)" in text
    assert not {"-s", '"-s"'} & set(text.split())


def test_generator_9_a_tensor_that_one_half_does_not_use_gets_its_size_from_the_other():
    sizes = [a.elements for a in KERNELS["up_group_0"].buffers]
    assert sizes == [32 * 64, 64 * 128, 32 * 128, 4096]


def test_generator_10_a_mangled_entry_is_declared_so_that_the_launcher_links(tmp_path):
    """Compiled and linked for the host: a C++ definition after a C declaration has the C name."""
    import shutil

    if shutil.which("g++") is None:
        pytest.skip("no g++")
    files = render_testcase(KERNELS["matmul_k_loop"])
    declaration = next(line for line in files["kernel.cpp"].splitlines() if line.startswith('extern "C"'))
    words = "#define __global__\n#define AICORE\n#define __gm__\nstruct bfloat16_t { short bits; };\n"
    parameters = "__gm__ bfloat16_t *v1, __gm__ bfloat16_t *v2, __gm__ float *v3"
    body = f"__global__ AICORE void matmul_k_loop({parameters}) {{}}\n"
    (tmp_path / "kernel.cpp").write_text(f"{words}{declaration}\n{body}")
    call = "int main() { matmul_k_loop(nullptr, nullptr, nullptr); }\n"
    (tmp_path / "launch.cpp").write_text(f"{words}{declaration}\n{call}")
    command_line = ["g++", "kernel.cpp", "launch.cpp", "-o", "linked"]
    subprocess.run(command_line, cwd=tmp_path, check=True)
    subprocess.run([str(tmp_path / "linked")], check=True)


def test_content_of_the_example_is_what_the_issue_asks_for():
    kinds = {k.kind.value for k in KERNELS.values()}
    contents = {b.content for k in KERNELS.values() for b in k.buffers}
    assert kinds == {"aic", "aiv", "mix"}
    assert contents == {Content.RANDOM, Content.ZERO, Content.INDEX, Content.CONSTANT}


def test_every_gap_has_a_test_that_names_it():
    texts = [
        path.read_text(encoding="utf-8")
        for path in (Path(__file__), ROOT / "tests" / "msprof" / "test_profile_with_msprof.py")
    ]
    named = {
        match for text in texts for match in re.findall(r"^def test_((?:script|generator)_\d+)_", text, re.M)
    }
    assert named == {f"script_{n}" for n in range(1, 13)} | {f"generator_{n}" for n in range(1, 11)}
