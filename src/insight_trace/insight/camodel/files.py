"""Which log files of a dump folder belong to which core, rotated parts included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from insight_trace.chips import LogFamily
from insight_trace.errors import InputError, RequestError
from insight_trace.limits import TABLE_BYTES

_LONGEST_LINE = 1 << 16
_MOST_FILES = 10_000
_LOG = re.compile(
    r"(?P<core>core[0-9]+(?:\.(?:veccore|cubecore|mixcore)[0-9]+)?)[._]"
    r"(?P<kind>instr_popped_log|instr_log|ifu\.icache_log|icache_log|ccu_log)"
    r"(?:\.(?P<part>[0-9]+))?\.(?:dump|log)"
)
_THROUGHPUT_LOG = re.compile(r"core[0-9]{1,2}\.mte_log\.dump(?:\.[0-9]+)?")
_SMALLEST_THROUGHPUT_LOG = 501
_STARTS, _ENDS = "instr_popped_log", "instr_log"


@dataclass(frozen=True, slots=True)
class CoreLogs:
    """The files of one core by kind, each kind in reading order."""

    core: str
    files: dict[str, list[Path]] = field(default_factory=dict)

    @property
    def starts(self) -> list[Path]:
        return self.files.get(_STARTS, [])

    @property
    def ends(self) -> list[Path]:
        return self.files.get(_ENDS, [])

    def caches(self, family: LogFamily) -> list[Path]:
        """Families differ in which unit logs the instruction cache."""
        unit = "ifu.icache_log" if family.a2_or_a3 or family is LogFamily.EDGE else "icache_log"
        return self.files.get(unit, [])

    @property
    def decodes(self) -> list[Path]:
        return self.files.get("ccu_log", [])


def find_dump(path: Path) -> Path:
    """The folder with logs: the one given, or its `dump`, `tmp_dump`, `device0/…`."""
    if not path.is_dir():
        raise RequestError(f"{path} is not a folder", hint="give the dump folder that msprof left")
    for below in ("", "dump", "tmp_dump", "device0/dump", "device0/tmp_dump"):
        folder = path / below
        if folder.is_dir() and any(_LOG.fullmatch(each.name) for each in folder.iterdir()):
            return folder
    raise InputError(
        "there are no core model logs (core*.instr_log.dump, core*.instr_popped_log.dump)",
        where=str(path),
        hint="collect with `msprof op simulator --dump=on`; without it A2 and A3 leave no logs to export",
    )


def core_logs(folder: Path) -> list[CoreLogs]:
    """Logs by core, cores by name. A part that is empty says nothing and is left out."""
    found: dict[str, dict[str, list[tuple[int, Path]]]] = {}
    names = sorted(each.name for each in folder.iterdir())
    if len(names) > _MOST_FILES:
        raise InputError(f"more than {_MOST_FILES} files are no dump folder", where=str(folder))
    for name in names:
        match = _LOG.fullmatch(name)
        path = folder / name
        if match is None or not path.is_file() or path.stat().st_size == 0:
            continue
        if path.stat().st_size > TABLE_BYTES:
            raise InputError("the log is larger than 1 GiB", where=str(path), hint="collect fewer cores")
        part = int(match["part"] or 0)
        found.setdefault(match["core"], {}).setdefault(match["kind"], []).append((part, path))
    logs = []
    for core in sorted(found):
        files = {}
        for kind, parts in found[core].items():
            if kind == _ENDS:
                ordered = sorted(parts, key=lambda part: part[1].name)
            elif kind == _STARTS or kind == "ccu_log":
                ordered = sorted(parts, reverse=True)  # the highest number is the oldest part
            else:
                ordered = sorted(parts)
            files[kind] = [path for _, path in ordered]
        logs.append(CoreLogs(core, files))
    return logs


def throughput_logs(folder: Path) -> list[Path]:
    """Logs of the data movers, one per core and part; very small ones hold nothing."""
    return [
        path
        for path in sorted(folder.iterdir())
        if _THROUGHPUT_LOG.fullmatch(path.name) and path.stat().st_size >= _SMALLEST_THROUGHPUT_LOG
    ]


def lines_of(files: list[Path]) -> Iterator[str]:
    """Lines of several files in turn. A line without end is cut, so that no file can fill the memory."""
    for path in files:
        with path.open("r", encoding="utf-8", errors="replace", newline="\n") as file:
            while line := file.readline(_LONGEST_LINE):
                yield line.rstrip("\r\n")
