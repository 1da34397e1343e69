"""Every call that changes a file fails or is the last one, in turn: outputs stay whole or absent, the next run works."""

import os

import pytest

from insight_trace.commands import COMMANDS as ALL_COMMANDS
from tests.trust.fault_commands import COMMANDS, TURN, Command, compiled_shim, swept, wrong
from tests.trust.fault_states import state

LONG = bool(os.environ.get("INSIGHT_TRACE_LONG_TESTS"))
QUICK = ("clean", "view", "dump export", "runs prune")  # what needs no kernel, or hardly one


def test_every_command_is_among_those_that_faults_and_kills_are_tried_on():
    assert {command.words[0] for command in COMMANDS.values()} == set(ALL_COMMANDS)


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    made = compiled_shim(tmp_path_factory.mktemp("shim"))
    return made or pytest.skip("no C compiler")


@pytest.mark.parametrize("name", COMMANDS if LONG else QUICK)
def test_a_fault_at_any_call_leaves_the_output_whole_or_absent_and_the_next_run_works(name, shim, tmp_path):
    first, rows = swept(name, shim, tmp_path, TURN, points=0 if LONG else 6)
    assert first["code"] == 0, first
    assert len(rows) >= min(first["calls"], 6)
    for row in rows:
        assert not wrong(row), f"{name}, of {first['calls']} calls, {wrong(row)}: {row}"


def test_what_a_run_goes_on_with_is_no_output_and_everything_beside_it_is(tmp_path):
    made = ("out/run_1/funcs/k/trace.json", "out/run_1/summary.txt", "out/run_1/logs/k/a.log")
    for name in made:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    command = Command((), (), ("out/*/funcs/*", "out/*"), ("out/*.*", "out/*/*.*", "out/*/logs"))
    found = {file for files in state(tmp_path, command).values() for file in files}
    assert found == {made[0]}
