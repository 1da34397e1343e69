"""The args dump of a PyPTO build's run: where it lies, which program it is of, and which tasks run a kernel.

A run leaves `dfx_outputs/args_dump/`; a run on several chips `dfx_outputs/rank{r}/d{k}/args_dump/` with
`dispatch_program.json`, which names the program of `next_levels/` that was dispatched. `name_map*.json` beside a dump
names the kernels of that run by func id, whatever the scene calls them now.
"""

from __future__ import annotations

from pathlib import Path

from insight_trace.dump.load import load_dump
from insight_trace.errors import InputError, RequestError
from insight_trace.reading import load_json
from insight_trace.scene.build_directory import CONFIG
from insight_trace.scene.static import load_scene

_OUTPUTS = "dfx_outputs"
_MOST_PROGRAM = 1 << 16  # bytes


def build_and_dump(build: Path, dump: Path | None) -> tuple[Path, Path | None]:
    """The scene that a dump of the build belongs to, and the dump; None: there is none, so the case is captured."""
    if dump is None:
        dump = _only_dump(build)
    if dump is None:
        return build, None
    program = _program(dump)
    if program and not (build / CONFIG).is_file():
        return Path(f"{build}::{program}"), dump
    return build, dump


def _only_dump(build: Path) -> Path | None:
    folder = build / _OUTPUTS
    if (folder / "args_dump").is_dir():
        return folder / "args_dump"
    found = sorted(folder.glob("rank*/d[0-9]*/args_dump"))
    if len(found) > 1:
        listed = ", ".join(str(path.parent.relative_to(folder)) for path in found[:8])
        raise RequestError(
            f"{folder} holds {len(found)} dumps: {listed}", hint=f"choose one: --args-dump {found[0].parent}"
        )
    return found[0] if found else None


def _program(dump: Path) -> str:
    """What dispatch_program.json beside a dump says was dispatched, or ""."""
    start = dump if dump.is_dir() else dump.parent
    for folder in (start, start.parent):
        marker = folder / "dispatch_program.json"
        if marker.is_file():
            try:
                content = load_json(marker, most=_MOST_PROGRAM)
            except InputError:
                continue
            if isinstance(content, dict) and isinstance(content.get("program"), str):
                return str(content["program"])
    return ""


def kernel_names(dump: Path) -> dict[int, str]:
    """Names by func id, of the name maps beside a dump or one folder above; {} where there is none."""
    start = dump if dump.is_dir() else dump.parent
    names: dict[int, str] = {}
    for folder in (start, start.parent):
        for path in sorted(folder.glob("name_map*.json")):
            content = load_json(path, most=_MOST_PROGRAM)
            mapped = content.get("callable_id_to_name") if isinstance(content, dict) else None
            if not isinstance(mapped, dict) or content.get("level", 2) != 2:
                continue  # of a level above: its numbers are not those of kernels
            for number, name in mapped.items():
                if number.isdecimal() and len(number) < 10 and isinstance(name, str):
                    names.setdefault(int(number), name)
    return names


def members_of(dump: Path, scene: Path, kernel: str) -> tuple[int, ...]:
    """The func ids of the first task that runs the kernel of that name.

    A kernel that runs alone and in a mix is taken alone. A name that the scene does not know may be one of the
    run's own names.
    """
    from insight_trace.replay.selection import select_kernels

    declared = load_scene(scene)
    wished = kernel.casefold()
    mapped = [number for number, name in kernel_names(dump).items() if name.casefold() == wished]
    known = any(wished in (k.name.casefold(), k.source.stem.casefold()) for k in declared.kernels)
    by_map = len(mapped) == 1 and not known
    wanted = mapped[0] if by_map else select_kernels(declared, name=kernel)[0].func_id
    tasks = [ids for ids in load_dump(dump, declared).kernels() if wanted in ids]
    if not tasks:
        raise RequestError(f"no task of {dump} runs {kernel}", hint="--list-tasks shows what ran")
    members = min(tasks, key=len)
    return tuple(dict.fromkeys(members))
