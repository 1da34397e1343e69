"""No product repeats an old result: each of these is changed, one at a time, and every product that depends on it notices.

`replay --all`, `profile --resume` and `run` keep results under the digest of a job (digest.py). `replay`, `check`, `gate`
and `exec` keep none: what they hand to the simulator is compared instead, and that they simulate every time.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from msgspec.structs import replace as with_fields

from insight_trace import digest as digest_module
from insight_trace.__main__ import main
from insight_trace.arguments.dispatch import from_dispatch
from insight_trace.digest import job_digest
from insight_trace.dump.load import load_dump
from insight_trace.executor.journal import Journal
from insight_trace.model import CoreType
from insight_trace.options import RunOptions
from insight_trace.profile.embedded_runner import EmbeddedRunner
from insight_trace.program import compile as program_compile
from insight_trace.program.command_line import parse
from insight_trace.ptoas.planned_kernel import ProfileKernel, Workload
from insight_trace.replay import examine as examine_module
from insight_trace.replay import replaying
from insight_trace.replay.jobs import ReplayRequest
from insight_trace.run.bulk_replay import ReplayRow, plan, replay_all
from insight_trace.run.timing import Timed
from insight_trace.run.whole_run import RunRequest, run_case
from insight_trace.scene.static import load_scene
from insight_trace.simulate.embedded.toolchain import Toolchain

KERNEL = """
#ifndef IN_PROGRAM
#include "tensor.h"
#endif
#include "near.h"
#include <far.h>
#if __has_include("maybe.h")
#include "maybe.h"
#else
#define MAYBE 0
#endif
#if __has_include("perhaps.h")
#include "perhaps.h"
#endif
extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *in = reinterpret_cast<__gm__ Tensor *>(args[0]);
    auto *out = reinterpret_cast<__gm__ Tensor *>(args[1]);
    auto *to = reinterpret_cast<__gm__ int32_t *>(out->buffer.addr);
    to[0] = reinterpret_cast<__gm__ int32_t *>(in->buffer.addr)[0] + NEAR + FAR + MAYBE + int32_t(args[2]);
    dcci(to, SINGLE_CACHE_LINE);
}
#ifndef IN_PROGRAM
asm(".section .rodata\\n.incbin \\"DATA\\"\\n.text");
#endif
"""
ORCHESTRATION = """
#include "pto_orchestration_api.h"
#define SHOWN extern "C" __attribute__((visibility("default")))
SHOWN PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs &) {
    return PTO2OrchestrationConfig{2};
}
SHOWN void aicpu_orchestration_entry(const ChipTaskArgs &args) {
    PTO2_SCOPE() {
        CoreTaskArgs one;
        one.add_input(args.tensor(0).ref());
        one.add_output(args.tensor(1).ref());
        one.add_scalar(int32_t(5));
        rt_submit_aiv_task(0, one);
    }
}
"""
SCENE = """
import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

@scene_test(level=2, runtime="host_build_graph")
class Small(SceneTestCase):
    CALLABLE = {
        "orchestration": {"source": "orch.cpp", "function_name": "aicpu_orchestration_entry", "signature": [D.IN, D.OUT]},
        "incores": [
            {"func_id": 0, "name": "K", "source": "kernels/k.cpp", "core_type": "aiv", "signature": [D.IN, D.OUT, D.SCALAR]}
        ],
    }
    CASES = [{"name": "Default", "platforms": ["a2a3sim", "a5sim"], "params": {}}]

    def generate_args(self, params):
        return TaskArgsBuilder(
            TensorArg("a", np.arange(16, dtype=np.int32)), TensorArg("out", np.zeros(16, np.int32))
        )

    def compute_golden(self, args, params):
        args.out[0] = args.a[0] + 10
