"""The compiled core: each object is made of what it includes, and of nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from insight_trace.cache import Cache
from insight_trace.simulate.embedded import engine_objects
from insight_trace.simulate.embedded.compiler import Compiler, find_compiler
from insight_trace.simulate.embedded.engine_objects import (
    COLD,
    ENGINE,
    HOT,
    INCLUDE,
    RUNNER,
    Includes,
    engine_sources,
    units,
)
from insight_trace.simulate.embedded.toolchain import Toolchain, put_emulator_before


def own_files_read(source: Path) -> set[Path]:
    """What the compiler itself says that it reads of ours."""
    command = [*find_compiler().command, "-std=c++17", "-MM", f"-I{ENGINE}", f"-I{INCLUDE}", str(source)]
    rule = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {Path(word).resolve() for word in rule.replace("\\\n", " ").split()[1:]}


@pytest.mark.parametrize("source", ["runner.cpp", "core.cpp", "ops/reduce.cpp"])
def test_an_object_is_made_of_every_file_that_the_compiler_reads(source):
    found = Includes([ENGINE, INCLUDE]).of(ENGINE / source)
    assert found >= own_files_read(ENGINE / source)
    assert all(path.is_relative_to(ENGINE) or path.is_relative_to(INCLUDE) for path in found)


def test_every_source_is_compiled_once_and_a_changed_one_with_few_others():
    sources = [*engine_sources(), *RUNNER.sources]
    made = units(sources)
    assert sorted(source for unit in made for source in unit.sources) == sorted(sources)
    assert max(unit.cost for unit in made) < sum(unit.cost for unit in made) / 6
    assert units(reversed(sources)) == made


def test_what_runs_for_every_instruction_is_compiled_for_speed_and_the_rest_in_less_time():
    sources = [*engine_sources(), *RUNNER.sources]
    stems = [source.stem for source in sources]
    assert sorted(name for name in engine_objects._HOT if stems.count(name) != 1) == []
    level = {source.stem: unit.level for unit in units(sources) for source in unit.sources}
    assert {level[name] for name in ("core", "timeline", "arithmetic", "matmul_products", "checker")} == {HOT}
    assert {level[name] for name in ("runner", "sandbox", "journal", "report")} == {COLD}


_WITH_MSGSPEC_ALONE = """
import sys
sys.path[:0] = sys.argv[1:]

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "ml_dtypes", "jinja2", "elftools", "rich", "filelock"):
            raise ImportError(f"{name} is not installed yet")

sys.meta_path.insert(0, Absent())
from insight_trace.capture import builds

class Asked:
    def executable(self, program):
        print(f"{program.name} ", end="", flush=True)  # two threads ask at once

builds.compile_programs(Asked())
builds.Toolchain.find()
"""


def test_the_core_is_compiled_with_msgspec_alone_installed():
    folders = [Path(engine_objects.__file__).parents[3], Path(msgspec.__file__).parents[1]]
    command = [sys.executable, "-S", "-c", _WITH_MSGSPEC_ALONE, *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["capture-runner", "runner"]


def test_a_changed_header_changes_the_objects_that_include_it_and_no_others(tmp_path):
    engine = tmp_path / "engine"
    shutil.copytree(ENGINE, engine)
    sources = [engine / source.relative_to(ENGINE) for source in engine_sources()]

    def keys() -> dict[str, str]:
        includes = Includes([engine, INCLUDE])
        return {source.name: includes.key(source) for source in sources}

    before = keys()
    header = engine / "timings.hpp"
    header.write_text(header.read_text() + "// a remark\n")
    changed = {name for name, key in keys().items() if key != before[name]}
    over = [path for path in engine.rglob("*.hpp") if '"timings.hpp"' in path.read_text()]
    assert over, "one of its users gets it through another header"
    names = [f'"{path.relative_to(engine).as_posix()}"' for path in (header, *over)]
    users = {source.name for source in sources if any(name in source.read_text() for name in names)}
    assert changed == users
    assert 0 < len(changed) < len(sources) / 4


def test_a_kernel_whose_header_changed_is_compiled_again_and_only_then(tmp_path, monkeypatch):
    header, source = tmp_path / "width.hpp", tmp_path / "kernel.cpp"
    header.write_text("constexpr int width = 1;\n")
    source.write_text('#include "width.hpp"\nextern "C" int kernel_width() { return width; }\n')
    runs = []
    run = Compiler.run
    monkeypatch.setattr(
        Compiler, "run", lambda self, *arguments: runs.append(arguments) or run(self, *arguments)
    )
    toolchain = Toolchain(find_compiler(), Cache(tmp_path / "cache"))

    def steps() -> int:
        runs.clear()
        toolchain.host_object(source, "orchestration", [])
        return len(runs)

    assert (
        steps() == 4 - find_compiler().is_zig
    )  # the C++ library precompiled; compiled, preprocessed, linked
    assert steps() == 0
    header.write_text("constexpr int width = 2;\n")
    assert steps() == 3
    assert steps() == 0


_COMPILES = """
import sys
from pathlib import Path
from insight_trace.model import CoreType
from insight_trace.simulate.embedded.toolchain import Toolchain
for source in sys.argv[1:]:
    print(Toolchain.find().kernel(Path(source), CoreType.AIV))
