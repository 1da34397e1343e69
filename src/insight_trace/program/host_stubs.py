"""Kernels that host code of another source calls as functions: `kernel(blocks, nullptr, stream, …)`.

The vendor's compiler leaves such a function of each kernel with C linkage for the host. Here a source has them that launches
nothing itself: its kernels are there for others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from insight_trace.program.core_kinds import kernels_in
from insight_trace.simulate.embedded.entry_link import tool

_PREFIX = "insight_trace_host_stub_"
_STUB = re.compile(rf"^\S+ [WT] (_ZN\d+{_PREFIX}(\w+?)I\S*E4callE\S*)$", re.M)
_TEXT = """
template <class Kernel> struct {prefix}{name};
template <class... Values> struct {prefix}{name}<void(Values...)> {{
    [[gnu::used]] static void call(uint32_t blocks, void *, void *stream, Values... values) {{
        {name}<<<blocks, nullptr, stream>>>(values...);
    }}
}};
template struct {prefix}{name}<decltype({name})>;
"""


def called_as_functions(text: str) -> list[str]:
    """The kernels of a preprocessed source that launches none: those with C linkage and a body."""
    if "<<<" in text:
        return []
    found = []
    for name in sorted(kernels_in(text)):
        for match in re.finditer(rf"\b{re.escape(name)}\s*\([^;{{}}]*\)\s*\{{", text):
            head = text[max(0, match.start() - 600) : match.start()]
            if re.search(r'extern\s+"C"(?!\s*\{)', head[max(head.rfind(";"), head.rfind("}")) + 1 :]):
                found.append(name)
                break
    return found


def text_of(kernels: Iterable[str]) -> str:
    """A launch of each kernel, to stand behind its source."""
    return "".join(_TEXT.format(prefix=_PREFIX, name=name) for name in kernels)


def rename(host: Path) -> None:
    """The functions get the names of their kernels, whose own copies on the host never run."""
    words: list[str] = []
    for symbol, name in _STUB.findall(tool(["nm", str(host)])):
        words += [
            f"--redefine-sym={name}=insight_trace_copy_of_{name}",
            f"--redefine-sym={symbol}={name}",
        ]
    if words:
        tool(["objcopy", *words, str(host)])
