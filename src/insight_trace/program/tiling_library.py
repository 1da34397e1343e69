"""Tiling functions of AscendC for host code: those that a program calls, compiled from an asc-devkit checkout."""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from insight_trace.cache import content_key
from insight_trace.program.compile import HEADERS, CompileError
from insight_trace.simulate.embedded.toolchain import Toolchain

_FOLDERS = ("impl/adv_api/tiling", "impl/adv_api/detail")
_UNDEFINED = re.compile(
    r"undefined reference to [`'](vtable for )?(?:\w[\w ]* )?((?:AscendC|matmul_tiling|optiling|ConvApi)::[^']+?)'"
)
# what every source of them logs with
_ALWAYS = "host_log.cpp"


def missing(said: str) -> set[str]:
    """Functions that a linker did not find, without their arguments and namespaces: `Class::name` or `name`.

    `Class::` is any function of a class, with whose first one the table of its virtual functions is defined.
    """
    found = set()
    for table, name in _UNDEFINED.findall(said):
        words = re.split(r"[(<\[]", name)[0].split("::")
        if table:
            found.add(f"{words[-1]}::")
            continue
        of_class = len(words) > 2 and words[-2][:1].isupper() and words[-2] != "AscendC"
        found.add("::".join(words[-2:]) if of_class else words[-1])
    return found


def objects(toolchain: Toolchain, names: Iterable[str]) -> list[str]:
    """Objects that define these functions; none where the checkout has no source of them."""
    if not toolchain.ascendc_folders:
        return []
    root = toolchain.ascendc_folders[1]  # all of the checkout
    sources = _sources(root)
    wanted = {
        path
        for path, text in sources.items()
        if any(re.search(_called(name), text) for name in names) or path.name == _ALWAYS
    }
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda path: _object(toolchain, root, path), sorted(wanted)))


def _called(name: str) -> str:
    return rf"\b{re.escape(name)}" + (r"~?\w+" if name.endswith("::") else "") + r"\s*\("


@cache
def _sources(root: Path) -> dict[Path, str]:
    found = [path for folder in _FOLDERS for path in sorted((root / folder).rglob("*.cpp"))]
    return {path: path.read_text(encoding="utf-8", errors="replace") for path in found}


def _object(toolchain: Toolchain, root: Path, source: Path) -> str:
    folders = [HEADERS, *toolchain.ascendc_folders]
    words = [
        "-std=c++17",
        "-O1",
        "-g0",
        "-fPIC",
        "-w",
        "-fpermissive",
        *(f"-I{folder}" for folder in folders),
    ]

    def build(into: Path) -> None:
        done = toolchain.compiler.run([*words, "-c", str(source), "-o", str(into / "made.o")])
        if done.code != 0 or done.over:
            raise CompileError(done.said.decode("utf-8", errors="replace"))

    key = content_key([toolchain.identity, str(root), str(source), source.read_bytes(), *words])
    return str(toolchain.cache.put("tiling", key, build) / "made.o")
