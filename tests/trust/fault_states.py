"""What stands in a folder in which a command was cut off: as it was, whole, or broken."""

import fnmatch
import hashlib
import json
import os
import re
from pathlib import Path

from tests.trust.fault_commands import Command

State = dict[str, dict[str, tuple[int, str]]]  # unit -> its files: size and digest
_TIME = re.compile(r"20\d{6}[_-]?\d{6}(_\d+)?|OPPROF_.*|_0x[0-9a-f]+")
_VARIES = re.compile(rb'20\d{6}[_-]?\d{6}(_\d+)?|"timed_before": \d+')


def state(folder: Path, command: Command) -> State:
    """Files of every unit; hidden pieces are what the next run removes, names may hold the time, and files the place."""
    found: State = {}
    place = os.fsencode(folder.resolve())
    for pattern in command.units:
        for unit in folder.glob(pattern):
            name = _stable(unit.relative_to(folder))
            if unit.name.startswith(".") or _any(name, command.working):
                continue
            files = [unit] if unit.is_file() else [p for p in unit.rglob("*") if p.is_file()]
            mine = found.setdefault(name, {})
            for path in files:
                # a page may be named after the folder
                inner = _stable(path.relative_to(folder)).replace(folder.name, "*")
                if any(part.startswith(".") for part in Path(inner).parts) or _any(inner, command.working):
                    continue
                content = _VARIES.sub(b"*", path.read_bytes().replace(place, b"*"))
                mine[inner] = (len(content), hashlib.sha256(content).hexdigest())
    return {name: files for name, files in found.items() if files}


def _any(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern names it or a folder above it; a `*` stays within one name."""
    parts = name.split("/")
    return any(
        len(wanted := pattern.split("/")) <= len(parts) and all(map(fnmatch.fnmatchcase, parts, wanted))
        for pattern in patterns
    )


def _stable(path: Path) -> str:
    return "/".join(_TIME.sub("*", part) for part in path.parts)


def _same(
    files: dict[str, tuple[int, str]], one: dict[str, tuple[int, str]], other: dict[str, tuple[int, str]]
) -> bool:
    """Whether files are those of a good run, where two good ones (at another time) tell what must be the same."""
    if files.keys() != one.keys():
        return False
    for name, (size, digest) in files.items():
        if one[name][1] == other[name][1]:
            if digest != one[name][1]:
                return False
        elif one[name][0] == other[name][0] and not name.endswith(".html"):  # compressed: any size
            if size != one[name][0]:
                return False
        elif size < min(one[name][0], other[name][0]) * 0.9:
            return False
    return True


def everything(folder: Path) -> dict[str, int]:
    """All files of the folder, hidden pieces too."""
    return {str(p.relative_to(folder)): p.lstat().st_size for p in folder.rglob("*") if p.is_file()}


def broken_units(now: State, given: State, good: tuple[State, State], command: Command) -> list[str]:
    """Units that are neither as they were nor whole."""
    found = []
    for unit in sorted({*now, *given, *good[0]}):
        files = now.get(unit, {})
        as_given = files == given.get(unit, {})
        if not as_given and not _same(files, good[0].get(unit, {}), good[1].get(unit, {})):
            found.append(unit)
    if command.last and command.last in now and command.last not in given:
        found += [unit for unit in good[0] if unit not in now]
    return found


def missing(now: State, good: tuple[State, State]) -> list[str]:
    """Units that are not those of a good run."""
    units = sorted({*now, *good[0]})
    return [u for u in units if not _same(now.get(u, {}), good[0].get(u, {}), good[1].get(u, {}))]


def says_partial(folder: Path) -> bool:
    """What a capture recorded until it was killed stays, and its manifest says that it is a part."""
    found = [*folder.glob("**/args_dump/args_dump.json"), *folder.glob("*/node.json")]
    return any(json.loads(manifest.read_text()).get("partial") is True for manifest in found)
