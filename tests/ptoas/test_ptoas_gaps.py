"""What the existing profiling script and its generator get wrong, one by one, and the test of how this does it."""

import ast
import dataclasses
from pathlib import Path

import pytest
from small_kernels import write_kernel

from insight_trace.errors import JobError, RequestError
from insight_trace.profile import ProfileRequest, list_kernels
from insight_trace.profile.msprof_runner import cause_in, find_generator, foreign_case, input_sizes, run_step

TESTS = Path(__file__).resolve().parent.parent
MSPROF, VERDICT = "msprof/test_profile_with_msprof.py::", "ptoas/test_ptoas_verdict.py::test_"
TESTCASE, ARGUMENTS = "ptoas/test_ptoas_testcase.py::test_", "ptoas/test_pto_arguments.py::test_"
GAPS = {
    "script 1: the limit of msprof is minutes":
        MSPROF + "test_script_1_msprof_is_asked_for_the_kernel_with_its_limit_in_minutes",
    "script 2: a timeout keeps the log, ends every process":
        "ptoas/test_ptoas_gaps.py::test_a_timeout_keeps_the_log_and_leaves_no_process_behind",
    "script 3: equal stems do not share results":
        "ptoas/test_ptoas_build.py::test_equal_stems_get_the_name_of_their_place",
    "script 4: group files with another name":
        MSPROF + "test_the_manifest_says_what_was_built_linked_and_launched_of_every_form",
    "script 5: PTOAS's generator puts cases elsewhere":
        "ptoas/test_ptoas_gaps.py::test_a_case_of_the_foreign_generator_is_found_wherever_it_was_put",
    "script 6: a failure carries its cause":
        MSPROF + "test_script_6_a_kernel_that_does_not_compile_is_named_by_the_compilers_line_and_tried_once",
    "script 7: copies count as work": VERDICT + "a_kernel_that_only_moves_data_is_judged_by_its_transfers",
    "script 7: small kernels count as work": VERDICT + "a_small_vector_kernel_is_no_empty_one",
    "script 7: each side of a mix": VERDICT + "an_idle_side_of_a_mix_is_seen_although_the_other_side_works",
    "script 8: the target is in the build":
        "ptoas/test_ptoas_build.py::test_the_target_comes_from_the_pto_then_the_build_then_the_default",
    "script 9: which SoC is simulated":
        MSPROF + "test_script_9_the_soc_is_chosen_by_what_can_be_linked_not_by_the_alphabet",
    "script 10: libraries of both kinds of host":
        MSPROF + "test_script_10_the_camodel_is_linked_from_the_place_of_either_kind_of_host",
    "script 11: the toolkit is not written to":
        MSPROF + "test_script_11_a_worker_from_elsewhere_is_used_without_writing_into_the_toolkit",
    "script 12: parallel":
        "ptoas/test_ptoas_run.py::test_kernels_run_side_by_side_and_the_result_does_not_depend_on_it",
    "script 12: nothing is built twice":
        MSPROF + "test_script_12_resume_builds_nothing_again_when_only_msprof_failed",
    "generator 1: sizes whatever constants are called":
        "ptoas/test_pto_extents.py::test_a_constant_may_have_any_name",
    "generator 2: offsets of partitions":
        ARGUMENTS + "an_offset_is_zero_so_that_the_partition_stays_inside_its_view",
    "generator 3: hidden scalars, each lane its own index":
        ARGUMENTS + "hidden_arguments_are_known_by_name_and_the_lane_is_left_to_the_core",
    "generator 4: signatures are read as C++": "ptoas/test_cpp_signature.py::test_const_may_stand_anywhere",
    "generator 5: structures": TESTCASE + "a_structure_and_a_bool_are_passed_as_values_of_their_type",
    "generator 5: small types": ARGUMENTS + "small_types_have_their_own_size",
    "generator 6: inputs are not all zero":
        ARGUMENTS + "random_floats_are_finite_not_all_equal_and_repeatable",
    "generator 7: pipe buffers": "ptoas/test_pto_extents.py::test_a_pipe_buffer_has_the_bytes_of_its_slots",
    "generator 7: FFTS buffers": TESTCASE + "an_ffts_base_comes_from_the_runtime",
    "generator 8: source lines": TESTCASE + "source_lines_are_kept_unless_refused",
    "generator 9: a tensor that one half does not use":
        "ptoas/test_example_build.py::test_sizes_agree_with_the_second_evaluator",
    "generator 10: mangled entries link":
        MSPROF + "test_the_manifest_says_what_was_built_linked_and_launched_of_every_form",
}  # fmt: skip


@pytest.mark.parametrize("gap", GAPS)
def test_a_gap_has_a_test(gap):
    file, _, name = GAPS[gap].partition("::")
    functions = (n for n in ast.parse((TESTS / file).read_text()).body if isinstance(n, ast.FunctionDef))
    assert name in {function.name for function in functions}


def test_a_timeout_keeps_the_log_and_leaves_no_process_behind(tmp_path):
    log, alive = tmp_path / "log", tmp_path / "alive"
    text = f"echo half way; (sleep 1.5; echo x > {alive}) & sleep 60"
    with pytest.raises(JobError, match=r"took more than 0\.5 s") as caught:
        run_step(["bash", "-c", text], log, timeout=0.5)
    assert "half way" in caught.value.hint
    assert "half way" in log.read_text()
    run_step(["sleep", "1.6"], tmp_path / "other")
    assert not alive.exists()


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


def test_a_case_of_the_foreign_generator_is_found_wherever_it_was_put(tmp_path):
    script = tmp_path / "ptoas/test/npu_validation/scripts/generate_testcase.py"
    script.parent.mkdir(parents=True)
    script.write_text(GENERATOR)
    build = TESTS.parent / "examples" / "pypto_build"
    (kernel,) = list_kernels(ProfileRequest(build, funcs=("matmul_64",)))
    kernel = dataclasses.replace(kernel, source=write_kernel(tmp_path / "odd_place", "matmul_64"))
    how = {"soc_version": "Ascend910B1", "aicore_arch": "dav-c220", "timeout": 30.0}
    places = [tmp_path / name for name in ("out", "build", "log")]
    case = foreign_case(tmp_path / "ptoas", kernel, *places, **how)
    assert case.directory == tmp_path / "out" / "odd_place" / "matmul_64"
    broken = dataclasses.replace(kernel, source=tmp_path / "broken.cpp")
    with pytest.raises(JobError) as caught:
        foreign_case(tmp_path / "ptoas", broken, *places, **how)
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


def test_the_cause_of_a_failed_step_is_the_compilers_line(tmp_path):
    log = tmp_path / "log"
    run_step(["bash", "-c", "echo compiling; echo 'k.cpp:7:3: error: no TFOO'; echo 1 error; exit 1"], log)
    assert cause_in(log) == "k.cpp:7:3: error: no TFOO"
