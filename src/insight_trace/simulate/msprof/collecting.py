"""Runs a built workspace in `msprof op simulator` and brings its result to insight_export/.

The program answers 0 whatever happened: what counts is whether a simulator/ folder with a trace was written.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from insight_trace.errors import JobError
from insight_trace.simulate.msprof.building import run_environment
from insight_trace.simulate.msprof.preflight import Ready
from insight_trace.simulate.msprof.toolkit_processes import Finished, Workplace
from insight_trace.simulate.msprof.vendor_workspace import VendorJob

# msprof stops the application after --timeout minutes and then parses what it has, which takes its time too.
PARSE_GRACE_SECONDS = 600.0
_EXPORT_SECONDS = 3600.0
_OUTPUT_LIMIT = 200  # characters that msprof takes for --output
_DUMPS = ("device0/tmp_dump", "device0/dump", "tmp_dump", "dump")
_TIMEOUT_WORDS = "The timeout has reached and the application will be forcibly killed"

# What msprof says -> what it means here. In the order in which they explain a failure best.
_REASONS = (
    ("application to be profiled is not exist", "msprof did not find the application"),
    ("--soc-version is invalid", "msprof does not know this SoC; --soc-version names another"),
    ("Failed to load simulator so", "the simulator's libraries were not found (LD_LIBRARY_PATH)"),
    ("No profiling data matched --kernel-name", "the kernel was never launched"),
    ("Can not get aicore kernel", "the run left no kernel binary"),
    ("Failed to get any available dump file to parse", "the run left no usable dump file"),
    ("dir is invalid, maybe dir is not exist or empty", "the folder to export is empty"),
    ("Profiling results are empty", "no kernel ran in the simulator"),
    ("No profiling data dumped", "no kernel ran in the simulator"),
    ("May cause generating performance files to fail", "the application itself failed"),
    ("Profiling data parse failed", "msprof could not parse what the run left"),
)


@dataclass(frozen=True, slots=True)
class Collected:
    """Where the result is, and what to know about it."""

    directory: Path  # insight_export/OPPROF_*/simulator
    partial: bool  # the time was over before the kernel's end
    exported: bool  # a second pass was needed
    seconds: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Application:
    """A program to run in the simulator, and which of its kernels to look at."""

    path: Path
    kernel_name: str
    launch_count: int = 1
    timeout_minutes: int = 120


class ExportError(JobError):
    """The kernel ran; what it left could not be turned into a trace."""


def collect(
    job: VendorJob, ready: Ready, workspace: Path, application: Path, *, limit_seconds: float | None = None
) -> Collected:
    """Runs a replay's application; its result comes to insight_export/."""
    environment = run_environment(ready, workspace / "build", job.device)
    logs, export = workspace / "msprof_collect", workspace / "insight_export"
    for folder in (logs, workspace / "outputs"):
        folder.mkdir(mode=0o700, exist_ok=True)
    asked = Application(application, "replay_entry", job.launch_count, job.timeout_minutes)
    workplace = Workplace(workspace, environment, logs)
    return run_application(asked, ready, workplace, logs / "out", export, limit_seconds=limit_seconds)


def run_application(
    application: Application,
    ready: Ready,
    workplace: Workplace,
    out: Path,
    export: Path,
    *,
    limit_seconds: float | None = None,
) -> Collected:
    """Runs an application in the simulator. On timeout, what was simulated until then is still exported.

    `limit_seconds` replaces the time after which msprof itself, with everything it started, is ended.
    """
    for folder in (out, export):
        folder.mkdir(mode=0o700, exist_ok=True)
    command: list[str | Path] = [
        ready.msprof,
        "op",
        "simulator",
        f"--application={_word(application.path, workplace.cwd)}",
        f"--kernel-name={application.kernel_name}",
        f"--launch-count={application.launch_count}",
        f"--soc-version={ready.soc_version}",
        f"--timeout={application.timeout_minutes}",
        f"--output={_word(out, workplace.cwd)}",
    ]
    limit = application.timeout_minutes * 60 + PARSE_GRACE_SECONDS if limit_seconds is None else limit_seconds
    before = set(out.glob("OPPROF_*"))
    done = workplace.run(command, "collect.log", limit)
    runs = sorted(set(out.glob("OPPROF_*")) - before, key=lambda run: run.name)
    partial = done.timed_out or _TIMEOUT_WORDS in done.text
    if not runs:
        raise JobError(f"the simulator wrote nothing: {reason(done)}", where=str(done.log))
    found = simulator_folders(runs[-1])
    exported = False
    if found:
        place = export / runs[-1].name
        if place != runs[-1]:
            runs[-1].rename(place)
        result = place / found[-1].relative_to(runs[-1])
    else:
        result = _export(ready, runs[-1], export, workplace, done)
        exported = True
    minutes = application.timeout_minutes
    return Collected(result, partial, exported, done.seconds, _warnings(minutes, done, result, partial))


