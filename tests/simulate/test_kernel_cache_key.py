"""A compiled kernel is used again only while the compiler would read the same: each change is one that was missed."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from insight_trace.simulate.embedded import compiled_from, compiler
from insight_trace.simulate.embedded.toolchain import Toolchain

# it compiles in a tenth of the time that a kernel takes, and through the same code
SOURCE = """
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
extern "C" const char says[] = "it is " TEXT(VALUE);
"""


def _one(folder: Path, value: int = 1, name: str = "value.h") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#define VALUE {value}\n")
    return folder


def _at_the_same_time(folder: Path) -> None:
    before = (folder / "value.h").stat()
    _one(folder, 2)
    os.utime(folder / "value.h", ns=(before.st_atime_ns, before.st_mtime_ns))


@dataclass(frozen=True)
class Change:
    """Something that a compilation depends on. `prepare` gives include folders and variables."""

    name: str
    before: str
    prepare: Callable[[Path], tuple[list[Path], dict[str, str]]]
    change: Callable[[Path], object]
    after: dict[str, str] = field(default_factory=dict)  # variables that change, {} stands for the folder


def _in(name: str) -> Change:
    return Change(
        f"a header in {name!r}",
        '#include "value.h"\n',
        lambda at: ([_one(at / name)], {}),
        lambda at: _one(at / name, 2),
    )


CHANGES = (
    *map(_in, ("plain", "a#b", "a$b", "a b", "a\tb", "a\nb", "a:b", "a\\b", 'a"b', "a%b")),
    Change("a header earlier in the path", '#include "value.h"\n',
           lambda at: ([_one(at / "a", 7, "other.h"), _one(at / "b")], {}), lambda at: _one(at / "a", 2)),
    Change("a header in a folder that was not there", '#include "sub/value.h"\n',
           lambda at: ([_one(at / "a", 7, "other.h"), _one(at / "b" / "sub").parent], {}),
           lambda at: _one(at / "a" / "sub", 2)),
    Change("a header in the folder of the source", '#include "value.h"\n',
           lambda at: ([_one(at / "b")], {}), lambda at: _one(at / "source", 2)),
    Change("a header in the folder of a header", '#include "first.h"\n',
           lambda at: (((at / "a").mkdir(), (at / "a" / "first.h").write_text('#include "value.h"\n'))
                       and [at / "a", _one(at / "b")], {}), lambda at: _one(at / "a", 2)),
    Change("what __has_include asks for",
           '#if __has_include("value.h")\n#include "value.h"\n#else\n#define VALUE 1\n#endif\n',
           lambda _: ([], {}), lambda at: _one(at / "source", 2)),
    Change("what a macro includes", '#define WHICH "value.h"\n#include WHICH\n',
           lambda at: ([_one(at / "b")], {}), lambda at: _one(at / "source", 2)),
    Change("a header of CPATH", '#include "value.h"\n',
           lambda at: ([], {"CPATH": str(_one(at / "a"))}), lambda at: _one(at / "a", 2)),
    Change("CPATH itself", '#include "value.h"\n',
           lambda at: ([], {"CPATH": str(_one(at / "a"))}), lambda at: _one(at / "c", 2), {"CPATH": "{}/c"}),
    Change("CPLUS_INCLUDE_PATH", '#include <value.h>\n',
           lambda at: ([], {"CPLUS_INCLUDE_PATH": str(_one(at / "a"))}), lambda at: _one(at / "c", 2),
           {"CPLUS_INCLUDE_PATH": "{}/c"}),
    Change("a header of the machine's own folder", '#include <value.h>\n',
           lambda at: ([], {"CPATH": str(_one(at / "usr" / "local" / "include"))}),
           lambda at: _one(at / "usr" / "local" / "include", 2)),
    Change("a header of a project below the system's folder", '#include "value.h"\n',
           lambda at: ([_one(at / "usr" / "src" / "project")], {}), lambda at: _one(at / "usr" / "src" / "project", 2)),
    Change("a header of the same size and time",
           '#include "value.h"\n', lambda at: ([_one(at / "a")], {}), lambda at: _at_the_same_time(at / "a")),
    Change("where a link to a folder leads", '#include "value.h"\n',
           lambda at: ((_one(at / "a"), _one(at / "b", 2), (at / "c").symlink_to("a")) and [at / "c"], {}),
           lambda at: ((at / "c").unlink(), (at / "c").symlink_to("b"))),
    Change("a file that assembler code includes",
           'asm(".section .rodata\\n.incbin \\"mine.bin\\"\\n.text");\n',
           lambda at: ((at / "source" / "mine.bin").write_text("it is 1") and [], {}),
           lambda at: (at / "source" / "mine.bin").write_text("it is 2")),
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_kernel_is_compiled_again_after(tmp_path, monkeypatch, change: Change):
    monkeypatch.setattr(compiled_from, "_SYSTEM", (tmp_path / "usr" / "include",))
    monkeypatch.setattr(compiled_from, "_LOCAL", tmp_path / "usr" / "local")
    (tmp_path / "source").mkdir()
    folders, variables = change.prepare(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    source = tmp_path / "source" / "source.cpp"
    source.write_text(change.before + SOURCE)
    toolchain = Toolchain.find()

    def made() -> Path:
        return toolchain.host_object(source, "orchestration", folders)

    assert b"it is 1" in made().read_bytes()
    time = made().stat().st_mtime_ns
    assert made().stat().st_mtime_ns == time, "what has not changed is compiled once"
    change.change(tmp_path)
    for name, value in change.after.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    assert b"it is 2" in made().read_bytes()


def test_a_wrapper_around_a_compiler_counts_with_its_text(tmp_path, monkeypatch):
    wrapper, source = tmp_path / "wrapped", tmp_path / "source.cpp"
    source.write_text(SOURCE)
    monkeypatch.setenv("CXX", str(wrapper))
    for value in (1, 2):
        wrapper.write_text(f'#!/bin/sh\nexec g++ -DVALUE={value} "$@"\n')
        wrapper.chmod(0o700)
        compiler._probe.cache_clear()
        made = Toolchain.find().host_object(source, "orchestration", ())
        assert b"it is %d" % value in made.read_bytes()
    compiler._probe.cache_clear()


@pytest.mark.parametrize(("program", "readable"), [("{}/bin/g++", False), ("{}/opt/gcc/bin/g++", True)])
def test_a_compiler_in_a_home_opens_the_home_to_no_source(program, readable, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    place = Path(program.format(tmp_path))
    assert (place.parent.parent in compiler._installed(place)) is readable


def test_a_rule_for_make_is_read_with_all_its_escapes():
    rule = b"out.o: /a\\ b.h \\\n /c\\#d.h /e$$f.h /g\\:h.h \\\n /i\\\tj.h\n"
    assert compiled_from.rule_paths(rule) == [b"/a b.h", b"/c#d.h", b"/e$f.h", b"/g:h.h", b"/i\tj.h"]


def test_a_source_whose_name_is_an_option_is_a_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("-fplugin=x.cpp").write_text("#define VALUE 5\n" + SOURCE)
    made = Toolchain.find().host_object(Path("-fplugin=x.cpp"), "orchestration", ())
    assert b"it is 5" in made.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["-fplugin=x.cpp"]
