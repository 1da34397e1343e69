"""`--simulator auto` means one thing: replay and profile take the same simulator for the same options."""

from pathlib import Path

import pytest

from insight_trace.errors import InsightTraceError
from insight_trace.profile import make_runner
from insight_trace.ptoas.embedded_runner import EmbeddedRunner
from insight_trace.ptoas.kernel_runner import RunnerOptions
from insight_trace.replay.replaying import choose_simulator
from insight_trace.replay.request import ReplayRequest

CHIP_FILE = str(Path(__file__).parents[1] / "data" / "chips" / "mine.toml")


@pytest.fixture(params=["replay", "profile"])
def chosen(request, monkeypatch):
    """What a command takes, and what it says about it."""
    for name in ("CANN_SET_ENV", "ASCEND_HOME_PATH", "PTO_ISA_ROOT"):
        monkeypatch.delenv(name, raising=False)

    def choose(**options):
        said = []
        if request.param == "replay":
            found = choose_simulator(ReplayRequest(Path("scene.py"), **options), "a2a3", said)
        else:
            runner = make_runner("auto", RunnerOptions(**options), ("a2a3",), said.append)
            found = "embedded" if isinstance(runner, EmbeddedRunner) else "msprof"
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


@pytest.mark.parametrize("option", ["cann_set_env", "pto_isa_root"])
def test_what_only_the_vendors_simulator_reads_is_used_or_refused(chosen, option, tmp_path):
    with pytest.raises(InsightTraceError):
        chosen(**{option: tmp_path / "absent"})
