"""`insight-trace profile` through the vendor's simulator, with the stand-in toolkit in its place."""

import csv
import dataclasses
import importlib
import json
import os
import shutil
import stat
import threading
import time
from pathlib import Path

import pytest
from launched_kernels import write_build, write_tile_headers
from standin_toolkit import make_toolkit
from tests.synthetic_trace import softmax_trace

from insight_trace.__main__ import main
from insight_trace.errors import JobError
from insight_trace.insight import validate_directory, write_insight_directory
from insight_trace.options import RunOptions, VendorOptions
from insight_trace.profile import ProfileRequest, list_kernels, run_profile, testcase
from insight_trace.profile.msprof_runner import MsprofRunner
from insight_trace.ptoas.buffer_content import content_of
from insight_trace.simulate.msprof import building


class Bench:
    """A machine with the stand-in toolkit: what is run on it, and what it was asked."""

    def __init__(self, place: Path, home: Path, patch: pytest.MonkeyPatch) -> None:
        self.place, self.home, self.patch = place, home, patch
        self.isa = write_tile_headers(place / "pto-isa")
        result = write_insight_directory(softmax_trace(tiles=2), place / "given")
        for name in ("CANN_SET_ENV", "PTOAS_ROOT", "ASCEND_TOOLKIT_HOME", "AICORE_ARCH"):
            patch.delenv(name, raising=False)
        self.set(
            ASCEND_HOME_PATH=home,
            PTO_ISA_ROOT=self.isa,
            STANDIN_MSPROF="new",
            STANDIN_RESULT=result,
            STANDIN_CALLS=place / "calls",
            STANDIN_COMPILES=place / "compiles",
            STANDIN_SEEN=place / "seen",
        )

    def set(self, **variables: object) -> None:
        for name, value in variables.items():
            self.patch.setenv(name, str(value))

    def _lines(self, name: str) -> list[list[str]]:
        path = self.place / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []

    @property
    def calls(self) -> list[list[str]]:
        return [line for line in self._lines("calls") if "--help" not in line]

    @property
    def compiles(self) -> list[list[str]]:
        return self._lines("compiles")

    @property
    def seen(self) -> dict[str, float]:
        lines = (self.place / "seen").read_text().splitlines()
        return {name: float(value) for name, value in (line.split() for line in lines)}

    def run(self, build: Path, **options: object):
        how = {"step_seconds": 60.0, "build_seconds": 60.0, **options}
        resume = bool(how.pop("resume", False))
        asked = {name: how.pop(name, None) for name in ("soc_version", "pto_isa_root")}
        run = RunOptions(seconds=60.0, **asked)
        request = ProfileRequest(build, jobs=2, resume=resume, options=run, vendor=VendorOptions(**how))
        said: list[str] = []
        result = run_profile(request, warn=said.append)
        return result, said


@pytest.fixture
def bench(toolkit_home, tmp_path, monkeypatch):
    return Bench(tmp_path / "bench", toolkit_home, monkeypatch)


@pytest.fixture(scope="module")
def finished(toolkit_home, tmp_path_factory):
    """One run of every form of kernel, as a person types it."""
    place = tmp_path_factory.mktemp("finished")
    build = write_build(place / "build")
    with pytest.MonkeyPatch.context() as patch:
        bench = Bench(place / "bench", toolkit_home, patch)
        words = ["profile", "--build-dir", str(build), "--jobs", "2", "--msprof-timeout", "7"]
        assert main(words) == 0
        root = next(build.glob("kernel_insight_all_funcs_*"))
        with (root / "manifest_export.csv").open(newline="") as file:
            rows = {row["func"]: row for row in csv.DictReader(file)}
        yield bench, build, root, rows


def test_auto_takes_cann_where_it_works_and_every_form_of_kernel_is_exported(finished):
    _, _, root, rows = finished
    assert {name: row["status"] for name, row in rows.items()} == dict.fromkeys(
        ("plain", "mangled", "bare", "group_0"), "exported"
    )
    assert "simulator=msprof CANN 8.5.0 dav_2201" in (root / "README.txt").read_text()
    for name, row in rows.items():
        simulator = Path(row["trace_json"]).parent
        assert simulator.parent.parent == root / "funcs" / name / "collect" / "out"
        assert validate_directory(simulator) == []


