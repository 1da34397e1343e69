"""A wheel that carries the compiled core, so that nothing of ours is compiled where it is installed.

    python tools/build_wheel.py [--machine aarch64] [-o dist]

Another machine's core is compiled with zig (the `compiler` extra). The same sources and the same compiler give
the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from insight_trace.cache import Cache, content_key
from insight_trace.capture.builds import RUNNER as CAPTURE_RUNNER
from insight_trace.insight.encoding import EVENT_ROWS
from insight_trace.simulate.embedded.carried_core import MANIFEST, version
from insight_trace.simulate.embedded.compiler import Compiler, find_compiler
from insight_trace.simulate.embedded.engine_objects import RUNNER
from insight_trace.simulate.embedded.toolchain import Toolchain

ROOT = Path(__file__).resolve().parent.parent
# The oldest C library among the systems that these chips' drivers support.
_CROSS_LIBC = "2.28"
_WHEEL_TIME = "1577836800"  # of the files in the wheel, unless SOURCE_DATE_EPOCH says otherwise


def needed_glibc(program: Path) -> str:
    """The newest version of the C library that a program asks for."""
    with program.open("rb") as file:
        found = [
            str(entry.name).removeprefix("GLIBC_")
            for section in ELFFile(file).iter_sections()
            if isinstance(section, GNUVerNeedSection)
            for _, entries in section.iter_versions()
            for entry in entries
            if str(entry.name).startswith("GLIBC_2")
        ]
    return max(found, key=version)


def compiler_for(machine: str) -> Compiler:
    if machine == platform.machine():
        return find_compiler()
    command = (sys.executable, "-m", "ziglang", "c++", "-target", f"{machine}-linux-gnu.{_CROSS_LIBC}")
    done = subprocess.run([*command[:3], "version"], capture_output=True, text=True)
    if done.returncode:
        sys.exit("another machine's core is compiled with zig: pip install 'insight-trace[compiler]'")
    return Compiler(command, f"zig {done.stdout.strip()}")


def write_core(machine: str, into: Path) -> None:
    """Both programs and the library that lays events, and what they are made of and need."""
    toolchain = Toolchain(compiler_for(machine), Cache())
    programs = {}
    libc = []
    for program in (RUNNER, CAPTURE_RUNNER):
        made = toolchain.executable(program)
        libc.append(needed_glibc(made))
        (into / program.name).write_bytes(made.read_bytes())
        (into / program.name).chmod(0o755)
        programs[program.name] = program.content()
    library = toolchain.library_of(EVENT_ROWS)
    libc.append(needed_glibc(library))
    (into / library.name).write_bytes(library.read_bytes())
    programs[library.name] = content_key([EVENT_ROWS.read_bytes()])
    manifest = {"machine": machine, "glibc": max(libc, key=version), "programs": programs}
    (into / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machine", default=platform.machine(), choices=("x86_64", "aarch64"))
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", metavar="DIR")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        core = Path(name)
        write_core(options.machine, core)
        said = {"INSIGHT_TRACE_WHEEL_CORE": name, "SOURCE_DATE_EPOCH": _WHEEL_TIME}
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
             "-w", str(options.output), str(ROOT)],
            env={**said, **os.environ, "INSIGHT_TRACE_WHEEL_CORE": name},
            check=True,
        )  # fmt: skip
    for wheel in sorted(options.output.glob("insight_trace-*.whl")):
        print(f"{wheel} · {wheel.stat().st_size / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
