"""A job on its way to another machine with every file that it names, and what comes back, as plain bytes."""

from __future__ import annotations

import errno
import io
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict

from insight_trace.digest import file_hash, name_of
from insight_trace.errors import InputError, InsightTraceError
from insight_trace.executor import Output
from insight_trace.job import Job, PythonSource
from insight_trace.limits import cut
from insight_trace.model import Kernel, Payload, Scene
from insight_trace.options import RunOptions
from insight_trace.ptoas.python_trace import python_files
from insight_trace.reading import prepared
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.embedded.compiled_from import sources_of
from insight_trace.simulate.embedded.toolchain import Toolchain

J = TypeVar("J")
R = TypeVar("R")


class Packed(msgspec.Struct, frozen=True):
    """What is done with a job, and the job, as `unpack` reads it."""

    body: bytes
    payload: bytes  # recorded bytes that its arguments name
    files: str  # names the content of its files, which go apart: many jobs have the same


def pack(work: Callable[[J], R], job: J) -> tuple[Packed, list[Path], tuple[Path, ...]]:
    """The job, the files that it names, and the folders that it writes into. KernelBuildError if a kernel is wrong."""
    buffer = io.BytesIO()
    packer = _Packer(buffer)
    try:
        packer.dump((work, job))
        files = packer.all_files()
        name = name_of([(str(path), file_hash(path)) for path in files])
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(error.filename)) from None
    return Packed(buffer.getvalue(), bytes(packer.payload), name), files, tuple(packer.outputs)


class _Packer(pickle.Pickler):
    """Pickles with a mark where something of this machine stands: files, folders of sources, recorded bytes."""

    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer, protocol=5)
        self.payload = bytearray()
        self.outputs: list[Path] = []
        self._files: dict[Path, None] = {}
        self._spans: dict[tuple[Path, int, int], int] = {}
        self._jobs: list[Job] = []
        self._options = RunOptions()

    def persistent_id(self, item: Any) -> Any:
        if isinstance(item, Path):
            return ("file", self._file(item)) if item.is_file() else None
        if isinstance(item, Payload):
            return ("payload", self._span(item), item.size, item.truncated)
        if isinstance(item, Output):
            self.outputs.append(item.path)
            return ("output", len(self.outputs) - 1)
        if isinstance(item, Scene):  # names of files, and not their content, are wanted of it
            return ("scene", pickle.dumps(item))
        if isinstance(item, Kernel):
            folders = [str(Path(folder).resolve()) for folder in item.include_dirs]
            fields = _fields(item) | {"source": self._file(item.source), "include_dirs": folders}
            return ("kernel", fields | {"written": item.written and str(item.written)})
        if isinstance(item, Job):
            self._jobs.append(item)
            return ("job", _fields(item) | {"shown_as": _resolved(item.shown_as)})
        if isinstance(item, PythonSource):
            for path in python_files(item.lines, item.roots):
                self._file(path)
            roots = [str(root.resolve()) for root in item.roots]
            return ("python", _fields(item) | {"lines": _resolved(item.lines), "roots": roots})
        if isinstance(item, RunOptions):
            self._options = item
            chip = item.soc_version
            if chip and Path(chip).is_file():
                return ("options", _fields(item) | {"soc_version": self._file(Path(chip))})
        return None

    def _file(self, path: Path) -> str:
        self._files[path.resolve()] = None
        return str(path.resolve())

    def _span(self, payload: Payload) -> int:
        """Where the bytes stand in the one piece that is sent."""
        key = (payload.path, payload.offset, payload.size)
        if key not in self._spans:
            self._spans[key] = len(self.payload)
            with payload.path.open("rb") as file:
                file.seek(payload.offset)
                self.payload += file.read(payload.size)
        return self._spans[key]

    def all_files(self) -> list[Path]:
        """Also what the compiler reads for the kernels, but for checkouts that the options name."""
        roots = [
            root for root in (self._options.pto_isa_root, self._options.ascendc_root) if root is not None
        ]
        toolchain = Toolchain.find(self._options.pto_isa_root, self._options.ascendc_root)
        for job in self._jobs:
            for kernel in job.kernels:
                made = toolchain.kernel(
                    kernel.source, kernel.core_type, target=job.target, include_dirs=kernel.include_dirs,
                    mark_cost=self._options.mark_cost,
                )  # fmt: skip
                for path in sources_of(made):
                    if not any(path.is_relative_to(root.resolve()) for root in roots):
                        self._file(path)
        return sorted(self._files)


def _fields(item: msgspec.Struct) -> dict[str, Any]:
    return asdict(item)


