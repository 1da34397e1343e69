"""A folder that looks like the vendor's toolkit to a program and its build: compiler, headers, libraries, all ours."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from insight_trace.cache import content_key
from insight_trace.chips import TARGETS, chip_names, family_named
from insight_trace.errors import JobError
from insight_trace.simulate.embedded.engine_objects import INCLUDE, Program, contents
from insight_trace.simulate.embedded.toolchain import Toolchain

HERE = Path(__file__).resolve().parent
HEADERS, RUNTIME, CMAKE, TORCH = HERE / "include", HERE / "runtime", HERE / "cmake", HERE / "torch"
ENGINE = Program("program_engine", (HERE / "engine_main.cpp",))
RUNTIME_LIBRARY = "libinsight_trace_runtime.so"
VARIABLE = "INSIGHT_TRACE_TOOLKIT"  # names the folder to the compiler, which may run anywhere

# Libraries that builds name; all of them are our runtime.
_LIBRARIES = (
    "ascendcl", "acl_rt", "runtime", "tiling_api", "platform", "register", "c_sec", "graph_base", "graph",
    "unified_dlog", "nnopbase", "ascendc_runtime", "error_manager", "profapi", "ge_common_base", "mmpa",
    "ascend_dump", "ascendalog", "alog", "slog", "dlog", "acl_rt_impl", "ascend_hal", "opapi_stub", "runtime_camodel",
    "npu_drv_camodel", "stars", "pem_davinci", "model_top", "mstx", "ms_tools_ext", "profimpl", "exe_graph",
    "lowering", "metadef", "aihac_autotune", "kernel_data_to_json", "msprofiler", "ascend_trace", "atrace",
    "ascendc_acl_stub",
)  # fmt: skip
_COMMANDS = {
    "bisheng": "bisheng", "ccec": "bisheng", "bisheng++": "bisheng", "msprof": "stand_ins", "cannsim": "stand_ins",
    "msopprof": "stand_ins", "mssanitizer": "stand_ins",
    "npusim": "stand_ins", "npu-smi": "stand_ins", "insight-trace-launchers": "launchers", "insight-trace-linker": "linker",
}  # fmt: skip
# CMake puts the compiler that a project chose into CXX: there, ours would take itself for the host's
_SCRIPT = """\
#!/bin/sh
case "$CXX" in *bisheng* | *ccec*) if [ -n "$INSIGHT_TRACE_CXX" ]; then CXX="$INSIGHT_TRACE_CXX"; else unset CXX; fi ;; esac
exec "{python}" -I -c 'import sys; sys.path.insert(0, "{place}"); sys.argv[0] = "{name}"
from insight_trace.program.{module} import main
sys.exit(main())' "$@"
"""
# what compilers find before the linker that they know (COMPILER_PATH); ours is asked where that finds no definition
_LINKER = """\
#!/bin/sh
said=$(mktemp) || exec "{real}" "$@"
"{real}" "$@" 2> "$said"
code=$?
if [ $code -ne 0 ] && grep -q "undefined reference to" "$said"; then
    rm -f "$said"
    exec "{commands}/insight-trace-linker" "{real}" "$@"
fi
cat "$said" >&2
rm -f "$said"
# a shared library is made with what was not found left open
case " $* " in *" -shared "*) ;; *) exit $code ;; esac
[ $code -eq 0 ] || exit $code
made=a.out
last=
for word in "$@"; do
    [ "$last" = -o ] && made=$word
    last=$word
done
if nm -D -u "$made" 2> /dev/null | grep -qE "matmul_tiling|optiling|7AscendC|7ConvApi"; then
    exec "{commands}/insight-trace-linker" "{real}" "$@"
fi
exit 0
"""
# a file of kernels is whole when the compiler has made it (--cce-aicore-only): to link one alone is to copy it
_DEVICE_LINKER = """\
#!/bin/sh
case " $* " in *" aicorelinux "*) ;; *) exec "{real}" "$@" ;; esac
output=a.out
count=0
while [ $# -gt 0 ]; do
    case "$1" in
        -o) output=$2; shift ;;
        -m | -z | -T | -Ttext | -e) shift ;;
        -*) ;;
        *) input=$1; count=$((count + 1)) ;;
    esac
    shift
done
if [ $count -ne 1 ]; then
    echo "insight-trace: ld.lld: $count files of kernels; one is linked at a time, load each by itself" >&2
    exit 1