"""


def test_ten_processes_on_an_empty_cache_compile_each_thing_once(tmp_path):
    sources = [tmp_path / "one.cpp", tmp_path / "other.cpp"]
    for source in sources:
        source.write_text('extern "C" void kernel_entry(int64_t *args) { args[0] = 1; }\n')
    log, compiler = tmp_path / "log", tmp_path / "compiler"
    real = " ".join(find_compiler().command)
    compiler.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {real} "$@"\n')
    compiler.chmod(0o755)
    environment = {**os.environ, "CXX": str(compiler), "INSIGHT_TRACE_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", _COMPILES, *map(str, sources)]
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(10)]
    made = {process.communicate()[0] for process in processes}
    assert [process.returncode for process in processes] == [0] * 10
    assert len(made) == 1
    runs = [line for line in log.read_text().splitlines() if line != "--version"]
    assert len([line for line in runs if "c++-header" in line]) == 1 - find_compiler().is_zig
    assert len([line for line in runs if " -S " in line or " -c " in line]) == len(sources)
    assert len([line for line in runs if "-shared" in line]) == len(sources)


_CLANG = """#!/bin/sh
# Says that it is clang, and like it looks for a precompiled header's own place again.
for word; do last=$word; done
case " $* " in
*" --version "*) echo "clang version 14.0.6"; exit ;;
*" c++-header "*) for word; do [ "$word" = -o ] && echo "$before" > "$last"; before=$word; done; exit ;;
esac
for word; do
    [ "$before" = -include-pch ] && [ ! -e "$(cat "$word")" ] && echo "error: could not find file" && exit 1
    [ "$before" = -MF ] && echo "made:" > "$word"
    before=$word
done
exec REAL -shared -x c++ /dev/null -o "$last"
"""


def test_precompiled_headers_of_a_checkout_that_is_gone_serve_no_other(tmp_path):
    """clang's name the headers where they were; g++'s do not."""
    source, compiler = tmp_path / "kernel.cpp", tmp_path / "clang++"
    source.write_text('extern "C" void kernel_entry(int64_t *args) { args[0] = 1; }\n')
    compiler.write_text(_CLANG.replace("REAL", " ".join(find_compiler().command)))
    compiler.chmod(0o755)
    package = Path(engine_objects.__file__).parents[2]
    for checkout in ("gone", "kept"):
        source.write_text(source.read_text() + "\n")  # the object is not the earlier one's
        place = tmp_path / checkout
        shutil.copytree(package, place / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        environment = {**os.environ, "CXX": str(compiler), "INSIGHT_TRACE_CACHE": str(tmp_path / "cache")}
        environment |= {"PYTHONPATH": str(place)}
        command = [sys.executable, "-c", _COMPILES, str(source)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        shutil.rmtree(place)


def test_a_program_for_another_machine_is_run_by_the_emulator_from_wherever_it_lies(tmp_path):
    program = tmp_path / "made" / "runner"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 9\n")
    emulator = tmp_path / "emulator"
    emulator.write_text('#!/bin/sh\necho "$@"\n')
    emulator.chmod(0o755)
    put_emulator_before(program, (str(emulator), "-L", "/a b"))
    entry = program.parent.rename(tmp_path / "entry")
    done = subprocess.run([entry / "runner", "job"], capture_output=True, text=True, env={}, check=True)
    assert done.stdout.split("\n")[0] == f"-L /a b {entry / 'runner.bin'} job"
