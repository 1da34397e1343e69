"""A chip is one TOML file; what is mistyped, unknown or missing in it is an error with its file and line."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from insight_trace.chips import FOLDER, TARGETS, LogFamily, chip_names, find_chip, load_chip, target_of_chip
from insight_trace.chips.chip_files import instruction_pipes, parameter_names
from insight_trace.errors import InputError, RequestError

WORTH = 'kind = "estimate", source = "made up"'
HEAD = 'name = "Mine"\nbase = "Ascend910B1"\n'


def chip_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (f'[value]\n"flag.latancy" = {{ value = 2, {WORTH} }}', 4, "did you mean 'flag.latency'"),
        (f"[move]\nMOV_OUT_TO_BU = {{ latency = 1, rate = 2, {WORTH} }}", 4, "did you mean 'MOV_OUT_TO_UB'"),
        (f"[move]\nMOV_OUT_TO_UB = {{ latancy = 1, rate = 2, {WORTH} }}", 4, "did you mean 'latency'"),
        (f"[move]\nMOV_OUT_TO_UB = {{ latency = 1, {WORTH} }}", 4, "has no rate"),
        (f"[move]\nMOV_OUT_TO_UB = {{ rate = 0, latency = 1, {WORTH} }}", 4, "rate above zero"),
        (f"[move]\nMOV_OUT_TO_UB = {{ rate = 1, curve = [[8, 1], [4, 2]], {WORTH} }}", 4, "growing size"),
        (f"[vector.VADD]\nf23 = {{ head = 1, slope = 1, {WORTH} }}", 4, "no element type 'f23'"),
        (f"[vector.VADD]\nany = {{ head = 1, {WORTH} }}", 4, "has no slope"),
        (f"[vector.VADD]\n\nany = {{ head = true, slope = 1, {WORTH} }}", 5, "head is not a number"),
        (f"[vektor.VADD]\nany = {{ head = 1, slope = 1, {WORTH} }}", 3, "did you mean 'vector'"),
        ('[value]\n"flag.latency" = { value = 2 }', 4, "needs a kind"),
        (f'[value]\n"flag.latency" = {{ value = -2, {WORTH} }}', 4, "not below zero"),
        ('[value]\n"flag.latency" = 2', 4, "needs a kind"),
        ("value = 3", 3, "is a table"),
        (f'[preset.mine.value]\n"flag.latancy" = {{ value = 2, {WORTH} }}', 4, "did you mean"),
        ('[family]\nlogs = "911"', 4, "is one of"),
        ("[family]\ncolour = 3", 4, "there is no 'colour' in [family]"),
        (f"[roof]\nbandwith = {{ GM_TO_UB = 1.0, {WORTH} }}", 4, "did you mean 'bandwidth'"),
    ],
)
def test_what_is_wrong_in_a_chip_file_is_named_with_its_line(tmp_path, text, line, message):
    path = chip_file(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_chip(str(path))
    assert caught.value.where == f"{path}:{line}"
    assert message in str(caught.value)


def test_a_mistyped_move_is_an_error_of_the_command_and_no_traceback(tmp_path):
    path = chip_file(tmp_path, f"[move]\nMOV_OUT_TO_BU = {{ latency = 1, rate = 2, {WORTH} }}")
    command = [sys.executable, "-m", "insight_trace", "op", "TLOAD", "--rows", "8", "--cols", "64"]
    done = subprocess.run([*command, "--soc-version", str(path)], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{path}:4: there is no 'MOV_OUT_TO_BU'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_of_ones_own_lies_over_a_shipped_chip(tmp_path):
    path = chip_file(tmp_path, f'[value]\n"flag.latency" = {{ value = 9, {WORTH} }}')
    mine, shipped = load_chip(str(path)), load_chip("Ascend910B1")
    assert (mine.name, mine.value("flag.latency"), mine.target) == ("Mine", 9, "a2a3")
    assert len(set(mine.job_lines) ^ set(shipped.job_lines)) == 2
    assert target_of_chip(str(path)) == "a2a3"
    path.write_text(path.read_text().replace("value = 9", "value = 8"))
    assert load_chip(str(path)).value("flag.latency") == 8  # read again, not remembered


def test_an_instructions_any_replaces_what_was_said_of_its_types(tmp_path):
    path = chip_file(tmp_path, f"[vector.VADDS]\nany = {{ head = 1, slope = 1, {WORTH} }}")
    lines = [line for line in load_chip(str(path)).job_lines if line.startswith("vector\tVADDS\t")]
    assert lines == ["vector\tVADDS\t*\t1000\t1000\t0"]


def test_a_base_that_does_not_exist_is_named(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('name = "Mine"\nbase = "Ascend999"\n')
    with pytest.raises(InputError, match="no chip 'Ascend999' to base it on"):
        load_chip(str(path))


@pytest.mark.parametrize("name", chip_names())
def test_every_chip_states_every_parameter(name):
    assert set(load_chip(name).table["value"]) == set(parameter_names())


@pytest.mark.parametrize("name", ["Ascend910B1", "Ascend950PR_9599"])
def test_every_instruction_of_a_pipe_that_is_timed_by_a_table_has_its_entry(name):
    chip = load_chip(name)
    by_value = {"MMAD", "SET_FMATRIX", "VF", "VLD", "VST", "MOVEMASK"}
    a5_only = {"VXOR", "VPRELU", "VCONV_WIDE", "VCONV_HALF"}
    in_functions = {"MOV_UB_TO_UB", "VSUBRELU", "VADDRELUCONV", "VSUBRELUCONV"}
    others = by_value | (a5_only if chip.target == "a2a3" else in_functions)
    pipes = {n: pipe for n, (_, pipe) in instruction_pipes().items() if pipe not in ("S", "ANY")}
    tabled = set(chip.table["vector"]) | set(chip.table["move"])
    assert set(pipes) - tabled <= others


def test_families_are_files_and_name_their_usual_chip():
    families = {path.stem for path in FOLDER.glob("*.toml") if not path.stem.startswith("ascend")}
    assert families == set(TARGETS)
    for target in TARGETS:
        assert load_chip(target=target).target == target


def test_chips_that_are_not_simulated_are_known_and_refused():
    assert find_chip("Ascend310P3").family.logs is LogFamily.INFER
    with pytest.raises(RequestError, match="Ascend310P3 is not simulated"):
        load_chip("Ascend310P3")
    with pytest.raises(RequestError, match="there is no chip 'Pentium'"):
        load_chip("Pentium")


def test_kinds_of_logs_in_the_check_are_those_of_the_reader():
    from insight_trace.chips.chip_files import _LOGS

    assert set(_LOGS) == {family.value for family in LogFamily}


def test_no_two_chip_files_claim_one_name():
    names = [n for p in FOLDER.glob("*.toml") for n in tomllib.loads(p.read_text()).get("names", [])]
    assert len(names) == len(set(names))


def test_a_job_that_lacks_a_parameter_is_refused_by_the_runner(tmp_path):
    from insight_trace.simulate.embedded.runner import run_job
    from insight_trace.simulate.embedded.toolchain import Toolchain

    runner = Toolchain.find().runner()
    lines = [line for line in load_chip().job_lines if "flag.latency" not in line]
    assert "lacks the parameter flag.latency" in run_job(runner, tmp_path, lines, 5).failure.message
    wrong = run_job(runner, tmp_path, ["value\tflag.latancy\t1", *load_chip().job_lines], 5)
    assert "no parameter flag.latancy" in wrong.failure.message


@pytest.mark.parametrize("which", ["runner", "capture"])
def test_a_job_that_cannot_be_read_leaves_no_file_behind(tmp_path, which):
    from insight_trace.capture.builds import RUNNER
    from insight_trace.simulate.embedded.toolchain import Toolchain

    toolchain = Toolchain.find()
    runner = toolchain.runner() if which == "runner" else toolchain.executable(RUNNER)
    job, empty = tmp_path / "job", tmp_path / "empty"
    empty.mkdir()
    job.write_text("no such line\n")
    done = subprocess.run([runner, job], capture_output=True, text=True, cwd=empty)
    assert done.returncode == 1
    assert "our_bug" in done.stderr
    assert not list(empty.iterdir())
    job.write_text(f"result\t{tmp_path / 'said'}\nno such line\n")
    subprocess.run([runner, job], capture_output=True, cwd=empty)
    assert "our_bug" in (tmp_path / "said").read_text()
    assert not list(empty.iterdir())