fi
cp "$input" "$output"
"""
_SETTINGS = """\
# insight-trace: the same variables that `insight-trace exec` sets.
export ASCEND_HOME_PATH="{folder}"
export ASCEND_TOOLKIT_HOME="{folder}"
export ASCEND_OPP_PATH="{folder}/opp"
export PATH="{folder}/bin:$PATH"
export LD_LIBRARY_PATH="{folder}/lib64:$LD_LIBRARY_PATH"
"""


def current() -> Path:
    """The toolkit's folder: the one that this process runs in, else made."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named and Path(named).is_dir() else make(Toolchain.find())


_SCRATCH: list[tempfile.TemporaryDirectory[str]] = []


def scratch() -> Path:
    """A folder for objects on the way to one link, as long as this process lives."""
    if not _SCRATCH:
        _SCRATCH.append(tempfile.TemporaryDirectory(prefix="insight-trace-link-"))
    return Path(_SCRATCH[0].name)


def make(toolchain: Toolchain) -> Path:
    """The toolkit, made once for this state of our sources and this Python."""
    library = _runtime(toolchain)
    identity = [
        sys.executable,
        str(HERE),
        str(library),
        *contents(HEADERS),
        *contents(CMAKE),
        *sorted(_LIBRARIES),
    ]
    identity += [
        *_COMMANDS,
        _SCRIPT,
        _LINKER,
        _DEVICE_LINKER,
        _SETTINGS,
        *(str(path) for path in sorted(INCLUDE.iterdir())),
    ]
    place = toolchain.cache.root / "toolkit" / content_key(identity)[:16]
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        _fill(beside, place, library)
        beside.chmod(0o755)
        beside.rename(place)
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        if not place.is_dir():
            raise JobError(f"the toolkit's folder cannot be made: {error}", where=str(place)) from None
    return place


def _runtime(toolchain: Toolchain) -> Path:
    """The runtime library, compiled on first use."""
    key = content_key(
        [toolchain.compiler.version, *toolchain.compiler.command, *contents(RUNTIME), *contents(HEADERS)]
    )

    def build(into: Path) -> None:
        words = ["-std=c++17", "-O1", "-g1", "-fPIC", "-w", f"-I{HEADERS}", f"-I{RUNTIME}"]

        def compiled(source: Path) -> str:
            made = str(into / f"{source.stem}.o")
            _require_done(toolchain, [*words, "-c", str(source), "-o", made])
            return made

        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            objects = list(pool.map(compiled, sorted(RUNTIME.glob("*.cpp"))))
        made = ["-shared", f"-Wl,-soname,{RUNTIME_LIBRARY}", *objects, "-o", str(into / RUNTIME_LIBRARY)]
        _require_done(toolchain, [*made, "-ldl", "-lpthread"])

    return toolchain.cache.put("program_runtime", key, build) / RUNTIME_LIBRARY


def _require_done(toolchain: Toolchain, words: list[str]) -> None:
    done = toolchain.compiler.run(words)
    if done.over:
        raise JobError(
            f"compiling the runtime library went over its limit of {done.over}",
            hint="INSIGHT_TRACE_COMPILE_SECONDS=SECONDS gives the compiler more time",
        )
    if done.code != 0:
        raise JobError(
            f"the runtime library does not compile: {done.said.decode(errors='replace')[:2000]}",
            hint="this is a fault of ours, please report it",
        )


