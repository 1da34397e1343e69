"""Which CANN is taken, and what is said when none will do."""

import os
import shutil
from pathlib import Path

import pytest
from standin_toolkit import make_toolkit

from insight_trace.chips import family_named
from insight_trace.errors import JobError, RequestError
from insight_trace.simulate.msprof.msprof_simulator import find_ready
from insight_trace.simulate.msprof.preflight import choose_soc, simulators
from insight_trace.simulate.msprof.toolkit import find_toolkits, version_key


@pytest.fixture
def install(tmp_path):
    """Installations under one place, without libraries: nothing is built here."""
    (tmp_path / "none").mkdir()

    def make(name, **options):
        return make_toolkit(tmp_path / "Ascend" / name, tmp_path / "none", **options)

    return make


def found(environ, tmp_path, **options):
    return list(find_toolkits(environ, places=(tmp_path / "Ascend",), **options))


def test_the_order_is_request_then_environment_then_usual_places(install, clean_environ, tmp_path):
    homes = {name: install(name) for name in ("cann-a", "cann-b", "cann-c", "cann-d", "cann-e")}
    environ = dict(clean_environ)
    assert len(found(environ, tmp_path)) == 5
    environ["ASCEND_HOME_PATH"] = str(homes["cann-b"])
    assert [t.home for t in found(environ, tmp_path)] == [homes["cann-b"]]
    environ["CANN_SET_ENV"] = str(homes["cann-c"] / "set_env.sh")
    assert [t.home for t in found(environ, tmp_path)] == [homes["cann-c"]]
    by_file = found(environ, tmp_path, set_env=homes["cann-d"] / "set_env.sh")
    assert [(t.home, t.how) for t in by_file] == [(homes["cann-d"], "--cann-set-env")]
    by_home = found(environ, tmp_path, set_env=homes["cann-d"] / "set_env.sh", cann_home=homes["cann-e"])
    assert [(t.home, t.how) for t in by_home] == [(homes["cann-e"], "--cann-home")]


def test_names_in_the_environment_that_do_not_exist_are_passed_over(install, clean_environ, tmp_path):
    home = install("cann-8.5")
    environ = clean_environ | {"CANN_SET_ENV": "/absent/set_env.sh", "ASCEND_HOME_PATH": "/absent"}
    assert [t.home for t in found(environ, tmp_path)] == [home]


def test_what_the_user_names_must_exist(clean_environ, tmp_path):
    with pytest.raises(RequestError, match="not a directory"):
        found(clean_environ, tmp_path, cann_home=tmp_path / "absent")
    with pytest.raises(RequestError, match="not a readable file"):
        found(clean_environ, tmp_path, set_env=tmp_path / "absent.sh")


def test_the_environment_is_what_set_env_exports_over_what_was_there(install, clean_environ, tmp_path):
    home = install("cann-8.5")
    (toolkit,) = found(clean_environ | {"OWN": "kept\nwith a line"}, tmp_path)
    assert toolkit.environment["OWN"] == "kept\nwith a line"
    assert toolkit.environment["ASCEND_TOOLKIT_HOME"] == str(home)
    assert toolkit.environment["PATH"].startswith(f"{home}/bin:")
    assert toolkit.version == "8.5.0"
    assert toolkit.program("msprof") == home / "bin/msprof"
    assert toolkit.program("absent") is None


def test_a_toolkits_own_programs_come_before_another_on_the_path(install, clean_environ, tmp_path):
    chosen, other = install("cann-8.5"), install("cann-9.0")
    (chosen / "set_env.sh").unlink()
    environ = clean_environ | {"PATH": f"{other}/bin:{clean_environ['PATH']}"}
    (toolkit,) = found(environ, tmp_path, cann_home=chosen)
    assert toolkit.program("bisheng") == chosen / "bin/bisheng"


def test_a_path_with_a_shell_command_in_it_is_only_a_path(install, clean_environ, tmp_path):
    home = install('cann-$(touch pwned)"; touch pwned; "')
    (toolkit,) = found(clean_environ, tmp_path)
    assert toolkit.home == home
    assert toolkit.environment["ASCEND_HOME_PATH"] == str(home)
    assert not Path("pwned").exists()
    assert not (tmp_path / "pwned").exists()


def test_a_set_env_beside_the_toolkit_is_found(install, clean_environ, tmp_path):
    home = install("ascend-toolkit/8.5.0")
    text = (
        (home / "set_env.sh")
        .read_text()
        .replace('"$here"', '"$here/8.5.0"')
        .replace("$here/bin", "$here/8.5.0/bin")
    )
    (home / "set_env.sh").unlink()
    (tmp_path / "Ascend/ascend-toolkit/set_env.sh").write_text(text)
    (home.parent / "latest").symlink_to("8.5.0")
    by_file = found(clean_environ, tmp_path, set_env=home.parent / "set_env.sh")
    assert [t.home for t in by_file] == [home]
    (once,) = found(clean_environ, tmp_path)  # latest and 8.5.0 are one installation
    assert once.set_env is not None
    assert once.home.resolve() == home
    above = found(clean_environ, tmp_path, cann_home=home.parent)
    assert [t.home for t in above] == [home]


def test_a_set_env_that_fails_or_sets_nothing_is_an_error(clean_environ, tmp_path):
    script = tmp_path / "set_env.sh"
    script.write_text("exit 3\n")
    with pytest.raises(JobError, match="exit 3"):
        found(clean_environ, tmp_path, set_env=script)
    script.write_text("true\n")
    with pytest.raises(JobError, match="sets no ASCEND_HOME_PATH"):
        found(clean_environ, tmp_path, set_env=script)


