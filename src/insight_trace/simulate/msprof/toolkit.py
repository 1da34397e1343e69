"""Where CANN is: as the user says, else as the environment says, else in the usual places, newest first."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from insight_trace.errors import InputError, JobError, RequestError
from insight_trace.limits import STAMP_BYTES
from insight_trace.reading import regular_text
from insight_trace.simulate.msprof.toolkit_processes import capture

TRIPLETS = ("aarch64-linux", "x86_64-linux")
_VERSION_FILES = ("compiler/version.info", "version.info", "opp/version.info")
_INSIDE = ("ascend-toolkit/latest", "ascend-toolkit", "ascend-toolkit/*", "latest", "cann", "cann-*")
_PROGRAMS = (
    "bin",
    "compiler/ccec_compiler/bin",
    "compiler/bin",
    "tools/profiler/bin",
    "tools/bisheng_compiler/bin",
)
_SOURCE = 'source "$1" >/dev/null 2>&1; env -0'
_SOURCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Toolkit:
    """One CANN installation with the environment that its set_env.sh makes."""

    home: Path
    set_env: Path | None
    version: str  # "" if it does not say
    how: str  # how it was found, as the user can check it
    environment: Mapping[str, str] = field(repr=False)

    def program(self, name: str) -> Path | None:
        """A program in the folders where toolkits keep theirs, or on the toolkit's PATH."""
        places = [str(self.home / folder) for folder in _PROGRAMS]
        places += [str(self.home / triplet / "ccec_compiler/bin") for triplet in TRIPLETS]
        places += self.environment.get("PATH", "").split(os.pathsep)
        for place in places:
            path = Path(place, name)
            if place and path.is_file() and os.access(path, os.X_OK):
                return path
        return None


def usual_places(environ: Mapping[str, str]) -> tuple[Path, ...]:
    own = Path(environ["HOME"]) / "Ascend" if environ.get("HOME") else None
    return tuple(
        place for place in (Path("/usr/local/Ascend"), own, Path("/opt/Ascend")) if place is not None
    )


def find_toolkits(
    environ: Mapping[str, str],
    *,
    cann_home: Path | None = None,
    set_env: Path | None = None,
    places: tuple[Path, ...] | None = None,
) -> Iterator[Toolkit]:
    """Installations to try, best first. What the user or the environment names is the only candidate.

    What the user names must exist (a wrong request otherwise); what the environment names is passed over if
    it does not.
    """
    if cann_home is not None:
        if not cann_home.is_dir():
            raise RequestError(f"--cann-home {cann_home} is not a directory")
        yield _opened(cann_home, _set_env_of(cann_home), "--cann-home", environ)
        return
    if set_env is not None:
        yield _sourced(set_env, "--cann-set-env", environ)
        return
    named = environ.get("CANN_SET_ENV")
    if named and Path(named).is_file():
        yield _sourced(Path(named), "CANN_SET_ENV", environ)
        return
    home = environ.get("ASCEND_HOME_PATH")
    if home and Path(home).is_dir():
        yield _opened(Path(home), _set_env_of(Path(home)), "ASCEND_HOME_PATH", environ)
        return
    for found in installed_toolkits(environ, places):
        yield _opened(found, _set_env_of(found), str(found), environ)


def installed_toolkits(environ: Mapping[str, str], places: tuple[Path, ...] | None = None) -> list[Path]:
    """What is installed in the usual places, newest first."""
    return _installed(usual_places(environ) if places is None else places)


def not_found(environ: Mapping[str, str], places: tuple[Path, ...] | None = None) -> JobError:
    looked = ", ".join(map(str, usual_places(environ) if places is None else places))
    return JobError(
        f"no CANN toolkit was found (looked at CANN_SET_ENV, ASCEND_HOME_PATH, {looked})",
        hint="give --cann-home DIR, or use --simulator embedded, which needs none",
    )


def version_of(home: Path) -> str:
    for name in _VERSION_FILES:
        try:
            text = regular_text(home / name, most=STAMP_BYTES, errors="replace")
        except (OSError, InputError):
            continue
        match = re.search(r"^\s*Version\s*=\s*(\S+)", text, re.MULTILINE | re.IGNORECASE)
        if match:
            return match[1]
    return ""


def version_key(version: str) -> tuple[tuple[int, int], ...]:
    """Orders versions: 8.1 < 8.2.RC1 < 8.2.RC2 < 8.2 < 9.0. An unknown one comes last."""
    key = []
    for part in re.findall(r"\d+|[A-Za-z]+", version):
        # before a release stand its candidates, marked by letters; the number after them counts on
        key.append((1, int(part[:18])) if part.isdigit() else (-1, 0))
    return (*key, (0, 0))


def _sourced(set_env: Path, how: str, environ: Mapping[str, str]) -> Toolkit:
    if not os.access(set_env, os.R_OK) or not set_env.is_file():
        raise RequestError(f"{how} {set_env} is not a readable file", hint="it should name CANN's set_env.sh")
    return _opened(None, set_env, how, environ)


def _opened(home: Path | None, set_env: Path | None, how: str, environ: Mapping[str, str]) -> Toolkit:
    environment = dict(environ)
    if set_env is not None:
        environment |= _sourced_environment(set_env, environ)
    stated = environment.get("ASCEND_HOME_PATH") or environment.get("ASCEND_TOOLKIT_HOME")
    if home is None or (set_env is not None and stated and not (home / "tools").is_dir()):
        # `ascend-toolkit` holds set_env.sh for the toolkit beside it
        if not stated:
            raise JobError(f"{set_env} sets no ASCEND_HOME_PATH", hint="is it CANN's set_env.sh?")
        home = Path(stated)
    environment["ASCEND_HOME_PATH"] = str(home)
    return Toolkit(home, set_env, version_of(home), how, environment)


def _set_env_of(home: Path) -> Path | None:
    for candidate in (home / "set_env.sh", home.parent / "set_env.sh", home / "bin/setenv.bash"):
        if candidate.is_file() and os.access(candidate, os.R_OK):
            return candidate
    return None


def _sourced_environment(set_env: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """What a script exports. Its path is an argument, never part of the command's text."""
    command = ["bash", "--noprofile", "--norc", "-c", _SOURCE, "insight-trace", str(set_env.absolute())]
    code, output = capture(command, environment=environ, seconds=_SOURCE_SECONDS)
    if code != 0:
        why = "bash is missing or the script did not end" if code is None else f"exit {code}"
        raise JobError(f"{set_env} could not be sourced: {why}")
    pairs = (entry.split(b"=", 1) for entry in output.split(b"\0") if b"=" in entry)
    exported = {os.fsdecode(name): os.fsdecode(value) for name, value in pairs}
    for shell_own in ("_", "SHLVL", "PWD", "OLDPWD"):
        exported.pop(shell_own, None)
    return exported


def _installed(places: tuple[Path, ...]) -> list[Path]:
    found: dict[Path, Path] = {}
    for place in places:
        inside = [path for pattern in _INSIDE for path in sorted(place.glob(pattern))]
        for candidate in [*inside, place]:
            if _looks_installed(candidate):
                found.setdefault(Path(os.path.realpath(candidate)), candidate)
    return sorted(found.values(), key=lambda home: version_key(version_of(home)), reverse=True)


def _looks_installed(home: Path) -> bool:
    """A toolkit has tools or a simulator; a folder that only holds other toolkits has neither."""
    own = ("tools/simulator", "simulator", *(f"{triplet}/simulator" for triplet in TRIPLETS), "compiler")
    return any((home / folder).is_dir() for folder in own)
