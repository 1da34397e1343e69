"""Runs the device tests of a pto-isa checkout on the embedded cores, and counts how each case ended.

python tools/pto_isa_coverage.py --pto-isa PATH [--family a2a3|a5] [--vendor-headers] [--only TESTCASE]... [--json F]

Every folder of tests/npu/FAMILY/src/st/testcase has kernels, a test program and a generator of inputs and goldens. The
kernels go through our own compile path, once per kind of core; the program is compiled against the stand-ins for the
host runtime and the test framework in tools/pto_isa/include, and compares with its own tolerances. Kernels are not
changed but for their launches: `kernel<<<blocks, …>>>(…)` is no C++. What the compiler does not take is given to
clang++, if there is one: the device's compiler is a clang.

With --vendor-headers the kernels compile against the checkout's own tile library, unmodified, over our instructions;
without it against ours. What no instruction of ours does is then counted by its name. --streams DIR keeps what
the cores of each case issued; --compare DIR says in how many cases that equals the streams of another run.

A case is right, wrong (a number is not the golden's, or a bug of ours), refused (we say that the kernel is at fault),
unsupported, uncompiled, or has no data: its generator failed, or a file that it reads is not there, also where it passes.
Every case is run once more with its kernels left out. One that stays right then proves nothing, and counts as nodata,
unless its golden is zero: those are listed at the end. A case is stale, and not wrong,
if an earlier generator in the checkout's own history made the golden that it gives: kernel and golden then are not of
one revision. It is raced, and not wrong, if it is right in one of sixteen made-up orders of its cores and pipes: its
kernel does not say which comes first, and on the chip their times decide. Results are kept in the scratch folder; a
folder is run again when something that goes into it has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path

from insight_trace.cache import content_key
from insight_trace.chips import family_named, load_chip
from insight_trace.errors import InsightTraceError
from insight_trace.model import CoreType
from insight_trace.simulate.embedded.compiler import Compiler
from insight_trace.simulate.embedded.engine_objects import INCLUDE, Program, contents
from insight_trace.simulate.embedded.memory import escape, unescape
from insight_trace.simulate.embedded.source_lines import line_of_crash
from insight_trace.simulate.embedded.toolchain import (
    KERNEL_OBJECT,
    KernelBuildError,
    Toolchain,
)
from pto_isa_launches import rewrite_launches

HERE = Path(__file__).resolve().parent
STAND_INS = HERE / "pto_isa" / "include"
TEST_PROGRAM = STAND_INS / "test_program.hpp"
DRIVER = HERE / "pto_isa" / "driver.cpp"
FAMILIES = ("a2a3", "a5")
STATES = ("right", "wrong", "refused", "unsupported", "uncompiled", "nodata", "stale", "raced")
# how the driver says that a case ended -> what that counts as
_STATE = {
    "right": "right",
    "wrong": "wrong",
    "our_bug": "wrong",
    "kernel": "refused",
    "input": "refused",
    "time": "refused",
    "not_supported": "unsupported",
    "environment": "nodata",
    "program": "nodata",
    "uncompiled": "uncompiled",
}
_ARCH = re.compile(r"pto_(vec|cube|mix)_st\(\s*(\w+)")
_GENERATOR_SECONDS = 900
_DRIVER_SECONDS = 3000
_REVISIONS = 8  # of a generator, the newest first
_ORDERS = 16  # made up, of the cores of a case that is wrong


@dataclass(frozen=True)
class Outcome:
    """How one case ended."""

    case: str
    state: str
    message: str = ""
    place: str = ""
    idle: bool = False  # right without its kernels, too: its golden is zero


@dataclass(frozen=True)
class Folder:
    """One test case folder and what came of it."""

    family: str
    name: str
    compiled: bool
    outcomes: tuple[Outcome, ...]


class ValuesOnly(Toolchain, frozen=True, dict=True):
    """Kernels that compute and issue the same, and compile in half the time: their scalar code is not counted."""

    def _hooks(self) -> tuple[str, ...]:
        return ()


# --- one folder -------------------------------------------------------------------------------------


class Bench:
    """What all folders share: the checkout, the compiler, the driver, kept results."""

    def __init__(
        self,
        root: Path,
        scratch: Path,
        seconds: float,
        python_path: str,
        vendor_headers: bool = False,
        streams: Path | None = None,
        lines: bool = False,
    ) -> None:
        self.root, self.scratch, self.seconds, self.python_path = root, scratch, seconds, python_path
        self.headers = root if vendor_headers else None
        self.streams = streams
        usual = Toolchain.find()
        kind = Toolchain if lines else ValuesOnly
        self.levels = () if lines else ("-g0",)
        compilers = [usual.compiler, *_clang(usual.compiler)]
        self.toolchains = [kind(compiler, usual.cache, self.headers) for compiler in compilers]
        self.toolchain = self.toolchains[0]
        self.kept_name = "outcomes_vendor_headers.json" if vendor_headers else "outcomes.json"

    @property
    def driver(self) -> Path:
        """Asked for each time, as the cache gives up what was not asked for in a while."""
        return self.toolchain.executable(Program("device_tests", (DRIVER,), (STAND_INS,)))

    def _unshared(self, toolchain: Toolchain) -> tuple[str, ...]:
        """The objects of both kinds of core are loaded together, and have the same names."""
        return () if toolchain.compiler.is_clang else ("-fno-gnu-unique",)

    def folders(self, family: str, only: Sequence[str]) -> list[Path]:
        base = self.root / "tests" / "npu" / family / "src" / "st" / "testcase"
        found = sorted(path.parent for path in base.glob("*/main.cpp"))
        return [path for path in found if not only or path.name in only]

    def run(self, family: str, source: Path) -> Folder:
        place = self.scratch / family / source.name
        place.mkdir(parents=True, exist_ok=True)
        content = [path.read_bytes() for path in sorted(source.iterdir()) if path.is_file()]
        content += [(HERE / "pto_isa_launches.py").read_bytes(), str(self.headers).encode()]
        # what did not compile is tried again when the source or our headers have changed
        identity = _digest([self.toolchain.identity.encode(), *content])
        if not self.streams and (outcomes := self._kept(place, identity)):
            return Folder(family, source.name, False, outcomes)
        program = None
        try:
            program = self._program(family, source)
            objects = self._compile_somehow(family, source, place)
        except KernelBuildError as error:
            said, where = error.failure.message, error.failure.where
            outcomes = self._uncompiled(source, said, where)
            if program is not None:  # the program knows its cases best: some come out of macros
                listed = self._drive(family, program, [], place, "")
                outcomes = tuple(Outcome(one.case, "uncompiled", said, where) for one in listed) or outcomes
            self._keep(place, identity, outcomes)
            return Folder(family, source.name, False, outcomes)
        key = _digest([*(str(part).encode() for part in (self.driver, program, objects)), *content])
        outcomes = self._kept(place, key)
        if self.streams or not outcomes:
            outcomes = self._drive(family, program, objects, place, self._data(source, place))
            outcomes = self._without_kernels(family, program, objects, place, outcomes)
            if any(one.state == "wrong" for one in outcomes):
                outcomes = self._as_before(family, source, program, objects, outcomes)
                outcomes = self._in_other_orders(family, program, objects, place, outcomes)
            self._keep(place, key, outcomes)
        return Folder(family, source.name, True, outcomes)

    def _kept(self, place: Path, key: str) -> tuple[Outcome, ...]:
        """What an earlier run of the same found."""
        try:
            kept = json.loads((place / self.kept_name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ()
        return tuple(Outcome(*one) for one in kept["outcomes"]) if kept["key"] == key else ()

    def _keep(self, place: Path, key: str, outcomes: tuple[Outcome, ...]) -> None:
        part = place / "outcomes.part"
        part.write_text(
            json.dumps({"key": key, "outcomes": [astuple(one) for one in outcomes]}, indent=1),
            encoding="utf-8",
        )
        part.rename(place / self.kept_name)

    def _as_before(
        self,
        family: str,
        source: Path,
        program: Path,
        objects: list[tuple[str, Path]],
        now: tuple[Outcome, ...],
    ) -> tuple[Outcome, ...]:
        """Wrong cases against the goldens that earlier generators of the same tests made."""
        path = source.relative_to(self.root) / "gen_data.py"
        log = ["git", "-C", str(self.root), "log", "--format=%h", "--", str(path)]
        known = subprocess.run(log, capture_output=True, text=True).stdout.split()
        for revision in known[:_REVISIONS]:
            if not any(one.state == "wrong" for one in now):
                break
            show = ["git", "-C", str(self.root), "show", f"{revision}:{path.as_posix()}"]
            text = subprocess.run(show, capture_output=True)
            place = self.scratch / family / f"{source.name}@{revision}"
            place.mkdir(parents=True, exist_ok=True)
            if text.returncode == 0 and not self._generate(text.stdout, source, place):
                then = {one.case: one.state for one in self._drive(family, program, objects, place, "")}
                said = f"right by the generator of {revision}"
                now = tuple(
                    Outcome(one.case, "stale", said)
                    if one.state == "wrong" and then.get(one.case) == "right"
                    else one
                    for one in now
                )
            shutil.rmtree(place)
        return now

    def _in_other_orders(
        self,
        family: str,
        program: Path,
        objects: list[tuple[str, Path]],
        place: Path,
        now: tuple[Outcome, ...],
    ) -> tuple[Outcome, ...]:
        """Wrong cases whose numbers depend on which core comes first."""
        for order in range(1, _ORDERS + 1):
            wrong = [one.case for one in now if one.state == "wrong"]
            if not wrong:
                break
            lines = [f"order\t{order}", *(f"case\t{escape(case)}" for case in wrong)]
            then = {one.case: one.state for one in self._drive(family, program, objects, place, "", lines)}
            said = f"right in made-up order {order}: nothing says which of its cores comes first"
            now = tuple(
                Outcome(one.case, "raced", said)
                if one.state == "wrong" and then.get(one.case) == "right"
                else one
                for one in now
            )
        return now

    def _without_kernels(
        self,
        family: str,
        program: Path,
        objects: list[tuple[str, Path]],
        place: Path,
        now: tuple[Outcome, ...],
    ) -> tuple[Outcome, ...]:
        """Cases that are right and stay so with no kernel run: by a golden of zeros, or by no data at all."""
        then = {
            one.case: one.state
            for one in self._drive(family, program, objects, place, "", ["without_kernels"])
        }
        found = []
        for one in now:
            if one.state == "right" and then.get(one.case) == "right":
                zero = _golden_is_zero(place / one.case)
                said = "right without its kernels"
                one = replace(one, idle=True) if zero else replace(one, state="nodata", message=said)
            found.append(one)
        return tuple(found)

    def _compile_somehow(self, family: str, source: Path, place: Path) -> list[tuple[str, Path]]:
        refused = []
        for toolchain in self.toolchains:
            try:
                return self._compile(toolchain, family, source, place)
            except KernelBuildError as error:
                refused.append(error)
        raise refused[0]

    def _compile(
        self, toolchain: Toolchain, family: str, source: Path, place: Path
    ) -> list[tuple[str, Path]]:
        """The kind of core and the object of every kernel."""
        build = (source / "CMakeLists.txt").read_text(encoding="utf-8", errors="replace")
        made: list[tuple[str, Path]] = []
        for kernel in sorted(source.glob("*_kernel.cpp")):
            copy = place / kernel.name
            text = rewrite_launches(kernel.read_text(encoding="utf-8", errors="replace"))
            text = f'#include "device_tests.hpp"\n#line 1 "{kernel}"\n{text}'
            if not copy.is_file() or copy.read_text(encoding="utf-8") != text:
                copy.write_text(text, encoding="utf-8")
            for kind in _kinds(build, kernel.name):
                found = toolchain.kernel(
                    copy,
                    kind,
                    target=family,
                    include_dirs=(str(STAND_INS), str(source), str(self.root / "tests" / "common")),
                    defines=(*self.levels, *self._unshared(toolchain)),
                )
                made.append((kind.value, found))
        return made

    def _program(self, family: str, source: Path) -> Path:
        # it compares once: compiling it well takes longer
        flags = ["-std=c++17", "-O0", "-g0", "-fPIC", "-w", "-fsigned-char", "-D__DAV_VEC__"]
        flags += [*self._unshared(self.toolchain), *family_named(family).defines]
        folders = [STAND_INS, INCLUDE, self.root / "tests" / "common"]
        content = [self.toolchain.identity, *contents(STAND_INS), *contents(folders[-1])]
        first = self.toolchain._precompiled(
            "test_program",
            TEST_PROGRAM,
            [*flags, *(f"-I{folder}" for folder in folders)],
            content_key(content),
        )
        return self.toolchain.host_object(source / "main.cpp", "test program", folders, flags, first)

    def _uncompiled(self, source: Path, message: str, where: str = "") -> tuple[Outcome, ...]:
        text = (source / "main.cpp").read_text(encoding="utf-8", errors="replace")
        names = re.findall(r"^\s*TEST(?:_F)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)", text, re.M)
        return tuple(Outcome(f"{suite}.{name}", "uncompiled", message, where) for suite, name in names)

    def _data(self, source: Path, place: Path) -> str:
        """Inputs and goldens, made once; what went wrong, if something did."""
        script = source / "gen_data.py"
        if not script.is_file():
            return ""
        return self._generate(script.read_bytes(), source, place)

    def _generate(self, text: bytes, source: Path, place: Path) -> str:
        stamp, digest = place / "data.stamp", hashlib.sha256(text).hexdigest()
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == digest:
            return ""
        for old in place.iterdir():  # what another generator made is no golden of this one
            if old.is_dir() and old.name != "bin":
                shutil.rmtree(old)
        (place / "gen_data.py").write_bytes(text)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        paths = [self.python_path, str(source), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        try:
            done = subprocess.run(
                [sys.executable, "gen_data.py"], cwd=place, env=environment, capture_output=True, text=True,
                timeout=_GENERATOR_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"the generator still ran after {_GENERATOR_SECONDS} s"
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            return f"the generator failed: {lines[-1] if lines else done.returncode}"
        stamp.write_text(digest, encoding="utf-8")
        return ""

    def _drive(
        self,
        family: str,
        program: Path,
        objects: list[tuple[str, Path]],
        place: Path,
        no_data: str,
        further: Sequence[str] = (),
    ) -> tuple[Outcome, ...]:
        run, result = place / "bin", place / "result"
        run.mkdir(exist_ok=True)
        result.unlink(missing_ok=True)
        lines = [
            *load_chip(target=family).job_lines,
            *(f"object\t{kind}\t{escape(str(path))}" for kind, path in objects),
            f"program\t{escape(str(program))}",
            f"directory\t{escape(str(run))}",
            f"result\t{escape(str(result))}",
            f"seconds\t{self.seconds}",
            *further,
        ]
        if self.streams and not further:
            own = self.streams / family / place.name
            shutil.rmtree(own, ignore_errors=True)
            own.mkdir(parents=True)
            lines.append(f"streams\t{escape(str(own))}")
        (place / "job").write_text("\n".join(lines) + "\n", encoding="utf-8")
        with (place / "printed").open("w") as printed:
            done = subprocess.run(
                [str(self.driver), str(place / "job")], stdout=printed, stderr=subprocess.STDOUT,
                timeout=_DRIVER_SECONDS,
            )  # fmt: skip
        if not result.is_file():
            said = (place / "printed").read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise RuntimeError(f"{place.name}: the driver ended with {done.returncode}: {said[-1:]}")
        outcomes = []
        for line in result.read_text(encoding="utf-8", errors="replace").splitlines():
            key, *rest = (unescape(part) for part in line.split("\t"))
            if key != "case":
                continue
            name, state, message, file, number, *more = rest
            state = _STATE[state]
            # in the library's headers a place is an offset in the object
            in_source = line_of_crash(file, int(number)) if file.endswith(KERNEL_OBJECT) else None
            file, number = (in_source[0], str(in_source[1])) if in_source else (file, number)
            where = f"{Path(file).name}:{number}" if file else ""
            goldens, missing = (int(more[0]), more[1]) if len(more) == 2 else (0, "")
            if state in ("right", "wrong") and (missing or (no_data and not goldens)):
                state, message = "nodata", no_data or f"{Path(missing).name} is not there"
            outcomes.append(Outcome(name, state, message, where))
        return tuple(outcomes)


def _clang(usual: Compiler) -> list[Compiler]:
    """clang++, where that is not the usual one and is installed."""
    path = shutil.which("clang++")
    if usual.is_clang or path is None:
        return []
    said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout.splitlines()
    return [Compiler((path,), said[0], usual.emulator)] if said else []


def _golden_is_zero(place: Path) -> bool:
    """Whether a case has goldens, and none of them holds anything."""
    files = [path for path in place.glob("*golden*") if path.is_file()]
    return bool(files) and not any(any(path.read_bytes()) for path in files)


def _digest(parts: Sequence[bytes]) -> str:
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _kinds(build: str, kernel: str) -> list[CoreType]:
    """The cores that a kernel is compiled for: the build file says, or the kernel's own name."""
    found = _ARCH.search(build)
    if found and f"{found[2]}_kernel.cpp" != kernel:  # one of several, each with rules of its own
        found = None
    word = found[1] if found else "mix" if "_mix" in kernel else "cube" if "_aic" in kernel else "vec"
    return {
        "vec": [CoreType.AIV],
        "cube": [CoreType.AIC],
        "mix": [CoreType.AIC, CoreType.AIV],
    }[word]


