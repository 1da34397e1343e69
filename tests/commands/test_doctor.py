"""What the machine has, as a person and as a script read it; and what `--help` may cost."""

import json
import subprocess
import sys

import pytest

from insight_trace.__main__ import main
from insight_trace.doctor import release_of

THINGS = [
    "insight-trace",
    "compiler",
    "runner",
    "cache",
    "sandbox",
    "CANN",
    "ptoas",
    "torch",
    "viztracer",
    "distributed",
]


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without CANN, ptoas or a filled cache."""
    for name in ("CANN_SET_ENV", "ASCEND_HOME_PATH", "PTOAS_ROOT", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("INSIGHT_TRACE_CACHE", str(tmp_path / "cache"))
    return monkeypatch


def report(capsys) -> tuple[int, dict]:
    code = main(["doctor", "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("bare")
def test_every_thing_has_a_line_and_what_is_missing_has_advice(capsys):
    code, found = report(capsys)
    assert set(THINGS) <= set(found)
    assert all(entry["advice"] for entry in found.values() if not entry["found"])
    assert found["runner"] == {
        "found": False,
        "value": "not built yet",
        "advice": "the first simulation compiles it once, about a minute",
    }
    assert code == (0 if found["compiler"]["found"] else 1)


@pytest.mark.usefixtures("bare")
def test_people_get_a_line_per_thing(capsys):
    main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    for thing in THINGS:
        assert any(line[3:].split()[0] == thing for line in lines if line[:2] in ("ok", "--"))


def test_without_a_compiler_the_exit_code_is_1_and_it_says_what_to_install(bare, capsys, tmp_path):
    bare.setenv("PATH", str(tmp_path))
    bare.setattr("insight_trace.simulate.embedded.compiler._ziglang", lambda: None)
    code, found = report(capsys)
    assert code == 1
    assert found["compiler"]["value"] == "no C++ compiler was found"
    assert "install g++" in found["compiler"]["advice"]


def test_a_compiler_that_is_too_old_is_told(bare, capsys, own_path):
    old = own_path / "old-g++"
    old.write_text("#!/bin/sh\necho 'g++ (Debian 14.1) 9.4.0'\n")
    old.chmod(0o755)
    bare.setenv("CXX", str(old))
    code, found = report(capsys)
    assert code == 1
    assert found["compiler"]["found"] is False
    assert found["compiler"]["advice"].startswith("version 11 or newer")


def assembler(folder, text):
    program = folder / "ptoas"
    folder.mkdir()
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


def test_an_assembler_is_shown_with_its_version_wherever_it_is_named(bare, capsys, tmp_path):
    below = assembler(tmp_path / "bin", '[ "$1" = --version ] && echo "ptoas 0.27"')
    on_path = assembler(tmp_path / "path", 'echo "LLVM (http://llvm.org/):"; echo "  PTOAS 0.57.1"')
    given = assembler(tmp_path / "given", "echo ptoas 0.60")
    bare.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    assert report(capsys)[1]["ptoas"] == {"found": True, "value": f"{on_path} (PTOAS 0.57.1)", "advice": ""}
    bare.setenv("PTOAS_ROOT", str(tmp_path))
    assert report(capsys)[1]["ptoas"]["value"] == f"{below} (ptoas 0.27)"
    main(["doctor", "--ptoas-bin", str(given)])
    assert f"{given} (ptoas 0.60)" in capsys.readouterr().out


def test_an_assembler_that_does_not_start_is_said_to_be_none(bare, capsys, tmp_path):
    program = assembler(
        tmp_path / "bin", "echo 'error while loading shared libraries: libMLIR.so' >&2; exit 127"
    )
    bare.setenv("PTOAS_ROOT", str(tmp_path))
    found = report(capsys)[1]["ptoas"]
    assert found["found"] is False
    assert found["value"] == f"{program} does not start: error while loading shared libraries: libMLIR.so"
    assert found["advice"]


def test_a_toolkit_is_found_with_what_it_lacks(bare, capsys, tmp_path):
    home = tmp_path / "toolkit"
    (home / "compiler").mkdir(parents=True)
    (home / "compiler" / "version.info").write_text("Version=8.3.RC1\n")
    bare.setenv("ASCEND_HOME_PATH", str(home))
    found = report(capsys)[1]
    assert found["CANN"]["value"] == f"{home} 8.3.RC1 (from ASCEND_HOME_PATH)"
    assert found["msprof"]["found"] is False


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", 12),
        ("Debian clang version 14.0.6", 14),
        ("g++-11 (Ubuntu 9.4.0) 11.4.0", 11),
        ("clang version 18.1.8 (https://github.com/ziglang/zig 1.2)", 18),
        ("something else", None),
    ],
)
def test_a_compilers_release_is_read_from_what_it_says(text, release):
    assert release_of(text) == release


_IMPORTS = """
import resource, sys
before = resource.getrusage(resource.RUSAGE_SELF)
from insight_trace.__main__ import main
assert main(["--help"]) == 0
after = resource.getrusage(resource.RUSAGE_SELF)
heavy = {"numpy", "msgspec", "rich", "jinja2", "elftools", "ml_dtypes", "filelock"} & set(sys.modules)
assert not heavy, heavy
print(after.ru_utime + after.ru_stime, file=sys.stderr)
"""


def test_help_imports_nothing_heavy_and_costs_under_150_ms_of_cpu():
    best = 1.0
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", _IMPORTS], capture_output=True, text=True, check=True)
        best = min(best, float(done.stderr))
    assert best < 0.15
