"""A compiled source with host code in it, linked as a kernel: its entry points and what they reach, nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from insight_trace import limits, supervisor
from insight_trace.errors import JobError

SECTIONS = ("-ffunction-sections", "-fdata-sections")  # what a source has to be compiled with
_STATE = ("insight_trace_state_begin", "insight_trace_state_end")


def entries_only(compiled: Path, entries: Sequence[str]) -> list[str]:
    """Prepares the object in place; the linker's flags that leave everything else behind."""
    listed, exported = compiled.with_suffix(".entries"), compiled.with_suffix(".map")
    listed.write_text("\n".join(entries) + "\n", encoding="utf-8")
    # the initialisers of the host's own variables have nothing to do on a core
    tool([
        "objcopy", f"--globalize-symbols={listed}", "-w", "-R", ".init_array*", "-R", ".rela.init_array*", "-R", ".ctors*",
        str(compiled),
    ])  # fmt: skip
    names = " ".join(f"{name};" for name in (*entries, *_STATE))
    exported.write_text(f"{{ global: {names} local: *; }};\n", encoding="utf-8")
    return ["-Wl,--gc-sections", f"-Wl,--version-script={exported}"]


def tool(words: Sequence[str]) -> str:
    """What a program of binutils prints."""
    if shutil.which(words[0]) is None:
        raise JobError(f"{words[0]} is not there", hint="install binutils, which comes with g++")
    bounds = supervisor.Limits(
        limits.compile_seconds(), output=limits.COMPILE_OUTPUT, kept=limits.COMPILE_OUTPUT
    )
    done = supervisor.run(words, bounds=bounds)
    said = done.said.decode("utf-8", errors="replace")
    if done.code != 0 or done.over:
        raise JobError(f"{words[0]} failed: {said.strip()[:500]}")
    return said