def test_the_manifest_says_what_was_built_linked_and_launched_of_every_form(finished):
    bench, _, root, rows = finished
    assert "mangled.v1[0]" in bench.seen
    assert rows["mangled"]["symbol"] == "mangled"
    assert rows["plain"]["symbol"] == rows["plain"]["demangled"] == "plain"
    assert rows["bare"]["symbol"] == "bare_insight_entry"
    assert rows["group_0"]["symbol"] == "pair_insight_entry"
    for name, row in rows.items():
        assert row["case_dir"] == str(root / "cases" / name)
        assert row["build_dir"] == str(root / "builds" / name)
        assert Path(row["app"]).is_file()
        assert Path(row["kernel_lib"]).is_file()
        assert int(row["cycles"]) > 0
        assert row["bound_by"] in ("VECTOR", "MTE2", "MTE3")
        assert row["message"].startswith("collect produced traces directly")
        logs = {path.name for path in (root / "logs" / name).iterdir()}
        assert logs == {"cmake.log", "build.log", "golden.log", "collect.log"}


def test_generator_3_launched_kernels_got_our_inputs_the_hidden_scalars_and_the_lane_of_the_core(finished):
    bench, build, _, _ = finished
    given = {k.name: content_of(k.buffers[0], k.seed) for k in list_kernels(ProfileRequest(build))}
    seen = bench.seen
    assert seen["plain.v1[255]"] == pytest.approx(given["plain"][255])
    assert seen["mangled.v1[0]"] == pytest.approx(given["mangled"][0])
    assert (seen["bare.v3"], seen["bare.v4"]) == (0, 1)
    assert seen["pair_aic.v1[2]"] == pytest.approx(given["group_0"][2])
    assert seen["pair_aiv.v3"] == 1


def test_script_1_msprof_is_asked_for_the_kernel_with_its_limit_in_minutes(finished):
    bench, _, _, _ = finished
    assert len(bench.calls) == 4
    asked = {word.partition("=")[0]: word.partition("=")[2] for word in bench.calls[0][2:]}
    assert asked["--timeout"] == "7"
    assert asked["--soc-version"] == "dav_2201"
    assert asked["--launch-count"] == "1"
    names = {w.partition("=")[2] for call in bench.calls for w in call if w.startswith("--kernel-name")}
    assert names == {"plain", "mangled", "bare_insight_entry", "pair_insight_entry"}


def test_generator_8_device_code_is_compiled_with_lines_for_the_targets_core(finished):
    bench, _, _, _ = finished
    assert len(bench.compiles) == 8
    for words in bench.compiles:
        assert {"-g", "--cce-aicore-arch=dav-c220", "-DREGISTER_BASE"} <= set(words)


def test_every_directory_of_a_run_is_private(finished):
    _, _, root, _ = finished
    for name in (
        "",
        *(f"{part}{below}" for part in ("cases", "builds", "logs", "funcs") for below in ("", "/plain")),
    ):
        assert stat.S_IMODE((root / name).stat().st_mode) == 0o700, name


def test_kernels_of_both_targets_and_blanks_in_a_long_path_go_together(bench, tmp_path):
    build = write_build(tmp_path / ("my own build " * 8).strip(), ("plain", "bare"))
    text = build / "ptoas" / "bare.pto"
    text.write_text(text.read_text().replace('"a2a3"', '"a5"'))
    result, _ = bench.run(build)
    assert [row.status for row in result.rows] == ["exported", "exported"], result.rows
    for name, soc, arch in (
        ("plain", "dav_2201", "dav-c220"),
        ("bare_insight_entry", "dav_3510", "dav-c310"),
    ):
        (call,) = [call for call in bench.calls if f"--kernel-name={name}" in call]
        assert f"--soc-version={soc}" in call
        assert any(f"--cce-aicore-arch={arch}" in words for words in bench.compiles)


def test_another_core_architecture_can_be_named_by_a_flag_or_else_by_a_variable(bench, tmp_path):
    bench.set(AICORE_ARCH="dav-c220-vec")
    assert MsprofRunner(VendorOptions()).aicore_arch == "dav-c220-vec"
    bench.run(write_build(tmp_path / "build", ("plain",)), aicore_arch="dav-c220-cube")
    assert bench.compiles
    assert all("--cce-aicore-arch=dav-c220-cube" in words for words in bench.compiles)


