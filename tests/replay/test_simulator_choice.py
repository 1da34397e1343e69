"""`--simulator auto` means one thing: replay and profile take the same simulator for the same options."""

from pathlib import Path

import pytest

from insight_trace.errors import InsightTraceError
from insight_trace.options import SIMULATORS, RunOptions, VendorOptions
from insight_trace.profile import make_runner
from insight_trace.simulate.embedded.embedded_simulator import EmbeddedSimulator
from insight_trace.simulate.msprof.msprof_simulator import MsprofSimulator
from insight_trace.simulate.simulators import Simulator, find_simulator

CHIP_FILE = str(Path(__file__).parents[1] / "data" / "chips" / "mine.toml")


@pytest.fixture(params=["replay", "profile"])
def chosen(request, monkeypatch):
    """What a command takes, and what it says about it."""
    for name in ("CANN_SET_ENV", "ASCEND_HOME_PATH", "PTO_ISA_ROOT"):
        monkeypatch.delenv(name, raising=False)

    def choose(**options):
        said = []
        run = {name: options.pop(name, None) for name in ("soc_version", "pto_isa_root")}
        asked = (RunOptions(**run), VendorOptions(**options))
        found = find_simulator(*asked, ("a2a3",), said.append).name
        if request.param == "profile":
            assert make_runner(*asked, ("a2a3",)).name.split()[0] == found
        return found, said

    return choose


def test_without_a_word_about_cann_it_is_the_embedded_one(chosen):
    assert chosen() == ("embedded", [])


def test_the_name_of_a_chip_says_nothing_about_cann(chosen):
    assert chosen(soc_version="Ascend910B2") == ("embedded", [])


def test_a_chip_file_is_the_embedded_simulators_even_where_cann_is_named(chosen, monkeypatch):
    monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere/cann")
    assert chosen(soc_version=CHIP_FILE) == ("embedded", [])


def test_a_cann_that_only_the_environment_names_and_that_does_not_work_is_passed_over_with_a_word(
    chosen, monkeypatch
):
    monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere/cann")
    found, said = chosen()
    assert found == "embedded"
    assert len(said) == 1
    assert said[0].startswith("CANN is not used: ")


def test_what_only_the_vendors_simulator_reads_is_used_or_refused(chosen, tmp_path):
    with pytest.raises(InsightTraceError):
        chosen(cann_set_env=tmp_path / "absent")


def test_headers_of_a_checkout_are_for_both_and_choose_none(chosen, tmp_path):
    header = tmp_path / "include" / "pto" / "pto-inst.hpp"
    header.parent.mkdir(parents=True)
    header.touch()
    assert chosen(pto_isa_root=tmp_path) == ("embedded", [])


def test_there_is_one_protocol_and_every_simulator_that_has_a_name_keeps_it():
    both: list[Simulator] = [
        EmbeddedSimulator(RunOptions()),
        MsprofSimulator(RunOptions(), VendorOptions(), {}),
    ]
    assert tuple(simulator.name for simulator in both) == SIMULATORS
    asked = {name for name in vars(Simulator) if not name.startswith("_")}
    assert asked == {"name", "require", "run"}
    assert all(hasattr(simulator, name) for simulator in both for name in asked)


def test_a_name_that_no_simulator_has_is_refused():
    with pytest.raises(InsightTraceError, match="there is no simulator 'camodel'"):
        RunOptions(simulator="camodel")
