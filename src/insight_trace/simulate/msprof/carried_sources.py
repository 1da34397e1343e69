"""Kernel sources travel with the workspace: each with the headers that it includes from its own surroundings.

What lies in the toolkit, pto-isa or simpler stays there; another machine has its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from insight_trace.errors import InputError, RequestError
from insight_trace.model import CoreType, Kernel
from insight_trace.simulate.msprof.escaping import safe_name

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)
_FILE_LIMIT = 16 * 1024 * 1024
_COUNT_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class CopiedKernels:
    """Where the sources of a dispatch stand in the workspace, and what has to stand around them."""

    entries: Mapping[Path, str]  # a kernel's source -> its path in the workspace, plain characters
    files: tuple[tuple[str, bytes], ...]  # path in the workspace, content
    include_dirs: tuple[str, ...]  # folders of the workspace to search for headers


def copy_kernels(kernels: Sequence[Kernel], folder: str) -> CopiedKernels:
    """The kernels' sources and own headers as they will stand under `folder`.

    All share one tree, laid out as the originals are: a header that two kernels include stays one file.
    """
    search = [_real(Path(os.path.expandvars(text))) for kernel in kernels for text in kernel.include_dirs]
    search = [directory for directory in dict.fromkeys(search) if directory.is_dir()]
    sources = {kernel.source: _real(kernel.source) for kernel in kernels}
    found = _closure(list(sources.values()), search)
    used = [directory for directory in search if any(path.is_relative_to(directory) for path in found)]
    root = Path(os.path.commonpath([*(path.parent for path in found), *used]))
    names: dict[str, Path] = {}
    for path in found:
        name = _place(path, root, folder)
        while names.setdefault(name, path) != path:  # two names that look alike once made plain
            name += "_"
    places = {path: name for name, path in names.items()}
    return CopiedKernels(
        entries={given: places[real] for given, real in sources.items()},
        files=tuple(sorted((places[path], content) for path, content in found.items())),
        include_dirs=tuple(_place(directory, root, folder) for directory in used),
    )


def _place(path: Path, root: Path, folder: str) -> str:
    return "/".join([folder, *(safe_name(part) for part in path.relative_to(root).parts)])


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _closure(sources: list[Path], search: list[Path]) -> dict[Path, bytes]:
    """The sources and every header they reach through their own folders or the kernels' include folders."""
    found: dict[Path, bytes] = {}
    waiting = sources[::-1]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        content = _read(path)
        found[path] = content
        if len(found) > _COUNT_LIMIT:
            raise InputError(f"it includes more than {_COUNT_LIMIT} files", where=str(sources[0]))
        for match in _INCLUDE.finditer(content):
            quoted = match[1] is not None
            name = os.fsdecode(match[1] if quoted else match[2])
            for directory in ([path.parent] if quoted else []) + search:
                candidate = _real(directory / name)
                if candidate.is_file():
                    waiting.append(candidate)
                    break
    return found


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _FILE_LIMIT:
            raise InputError(f"{path.stat().st_size} bytes is too large for a source", where=str(path))
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"the source cannot be read: {error.strerror}", where=str(path)) from None