def test_symbols_are_asked_with_one_nm_and_one_cppfilt_and_an_older_msprof_gets_its_second_pass(
    bench, tmp_path
):
    asked = []
    original = building.capture

    def counted(command, **rest):
        asked.append(command[0])
        return original(command, **rest)

    bench.patch.setattr(building, "capture", counted)
    bench.set(STANDIN_MSPROF="old")
    result, _ = bench.run(write_build(tmp_path / "build", ("mangled",)))
    (row,) = result.rows
    assert row.exported
    assert row.cell("message") == ""
    assert asked == ["nm", "c++filt"]
    assert (result.root / "logs/mangled/export.log").is_file()
    assert [any(w.startswith("--export=") for w in call) for call in bench.calls] == [False, True]


def test_a_failure_says_which_step_failed_why_and_where_its_log_is_and_script_1_a_part_is_exported_as_such(
    bench, tmp_path
):
    """One build: what msprof did not finish is gone on with."""
    build = write_build(tmp_path / "build", ("plain",))
    for mode, status, cause in (
        ("silent", "collect_failed", "no kernel ran in the simulator"),
        ("empty", "export_failed", "the simulator left nothing to export"),
        ("old_nothing", "export_failed", "the export wrote no trace"),
    ):
        bench.set(STANDIN_MSPROF=mode)
        result, _ = bench.run(build, resume=mode != "silent")
        (row,) = result.rows
        assert row.status == status
        assert cause in row.cell("message")
        assert f"{result.root}/logs/plain/" in row.cell("message")
        assert not (result.root / "funcs" / "plain").exists()
    bench.set(STANDIN_MSPROF="slow")
    result, _ = bench.run(build, resume=True, timeout_minutes=3)
    (row,) = result.rows
    assert row.exported
    assert "the time was over after 3 minutes" in row.cell("warnings")


@pytest.mark.parametrize(
    ("golden", "said"),
    [("raise SystemExit('error: no numpy here')", "error: no numpy here"), (None, "no golden.py")],
)
def test_zeros_stand_in_for_inputs_that_golden_did_not_write(bench, tmp_path, golden, said):
    original = testcase.render_testcase

    def without(kernel, **rest):
        files = original(kernel, **rest)
        files.pop("golden.py")
        return files | ({"golden.py": golden} if golden else {})

    bench.patch.setattr(testcase, "render_testcase", without)
    result, _ = bench.run(write_build(tmp_path / "build", ("plain",)))
    (row,) = result.rows
    assert row.exported
    assert said in row.cell("warnings")
    assert "zeros stand in for v1.bin, v2.bin" in row.cell("warnings")
    assert bench.seen == {"plain.v1[255]": 0}


def test_a_compiler_that_refuses_debug_lines_is_asked_again_without(bench, tmp_path):
    bench.set(STANDIN_BISHENG="no_g")
    build = write_build(tmp_path / "build", ("plain",))
    result, _ = bench.run(build)
    assert result.rows[0].exported
    assert "the compiler refused -g" in result.rows[0].cell("warnings")
    bench.set(STANDIN_BISHENG="")
    shutil.rmtree(result.root)
    (bench.place / "compiles").unlink()
    result, _ = bench.run(build, debug_lines=False)
    assert result.rows[0].cell("warnings") == ""
    assert not any("-g" in words for words in bench.compiles)


def test_script_6_a_kernel_that_does_not_compile_is_named_by_the_compilers_line_and_tried_once(
    bench, tmp_path
):
    build = write_build(tmp_path / "build", ("plain",))
    source = build / "ptoas" / "plain.cpp"
    source.write_text(source.read_text().replace("saw(", "TFOO("))
    result, _ = bench.run(build)
    (row,) = result.rows
    assert row.status == "failed"
    assert "TFOO" in row.cell("message")
    assert "logs/plain/build.log" in row.cell("message")
    assert sum("kernel.cpp" in " ".join(words) for words in bench.compiles) == 1


