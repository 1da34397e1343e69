"""Command lines that existing documents print: each parses as it stands, and runs where what it needs is there."""

import functools
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from insight_trace import commands
from insight_trace.__main__ import main
from insight_trace.simpler_names import command_of, tool_asked_for

ROOT = Path(__file__).resolve().parent.parent.parent
SKILL = ROOT / "skills" / "insight-trace"
BUILD = ROOT / "examples" / "pypto_run"
T = "tests/st/a2a3/tensormap_and_ringbuffer"
E = "examples/a2a3/tensormap_and_ringbuffer"
SWIMLANE = "python -m simpler_setup.tools.core_swimlane"
GUIDE = "simpler docs/dfx/core-swimlane-profiling.md"
INCORE = "pypto-skills incore-profiling SKILL.md"

# The table of categories, §3.8: what stands inside `task-submit --run "..."`.
CATEGORIES = [
    f"{SWIMLANE} --platform a2a3sim -g --func-id 0     --test {E}/vector_example/test_vector_example.py",
    f"{SWIMLANE} --platform a2a3sim -g --func-id 3,4   --test {T}/mixed_example/test_mixed_example.py",
    f"{SWIMLANE} --platform a2a3sim -g --func-id 0,1,2 --test {T}/mixed_example/test_mixed_example.py",
    f"{SWIMLANE} --platform a2a3sim -g --func-id 0 --spmd-block-num 4 "
    f"--test {T}/spmd_multiblock_aiv/test_spmd_multiblock_aiv.py",
    f"{SWIMLANE} --platform a2a3sim -g --func-id 0,1,2 --spmd-block-num 2 "
    f"--test {T}/spmd_multiblock_mix/test_spmd_multiblock_mix.py",
    f"{SWIMLANE} --platform a2a3sim -g --func-id 1 --set-arg 1=512 --case CaseSmall1 "
    f"--test {T}/batch_paged_attention/test_batch_paged_attention.py",
    f"{SWIMLANE} --platform a2a3 -g --func-id 0 --test {T}/alternating_matmul_add/test_alternating_matmul_add.py",
    f"{SWIMLANE} --platform a2a3 -g --func-id 0 --set-arg 4=4 "
    f"--test {T}/paged_attention_unroll/test_paged_attention_unroll.py",
]
# (where it is printed, the line, with <words in brackets> filled in)
DOCUMENTED = [
    *((f"{GUIDE} §3.8", line) for line in CATEGORIES),
    (f"{GUIDE} §2", f"{SWIMLANE} --test tests/st/case/test_name.py --func-id 0,1,2 --platform a2a3sim"),
    (
        f"{GUIDE} §3.2",
        f"{SWIMLANE} --test {T}/mixed_example/test_mixed_example.py --func-id 0,1,2 --platform a2a3sim",
    ),
    (f"{GUIDE} §3.2", f"{SWIMLANE} --test tests/st/case/test_name.py --func-id 0 --platform a2a3 --device 3"),
    (
        f"{GUIDE} §3.6",
        f"{SWIMLANE} --test t.py --func-id 0 --case small --dump-json args_dump.json --no-collect",
    ),
    (
        f"{GUIDE} §3.6",
        f"{SWIMLANE} --test t.py --func-id 0 --case small --dump-json args_dump.json --msprof-timeout 4",
    ),
    (f"{GUIDE} §3.7", f"{SWIMLANE} --test t.py --func-id 0,1,2 --platform a2a3sim"),
    (
        f"{GUIDE} §3.7",
        f"{SWIMLANE} --test t.py --func-id 3,4 --platform a2a3sim --dump-json outputs/C_Case_t/args_dump/args_dump.json",
    ),
    (
        f"{GUIDE} §3.3",
        f"{SWIMLANE} --test t.py --func-id 0 --task-id 0x1 --case Class::Case --restore-arg 6 --max-time 1800 "
        "--debug-line",
    ),
    (
        "simpler core-swimlane SKILL.md",
        f"{SWIMLANE} --platform a2a3sim --test t.py --func-id 0 -g --device 0",
    ),
    ("simpler docs/dfx/args-dump.md", "python -m simpler_setup.tools.dump_viewer outputs/run/args_dump"),
    (
        "simpler docs/dfx/args-dump.md",
        "python -m simpler_setup.tools.dump_viewer outputs/run --task 0x1 --stage before --role input --arg 0 --export",
    ),
    ("simpler docs/dfx/args-dump.md", "python -m simpler_setup.tools.dump_viewer --index 42"),
    (INCORE, "python $SKILL_DIR/incore_profile.py --build-dir build_output/case --target a2a3 --list-funcs"),
    (INCORE, "python $SKILL_DIR/incore_profile.py --build-dir build_output/case --target a5 --func kernel"),
    (
        INCORE,
        "python $SKILL_DIR/incore_profile.py --case case.py --target a2a3 --build-output-root build_output -- --n 4",
    ),
    (
        f"{INCORE}, all options",
        "python $SKILL_DIR/incore_profile.py --run-cmd make --task-submit --task-device auto --run-env A=1 "
        "--ptoas-dir d --source-glob g --cann-set-env s --ptoas-root p --pto-isa-root i --soc-version v "
        "--aicore-arch a --msopprof m --no-auto-msopprof --output-root o --name n --no-keep-going "
        "--launch-count 1 --msprof-timeout 180 --step-timeout 300 --build-timeout 600 --dynamic-dim 256",
    ),
    (
        "pypto-skills profile_extern_cce.py, all options",
        "python $SKILL_DIR/profile_extern_cce.py --build-dir b --args-dump d --func-id 0 --func k --task-id 0x1 "
        "--list-tasks --target a2a3 --replay-blocks 2 --zero-arg 3 --output-root o --name n --cann-set-env s "
        "--pto-isa-root i --device 0 --debug-line --no-collect --msprof-timeout 600",
    ),
]


