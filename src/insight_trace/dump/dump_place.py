"""Which file is meant by a dump's JSON path, its directory, or the directory of a run."""

from __future__ import annotations

from pathlib import Path

from insight_trace.errors import RequestError

# The per-dispatch form first: where it stands beside a unified manifest it says more.
_NAMES = ("kernel_args_dump.json", "args_dump.json", "tensor_dump.json")
_FOLDERS = ("", "tensor_dump", "args_dump")


def find_manifest(path: str | Path) -> Path:
    """The manifest that `path` names: the file itself, or the one in that dump or run directory."""
    path = Path(path)
    if path.is_file():
        if path.suffix != ".bin":
            return path
        path = path.parent  # the payload was pointed at; its manifest lies beside it
    if not path.is_dir():
        raise RequestError(
            f"{path} does not exist", hint="give a dump's JSON file, its directory, or the run directory"
        )
    found = _manifest_in(path)
    if found is None and (path / "node.json").is_file():
        chips = sorted(str(call.relative_to(path)) for call in path.glob("rank*/d*"))
        raise RequestError(
            f"{path} holds a dump of every chip's call", hint=f"name one of them: {', '.join(chips[:8])}"
        )
    if found is None:
        raise RequestError(
            f"no dump in {path}",
            hint="looked for kernel_args_dump.json, args_dump.json and tensor_dump.json there and in "
            "args_dump/ and tensor_dump/; a run at dump level 1 that marks nothing writes none",
        )
    return found


def _manifest_in(directory: Path) -> Path | None:
    for name in _NAMES:
        for folder in _FOLDERS:
            candidate = directory / folder / name
            if candidate.is_file():
                return candidate
    # The oldest form carries the time in its name; the newest of several is the one meant.
    stamped = [*directory.glob("tensor_dump_*.json"), *directory.glob("tensor_dump_*/tensor_dump_*.json")]
    return max(stamped, key=lambda p: (p.stat().st_mtime_ns, p.name), default=None)


def newest_dump(outputs: Path = Path("outputs")) -> Path:
    """The manifest that was written last under `outputs`."""
    runs = [entry for entry in outputs.iterdir() if entry.is_dir()] if outputs.is_dir() else []
    found = [manifest for run in [*runs, outputs] if run.is_dir() and (manifest := _manifest_in(run))]
    if not found:
        raise RequestError(
            f"no dump under {outputs}/", hint="give the dump's directory, or run a scene with --dump-args"
        )
    return max(found, key=lambda p: (p.stat().st_mtime_ns, str(p)))


def unified_beside(manifest: Path) -> Path | None:
    """The unified manifest next to a kernel_args_dump.json, or in the other folder of its run, if there is one."""
    near = [manifest.parent, *(manifest.parent / name for name in _FOLDERS[1:])]
    if manifest.parent.name in _FOLDERS[1:]:
        near += [manifest.parent.parent / name for name in _FOLDERS[1:]]
    for folder in near:
        for name in _NAMES[1:]:
            if (folder / name).is_file():
                return folder / name
    return None