def test_script_12_resume_builds_nothing_again_when_only_msprof_failed(bench, tmp_path):
    bench.set(STANDIN_MSPROF="silent")
    build = write_build(tmp_path / "build", ("plain", "bare"))
    result, _ = bench.run(build)
    assert result.exported == 0
    before = len(bench.compiles)
    bench.set(STANDIN_MSPROF="new")
    again, _ = bench.run(build, resume=True)
    assert again.exported == 2
    assert again.root == result.root
    assert len(bench.compiles) == before


def test_a_source_that_changed_is_built_again_on_resume(bench, tmp_path):
    bench.set(STANDIN_MSPROF="silent")
    build = write_build(tmp_path / "build", ("plain",))
    bench.run(build)
    bench.set(STANDIN_MSPROF="new")
    source = build / "ptoas" / "plain.cpp"
    source.write_text(source.read_text() + "// another text\n")
    before = len(bench.compiles)
    assert bench.run(build, resume=True)[0].exported == 1
    assert len(bench.compiles) > before


# --- what auto does where CANN is not what it should be ---------------------------------------------


@pytest.fixture
def scripted_embedded(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parent.parent / "ptoas"))
    make = importlib.import_module("scripted_runner").make
    monkeypatch.setattr("insight_trace.profile.embedded_runner.EmbeddedRunner", make)


@pytest.mark.usefixtures("scripted_embedded")
@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("STANDIN_MSPROF", "no_worker", "no working simulator worker"),
        ("STANDIN_BISHENG", "no_tl", "does not know the tile language"),
        ("PTO_ISA_ROOT", "/nowhere", "needs pto-isa's headers"),
    ],
)
def test_auto_takes_the_embedded_simulator_where_cann_does_not_work_and_says_why(
    bench, tmp_path, variable, value, said
):
    bench.set(**{variable: value, "HOME": tmp_path})
    result, notes = bench.run(write_build(tmp_path / "build", ("plain",)))
    assert result.exported == 1
    assert "simulator=scripted" in (result.root / "README.txt").read_text()
    assert len(notes) == 1
    assert said in notes[0]


def test_asked_for_by_name_a_cann_that_does_not_work_is_an_error_before_anything_is_written(
    bench, tmp_path, capsys
):
    bench.set(STANDIN_MSPROF="no_worker")
    build = write_build(tmp_path / "build", ("plain",))
    assert main(["profile", "--build-dir", str(build), "--simulator", "msprof"]) == 1
    assert "no working simulator worker" in capsys.readouterr().err
    assert not list(build.glob("kernel_insight*"))


@pytest.mark.parametrize(
    ("flag", "said"),
    [("--ptoas-root", "name a checkout of PTOAS"), ("--pto-isa-root", "name a checkout of pto-isa"),
     ("--cann-set-env", "is not a readable file"), ("--msopprof", "is not a readable file")],
)  # fmt: skip
@pytest.mark.parametrize("simulator", ["auto", "msprof"])
def test_what_was_named_for_cann_and_named_wrongly_is_a_wrong_request(
    bench, tmp_path, capsys, flag, said, simulator
):
    assert bench.home
    build = write_build(tmp_path / "build", ("plain",))
    words = ["profile", "--build-dir", str(build), "--simulator", simulator, flag, str(tmp_path / "absent")]
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert not list(build.glob("kernel_insight*"))


# --- the gaps of the existing script that are about CANN ---------------------------------------------


def test_script_9_the_soc_is_chosen_by_what_can_be_linked_not_by_the_alphabet(
    bench, built_libraries, tmp_path, capsys
):
    """`Ascend910B` sorts before `Ascend910B1`, and has no camodel library to link with."""
    home = make_toolkit(tmp_path / "cann-8.2", built_libraries, socs=("Ascend910B1", "Ascend910A"))
    (home / "tools/simulator/Ascend910B/lib").mkdir(parents=True)
    bench.set(ASCEND_HOME_PATH=home)
    build = write_build(tmp_path / "build", ("plain",))
    result, _ = bench.run(build)
    assert result.rows[0].exported, result.rows[0].cell("message")
    assert any("--soc-version=Ascend910B1" in call for call in bench.calls)
    words = ["profile", "--build-dir", str(build), "--soc-version", "Ascend999"]
    assert main([*words, "--simulator", "msprof"]) == 2
    assert "Ascend910A, Ascend910B1" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["x86_64-linux", "aarch64-linux"])
