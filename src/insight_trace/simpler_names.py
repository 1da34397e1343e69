"""Answers `python -m simpler_setup.tools.NAME`, the names that simpler's users type, without a file of that name.

`insight_trace_simpler_names.pth`, the one line that the wheel puts into site-packages, imports this module in a process
that was started with such a name, and in no other. It stands aside where simpler has a tool of that name itself.
Nothing of simpler is imported, so that a checkout as the working folder, which nobody has built, is no obstacle.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

PACKAGE = "simpler_setup.tools"
TOOLS = ("insight_trace", "core_swimlane", "dump_viewer")


def command_of(tool: str, words: list[str]) -> list[str]:
    """The command line of ours that a tool's words come to."""
    if tool == "insight_trace":
        return ["replay", *words]
    if tool == "core_swimlane":
        return ["core-swimlane", *words]
    writes = any(word in ("-e", "--export", "-i", "--index") or word.startswith("--index=") for word in words)
    rest = [word for word in words if word not in ("-e", "--export")]
    return ["dump", "export", "--format", "txt", "--force", *rest] if writes else ["dump", "list", *rest]


# Python's options that end in `m`, alone or behind others (`-um`), and those whose value is a word of its own.
_MODULE = re.compile(r"-[bBdEiIOPqsSuvx]*m(.*)", re.S)
_WITH_VALUE = ("-X", "-W", "--check-hash-based-pycs")


def tool_asked_for(words: Sequence[str]) -> str | None:
    """The tool that Python was started with as a module, if it is one of ours."""
    rest = iter(words[1:])
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif found := _MODULE.fullmatch(word):
            package, _, tool = (found[1] or next(rest, "")).rpartition(".")
            return tool if package == PACKAGE and tool in TOOLS else None
        elif not word.startswith("-"):
            return None
    return None


class _Names(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds the two packages and the tool, unless simpler has that tool."""

    def __init__(self, tool: str) -> None:
        self._tool = tool

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        packages = ("simpler_setup", PACKAGE)
        if name not in (*packages, f"{PACKAGE}.{self._tool}") or self._is_theirs():
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=name in packages)

    def _is_theirs(self) -> bool:
        for finder in sys.meta_path:
            if finder is not self:
                spec = finder.find_spec("simpler_setup", None)
                for folder in (spec and spec.submodule_search_locations) or ():
                    if Path(folder, "tools", f"{self._tool}.py").is_file():
                        return True
        return False

    def exec_module(self, module: ModuleType) -> None:
        pass  # the packages are empty

    def is_package(self, fullname: str) -> bool:
        return fullname in ("simpler_setup", PACKAGE)

    def get_source(self, _fullname: str) -> str | None:
        return None

    def get_code(self, _fullname: str) -> CodeType:
        source = f"from insight_trace import simpler_names\nsimpler_names.main({self._tool!r})\n"
        return compile(source, f"<{PACKAGE}.{self._tool}>", "exec")


def main(tool: str) -> None:
    """Runs the tool's command; from here on simpler's own modules are found again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Names)]
    for name in (PACKAGE, "simpler_setup"):
        sys.modules.pop(name, None)
    # A worker process must not look for a module of this name: there is none.
    started = sys.modules["__main__"]
    started.__spec__, started.__file__ = None, None
    from insight_trace.commands import run_line

    sys.exit(run_line(command_of(tool, sys.argv[1:])))


_tool = tool_asked_for(sys.orig_argv)
if _tool is not None:
    sys.meta_path.insert(0, _Names(_tool))
