"""A call that changes a file fails, or a signal comes: outputs stay whole or absent, the next run works.

Some calls and kills of quick commands; `make faults` and `make storm` try every command.
"""

import random
import shutil

import pytest
from tools.interrupt_commands import SIGNALS, faults, killed

from insight_trace.commands import COMMANDS as ALL_COMMANDS
from tests.trust.interrupted import COMMANDS, Command, Trial, state


def test_every_command_is_among_those_that_faults_and_kills_are_tried_on():
    assert {command.words[0] for command in COMMANDS.values()} == set(ALL_COMMANDS)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
@pytest.mark.parametrize("name", ["clean", "dump export"])  # what needs no kernel
def test_a_fault_at_a_call_leaves_the_output_whole_or_absent_and_the_next_run_works(name, tmp_path):
    found = list(faults(Trial(name, tmp_path), points=3))
    assert len(found) >= 3
    assert [row for row in found if row[1]] == []


def test_a_kill_at_any_moment_leaves_nothing_broken_and_nothing_alive(tmp_path):
    trial, dice = Trial("capture", tmp_path), random.Random(3)
    for number, sent in enumerate(SIGNALS):
        assert not killed(trial, sent, dice.uniform(0.3, 0.9), f"{tmp_path}-{number}", again=True)[1]


def test_what_a_run_goes_on_with_is_no_output_and_everything_else_is(tmp_path):
    made = ("out/run_1/funcs/k/trace.json", "out/run_1/summary.txt", "out/run_1/logs/k/a.log")
    for name in made:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    command = Command((), (), ("out/*/funcs/*", "out/*"), ("out/*.*", "out/*/*.*", "out/*/logs"))
    found = {file for files in state(tmp_path, command).values() for file in files}
    assert found == {made[0]}
