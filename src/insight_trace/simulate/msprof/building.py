"""Builds a workspace with the toolkit's compiler and checks that the kernel can be found in it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from insight_trace.errors import JobError
from insight_trace.simulate.msprof.preflight import Ready
from insight_trace.simulate.msprof.toolkit_processes import Workplace, capture
from insight_trace.simulate.msprof.vendor_workspace import VendorJob

_TOOL_SECONDS = 60.0
_ERROR_LINE = re.compile(
    r"^.*\b(?:fatal error|error|undefined reference|cannot find)\b.*$", re.IGNORECASE | re.MULTILINE
)
NEEDED_SYMBOLS = ("replay_entry", "launch_replay")


@dataclass(frozen=True, slots=True)
class Build:
    """One target of a CMake project."""

    source: Path
    folder: Path
    target: str
    defines: Mapping[str, str]
    configure_seconds: float = 300.0
    build_seconds: float = 1800.0


def run_environment(ready: Ready, built: Path, device: int) -> dict[str, str]:
    """The environment of a build or a run: the toolkit's, the simulator's libraries before all others."""
    home = ready.toolkit.home
    environment = dict(ready.toolkit.environment)
    folders = [ready.simulator_lib, home / "lib64"]
    folders += [home / f"{triplet}/devlib" for triplet in ("aarch64-linux", "x86_64-linux")] + [
        home / "devlib"
    ]
    present = [str(built), *(str(folder) for folder in folders if folder.is_dir())]
    old = environment.get("LD_LIBRARY_PATH")
    environment["LD_LIBRARY_PATH"] = os.pathsep.join([*present, *([old] if old else [])])
    compiler, tools = str(ready.bisheng.parent), str(ready.msprof.parent)
    environment["PATH"] = os.pathsep.join([compiler, tools, environment.get("PATH", os.defpath)])
    environment["ACL_DEVICE_ID"] = str(device)
    return environment


def build(job: VendorJob, ready: Ready, workspace: Path) -> Path:
    """Configures and builds a replay; returns the application to run."""
    build_dir = workspace / "build"
    environment = run_environment(ready, build_dir, job.device)
    roots = {"PTO_ISA_ROOT": job.pto_isa_root, "SIMPLER_ROOT": job.simpler_root}
    defines = {"SOC_VERSION": ready.soc_version}
    defines |= {name: str(root.absolute()) for name, root in roots.items() if root is not None}
    workplace = Workplace(workspace, environment, workspace / "logs")
    run_build(Build(workspace, build_dir, "replay_host", defines), workplace)
    library, application = build_dir / "libreplay_kernel.so", build_dir / "replay_host"
    require_built((library, application), workplace)
    check_symbols(library, environment)
    return application


def run_build(wanted: Build, workplace: Workplace) -> None:
    """Configures and builds; an error names the line of the log that says why."""
    path = workplace.environment.get("PATH")
    cmake = shutil.which("cmake", path=path)
    if cmake is None:
        raise JobError("cmake is missing", hint="install cmake; the vendor's simulator needs it")
    wanted.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    generator = ["-G", "Ninja"] if shutil.which("ninja", path=path) else []
    options = [f"-D{name}={value}" for name, value in wanted.defines.items()]
    configure: list[str | Path] = [cmake, *generator, "-S", wanted.source, "-B", wanted.folder, *options]
    _step("configuring", configure, workplace, wanted.configure_seconds, "cmake.log")
    command: list[str | Path] = [cmake, "--build", wanted.folder, "--target", wanted.target]
    _step("building", command, workplace, wanted.build_seconds, "build.log")


def require_built(files: Iterable[Path], workplace: Workplace) -> None:
    for path in files:
        if not path.is_file():
            raise JobError(f"the build wrote no {path.name}", where=str(workplace.logs / "build.log"))


def _step(what: str, command: list[str | Path], workplace: Workplace, seconds: float, log: str) -> None:
    done = workplace.run(command, log, seconds)
    if done.timed_out:
        raise JobError(f"{what} took more than {seconds:.0f} s and was ended", where=str(done.log))
    if done.code != 0:
        cause = first_error(done.text) or f"exit {done.code} without a word"
        raise JobError(f"{what} the kernel failed: {cause}", where=str(done.log), hint=_header_hint(cause))


def _header_hint(cause: str) -> str:
    if "pto/" in cause:
        return "that header is pto-isa's: is PTO_ISA_ROOT the right checkout?"
    if any(name in cause for name in ("tensor.h", "intrinsic.h", "pipe_sync.h")):
        return "that header is simpler's: set SIMPLER_ROOT to a checkout of it"
    return ""


def first_error(text: str) -> str:
    """The line of a log that most likely says why: the first that speaks of an error, else the last of note."""
    match = _ERROR_LINE.search(text)
    if match:
        return match[0].strip()
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("[", "FAILED:", "ninja:", "make"))]
    return lines[-1] if lines else ""


def check_symbols(library: Path, environment: Mapping[str, str]) -> None:
    """The library must export what the launch and the simulator look for, under their plain names."""
    names = exported_symbols(library, environment)
    readable = demangled(sorted(names), environment)
    for symbol in NEEDED_SYMBOLS:
        if symbol not in names:
            near = [text for name, text in readable.items() if symbol in text and name != symbol]
            detail = f"; it exports {', '.join(near)}" if near else ""
            raise JobError(f"{library.name} does not export {symbol}{detail}", where=str(library))


def exported_symbols(library: Path, environment: Mapping[str, str]) -> set[str]:
    """Defined functions that a library exports, by one run of nm."""
    code, output = capture(["nm", "-D", library], environment=environment, seconds=_TOOL_SECONDS)
    if code != 0:
        raise JobError("nm could not read the library", where=str(library), hint="install binutils")
    names = set()
    for line in output.decode("utf-8", "replace").splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in "TW":
            names.add(fields[2].partition("@")[0])
    return names


def demangled(names: list[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Readable names, by one run of c++filt; as they are where it is missing or answers oddly."""
    stdin = "".join(f"{name}\n" for name in names).encode()
    code, output = capture(["c++filt"], environment=environment, seconds=_TOOL_SECONDS, stdin=stdin)
    texts = output.decode("utf-8", "replace").splitlines()
    if code != 0 or len(texts) != len(names):
        return {name: name for name in names}
    return dict(zip(names, texts, strict=True))