def _fill(folder: Path, final: Path, library: Path) -> None:
    for name in (
        "bin",
        "include",
        "lib64",
        "opp",
        "tools/simulator",
        "x86_64-linux",
        "aarch64-linux",
        "compiler",
        "runtime",
        "acllib",
        "link",
    ):
        (folder / name).mkdir(parents=True)
    source = Path(__file__).resolve().parents[2]
    for name, module in _COMMANDS.items():
        script = folder / "bin" / name
        script.write_text(_SCRIPT.format(python=sys.executable, place=source, name=name, module=module))
        script.chmod(0o755)
    for real in ("ld.lld", "llvm-objdump", "llvm-nm"):
        tool = shutil.which({"ld.lld": "ld", "llvm-objdump": "objdump", "llvm-nm": "nm"}[real])
        if tool and real == "ld.lld":
            (folder / "bin" / real).write_text(_DEVICE_LINKER.format(real=tool))
            (folder / "bin" / real).chmod(0o755)
        elif tool:
            (folder / "bin" / real).symlink_to(tool)
    linker = shutil.which("ld")
    if linker:
        script = folder / "link" / "ld"
        script.write_text(_LINKER.format(real=linker, commands=final / "bin"))
        script.chmod(0o755)
    for entry in (*HEADERS.iterdir(), *INCLUDE.iterdir()):
        link = folder / "include" / entry.name
        if not link.exists():
            link.symlink_to(entry)
    shutil.copyfile(library, folder / "lib64" / RUNTIME_LIBRARY)
    for name in _LIBRARIES:
        (folder / "lib64" / f"lib{name}.so").symlink_to(RUNTIME_LIBRARY)
    for name, to in (
        ("lib", "lib64"), ("pkg_inc", "include"), ("devlib", "lib64"), ("compiler/lib64", "../lib64"),
        ("compiler/bin", "../bin"), ("acllib/lib64", "../lib64"), ("acllib/include", "../include"),
        ("runtime/lib64", "../lib64"), ("runtime/include", "../include"),
        ("compiler/tikcpp", "../tikcpp"), ("tools/tikcpp", "../tikcpp"), ("ccec_compiler", "."),
    ):  # fmt: skip
        (folder / name).symlink_to(to)
    for machine in ("x86_64-linux", "aarch64-linux"):
        for name in ("bin", "include", "lib64", "pkg_inc"):
            (folder / machine / name).symlink_to(f"../{name}")
        (folder / machine / "ccec_compiler").mkdir()
        (folder / machine / "ccec_compiler" / "bin").symlink_to("../../bin")
    for chip in {*chip_names(), *(f"dav_{family_named(target).npu_arch}" for target in TARGETS)}:
        (folder / "tools/simulator" / chip).mkdir()
        (folder / "tools/simulator" / chip / "lib").symlink_to("../../../lib64")
    (folder / "tikcpp").mkdir()
    (folder / "tikcpp" / "ascendc_kernel_cmake").symlink_to(CMAKE)
    (folder / "set_env.sh").write_text(_SETTINGS.format(folder=final))
    (folder / "bin" / "setenv.bash").write_text(_SETTINGS.format(folder=final))
    (folder / "version.cfg").write_text("insight-trace\n")


def environment(
    folder: Path, session: Path, given: dict[str, str], ascendc_folders: Sequence[Path] = ()
) -> dict[str, str]:
    """The variables of a program whose compiler, libraries and device are ours.

    `ascendc_folders`: of a checkout, whose headers of host code (tiling) any compiler finds.
    """
    known = dict(given)

    def before(name: str, *places: Path) -> None:
        known[name] = os.pathsep.join([*map(str, places), *filter(None, [known.get(name, "")])])

    before("PATH", folder / "bin")
    before("LD_LIBRARY_PATH", folder / "lib64")
    before("PYTHONPATH", TORCH)
    before("COMPILER_PATH", folder / "link")
    if ascendc_folders:  # behind what a build names itself
        known["CPLUS_INCLUDE_PATH"] = os.pathsep.join(
            [*filter(None, [known.get("CPLUS_INCLUDE_PATH", "")]), str(HEADERS), *map(str, ascendc_folders)]
        )
    python = sysconfig.get_path("include")  # build files of extensions rely on an environment that has it
    if python and Path(python, "Python.h").is_file() and _is_ours(known.get("PATH", "")):
        known["CPLUS_INCLUDE_PATH"] = os.pathsep.join(
            [*filter(None, [known.get("CPLUS_INCLUDE_PATH", "")]), python]
        )
    before("CMAKE_PREFIX_PATH", folder / "tikcpp" / "ascendc_kernel_cmake")
    for name in (
        "ASCEND_HOME_PATH",
        "ASCEND_TOOLKIT_HOME",
        "ASCEND_HOME",
        "ASCEND_INSTALL_PATH",
        "ASCEND_HOME_DIR",
        "ASCEND_CANN_PACKAGE_PATH",
        "ASCEND_AICPU_PATH",
    ):
        known[name] = str(folder)
    known.setdefault("PTO_LIB_PATH", str(folder))
    known["ASCENDC_CMAKE_DIR"] = str(folder / "compiler/tikcpp/ascendc_kernel_cmake")
    known["ASCEND_OPP_PATH"] = str(folder / "opp")
    known["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1"
    known.setdefault("ASCEND_LAUNCH_BLOCKING", "1")
    known.setdefault("PYTHONFAULTHANDLER", "1")  # which Python line touched device memory
    known[VARIABLE] = str(folder)
    known.setdefault("INSIGHT_TRACE_CXX", known.get("CXX", ""))
    known["INSIGHT_TRACE_PROGRAM"] = str(session)
    known["INSIGHT_TRACE_PROGRAM_CACHE"] = str(Toolchain.find().cache.root)
    return known


def _is_ours(path: str) -> bool:
    """Whether the Python that a program finds is the one that runs this."""
    found = shutil.which("python3", path=path)
    return found is not None and Path(found).resolve() == Path(sys.executable).resolve()