def _resolved(names: Mapping[str, Any]) -> dict[str, Any]:
    return {str(Path(name).resolve()): value for name, value in names.items()}


# --- on a worker


def hold(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Files that wait for the jobs that want them."""
    return files


def run_packed(packed: Packed, files: Mapping[str, bytes]) -> bytes:
    """Runs the job as if its files stood where they came from."""
    try:
        root = _placed(packed.files, files)
        with scratch_folder("sent") as folder:
            (folder / "payload").write_bytes(packed.payload)
            unpacker = _Unpacker(packed.body, root, folder)
            work, job = unpacker.load()
            result = msgspec.msgpack.decode(msgspec.msgpack.encode(work(job)))
            found = [_read(output) for output in unpacker.outputs]
            return msgspec.msgpack.encode(("", _shown(result, f"{root}/"), found))
    except InsightTraceError as error:
        said = str(error)
    except Exception as error:
        said = f"fault on the worker: {type(error).__name__}: {error}"
    return msgspec.msgpack.encode((said, None, []))


class _Unpacker(pickle.Unpickler):
    """Puts files of this machine where those of the other one stood."""

    def __init__(self, body: bytes, root: Path, folder: Path) -> None:
        super().__init__(io.BytesIO(body))
        self.root, self.folder = root, folder
        self.outputs: list[Path] = []

    def persistent_load(self, mark: Any) -> Any:
        kind, value, *more = mark
        if kind == "file":
            return self._there(value)
        if kind == "payload":
            return Payload(self.folder / "payload", value, *more)
        if kind == "output":
            self.outputs.append(self.folder / f"output{value}")
            self.outputs[-1].mkdir()
            return Output(self.outputs[-1])
        if kind == "scene":
            return pickle.loads(value)
        if kind == "kernel":
            folders = tuple(self._moved(folder) for folder in value["include_dirs"])
            moved = {"source": self._there(value["source"]), "include_dirs": folders}
            return Kernel(**value | moved | {"written": value["written"] and Path(value["written"])})
        if kind == "job":
            names = {self._moved(here): there for here, there in value["shown_as"].items()}
            return Job(**value | {"shown_as": names | {f"{self.root}/": "/"}})
        if kind == "python":
            lines = {self._moved(path): found for path, found in value["lines"].items()}
            return PythonSource(
                **value | {"lines": lines, "roots": tuple(self._there(r) for r in value["roots"])}
            )
        assert kind == "options"
        return RunOptions(**value | {"soc_version": self._moved(value["soc_version"])})

    def _there(self, path: str | Path) -> Path:
        return self.root / str(path).lstrip("/")

    def _moved(self, path: str) -> str:
        return str(self._there(path))


def _placed(name: str, files: Mapping[str, bytes]) -> Path:
    """The files below the worker's cache, under their own paths; they stay for the next job."""

    def write(into: Path) -> None:
        for path, content in files.items():
            place = into / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)

    return Toolchain.find().cache.put("sent", name, write)


def _shown(value: Any, root: str) -> Any:
    """Texts with the names that files have where they come from."""
    if isinstance(value, str):
        return value.replace(root, "/")
    if isinstance(value, list):
        return [_shown(item, root) for item in value]
    if isinstance(value, dict):
        return {_shown(key, root): _shown(item, root) for key, item in value.items()}
    return value


def _read(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.resolve().is_relative_to(folder.resolve())
    }


# --- back


def answered(content: object, kind: type[R], outputs: tuple[Path, ...] = ()) -> R:
    """What a worker sent, checked field by field; its files are written. InputError if it is anything else."""
    try:
        if not isinstance(content, bytes):
            raise TypeError(type(content).__name__)
        answer = tuple[str, msgspec.Raw, list[dict[str, bytes]]]
        said, result, written = msgspec.msgpack.decode(content, type=answer)
        if said:
            raise InputError(said)
        found = msgspec.msgpack.decode(result, type=prepared(kind))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"a worker sent something else than a result: {cut(str(error))}") from None
    for files, folder in zip(written, outputs, strict=False):
        _write(files, folder)
    return found


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    """A name that would leave the folder is refused."""
    for name, content in files.items():
        if Path(name).is_absolute() or ".." in Path(name).parts or not name.isprintable():
            raise InputError(f"a worker sent a file called {name!r}")
        target = folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            target.write_bytes(content)
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise InputError(f"a worker sent a file called {name!r}: {error.strerror}") from None
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            raise InputError(f"a worker sent a file with a name of {len(name)} letters") from None
