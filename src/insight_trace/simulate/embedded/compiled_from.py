"""What a compilation read, and where it looked in vain: a compiled kernel is used again only while both still hold.

Files are known by their content. A header that appears where the compiler looked before it found another, or where
`__has_include` asked, is known by its path. What cannot be named so (an include that a macro spells) is known by the
preprocessed text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from insight_trace.cache import content_key
from insight_trace.reading import prepared

DEPENDS = "depends"  # the file beside a compiled kernel

# variables by which a compiler finds files or programs; our own sources are compiled without them
SEARCHED = (
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
)
WRITTEN = ("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES")  # by which it writes files where nobody looks

# what comes with the compiler, whose version names it
_SYSTEM, _LOCAL = tuple(map(Path, ("/usr/include", "/usr/lib"))), Path("/usr/local")

_MARKER = re.compile(rb'(?m)^# \d+ "((?:[^"\\\n]|\\.)*)"')
_LOOK_UP = re.compile(
    rb"(?:^[ \t]*(?:#|%:|\?\?=)(?:[ \t]|\\\n|/\*.*?\*/)*(?:include|include_next|import|embed)\b"
    rb"|\b__has_(?:include|include_next|embed)[ \t]*\()(?:[ \t]|\\\n|/\*.*?\*/)*([<\"][^>\"\n]*[>\"])?",
    re.M | re.S,
)
_ASSEMBLER = re.compile(rb"\b(?:__)?asm(?:__)?\b")


class CompiledFrom(msgspec.Struct, frozen=True):
    """Paths are bytes read as Latin-1: a file name need not be text."""

    files: dict[str, str]  # the digest of each that was read
    sources: tuple[str, ...]  # those that the compiler itself says it read; a `#line` names none of them
    absent: tuple[str, ...]  # what would have been read if it had been there
    text: str = ""  # the preprocessed text, where a look-up cannot be named
    always: bool = False  # nothing says what it reads: it is compiled each time

    def holds(self, preprocessed: Callable[[], str]) -> bool:
        """Whether the compiler would read the same again."""
        return (
            not self.always
            and not any(os.path.lexists(_path(name)) for name in self.absent)
            and all(_digest(_path(name)) == digest for name, digest in self.files.items())
            and (not self.text or self.text == preprocessed())
        )


def write(entry: Path, found: CompiledFrom) -> None:
    (entry / DEPENDS).write_bytes(msgspec.json.encode(found))


def read(entry: Path) -> CompiledFrom:
    """ValueError or OSError where there is none."""
    return msgspec.json.decode((entry / DEPENDS).read_bytes(), type=prepared(CompiledFrom))


def sources_of(made: Path) -> list[Path]:
    """The files that the compiler read for an object in the cache, but for our own headers and the system's."""
    try:
        return [Path(_path(name)) for name in read(made.parent).sources]
    except (OSError, ValueError):
        return []


def compiled_from(
    text: bytes, rules: Iterable[Path], folder: Path, searched: Sequence[Path], ours: Path, *, is_named: bool
) -> CompiledFrom:
    """From the preprocessed text, the compiler's and the assembler's rules, and where headers are looked for.

    `folder` is where the compiler ran; `is_named` says whether the rules name what assembler code includes, too.
    """
    words = [word for rule in rules if rule.is_file() for word in rule_paths(rule.read_bytes())]
    listed = {folder / os.fsdecode(word) for word in words}
    found = listed | {folder / os.fsdecode(_unescaped(name)) for name in _MARKER.findall(text)}
    files: dict[str, str] = {}
    looked_for: set[tuple[Path, bytes]] = set()
    certain, has_code = True, False
    for path in sorted(found):
        if path.is_relative_to(ours) or not path.is_file():
            continue
        content = path.read_bytes()
        system = any(map(path.is_relative_to, _SYSTEM))
        if not system:
            files[_name(path)] = content_key([content])
            has_code = has_code or bool(_ASSEMBLER.search(content))
        for spelled in _LOOK_UP.findall(content):
            certain = certain and (system or bool(spelled))
            places = searched if system else (path.parent, *searched)
            if spelled:
                looked_for |= {(place, spelled[1:-1]) for place in places}
    absent = {_highest_absent(place / os.fsdecode(name)) for place, name in looked_for}
    return CompiledFrom(
        files,
        tuple(name for name in sorted(map(_name, listed)) if name in files),
        tuple(sorted(absent - {""})),
        "" if certain else content_key([text]),
        always=has_code and not is_named,
    )


TRANSLATED = (
    b"// made from "  # the first line of a preprocessed source of a program, with a list of paths behind it
)


def of_translated(text: bytes) -> CompiledFrom:
    """Of a source that was preprocessed before: its first line names what it was made from."""
    first = text.partition(b"\n")[0]
    names: list[str] = msgspec.json.decode(first[len(TRANSLATED) :]) if first.startswith(TRANSLATED) else []
    paths = sorted(Path(name) for name in names)
    files = {_name(path): content_key([path.read_bytes()]) for path in paths if path.is_file()}
    return CompiledFrom(files, tuple(files), ())


def rule_paths(rule: bytes) -> list[bytes]:
    """The files that a make rule names after its target, as GCC and clang write them for make."""
    text = rule.replace(b"\\\n", b" ")
    words = re.findall(rb"(?:\\[ \t#:\\]|\$\$|[^ \t\n\\]|\\(?![ \t#:\\]))+", text)
    after = next((n for n, word in enumerate(words) if word.endswith(b":") and not word.endswith(b"\\:")), 0)
    return [re.sub(rb"\\([ \t#:\\])", rb"\1", word).replace(b"$$", b"$") for word in words[after + 1 :]]


def search_folders(includes: Sequence[str], environment: Mapping[str, str]) -> list[Path]:
    """Where a header is looked for beside the folder of who includes it, but for the system's own places."""
    named = [flag[2:] for flag in includes if flag.startswith("-I")]
    for variable in ("CPATH", "CPLUS_INCLUDE_PATH"):
        named += environment[variable].split(":") if variable in environment else []
    return [Path(folder).absolute() for folder in (*named, f"{_LOCAL}/include")]


def _highest_absent(path: Path) -> str:
    """The first part of a path that is not there; "" if all of it is."""
    if os.path.lexists(path):
        return ""
    while not os.path.lexists(path.parent):
        path = path.parent
    return _name(path)


def _name(path: Path) -> str:
    return os.fsencode(path).decode("latin-1")


def _path(name: str) -> str:
    return os.fsdecode(name.encode("latin-1"))


def _digest(path: str) -> str:
    try:
        return content_key([Path(path).read_bytes()])
    except OSError:
        return ""


def _unescaped(name: bytes) -> bytes:
    """A file's name in a line marker: as in a string of C."""
    letters = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"f": b"\f", b"v": b"\v", b"a": b"\a", b"b": b"\b"}

    def one(found: re.Match[bytes]) -> bytes:
        code = found[1]
        return bytes([int(code, 8) & 255]) if len(code) == 3 else letters.get(code, code)

    return re.sub(rb"\\([0-7]{3}|.)", one, name)