def test_the_newest_installation_that_knows_the_tile_language_is_taken(install, clean_environ, tmp_path):
    old, new = install("cann-8.2", version="8.2.RC1"), install("cann-9.0", version="9.0.0")
    install("cann-8.1", version="8.1")
    places = (tmp_path / "Ascend",)
    assert find_ready("a2a3", clean_environ, places=places).toolkit.home == new
    program = (new / "bin/bisheng").read_text()
    (new / "bin/bisheng").write_text(program.replace("exec", "STANDIN_BISHENG=no_tl exec"))
    assert find_ready("a2a3", clean_environ, places=places).toolkit.home == old


def test_versions_are_ordered_as_people_order_them():
    ordered = ["", "8.0.0", "8.1.RC1", "8.1.RC2", "8.1", "8.1.1", "8.2.RC1", "8.10", "9.0.0"]
    shuffled = ordered[5:] + ordered[:5]
    assert sorted(shuffled, key=version_key) == ordered


def test_without_cann_the_places_that_were_looked_at_are_named(clean_environ, tmp_path):
    with pytest.raises(JobError) as caught:
        find_ready("a2a3", clean_environ, places=(tmp_path / "Ascend",))
    assert str(tmp_path / "Ascend") in str(caught.value)
    assert "--simulator embedded" in str(caught.value)


def test_a_compiler_without_the_tile_language_is_refused_by_its_own_words(install, clean_environ):
    home = install("cann-8.0", version="8.0")
    with pytest.raises(JobError, match=r"CANN 8\.0 at .*tile language") as caught:
        find_ready("a2a3", clean_environ | {"STANDIN_BISHENG": "no_tl"}, cann_home=home)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("echo '[ERROR] Cannot find msopprof in x'", "Cannot find msopprof"),
        ("echo 'msopprof does not exist or permission denied'", "permission denied"),
        ("echo '--application Options: msopprof is soft link'", "is soft link"),
        ("true", "--application or Options:"),
        ("echo Options:; exit 1", "--application"),
    ],
)
def test_a_missing_worker_is_told_by_the_words_of_msprof_not_its_exit_code(
    install, clean_environ, answer, text
):
    home = install("cann-8.5")
    (home / "bin/msprof").write_text(f"#!/bin/sh\n{answer}\n")
    with pytest.raises(JobError, match="worker") as caught:
        find_ready("a2a3", clean_environ, cann_home=home)
    assert text in caught.value.what


@pytest.mark.parametrize("name", ["bisheng", "msprof"])
def test_a_missing_program_is_named(install, clean_environ, name):
    home = install("cann-8.5")
    (home / "bin" / name).unlink()
    if shutil.which(name):
        pytest.skip(f"this machine has a {name} of its own")
    with pytest.raises(JobError, match=f"{name} is missing"):
        find_ready("a2a3", clean_environ, cann_home=home)


def test_only_folders_with_a_camodel_library_count_as_chips(install):
    home = install("cann-8.5", socs=("Ascend910B1", "dav_2201"))
    (home / "x86_64-linux/simulator/Ascend910B/lib").mkdir(parents=True)
    assert list(simulators(home)) == ["Ascend910B1", "dav_2201"]


@pytest.mark.parametrize(
    ("target", "requested", "socs", "chosen"),
    [
        ("a2a3", None, ("Ascend910B1", "dav_2201", "dav_3510"), "dav_2201"),
        ("a2a3", None, ("Ascend910B3", "Ascend910B1", "Ascend910B2"), "Ascend910B1"),
        ("a2a3", None, ("Ascend910B4", "Ascend910B3", "Ascend310P"), "Ascend910B3"),
        ("a2a3", None, ("Ascend910_9391", "Ascend310P"), "Ascend910_9391"),
        ("a5", None, ("dav_2201", "dav_3510"), "dav_3510"),
        ("a5", None, ("Ascend910B1", "Ascend950DT_9571"), "Ascend950DT_9571"),
        ("a2a3", "Ascend910B1", ("Ascend910B1", "Ascend910B10"), "Ascend910B1"),
        ("a2a3", "Ascend910B", ("Ascend910B2", "Ascend910B"), "Ascend910B"),
        ("a2a3", "ascend910b", ("Ascend910B3", "Ascend910B2"), "Ascend910B2"),
    ],
)
def test_an_exact_chip_comes_before_a_prefix(install, target, requested, socs, chosen):
    home = install("cann-8.5", socs=socs)
    soc, lib = choose_soc(home, family_named(target), requested)
    assert soc == chosen
    assert (lib / "libruntime_camodel.so").is_file()


def test_a_chip_that_is_not_there_is_answered_with_those_that_are(install):
    home = install("cann-8.5", socs=("Ascend910B1", "Ascend310P"))
    with pytest.raises(RequestError, match=r"Ascend950(.|\n)*Ascend310P, Ascend910B1"):
        choose_soc(home, family_named("a2a3"), "Ascend950")
    with pytest.raises(JobError, match=r"a5 family(.|\n)*Ascend310P, Ascend910B1"):
        choose_soc(home, family_named("a5"), None)


def test_targets_are_known_by_their_platform_names_too():
    assert family_named("a2a3sim").target == "a2a3"
    assert family_named("a5").aicore_arch == "dav-c310"
    with pytest.raises(RequestError, match="a2a3, a5"):
        family_named("a7")


def test_looking_for_a_toolkit_leaves_this_process_as_it_was(install, clean_environ, tmp_path):
    before = dict(os.environ)
    install("cann-8.5")
    find_ready("a2a3", clean_environ, places=(tmp_path / "Ascend",))
    assert dict(os.environ) == before