def test_script_10_the_camodel_is_linked_from_the_place_of_either_kind_of_host(
    bench, built_libraries, tmp_path, host
):
    """Only `<host>/simulator` is there. The stand-in msprof then knows no chip: what counts is the build."""
    home = make_toolkit(tmp_path / "cann", built_libraries)
    (home / "tools/simulator").unlink()
    if host != "x86_64-linux":
        (home / "x86_64-linux").rename(home / host)
    bench.set(ASCEND_HOME_PATH=home)
    result, notes = bench.run(write_build(tmp_path / "build", ("plain",)))
    (row,) = result.rows
    assert notes == []
    assert row.status == "collect_failed", row.cell("message")
    assert Path(row.cell("app")).is_file()


def everything_in(home: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(home)): (path.lstat().st_mtime_ns, path.lstat().st_mode)
        for path in sorted(home.rglob("*"))
    }


@pytest.mark.parametrize("how", ["named", "found"])
def test_script_11_a_worker_from_elsewhere_is_used_without_writing_into_the_toolkit(
    bench, built_libraries, tmp_path, how
):
    homes = {}
    for name, version in (("cann-8.5.0", "8.5.0"), ("cann-8.5.1", "8.5.1"), ("cann-8.2", "8.2")):
        homes[name] = make_toolkit(tmp_path / "Ascend" / name, built_libraries, version=version)
        if name != "cann-8.5.0":
            worker = homes[name] / "tools/msopprof/bin/msopprof"
            worker.parent.mkdir(parents=True)
            worker.write_text(f"worker of {version}\n")
            worker.chmod(0o755)
    bench.set(STANDIN_MSPROF="needs_worker", ASCEND_HOME_PATH=homes["cann-8.5.0"], HOME=tmp_path)
    before = {name: everything_in(home) for name, home in homes.items()}
    build = write_build(tmp_path / "build", ("plain",))
    runner = MsprofRunner(VendorOptions())
    with pytest.raises(JobError, match="no working simulator worker"):
        runner.simulator.require(["a2a3"])
    named = {"msopprof": homes["cann-8.2"] / "tools/msopprof/bin/msopprof"}
    options = named if how == "named" else {"auto_msopprof": True}
    result, notes = bench.run(build, **options)
    assert (notes, result.exported) == ([], 1)
    assert {name: everything_in(home) for name, home in homes.items()} == before


def test_script_11_of_several_workers_the_one_of_the_same_release_is_taken(built_libraries, tmp_path):
    from insight_trace.simulate.msprof.toolkit import find_toolkits
    from insight_trace.simulate.msprof.worker import find_worker

    for version in ("8.5.0", "8.5.1", "9.0"):
        home = make_toolkit(tmp_path / "Ascend" / f"cann-{version}", built_libraries, version=version)
        (home / "tools/msopprof/bin").mkdir(parents=True)
        (home / "tools/msopprof/bin/msopprof").touch()
    places, environ = (tmp_path / "Ascend",), {"PATH": os.environ["PATH"]}
    (toolkit,) = find_toolkits(environ, cann_home=tmp_path / "Ascend/cann-8.5.0")
    found = find_worker(toolkit, environ, places)
    assert found == tmp_path / "Ascend/cann-8.5.1/tools/msopprof/bin/msopprof"


def test_script_2_an_interrupt_ends_msprof_and_all_that_it_started(bench, tmp_path):
    bench.set(STANDIN_MSPROF="hang")
    build = write_build(tmp_path / "build", ("plain",))
    runner = MsprofRunner(VendorOptions())
    runner.simulator.require(["a2a3"])
    request = ProfileRequest(build, output_root=tmp_path / "out")
    rows = []
    worker = threading.Thread(target=lambda: rows.extend(run_profile(request, runner).rows))
    worker.start()
    deadline = time.monotonic() + 60
    pids = []
    while not pids and time.monotonic() < deadline:
        for path in tmp_path.glob("out/*/cases/plain/standin_pids"):
            pids = [int(word) for word in path.read_text().split()]
        time.sleep(0.05)
    runner.stop()
    worker.join(timeout=30)
    assert not worker.is_alive()
    assert rows[0].status == "collect_failed"
    assert pids
    for pid in pids:
        alive = Path(f"/proc/{pid}/stat")
        assert not alive.exists() or alive.read_text().rpartition(")")[2].split()[0] in "ZX"


