"""The compiled core: each object is made of what it includes, and of nothing else."""

import shutil
import subprocess
from pathlib import Path

import pytest

from insight_trace.simulate.embedded.cache import Cache
from insight_trace.simulate.embedded.compiler import Compiler, find_compiler
from insight_trace.simulate.embedded.engine_objects import ENGINE, INCLUDE, Includes, engine_sources
from insight_trace.simulate.embedded.toolchain import Toolchain


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


def test_a_changed_header_changes_the_objects_that_include_it_and_no_others(tmp_path):
    engine = tmp_path / "engine"
    shutil.copytree(ENGINE, engine)
    sources = [engine / source.relative_to(ENGINE) for source in engine_sources()]

    def keys() -> dict[str, str]:
        includes = Includes([engine, INCLUDE])
        return {source.name: includes.key(source) for source in sources}

    before = keys()
    header = engine / "ops" / "table.hpp"
    header.write_text(header.read_text() + "// a remark\n")
    changed = {name for name, key in keys().items() if key != before[name]}
    users = {source.name for source in sources if '"ops/table.hpp"' in source.read_text()}
    assert changed == users
    assert 0 < len(changed) < len(sources) / 4


def test_a_kernel_whose_header_changed_is_compiled_again_and_only_then(tmp_path, monkeypatch):
    header, source = tmp_path / "width.hpp", tmp_path / "kernel.cpp"
    header.write_text("constexpr int width = 1;\n")
    source.write_text('#include "width.hpp"\nextern "C" int kernel_width() { return width; }\n')
    runs = []
    run = Compiler.run
    monkeypatch.setattr(
        Compiler, "run", lambda self, arguments: runs.append(arguments) or run(self, arguments)
    )
    toolchain = Toolchain(find_compiler(), Cache(tmp_path / "cache"))

    def steps() -> int:
        runs.clear()
        toolchain.host_object(source, "orchestration", [])
        return len(runs)

    assert steps() == 2  # compiled, linked
    assert steps() == 0
    header.write_text("constexpr int width = 2;\n")
    assert steps() == 2
    assert steps() == 0
