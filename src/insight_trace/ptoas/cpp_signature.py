"""Kernel entries of a generated C++ file: which functions they are, and their parameters in launch order.

Reads declarations only, at file scope, with comments and preprocessor lines out of the way. Nothing of a
function's body matters here except which other functions it calls.
"""

from __future__ import annotations

import enum
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from insight_trace.errors import InputError
from insight_trace.limits import SOURCE_BYTES
from insight_trace.reading import readable, regular_text

_DEVICE = frozenset({"AICORE", "__aicore__", "__global__", "aicore"})
_QUALIFIERS = frozenset({
    "const", "volatile", "__restrict__", "__restrict", "restrict", "struct", "typename", "__gm__", "__ubuf__",
})  # fmt: skip
_NOISE = re.compile(
    r"""(?P<comment>//(?:[^\n\\]|\\[\s\S])*|/\*[\s\S]*?(?:\*/|\Z))
    |(?P<raw>R"(?P<tag>[^()\s\\]{0,16})\([\s\S]*?\)(?P=tag)")
    |(?P<linkage>extern\s*"C(?:\+\+)?")
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<directive>^[ \t]*\#(?:[^\n\\]|\\[\s\S])*)""",
    re.VERBOSE | re.MULTILINE,
)
_TOKEN = re.compile(r"""[A-Za-z_]\w*|0x[0-9A-Fa-f]+|\d[\w.]*|::|"C"|"C\+\+"|[^\s\w]""")
_SECTION = re.compile(r"#\s*(?:el)?ifn?(?:def)?\b[^\n]*\b__DAV_(CUBE|VEC)__")


class EntryForm(enum.StrEnum):
    """How a source declares a kernel entry; it decides how a launcher can reach it."""

    EXTERN_GLOBAL = "extern-global"  # extern "C" __global__
    GLOBAL = "global"  # __global__, its name mangled
    BARE = "bare"  # AICORE void, not launchable by itself


@dataclass(frozen=True, slots=True)
class CppParameter:
    name: str
    type: str  # without qualifiers and pointer
    is_pointer: bool


@dataclass(frozen=True, slots=True)
class CppFunction:
    name: str
    parameters: tuple[CppParameter, ...]
    form: EntryForm
    line: int


@dataclass(frozen=True, slots=True)
class CppKernel:
    """One launchable kernel: a function, or the cube and the vector half of a mix."""

    name: str
    functions: tuple[CppFunction, ...]  # the cube half first

    @property
    def parameters(self) -> tuple[CppParameter, ...]:
        """Of the half that takes most; the other one takes the first of them."""
        return max((f.parameters for f in self.functions), key=len)


@dataclass(frozen=True, slots=True)
class CppSource:
    kernels: tuple[CppKernel, ...]
    sections: frozenset[str]  # "cube", "vector": code that stands under __DAV_CUBE__ / __DAV_VEC__


def _blank(match: re.Match[str]) -> str:
    """Blanks of the same length and lines, so that positions stay true."""
    if match.lastgroup == "linkage":
        return match.group()
    return re.sub(r"[^\n]", " ", match.group())


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    line: int


def _words(text: str) -> list[_Word]:
    found, line, last = [], 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        found.append(_Word(match.group(), line))
    return found


def _closing(words: list[_Word], at: int, opening: str, closing: str) -> int:
    """Index of the bracket that closes the one at `at`, or the end."""
    depth = 0
    for index in range(at, len(words)):
        if words[index].text == opening:
            depth += 1
        elif words[index].text == closing:
            depth -= 1
            if depth == 0:
                return index
    return len(words)


def _parameter(words: list[str], position: int) -> CppParameter:
    if "=" in words:
        words = words[: words.index("=")]
    pointer = "*" in words or "[" in words or "GM_ADDR" in words
    names = [w for w in words if re.match(r"[A-Za-z_]", w) and w not in _QUALIFIERS]
    # `unsigned int v3`, `pto::List v4`, `T v5`: the last word is the name unless it is all there is
    name = names[-1] if len(names) > 1 else f"v{position + 1}"
    kept = [w for w in words if w not in _QUALIFIERS and w not in ("*", "&", "[", "]")]
    if kept and len(names) > 1:
        kept = kept[: len(kept) - 1 - kept[::-1].index(name)]
    type_ = "".join(
        f" {w}" if re.match(r"\w", w) and i and re.match(r"\w", kept[i - 1]) else w
        for i, w in enumerate(kept)
    )
    return CppParameter(name, "uint8_t" if type_ == "GM_ADDR" else type_, pointer)