_BLANKED = re.compile(
    r"""//(?:\\\n|[^\n])* | /\*.*?\*/ | R"([^(\s\\]{0,16})\(.*?\)\1"
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | ^[ \t]*\#(?:\\\n|[^\n])*""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_OPEN_SCOPE = re.compile(r'(?:extern\s+"C"|namespace)\s*\{')
_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\(", re.ASCII)
_TYPE = re.compile(r"\b(?:struct|class|union|enum(?:\s+class)?)\s+([A-Za-z_]\w*)", re.ASCII)
_ALIAS = re.compile(r"\busing\s+([A-Za-z_]\w*)\s*=", re.ASCII)
_VARIABLE = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*=(?!=)", re.ASCII)
_NOT_FUNCTIONS = frozenset({"alignas", "__attribute__", "decltype", "noexcept", "sizeof", "operator"})


def shared_names(first: str, second: str) -> tuple[str, ...]:
    """Names to rename in each, sorted."""
    return tuple(sorted(file_scope_names(first) & file_scope_names(second)))


def file_scope_names(source: str) -> set[str]:
    """Functions, types and variables that a source defines at file scope."""
    text = _BLANKED.sub(_blank, source)
    return {name for words, body in _statements(text) if (name := _defined(words.strip(), body)) is not None}


def _without_template(words: str) -> str:
    """A template's own parameters may have defaults, which look like variables."""
    while words.startswith("template"):
        depth, end = 0, len(words)
        for position, character in enumerate(words):
            depth += (character == "<") - (character == ">")
            if character == ">" and depth == 0:
                end = position + 1
                break
        words = words[end:].lstrip()
    return words


def _defined(words: str, has_body: bool) -> str | None:
    words = _without_template(words)
    alias = _ALIAS.search(words)
    if alias:
        return alias[1]
    if words.startswith(("using ", "typedef ", "static_assert")):
        return None
    variable = _VARIABLE.search(words)
    if variable and "(" not in words[: variable.start()]:
        return variable[1]
    if not has_body:
        return None
    function = next((name for name in _FUNCTION.findall(words) if name not in _NOT_FUNCTIONS), None)
    if function is not None:
        return str(function)
    type_ = _TYPE.search(words)
    return type_[1] if type_ else None


def _blank(match: re.Match[str]) -> str:
    # `extern "C"` keeps its string, by which it is recognised; a blanked comment leaves a space.
    return match[0] if match[0] == '"C"' else " "


def _statements(text: str) -> Iterator[tuple[str, bool]]:
    """What stands outside braces, cut at the ends of declarations, and whether braces belong to it."""
    current: list[str] = []
    depth = open_scopes = position = 0
    while position < len(text):
        scope = _OPEN_SCOPE.match(text, position) if depth == 0 else None
        if scope:
            open_scopes += 1
            position = scope.end()
            continue
        character = text[position]
        position += 1
        if character == "{":
            depth += 1
        elif character == "}" and depth == 0:
            open_scopes -= 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                yield "".join(current), True
                current = []
        elif depth == 0 and character == ";":
            yield "".join(current), False
            current = []
        elif depth == 0:
            current.append(character)


CORES_PER_BLOCK = 3  # cube, vector 0, vector 1: both targets have one cube and two vector cores in a block


@dataclass(frozen=True, slots=True)
class Member:
    """One kernel of the dispatch, as the generated file includes it."""

    name: str
    core_type: str
    source: str  # in the workspace
    entry: str  # what replay_entry calls
    renamed: tuple[str, ...] = ()
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class CoreLayout:
    """The members by core, and the files that have to stand in the workspace."""

    cube: tuple[Member, ...]
    vector: tuple[Member, ...]
    both_lanes: bool  # the one vector member runs on both vector cores
    files: tuple[tuple[str, bytes], ...]
    include_dirs: tuple[str, ...]

    @property
    def members(self) -> tuple[Member, ...]:
        return self.cube + self.vector


def lay_out(kernels: Sequence[Kernel]) -> CoreLayout:
    """The members on their cores; a kernel given twice (func ids 0,1,1) runs on both vector cores."""
    cube = [kernel for kernel in kernels if kernel.core_type is CoreType.AIC]
    vector = [kernel for kernel in kernels if kernel.core_type is CoreType.AIV]
    for kernel in kernels:
        if kernel.core_type is CoreType.MIX:  # one source for both kinds of core
            cube.append(kernel)
            vector += [kernel, kernel]
    distinct = _distinct(vector)
    if not kernels:
        raise RequestError("a replay needs at least one kernel")
    if len(_distinct(cube)) > 1 or len(distinct) > 2 or len(vector) > 2:
        raise RequestError(
            f"a block has one cube and two vector cores, but the dispatch has {len(_distinct(cube))} aic and "
            f"{len(vector)} aiv members",
            hint="name the func ids of one task",
        )
    copied = copy_kernels(_distinct(kernels), "kernels")
    renamed: tuple[str, ...] = ()
    if len(distinct) == 2:
        first, second = (_text(kernel, copied) for kernel in distinct)
        entries = {kernel.entry for kernel in distinct}
        renamed = tuple(sorted(set(shared_names(first, second)) | entries))
    return CoreLayout(
        cube=tuple(_member(kernel, copied, (), 0) for kernel in _distinct(cube)),
        vector=tuple(_member(kernel, copied, renamed, n) for n, kernel in enumerate(distinct)),
        both_lanes=len(distinct) == 1 and len(vector) == 2,
        files=copied.files,
        include_dirs=copied.include_dirs,
    )


def _distinct(kernels: Sequence[Kernel]) -> list[Kernel]:
    return list({kernel.source: kernel for kernel in reversed(kernels)}.values())[::-1]


def _text(kernel: Kernel, copied: CopiedKernels) -> str:
    return dict(copied.files)[copied.entries[kernel.source]].decode("utf-8", "replace")


def _member(kernel: Kernel, copied: CopiedKernels, renamed: tuple[str, ...], number: int) -> Member:
    prefix = f"replay_vector{number}_" if renamed else ""
    source = copied.entries[kernel.source]
    return Member(kernel.name, kernel.core_type.value, source, prefix + kernel.entry, renamed, prefix)