# --- all of them ------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pto-isa", type=Path, required=True, metavar="PATH", help="a checkout of pto-isa")
    parser.add_argument("--family", choices=FAMILIES, action="append", help="one family (both)")
    parser.add_argument(
        "--vendor-headers", action="store_true", help="the checkout's own tile library over our instructions"
    )
    parser.add_argument(
        "--lines",
        action="store_true",
        help="compile as for users: a failure has its line, and takes twice as long",
    )
    parser.add_argument("--streams", type=Path, metavar="DIR", help="what the cores issued, a file a case")
    parser.add_argument(
        "--compare", type=Path, metavar="DIR", help="streams of another run, against --streams"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="TESTCASE", help="these folders")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="folders at a time (2)")
    parser.add_argument("--json", type=Path, metavar="F", help="every outcome, as JSON")
    parser.add_argument("--seconds", type=float, default=60, metavar="S", help="limit of one case (60)")
    parser.add_argument("--verbose", action="store_true", help="every case that is not right")
    parser.add_argument(
        "--scratch", type=Path, default=Path("outputs/pto_isa"), metavar="DIR", help="data and results"
    )
    parser.add_argument(
        "--python-path", default="", metavar="DIR", help="packages for the generators (torch, en_dtypes)"
    )
    options = parser.parse_args()
    if not (options.pto_isa / "tests" / "npu").is_dir():
        parser.error(f"{options.pto_isa} has no tests/npu")
    options.scratch.mkdir(parents=True, exist_ok=True)
    families = options.family or list(FAMILIES)
    try:
        bench = Bench(
            options.pto_isa.resolve(),
            options.scratch.resolve(),
            options.seconds,
            options.python_path,
            options.vendor_headers,
            options.streams.resolve() if options.streams else None,
            options.lines,
        )
        jobs = [(family, path) for family in families for path in bench.folders(family, options.only)]
        shared = threading.Lock()

        def run(job: tuple[str, Path]) -> Folder:
            folder = bench.run(*job)
            with shared:
                _tell(folder, options.verbose)
            return folder

        with ThreadPoolExecutor(max(1, options.jobs)) as pool:
            done = list(pool.map(run, jobs))
    except InsightTraceError as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        rows = [asdict(folder) for folder in done]
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    for folder in done:
        _tell(folder, False)
    compiled = sum(folder.compiled for folder in done)
    print(f"{compiled} of {len(done)} folders compile unmodified")
    missing = Counter(one.message for folder in done for one in folder.outcomes if one.state == "unsupported")
    for message, count in missing.most_common():
        print(f"unsupported in {count:4} cases: {message}")
    if options.compare and options.streams:
        _compare(options.streams, options.compare)
    for family in families:
        counts = Counter(one.state for folder in done if folder.family == family for one in folder.outcomes)
        words = " ".join(f"{state}={counts[state]}" for state in STATES)
        idle = [one.case for folder in done if folder.family == family for one in folder.outcomes if one.idle]
        print(f"PTO_ISA {family} total={sum(counts.values())} {words}")
        print(
            f"        {len(idle)} of the right ones have goldens of zeros, and are right without their kernels, too"
        )
        for name in idle:
            print(f"        {name}")
    return 0