"""
CHIP = 'name = "Mine"\nbase = "Ascend910B1"\n[value]\n"flag.latency" = { value = 21, kind = "estimate", source = "x" }\n'


class Seen(BaseException):
    """What a product was about to simulate."""


@dataclass(frozen=True)
class Place:
    """A scene with one kernel, a dump of it, and an earlier result of each product that keeps them."""

    root: Path
    kept: Path
    toolchain: Toolchain
    options: RunOptions

    @property
    def scene(self) -> Path:
        return self.root / "scene.py"

    @property
    def dump(self) -> Path:
        return self.root / "dump"

    def words(self, path: str, old: str, new: str) -> None:
        file = self.root / path
        text = file.read_text()
        assert old in text, (path, old)
        file.write_text(text.replace(old, new))


# --- what each product would do again ---------------------------------------------------------------


@contextmanager
def _executed(module, place: Place) -> Iterator[list[str]]:
    """The digest of each job that the module hands to the pipeline, which is not run."""
    found: list[str] = []

    def execute(job, options, *_, **__):
        name = job_digest(job, options, place.toolchain)
        raise Seen(name or f"none: {os.urandom(4).hex()}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "execute", execute)
        try:
            yield found
        except Seen as seen:
            found.append(str(seen))


def _request(place: Place) -> ReplayRequest:
    options = with_fields(place.options, simulator="embedded", any_target=True)
    return ReplayRequest(
        place.scene, case="Default", func_ids=(0,), dump_dir=place.dump, dispatch_id=0, options=options,
        output=place.kept / "never written",
    )  # fmt: skip


def replay(place: Place) -> object:
    with _executed(replaying, place) as found:
        replaying.run_replay(_request(place))
    return found


def check(place: Place) -> object:
    with _executed(examine_module, place) as found:
        examine_module.examine(_request(place))
    return found


class Counting:
    """Says the same of every job, and which it was asked for."""

    def __init__(self, result: object) -> None:
        self.result, self.ran = result, []

    def run(self, _work, jobs, _kind):
        for number, job in enumerate(jobs):
            self.ran.append(job.job.label)
            yield number, self.result


def every(place: Place) -> object:
    """The rows that `replay --all` does not take from its journal."""
    executor = Counting(ReplayRow(0, "0x0", "K", "0", 1, "verified", 9, 0.1, 0.0, "", 0, 0))
    with Journal(place.kept / "replay_all.jsonl", ReplayRow) as journal:
        replay_all(plan(place.scene, place.dump, "Default", place.options), executor, journal)
    return executor.ran


def profile(place: Place) -> object:
    """The mark of the kernel: `--resume` takes no row that has another."""
    scene = load_scene(place.scene)
    dump = load_dump(place.dump, scene)
    (dispatch,) = dump.dispatches
    arguments = from_dispatch(dispatch, earlier=dump.earlier)
    (kernel,) = scene.kernels
    work = Workload((kernel,), arguments, 0, 0, 1, None, scene, dispatch)
    pto, source = place.root / "k.pto", place.root / "kernels" / "k.cpp"
    target = place.options.target or "a2a3"
    planned = ProfileKernel("K", "K", CoreType.AIV, target, source, pto, (), (), workload=work)
    return EmbeddedRunner(place.options).digest(planned)


def run(place: Place) -> object:
    """The jobs that `run` does not take from its journal."""
    executor = Counting(Timed(100, ((100,),), {"SCALAR": 1.0}, 0.0, 10))
    target = place.options.target
    request = RunRequest(
        place.scene, "Default", place.options.soc_version, place.options.preset, platform=target and f"{target}sim"
    )  # fmt: skip
    run_case(request, place.kept, executor)
    return executor.ran


def compiled(place: Place) -> object:
    """The object of a program under `exec`, which keeps compiled sources alone."""
    return _program(place, "#define IN_PROGRAM")


def _program(place: Place, first: str) -> Path:
    (place.root / "program.cpp").write_text(f'{first}\n#include "kernels/k.cpp"\n')
    line = parse(["-xcce", "--npu-arch=dav-2201", f"-I{place.root}", "program.cpp"])
    source = replace(line.inputs[0], path=str(place.root / "program.cpp"))

    def build(_toolchain, _line, into, *_rest):
        (into / "made.o").write_bytes(b"x")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program_compile, "_build", build)
        return program_compile.compile_program(place.toolchain, line, source)


KEPT = {"replay --all": every, "run": run}  # what they would simulate again: nothing, if nothing changed
NAMED = {"replay": replay, "check": check, "profile --resume": profile, "exec": compiled}
ALL = (*KEPT, *NAMED)

# --- what is changed ---------------------------------------------------------------------------------

Change = Callable[[Place, pytest.MonkeyPatch], "Place | None"]
CODE = frozenset(ALL)  # what a compiler reads concerns every product
DATA = CODE - {"run", "exec"}  # what a dump holds: these have their data from the scene, or from the program
SCENE_ONLY = frozenset(
    {"run"}
)  # what a scene says is asked again by run, gate and capture, not where a dump speaks
HOW = CODE - {"exec"}  # exec keeps nothing of a launch: its engine starts anew with each program


def _write(path: str, text: str) -> Change:
    return lambda place, _: (place.root / path).write_text(text) and None


def _words(path: str, old: str, new: str) -> Change:
    return lambda place, _: place.words(path, old, new)


def _record(old: str, new: str) -> Change:
    return _words("dump/args_dump/kernel_args_dump.json", old, new)


def _bytes(start: int, content: bytes) -> Change:
    def change(place: Place, _: object) -> None:
        file = place.root / "dump" / "args_dump" / "args.bin"
        old = file.read_bytes()
        file.write_bytes(old[:start] + content + old[start + len(content) :])

    return change


def _options(**fields: object) -> Change:
    return lambda place, _: replace(place, options=with_fields(place.options, **fields))


def _linked(place: Place, _: object) -> None:
    (place.root / "kernels" / "linked.h").unlink()
    (place.root / "kernels" / "linked.h").symlink_to("two.h")


OUT = '"shape":[16],"strides":[1],"start_offset":0,"role":"output"'
CHANGES: dict[str, tuple[Change, frozenset[str]]] = {
    # source and headers
    "the source": (_words("kernels/k.cpp", "+ NEAR +", "- NEAR +"), CODE),
    "a line that moves the others": (_words("kernels/k.cpp", "    to[0]", "\n    to[0]"), CODE),
    "a header beside the source": (_words("kernels/near.h", "NEAR 2", "NEAR 3"), CODE),
    "a header of a header": (_words("kernels/below.h", "BELOW 1", "BELOW 4"), CODE),
    "a header of CPLUS_INCLUDE_PATH": (_words("far/far.h", "FAR 1", "FAR 9"), CODE),
    "a header that appears earlier in that path": (_write("early/far.h", "#define FAR 7\n"), CODE),
    "CPLUS_INCLUDE_PATH": (lambda p, patch: patch.setenv("CPLUS_INCLUDE_PATH", str(p.root / "farther")), CODE),
    "CPATH": (lambda p, patch: patch.setenv("CPATH", str(p.root / "farthest")), CODE),
    "what __has_include asks for": (_write("kernels/perhaps.h", "#undef NEAR\n#define NEAR 40\n"), CODE),
    "where a link to a header leads": (_linked, CODE),
    "a file that assembler code includes": (_write("kernels/data.bin", "other"), HOW),
    "a header in a folder with odd characters": (_words("kernels/a #$b/odd.h", "ODD 0", "ODD 60"), CODE),
    "a header that disappears": (lambda place, _: (place.root / "kernels" / "maybe.h").unlink(), CODE),
    # what a dump holds
    "the content of an input": (_bytes(4, b"\x09"), DATA),
    "what an output is compared with": (_bytes(64, b"\x09"), DATA),
    "a payload that is shorter": (_record('"before":{"offset":0,"size":64}', '"before":{"offset":0,"size":32}'), DATA),
    "the place of a payload": (_record('"after":{"offset":64', '"after":{"offset":60'), DATA),
    "a shape": (_record(OUT, OUT.replace("[16]", "[4]")), DATA),
    "strides": (_record(OUT, OUT.replace("[16]", "[8]").replace("[1]", "[2]")), DATA),
    "a start offset": (_record('"start_offset":0,"role":"output"', '"start_offset":8,"role":"output"'), DATA),
    "a type": (_record('"kind":"tensor","dtype":"INT32"', '"kind":"tensor","dtype":"FLOAT32"'), DATA),
    "a role": (_record('"role":"output"', '"role":"inout"'), DATA),
    "a scalar": (_record('"value":5,"bits":"0x0000000000000005"', '"value":6,"bits":"0x0000000000000006"'), DATA),
    "the size of a buffer": (_record('"size":64},"buffer_size":64', '"size":64},"buffer_size":4096'), DATA),
    "the number of blocks": (_record('"block_count":1', '"block_count":2'), DATA),
    "arguments in one buffer": (_record('"pointer":"0x200000021000"', '"pointer":"0x200000000000"'), DATA),
    "the task's name": (_record('"task_id":"0x0000000000000000"', '"task_id":"0x0000000000000007"'), {"replay --all"}),
    # what a scene says
    "an input of the scene": (_words("scene.py", "np.arange(16", "np.arange(1, 17"), SCENE_ONLY),
    "the shape of that input": (_words("scene.py", "np.arange(16", "np.arange(32"), SCENE_ONLY),
    "a scalar of the orchestration": (_words("orch.cpp", "int32_t(5)", "int32_t(6)"), SCENE_ONLY),
    "another kernel under the same name": (_words("scene.py", "kernels/k.cpp", "kernels/other.cpp"), HOW),
    "the kind of core": (_words("scene.py", '"aiv"', '"aic"'), DATA),
    # how it is run
    "a number in the chip file": (_words("chip.toml", "value = 21", "value = 22"), HOW),
    "the base of the chip file": (_words("chip.toml", "Ascend910B1", "Ascend910B2"), HOW),
    "the chip": (_options(soc_version="Ascend910B1"), HOW),
    "the target": (_options(soc_version=None, target="a5"), HOW),
    "the preset": (_options(preset="camodel"), HOW),
    "timing only": (_options(timing_only=True), DATA),
    "the checker": (_options(check=True), DATA - {"check"}),  # which always checks
    "orders of cores": (_options(check=True, orders=2), DATA),
    "the state of L2": (_options(l2="warm"), DATA),
    "the launch": (_options(launch="kernel"), DATA),
    "the cost of marks": (_options(mark_cost=True), DATA),
    "the blocks that are asked for": (_options(blocks=2), DATA - {"replay --all", "profile --resume"}),  # which take none
    # the tool
    "the version": (lambda _, patch: patch.setattr(digest_module, "__version__", "99"), HOW),
    "the engine": (lambda p, patch: patch.setattr(Toolchain, "runner", lambda _: p.root / "chip.toml"), HOW),
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("place")
    files = {
        "scene.py": SCENE, "orch.cpp": ORCHESTRATION, "chip.toml": CHIP, "k.pto": "", "far/far.h": "#define FAR 1\n",
        "kernels/near.h": '#include "below.h"\n#include "a #$b/odd.h"\n#define NEAR 2 + BELOW + ODD\n',
        "kernels/below.h": '#include "linked.h"\n#define BELOW 1 + LINKED\n', "kernels/one.h": "#define LINKED 0\n",
        "kernels/two.h": "#define LINKED 5\n", "kernels/a #$b/odd.h": "#define ODD 0\n", "early/none.h": "\n",
        "farther/far.h": "#define FAR 3\n", "farthest/far.h": "#define FAR 33\n",
        "kernels/maybe.h": "#define MAYBE 1\n", "kernels/data.bin": "data",
        "kernels/k.cpp": KERNEL, "kernels/other.cpp": KERNEL.replace("+ NEAR", "* NEAR"),
    }  # fmt: skip
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text.replace("DATA", str(root / "kernels" / "data.bin")))
    (root / "kernels" / "linked.h").symlink_to("one.h")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CPLUS_INCLUDE_PATH", f"{root / 'early'}:{root / 'far'}")
        assert main(["capture", str(root / "scene.py"), "-o", str(root / "dump")]) == 0
        options = RunOptions(soc_version=str(root / "chip.toml"))
        made = Place(root, tmp_path_factory.mktemp("kept"), Toolchain.find(), options)
        for product in KEPT.values():
            assert product(made), "there is nothing yet, so all of it is simulated"
        yield made


@pytest.fixture(scope="module")
def before(place):
    for name, product in KEPT.items():
        assert product(place) == [], f"{name} repeats what it knows"
    return {name: product(place) for name, product in NAMED.items()}


@pytest.fixture
def restored(place):
    """Files are as before afterwards; names of folders count in what is compiled, so the place stays where it is."""
    files = {path: (path.read_bytes(), path.is_symlink()) for path in place.root.rglob("*") if path.is_file()}
    yield
    for path in place.root.rglob("*"):
        if path.is_file() and path not in files:
            path.unlink()
    (place.root / "kernels" / "linked.h").unlink()
    (place.root / "kernels" / "linked.h").symlink_to("one.h")
    for path, (content, link) in files.items():
        if not link and (not path.exists() or path.read_bytes() != content):
            path.write_bytes(content)


def test_at_least_forty_things_are_changed():
    assert len(CHANGES) >= 40
    assert {product for _, concerned in CHANGES.values() for product in concerned} == set(ALL)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("name", CHANGES)
def test_every_product_notices(name, place, before, monkeypatch):
    change, concerned = CHANGES[name]
    changed = change(place, monkeypatch) or place
    for product in ALL:
        if product not in concerned:
            continue
        if product in KEPT:
            assert KEPT[product](changed), product
        else:
            assert NAMED[product](changed) != before[product], product


@pytest.mark.parametrize("product", NAMED)
def test_nothing_is_noticed_where_nothing_changed(product, place, before):
    assert NAMED[product](place) == before[product]


def test_a_program_whose_assembler_code_includes_files_is_compiled_every_time(place):
    text = f'asm(".incbin \\"{place.root}/kernels/data.bin\\"");\n#define IN_PROGRAM'
    assert _program(place, text) != _program(place, text)


# --- whole commands, a few changes each ----------------------------------------------------------------


def _said(capsys, *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) in (0, 1)
    return capsys.readouterr().out


@pytest.mark.usefixtures("restored")
def test_commands_that_keep_nothing_say_what_is_true_now(place, tmp_path, capsys):
    """`replay`, `check` and `gate`, before and after a header, the payload and what an output is compared with change."""
    of_dump = [str(place.scene), "--func-id", "0", "--dump-dir", str(place.dump), "--dispatch-id", "0"]
    base = tmp_path / "base.json"
    assert "verified   slot 1" in _said(capsys, "replay", *of_dump, "-o", str(tmp_path / "one"))
    assert "nothing to remark" in _said(capsys, "check", *of_dump)
    assert main(["gate", str(base), str(place.scene), "--update", "--jobs", "1"]) == 0
    place.words("kernels/near.h", "NEAR 2", "NEAR (in[0].start_offset, to[1 << 20] = 0, 3)")
    assert main(["check", *of_dump]) == 1
    assert main(["gate", str(base), "--jobs", "1"]) == 1
    place.words("kernels/near.h", "NEAR (in[0].start_offset, to[1 << 20] = 0, 3)", "NEAR 3")
    assert "verified   slot 1" not in _said(capsys, "replay", *of_dump, "-o", str(tmp_path / "two"))
    assert "golden: passed before, failed now" in _said(capsys, "gate", str(base), "--jobs", "1")
    place.words("kernels/near.h", "NEAR 3", "NEAR 2")
    assert "verified   slot 1" in _said(capsys, "replay", *of_dump, "-o", str(tmp_path / "three"))
    _bytes(64, b"\x09")(place, pytest.MonkeyPatch())
    assert "verified   slot 1" not in _said(capsys, "replay", *of_dump, "-o", str(tmp_path / "four"))


def test_a_program_is_simulated_again_each_time_it_runs(tmp_path):
    """`exec` twice, and with another number in the chip file: no launch has the result of an earlier program."""
    example = Path(__file__).resolve().parents[1] / "examples" / "own_program" / "add.cpp"
    build = f"bisheng -xcce --npu-arch=dav-2201 -O2 {example} -o add -lascendcl -lruntime && ./add"

    chip = tmp_path / "chip.toml"

    def launched(command: str) -> dict:
        options = ["--trace", "none", "--json", "--soc-version", str(chip), "--", "sh", "-c", command]
        words = [sys.executable, "-m", "insight_trace", "exec", *options]
        ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert ran.returncode == 0, ran.stderr
        (launch,) = json.loads(ran.stderr[ran.stderr.index("{") :])["launches"]
        return launch

    chip.write_text(CHIP)
    runs = [launched(build), launched("./add")]
    chip.write_text(CHIP.replace("21", "500"))
    runs.append(launched("./add"))
    assert not any(one["repeated"] for one in runs)
    assert runs[0]["cycles"] == runs[1]["cycles"] < runs[2]["cycles"]