# --- PTOAS's own generator --------------------------------------------------------------------------

GENERATOR = '''
import argparse, pathlib, shutil
p = argparse.ArgumentParser()
for flag in ("--input", "--testcase", "--output-root", "--run-mode", "--soc-version", "--aicore-arch"):
    p.add_argument(flag, required=True)
o = p.parse_args()
case = pathlib.Path(o.output_root) / pathlib.Path(o.input).parent.name / o.testcase
case.mkdir(parents=True)
t = o.testcase
shutil.copy(o.input, case / f"{t}_kernel.cpp")
(case / "launch.cpp").write_text(
    '#include <pto/pto-inst.hpp>\\n__global__ AICORE void mangled(__gm__ float* v1, __gm__ float* v2);\\n'
    'void Launch(float* v1, float* v2, void* stream) { mangled<<<1, nullptr, stream>>>(v1, v2); }\\n')
(case / "main.cpp").write_text("""#include "test_common.h"
void Launch(float*, float*, void*);
int main() {
    size_t elemCount_v1 = 256;
    size_t fileSize_v1 = elemCount_v1 * sizeof(float);
    float v1[256], v2[256];
    if (!PtoTestCommon::ReadFile("./v1.bin", fileSize_v1, v1, fileSize_v1)) return 1;
    Launch(v1, v2, nullptr);
}
""")
(case / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.16)
set(CMAKE_CXX_COMPILER bisheng)
project(x CXX)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include_directories(${{PTO_ISA_ROOT}}/include ${{PTO_ISA_ROOT}}/tests/common $ENV{{ASCEND_HOME_PATH}}/include)
add_library({t}_kernel SHARED {t}_kernel.cpp launch.cpp)
target_compile_options({t}_kernel PRIVATE -xcce --cce-aicore-arch={o.aicore_arch})
add_executable({t}_sim main.cpp)
target_link_libraries({t}_sim PRIVATE {t}_kernel runtime_camodel)
""")
'''


def test_ptoas_root_uses_ptoas_own_generator_with_zeros_where_it_leaves_no_golden(bench, tmp_path):
    script = tmp_path / "ptoas/test/npu_validation/scripts/generate_testcase.py"
    script.parent.mkdir(parents=True)
    script.write_text(GENERATOR)
    build = write_build(tmp_path / "build", ("mangled",))
    result, _ = bench.run(build, ptoas_root=tmp_path / "ptoas")
    (row,) = result.rows
    assert row.exported, row.cell("message")
    assert row.cell("case_dir") == str(result.root / "cases/mangled/ptoas/mangled")
    assert (row.cell("symbol"), row.cell("demangled")) == ("_Z7mangledPfS_", "mangled(float*, float*)")
    assert "there is no golden.py; zeros stand in for v1.bin" in row.cell("warnings")
    assert bench.seen == {"mangled.v1[0]": 0}
    (tmp_path / "x.bin").write_bytes(b"\0\0\x80\x3f" * 256)
    kernel = list_kernels(ProfileRequest(build))[0]
    given = dataclasses.replace(kernel.arguments[0], content=testcase.Content.FILE, file=tmp_path / "x.bin")
    kernel = dataclasses.replace(kernel, arguments=(given, kernel.arguments[1]))
    from insight_trace.profile.profile_run import ProfileRun

    runner = MsprofRunner(VendorOptions(ptoas_root=tmp_path / "ptoas"))
    ProfileRun(tmp_path / "given", runner).run([kernel])
    assert bench.seen == {"mangled.v1[0]": 1}


def test_the_generator_of_a_ptoas_checkout_gives_a_case_that_builds_and_runs(bench, tmp_path):
    checkout = os.environ.get("INSIGHT_TRACE_PTOAS")
    if not checkout:
        pytest.skip("set INSIGHT_TRACE_PTOAS to a checkout of PTOAS to run this test")
    build = write_build(tmp_path / "build", ("mangled",))
    result, _ = bench.run(build, ptoas_root=Path(checkout))
    (row,) = result.rows
    assert row.exported, row.cell("message")
    assert row.cell("demangled").startswith("mangled(")
    assert (Path(row.cell("case_dir")) / "v1.bin").is_file()