def words_of(line):
    """The command of ours that a documented line comes to."""
    words = shlex.split(line)
    assert words[0] == "python"
    if words[1] == "-m":
        tool = tool_asked_for(words)
        assert tool is not None
        return command_of(tool, words[3:])
    script = SKILL / "scripts" / Path(words[1]).name
    assert script.is_file()
    return [re.search(r'run_line\(\["(\w+)"', script.read_text())[1], *words[2:]]


@pytest.mark.parametrize(("origin", "line"), DOCUMENTED)
def test_it_parses_as_it_stands(origin, line):
    name, *rest = words_of(line)
    command = importlib.import_module(f"insight_trace.commands.{name.replace('-', '_')}")
    assert commands._parser(name, command).parse_args(rest), origin


@pytest.mark.parametrize("line", CATEGORIES)
def test_every_category_verifies_from_a_checkout(line, simpler_checkout, tmp_path):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("these scenes need torch")
    if "paged_attention_unroll" in line and not os.environ.get("INSIGHT_TRACE_LONG_TESTS"):
        pytest.skip("set INSIGHT_TRACE_LONG_TESTS: its inputs take a gigabyte")
    name, *rest = words_of(line)
    at = rest.index("--test") + 1
    rest[at] = str(simpler_checkout / rest[at])
    done = subprocess.run(
        [sys.executable, "-m", "insight_trace", name, *rest], cwd=tmp_path, capture_output=True, text=True,
        timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "verified   slot" in done.stdout
    assert "mismatch" not in done.stdout
    (folder,) = (tmp_path / "outputs").glob("core_swimlane_*")
    label = re.sub(r"^core_swimlane_(.*)_\d{8}_\d{6}$", r"\1", folder.name)
    assert (folder / f"{label}_trace.json").is_file()
    assert (folder / f"{label}_trace_perfetto.json").is_file()
    used = sum(p.stat().st_blocks * 512 for p in tmp_path.rglob("*") if p.is_file())
    assert used <= 2e9


# What stands in brackets in these documents, filled in with examples of ours. Func ids 3,4 are simpler's own example.
FILLED = [line for origin, line in DOCUMENTED if "3,4" not in line and ", all options" not in origin][
    len(CATEGORIES) :
]


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """A dump of each example that lines are filled in with, captured once."""

    @functools.cache
    def dump(example: str) -> Path:
        place = tmp_path_factory.mktemp(example) / "dump"
        assert main(["capture", str(ROOT / "examples" / example / "scene.py"), "-o", str(place)]) == 0
        return place

    return dump


@pytest.mark.parametrize("line", FILLED)
def test_every_other_line_runs_with_its_brackets_filled(line, captured, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    example = "mixed_example" if "0,1,2" in line else "vector_chain"
    scene = str(ROOT / "examples" / example / "scene.py")
    shutil.copytree(captured(example), "outputs/run")
    manifest = json.loads(Path("outputs/run/args_dump/args_dump.json").read_text())
    shutil.copytree(BUILD, "build_output/case")
    Path("case.py").write_text(
        "import argparse, shutil\n"
        "given = argparse.ArgumentParser()\n"
        "given.add_argument('--n', type=int)\n"
        "assert given.parse_args().n == 4\n"
        f"shutil.copytree({str(BUILD)!r}, 'build_output/made')\n"
    )
    places = {
        f"{T}/mixed_example/test_mixed_example.py": scene,
        "tests/st/case/test_name.py": scene,
        "t.py": scene,
        "small": "Default",
        "Class::Case": "VectorChain::Default",
        "args_dump.json": "outputs/run/args_dump/args_dump.json",
        "0x1": manifest["args"][0]["task_id"],
        "6": "0",  # a slot that this kernel has
        "kernel": "square_rows",
        "a5": "a2a3",  # what the build was made for
        "42": "1",
    }
    words = [places.get(word, word) for word in words_of(line)]
    assert main(words) == 0, capsys.readouterr().err
    capsys.readouterr()


def test_a_flag_without_meaning_is_accepted_and_named_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scene = ROOT / "examples" / "vector_chain" / "scene.py"
    words = [
        "--test",
        str(scene),
        "--func-id",
        "0",
        "--platform",
        "a2a3",
        "-g",
        "--device",
        "5",
        "--max-time",
        "9",
    ]
    assert main(["core-swimlane", *words]) == 0
    said = capsys.readouterr()
    assert said.err.count("--device (no device is used)") == 1
    assert "verified" in said.out
    (folder,) = Path("outputs").glob("core_swimlane_*_mix0_*")
    assert len(list(folder.glob("*_trace.json"))) == 1
    assert len(list(folder.glob("*_trace_perfetto.json"))) == 1


def test_help_of_replay_shows_at_most_thirty_options_and_help_all_the_others(capsys):
    def shown(flag):
        assert main(["replay", flag]) == 0
        return set(re.findall(r"^  (--?[\w-]+)", capsys.readouterr().out, re.MULTILINE))

    few, every = shown("--help"), shown("--help-all")
    assert 20 <= len(few) <= 30
    assert {"--shadow", "--as-recorded", "--no-collect", "--seed"} <= every - few


def test_the_wrong_platform_is_named(capsys):
    scene = ROOT / "examples" / "vector_chain" / "scene.py"
    assert main(["core-swimlane", "--test", str(scene), "--func-id", "0", "--platform", "a7"]) == 2
    assert "runs on a7" in capsys.readouterr().err


def test_every_command_of_the_skill_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(BUILD, "build")
    text = (SKILL / "SKILL.md").read_text()
    assert text.startswith("---\nname: insight-trace\ndescription: ")
    lines = [line for block in re.findall(r"```bash\n(.*?)```", text, re.S) for line in block.splitlines()]
    assert len(lines) >= 9
    places = {
        "BUILD": "build",
        "RUN": "run",
        "KERNEL": "square_rows",
        "WORKSPACE": "workspace",
        "CLEAN": "clean",
    }
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "insight-trace"
        assert main([places.get(word, word) for word in words]) == 0, line
    capsys.readouterr()


def test_every_command_of_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(BUILD, "examples/pypto_run")
    text = (ROOT / "docs" / "from-a-pypto-build.md").read_text()
    lines = re.findall(r"^\$ (insight-trace .*)$", text, re.M)
    assert len(lines) == 5
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0, line
    capsys.readouterr()
