"""Runs a case script or a command that makes a PyPTO build, and finds the build it made."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from insight_trace.errors import JobError, RequestError
from insight_trace.profile.msprof_runner import cause_in, run_step


@dataclass(frozen=True, slots=True)
class BuildCommand:
    """What is started to get a build."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)  # on top of ours


def users_python(given: str | None) -> str:
    """The interpreter that the user's script needs: the one given, else `python` as a shell would find it."""
    if given is not None:
        found = shutil.which(given)
        if found is None:
            raise RequestError(f"--python {given}: there is no such interpreter")
        return found
    return shutil.which("python") or shutil.which("python3") or sys.executable


def case_command(
    script: Path, arguments: Sequence[str], settings: Sequence[str], python: str | None = None
) -> BuildCommand:
    """`--case FILE.py -- ARGS`, with `--run-env K=V` in its environment."""
    if not script.is_file():
        raise RequestError(
            f"--case: {script} is not a file", hint="give the Python script that compiles the kernels"
        )
    extra = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise RequestError(f"--run-env {setting}: expected NAME=VALUE")
        extra[key] = value
    return BuildCommand((users_python(python), str(script), *arguments), extra)


def shell_command(text: str) -> BuildCommand:
    return BuildCommand(("bash", "-lc", text))


def submitted(command: BuildCommand, device: str) -> BuildCommand:
    """The same, handed to `task-submit`."""
    line = shlex.join([f"{key}={value}" for key, value in command.environment.items()] + list(command.words))
    if command.environment:
        line = f"env {line}"
    return BuildCommand(("task-submit", "--run", "--device", device, line))


def _builds(root: Path) -> dict[Path, int]:
    """Build directories below `root`, with the time of their newest kernel."""
    found: dict[Path, int] = {}
    if not root.is_dir():
        return found
    for child in root.iterdir():
        if not child.is_dir():
            continue
        kernels = [*child.glob("ptoas/*.pto"), *child.glob("next_levels/**/ptoas/*.pto")]
        kernels += [*child.glob("ptoas/*.cpp"), *child.glob("next_levels/**/ptoas/*.cpp")]
        if kernels:
            found[child] = max(path.stat().st_mtime_ns for path in kernels)
    return found


def run_for_build(command: BuildCommand, root: Path, log: Path) -> Path:
    """Runs the command, its output going to `log` as it comes; returns the build that is new or was renewed.

    An old build is never taken for the result: a command that fails, or makes nothing, is an error.
    """
    before = _builds(root)
    code = run_step(command.words, log, environment=command.environment)
    if code != 0:
        raise JobError(
            f"the build command ended with exit code {code}: {shlex.join(command.words)[:200]}",
            where=str(log),
            hint=f"{cause_in(log)} (--python names another interpreter)",
        )
    changed = {path: when for path, when in _builds(root).items() if when > before.get(path, -1)}
    if not changed:
        raise JobError(
            f"the build command made no build below {root}",
            where=str(log),
            hint="--build-output-root names where builds appear; --build-dir takes an existing one",
        )
    return max(changed, key=lambda path: (changed[path], str(path)))