def simulator_folders(run: Path) -> list[Path]:
    """Folders under a run that hold a trace: one for one kernel, deeper ones for several launches."""
    return sorted(trace.parent for trace in run.glob("**/simulator/trace.json") if trace.stat().st_size > 0)


def reason(done: Finished) -> str:
    """What the words of a run say about why it gave no result."""
    for words, meaning in _REASONS:
        if words in done.text:
            return meaning
    if done.timed_out:
        return f"it was ended after {done.seconds:.0f} s"
    errors = [line.strip() for line in done.text.splitlines() if line.startswith("[ERROR]")]
    if errors:
        return errors[0].removeprefix("[ERROR]").strip()
    lines = [line.strip() for line in done.text.splitlines() if line.strip()]
    return f"its last words are '{lines[-1]}'" if lines else "it said nothing"


def dump_folder(run: Path) -> Path | None:
    """The folder of a run whose logs can be exported, with the start address that the export needs."""
    places = [run / name for name in _DUMPS]
    places += sorted(run.glob("**/tmp_dump")) + sorted(run.glob("**/dump"))
    for place in places:
        if place.is_dir() and any(place.iterdir()):
            address = place / "pc_start_addr.txt"
            if not address.exists():
                elsewhere = next(iter(sorted(run.glob("**/pc_start_addr.txt"))), None)
                if elsewhere is not None:
                    shutil.copyfile(elsewhere, address)
            return place
    return None


def _export(ready: Ready, run: Path, export: Path, workplace: Workplace, collected: Finished) -> Path:
    source = dump_folder(run)
    if source is None:
        why = reason(collected)
        raise ExportError(f"the simulator left nothing to export: {why}", where=str(collected.log))
    command: list[str | Path] = [
        ready.msprof,
        "op",
        "simulator",
        f"--export={_word(source, workplace.cwd)}",
        f"--output={_word(export, workplace.cwd)}",
    ]
    before = set(export.glob("**/simulator"))
    done = workplace.run(command, "export.log", _EXPORT_SECONDS)
    found = [folder for folder in simulator_folders(export) if folder not in before]
    if not found:
        cause = reason(done)
        first = reason(collected)
        also = "" if first == cause or "last words" in first else f" (collect: {first})"
        raise ExportError(f"the export wrote no trace: {cause}{also}", where=str(done.log))
    return found[-1]


def _word(path: Path, cwd: Path) -> str:
    """A path as msprof takes it: it splits an application at blanks and refuses long outputs."""
    text = str(path)
    if len(text) > _OUTPUT_LIMIT or any(character.isspace() for character in text):
        return os.path.relpath(path, cwd)
    return text


def _warnings(minutes: int, done: Finished, result: Path, partial: bool) -> tuple[str, ...]:
    warnings = []
    if partial:
        limit = f"{minutes} minutes" if not done.timed_out else f"{done.seconds:.0f} s"
        warnings.append(f"the time was over after {limit}: the trace ends where the simulation was stopped")
    elif "May cause generating performance files to fail" in done.text:
        warnings.append("the application ended with an error; the trace may be incomplete")
    if "kernel missed debug_line information" in done.text:
        warnings.append("the kernel has no line information, so Insight shows no source")
    if not (result / "visualize_data.bin").is_file():
        warnings.append("there is no visualize_data.bin; Insight shows the timeline only")
    return tuple(warnings)