def _parameters(words: list[_Word]) -> tuple[CppParameter, ...]:
    groups: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += (word.text in "(<[{") - (word.text in ")>]}")
        if word.text == "," and depth == 0:
            groups.append([])
        else:
            groups[-1].append(word.text)
    groups = [group for group in groups if group and group != ["void"]]
    return tuple(_parameter(group, index) for index, group in enumerate(groups))


@dataclass(frozen=True, slots=True)
class _Definition:
    function: CppFunction
    hidden: bool  # static, inline, a template: never an entry
    calls: frozenset[str]


def _definitions(words: list[_Word]) -> list[_Definition]:
    """Device functions defined at file scope; namespaces and extern "C" blocks are seen through."""
    found: list[_Definition] = []
    at, begin = 0, 0
    linkage_blocks: list[bool] = []
    while at < len(words):
        text = words[at].text
        if text == "{":
            head = [w.text for w in words[begin:at]]
            if head[:1] == ["namespace"] or head[:1] == ["extern"]:
                linkage_blocks.append(head[:1] == ["extern"])
                at += 1
            else:  # a class, an enum, an initialiser
                at = _closing(words, at, "{", "}") + 1
            begin = at
        elif text == "}":
            if linkage_blocks:
                linkage_blocks.pop()
            at += 1
            begin = at
        elif text == ";":
            at += 1
            begin = at
        elif text == "(":
            end = _closing(words, at, "(", ")")
            after = words[end + 1].text if end + 1 < len(words) else ""
            head = [w.text for w in words[begin : at - 1]]
            if after == "{" and _DEVICE & set(head) and at > begin:
                stop = _closing(words, end + 1, "{", "}")
                extern = "extern" in head or any(linkage_blocks)
                form = EntryForm.BARE
                if "__global__" in head:
                    form = EntryForm.EXTERN_GLOBAL if extern else EntryForm.GLOBAL
                inside = words[end + 2 : stop]
                calls = frozenset(a.text for a, b in itertools.pairwise(inside) if b.text == "(")
                function = CppFunction(
                    words[at - 1].text, _parameters(words[at + 1 : end]), form, words[at - 1].line
                )
                hidden = bool({"static", "inline", "template"} & set(head)) and form is EntryForm.BARE
                found.append(_Definition(function, hidden, calls))
                at = stop + 1
                begin = at
            else:
                at = end + 1
        else:
            at += 1
    return found


def _kernels(definitions: list[_Definition]) -> tuple[CppKernel, ...]:
    launchable = [d.function for d in definitions if d.function.form is not EntryForm.BARE]
    if launchable:
        return tuple(CppKernel(function.name, (function,)) for function in launchable)
    called = frozenset().union(*(d.calls - {d.function.name} for d in definitions))
    bare = {
        d.function.name: d.function for d in definitions if not d.hidden and d.function.name not in called
    }
    bare.pop("kernel_entry", None)
    found: list[CppKernel] = []
    for name, function in bare.items():
        base = name[:-4]
        if name.endswith("_aic") and f"{base}_aiv" in bare:
            found.append(CppKernel(base, (function, bare[f"{base}_aiv"])))
        elif not (name.endswith("_aiv") and f"{base}_aic" in bare):
            found.append(CppKernel(name, (function,)))
    return tuple(found) or _wrapped(definitions)


def _wrapped(definitions: list[_Definition]) -> tuple[CppKernel, ...]:
    """What `kernel_entry` of a build's kernels/ unpacks its arguments for."""
    entry = next((d for d in definitions if d.function.name == "kernel_entry"), None)
    if entry is None:
        return ()
    inner = [d.function for d in definitions if d.function.name in entry.calls and d is not entry]
    return tuple(CppKernel(function.name, (function,)) for function in inner)


def parse_cpp(text: str) -> CppSource:
    """The kernels that a C++ source defines."""
    without_comments = _NOISE.sub(lambda m: m.group() if m.lastgroup == "directive" else _blank(m), text)
    sections = frozenset({"CUBE": "cube", "VEC": "vector"}[s] for s in _SECTION.findall(without_comments))
    return CppSource(_kernels(_definitions(_words(_NOISE.sub(_blank, text)))), sections)


def read_cpp(path: Path) -> CppSource:
    """The kernels that a C++ file defines; a file without one is an error."""
    with readable(path):
        text = regular_text(path, most=SOURCE_BYTES, errors="replace")
    source = parse_cpp(text)
    if not source.kernels:
        raise InputError(
            "defines no kernel",
            where=str(path),
            hint="an entry is `__global__ AICORE void f(...)` or a bare, not static, `AICORE void f(...)`",
        )
    return source
