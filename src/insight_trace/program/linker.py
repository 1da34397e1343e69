"""Links host code in the environment of `insight-trace exec`: what a program calls of the vendor's tiling library is
compiled from a checkout, and what nobody wrote fails by its name where it is called.

Every compiler of that environment links with `link/ld` of the toolkit, which comes here where the real one found no
definition.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

from insight_trace import limits, supervisor
from insight_trace.errors import InsightTraceError
from insight_trace.program import tiling_library, toolkit
from insight_trace.program.compile import CompileError, report
from insight_trace.simulate.embedded.entry_link import tool
from insight_trace.simulate.embedded.toolchain import Toolchain
from insight_trace.supervisor import Ended

_OF_THE_RUNTIME = re.compile(r"undefined reference to [`'](?:\w+ )?((?:acl|rt|Hccl|ge)[A-Z]\w+|acl\w+)'")


def main(arguments: list[str] | None = None) -> int:
    """LINKER WORDS…: one run of the real linker, with what it did not find; its exit code."""
    linker, *words = sys.argv[1:] if arguments is None else arguments
    bounds = supervisor.Limits(
        limits.compile_seconds(), output=limits.COMPILE_OUTPUT, kept=limits.COMPILE_OUTPUT
    )
    try:
        toolchain = Toolchain.find()
        beside = [str(toolkit.current() / "lib64" / toolkit.RUNTIME_LIBRARY), "-lstdc++", "-lm"]
        done = link(
            toolchain,
            lambda more: supervisor.run([linker, *words, *more], bounds=bounds),
            beside=beside,
            library=words[words.index("-o") + 1] if "-shared" in words and "-o" in words[:-1] else "",
        )
    except CompileError as error:
        report(error)
        return 1
    except InsightTraceError as error:
        sys.stderr.write(f"insight-trace: {error}\n")
        return 1
    sys.stderr.write(done.said.decode("utf-8", errors="replace"))
    return int(done.code != 0 or bool(done.over))


def link(
    toolchain: Toolchain,
    run: Callable[[Sequence[str]], Ended],
    *,
    beside: Sequence[str] = (),
    library: str = "",
) -> Ended:
    """Runs a linker, again with objects of ours where it found no definition of what is called.

    `beside`: what these objects call themselves, where the command does not name it. `library`: the shared library that
    is made, in which a linker leaves open what it does not find.
    """
    made: list[str] = []
    done = run(made)
    for _ in range(4):  # what is found may call more
        left_open = _left_open(library) if done.code == 0 and library else ""
        if not (names := tiling_library.missing(left_open if done.code == 0 else _said(done))):
            break
        more = [name for name in tiling_library.objects(toolchain, names) if name not in made]
        if not more:
            break
        made += more
        done = run([*made, *beside])
    if done.code != 0 and (missing := sorted(set(_OF_THE_RUNTIME.findall(_said(done))))):
        done = run([*made, _not_there(toolchain, missing), *beside])
    return done


def _left_open(library: str) -> str:
    """What a shared library does not define itself, as a linker would say it."""
    symbols = re.findall(r"^\s+U (.+)$", tool(["nm", "-D", "-u", "-C", library]), re.M)
    return "".join(f"undefined reference to `{symbol}'\n" for symbol in symbols)


def _said(done: Ended) -> str:
    return done.said.decode("utf-8", errors="replace")


def _not_there(toolchain: Toolchain, names: Sequence[str]) -> str:
    """An object with functions that say that they are not there."""
    text = ['extern "C" int insight_trace_not_there(const char *, void *);\n']
    for name in names:
        text.append(
            f'extern "C" long {name}() {{ return insight_trace_not_there("{name}", __builtin_return_address(0)); }}\n'
        )
        sys.stderr.write(f"insight-trace: {name} is not there: the program fails where it calls it\n")
    folder = toolkit.scratch()
    source, made = folder / "not_there.cpp", folder / "not_there.o"
    source.write_text("".join(text))
    toolchain.compiler.run(["-O1", "-fPIC", "-w", "-c", str(source), "-o", str(made)])
    return str(made)


if __name__ == "__main__":
    sys.exit(main())
