"""Writes the two locks: the versions that stand in them, with the hash of every file pip may take.

    python tools/lock.py [--python 3.11 3.12 3.13 3.14] [--machine x86_64 aarch64]

Change a version by hand, then run this. It asks pip's own index for the files of each Python and machine.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = (ROOT / "requirements.lock", ROOT / "requirements-dev.lock")
# from the newest C library that wheels are made for to the oldest
_LIBC = ("2_36", "2_35", "2_34", "2_31", "2_28", "2_27", "2_26", "2_24", "2_17", "2_12", "2_5")


def pinned(text: str) -> dict[str, str]:
    """Versions by name, as the lock has them."""
    return dict(re.findall(r"^([\w.-]+)==([^\s\\]+)", text, re.M))


def files_of(versions: dict[str, str], python: str, machine: str, into: Path) -> None:
    """Downloads what pip would install there."""
    platforms = [f"manylinux_{libc}_{machine}" for libc in _LIBC] + [f"manylinux2014_{machine}"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--python-version", python, "-d", str(into)]
    command += [word for platform in platforms for word in ("--platform", platform)]
    done = subprocess.run([*command, *(f"{name}=={version}" for name, version in versions.items())])
    if done.returncode:
        sys.exit(f"not every version has a wheel for Python {python} on {machine}")


def hashes_of(versions: dict[str, str], folder: Path) -> dict[str, set[str]]:
    """Of every file in `folder`, by project."""
    hashes: dict[str, set[str]] = {name: set() for name in versions}
    by_plain_name = {plain(name): name for name in versions}
    for file in folder.iterdir():
        name = by_plain_name[plain(file.name.split("-")[0])]
        hashes[name].add(hashlib.sha256(file.read_bytes()).hexdigest())
    return hashes


def locked(text: str, hashes: dict[str, set[str]]) -> str:
    """A lock's text with these hashes; lines that name another lock stay."""
    lines = re.findall(r"^-r .*$", text, re.M)
    versions = pinned(text)
    for name in sorted(versions, key=str.lower):
        parts = [f"{name}=={versions[name]}", *(f"--hash=sha256:{value}" for value in sorted(hashes[name]))]
        lines.append(" \\\n    ".join(parts))
    return "\n".join(lines) + "\n"


def plain(name: str) -> str:
    """A project's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", nargs="+", default=["3.11", "3.12", "3.13", "3.14"])
    parser.add_argument("--machine", nargs="+", default=["x86_64", "aarch64"])
    options = parser.parse_args()
    texts = {lock: lock.read_text(encoding="utf-8") for lock in LOCKS}
    versions = {name: version for text in texts.values() for name, version in pinned(text).items()}
    with tempfile.TemporaryDirectory() as name:
        for python in options.python:
            for machine in options.machine:
                files_of(versions, python, machine, Path(name))
        hashes = hashes_of(versions, Path(name))
    for lock, text in texts.items():
        lock.write_text(locked(text, hashes), encoding="utf-8")
        print(f"{lock.name}: {len(pinned(text))} projects")


if __name__ == "__main__":
    main()