def _compare(one: Path, other: Path) -> None:
    """The share of cases that both runs have in which every core issued the same, and the folders that differ."""
    cases = [
        path.relative_to(one) for path in sorted(one.glob("*/*/*")) if not path.name.startswith("records")
    ]
    both = [case for case in cases if (other / case).is_file()]
    differ = Counter(case.parent.name for case in both if _stream_of(one / case) != _stream_of(other / case))
    equal = len(both) - differ.total()
    share = 100 * equal / len(both) if both else 0.0
    print(f"STREAMS equal={equal} of {len(both)} cases ({share:.1f} %)")
    for folder, count in differ.most_common():
        print(f"  {folder}: {count} cases differ")


def _stream_of(path: Path) -> dict[str, list[str]]:
    """What each core issued, in order."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        core, instruction = line.split("\t")
        found.setdefault(core, []).append(instruction)
    return found


def _tell(folder: Folder, verbose: bool) -> None:
    counts = Counter(one.state for one in folder.outcomes)
    words = "  ".join(f"{state} {counts[state]}" for state in STATES if counts[state])
    print(f"{folder.family:5} {folder.name:32} {words}", flush=True)
    said: Counter[str] = Counter()
    for one in folder.outcomes:
        if one.state == "right":
            continue
        if verbose:
            print(f"        {one.case}: {one.state}: {one.message} {one.place}")
        else:
            said[f"{one.state}: {one.message} {one.place}".strip()] += 1
    for text, count in said.most_common(3):
        print(f"        {count} x {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
