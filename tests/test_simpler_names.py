"""The wheel ships no module of another project, and the names that simpler's users type work with and without simpler."""

import hashlib
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from insight_trace.simpler_names import command_of, tool_asked_for

ROOT = Path(__file__).resolve().parent.parent
THEIRS = {
    "__init__.py": "raise ImportError('nobody has built this')\n",
    "tools/__init__.py": "",
    "tools/core_swimlane.py": "print('this is theirs')\n",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(place), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    if "hatchling" in done.stderr:
        pytest.skip("hatchling, which builds the wheel, cannot be installed here")
    assert done.returncode == 0, done.stderr
    (made,) = place.glob("insight_trace-*.whl")
    return made


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory):
    """A Python with what is in the wheel, and what it depends on: its binary and its site-packages."""
    place = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (site,) = place.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin" / "python", site


def put_simpler(folder):
    for name, text in THEIRS.items():
        path = folder / "simpler_setup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / "simpler_setup").rglob("*.py"))
    }


def start(python, cwd, tool, *words):
    done = subprocess.run(
        [str(python), "-m", f"simpler_setup.tools.{tool}", *words], cwd=cwd, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def test_every_file_of_the_wheel_is_in_our_own_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    ours = ("insight_trace/", "insight_trace-")
    assert [name for name in names if not name.startswith(ours)] == ["insight_trace_simpler_names.pth"]


def test_each_name_starts_our_command_where_simpler_is_not_installed(fresh, tmp_path):
    python, _ = fresh
    for tool, command in (
        ("insight_trace", "insight-trace replay"),
        ("core_swimlane", "insight-trace core-swimlane"),
        ("dump_viewer", "insight-trace dump list"),
    ):
        code, text = start(python, tmp_path, tool, "--help")
        assert code == 0, text
        assert f"usage: {command}" in text
    assert start(python, tmp_path, "insight_trace")[0] == 2


@pytest.mark.parametrize("place", ["installed", "the working folder"])
def test_beside_simpler_our_name_works_its_own_tools_stay_and_no_file_of_it_changes(fresh, tmp_path, place):
    python, site = fresh
    home = site if place == "installed" else tmp_path
    put_simpler(home)
    before = digests(home)
    try:
        code, text = start(python, tmp_path, "insight_trace", "--help")
        assert code == 0, text
        assert "usage: insight-trace replay" in text
        # theirs is found, and fails or works as it does without us
        assert "nobody has built this" in start(python, tmp_path, "core_swimlane")[1]
        (home / "simpler_setup" / "__init__.py").write_text("")
        assert start(python, tmp_path, "core_swimlane") == (0, "this is theirs\n")
        (home / "simpler_setup" / "__init__.py").write_text(THEIRS["__init__.py"])
        assert digests(home) == before
    finally:
        for path in sorted((home / "simpler_setup").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (home / "simpler_setup").rmdir()


def test_a_process_that_asks_for_none_of_the_names_finds_no_simpler(fresh, tmp_path):
    python, _ = fresh
    code = (
        "import sys, importlib.util as u; print(u.find_spec('simpler_setup'), 'insight_trace' in sys.modules)"
    )
    done = subprocess.run([str(python), "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "None False\n", done.stderr


@pytest.mark.parametrize(
    ("words", "tool"),
    [
        (["python", "-m", "simpler_setup.tools.insight_trace", "a.py"], "insight_trace"),
        (["python", "-X", "dev", "-W", "error", "-um", "simpler_setup.tools.dump_viewer"], "dump_viewer"),
        (["python", "-msimpler_setup.tools.core_swimlane"], "core_swimlane"),
        (["python", "-m", "simpler_setup.tools.deps_viewer"], None),
        (["python", "script.py", "-m", "simpler_setup.tools.insight_trace"], None),
        (["python", "-c", "pass", "-m", "simpler_setup.tools.insight_trace"], None),
        (["python", "-m", "pytest", "simpler_setup.tools.insight_trace"], None),
        (["python"], None),
    ],
)
def test_only_what_follows_pythons_own_m_is_a_name(words, tool):
    assert tool_asked_for(words) == tool


def test_dump_viewer_lists_or_writes_text_as_simplers_does():
    assert command_of("dump_viewer", ["d"]) == ["dump", "list", "d"]
    written = ["dump", "export", "--format", "txt", "--force"]
    assert command_of("dump_viewer", ["d", "-e"]) == [*written, "d"]
    assert command_of("dump_viewer", ["--index=4"]) == [*written, "--index=4"]
