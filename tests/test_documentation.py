"""What the documentation shows is true: its Python runs, its commands run, its options and files exist."""

import argparse
import importlib
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from insight_trace import commands

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# what a reader puts in the place of these words, in the folder that the README's commands leave
WORDS = {
    "DIRECTORY": "replayed",
    "BEFORE": "replayed",
    "AFTER": "replayed",
    "SCENE": "examples/paged_attention/scene.py",
}
# needs what a clone does not have: pandas, or a file of the reader's own
NEEDS = {"to_pandas": "pandas"}


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks():
    for page in PAGES:
        inside, kind, begin, lines = False, "", 0, []
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("```"):
                if inside:
                    yield Block(page, begin, kind, "\n".join(lines) + "\n")
                inside, kind, begin, lines = not inside, line[3:].strip(), number, []
            elif inside:
                lines.append(line)


BLOCKS = list(blocks())


def command_lines():
    """Every `insight-trace …` of a block or a code span, with the page that shows it."""
    for block in BLOCKS:
        if block.kind in ("", "sh", "console"):
            for line in block.text.splitlines():
                if found := re.match(r"\$? ?(insight-trace \S.*)", line):
                    yield block.page, re.split(r"\s+#|\s{3,}", found[1])[0].strip()
    for page in PAGES:
        for span in re.findall(r"`(insight-trace [a-z][^`]*)`", page.read_text(encoding="utf-8")):
            yield page, span.replace("\\|", "|")


COMMANDS = sorted({(page.name, line) for page, line in command_lines()})


def insight_trace(*words, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "insight_trace", *words], cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == 0, f"insight-trace {' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """The folder of somebody who typed the commands of the README's main example."""
    folder = tmp_path_factory.mktemp("reader")
    for name in ("examples", "tests"):
        (folder / name).symlink_to(ROOT / name)
    shown = [line for page, line in command_lines() if page.name == "README.md"]
    for line in shown:
        if line.split()[1] in ("capture", "replay") and "examples/" in line:
            insight_trace(*shlex.split(line)[1:], cwd=folder)
    assert (folder / "run").is_dir()
    assert (folder / "replayed").is_dir()
    return folder


@pytest.mark.parametrize("page", sorted({b.page.name for b in BLOCKS if b.kind == "python"}))
def test_the_python_of_a_page_runs(page, reader, monkeypatch):
    monkeypatch.chdir(reader)
    names = {"__name__": "documentation"}
    for block in BLOCKS:
        if block.page.name != page or block.kind != "python":
            continue
        lines = block.text.splitlines(keepends=True)
        for name, module in NEEDS.items():
            if name in block.text and importlib.util.find_spec(module) is None:
                lines = ["\n" if re.search(rf"= {name}\(", line) else line for line in lines]
        exec(compile("".join(lines), str(block), "exec"), names)


def test_the_commands_of_the_readme_run(reader):
    ran = 0
    for page, line in COMMANDS:
        words = [WORDS.get(word, word) for word in shlex.split(line)[1:]]
        if page != "README.md" or words[0] in ("capture", "replay", "export", "profile", "view"):
            continue  # the first two made the folder; the others open a browser or need a folder of the reader's
        if any(re.fullmatch(r"[A-Z]{1,9}", word) for word in words if word != "TADD") or "|" in line:
            continue
        insight_trace(*words, *(["--force"] if words[0] == "clean" else []), cwd=reader)
        ran += 1
    assert ran >= 5


def parser_of(command):
    module = importlib.import_module(f"insight_trace.commands.{command.replace('-', '_')}")
    parser = argparse.ArgumentParser(allow_abbrev=False)
    commands.prepare(parser, module)
    return parser


def options_of(parser):
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from options_of(sub)


@pytest.mark.parametrize(("page", "line"), COMMANDS, ids=lambda value: str(value)[:60])
def test_a_command_that_is_shown_has_the_options_that_it_is_shown_with(page, line):
    from insight_trace.commands import COMMANDS as KNOWN

    command = line.split()[1]
    assert command in KNOWN, f"{page}: {line}"
    before_others = line.split(" -- ")[0]
    known = set(options_of(parser_of(command))) | {"--debug"}
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", before_others):
        assert option in known, f"{page}: insight-trace {command} has no {option}"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", prose):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_source_files_that_pages_name_exist():
    for page in PAGES:
        for named in re.findall(
            r"`((?:(?:src|tests|docs|examples|benchmarks)/[\w./-]+)|tools/\w+\.py)`", page.read_text()
        ):
            assert (ROOT / named).exists(), f"{page.name}: {named}"


def test_the_chip_file_of_the_page_is_a_chip_file(tmp_path):
    from insight_trace.chips import load_chip

    (block,) = [b for b in BLOCKS if b.kind == "toml" and b.page.name == "adding-a-chip.md"]
    path = tmp_path / "mine.toml"
    path.write_text(block.text)
    assert load_chip(str(path)).name == "Ascend910B9"


def actions_of(name, parser):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, sub in action.choices.items():
                yield from actions_of(f"{name} {word}", sub)
        else:
            yield name, action


def test_every_option_of_every_command_says_what_it_is():
    from insight_trace.commands import COMMANDS as KNOWN

    silent = [
        f"{name} {'/'.join(action.option_strings) or action.dest}"
        for command in KNOWN
        for name, action in actions_of(command, parser_of(command))
        if not action.help
    ]
    assert not silent


ARCHITECTURE = ROOT / "docs" / "architecture.md"


def test_the_architecture_page_names_every_package_and_no_other():
    from tests.test_import_direction import ORDER

    rows = re.findall(r"^\| (`.+?) \|", ARCHITECTURE.read_text().partition("| package | knows |")[2], re.M)
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert named == set(ORDER) - {"__main__"}


def test_every_type_and_file_of_the_architecture_page_is_found():
    text = ARCHITECTURE.read_text()
    package = ROOT / "src" / "insight_trace"
    for row in re.findall(r"^\| `.*\| .*\| (.*\.py`.*) \|$", text, re.M):
        words = re.findall(r"`([\w.]+)`", row)
        files = [next(package.rglob(word)).read_text() for word in words if word.endswith(".py")]
        for word in words:
            if not word.endswith(".py"):
                frozen = (
                    rf"frozen=True.*\nclass {word}\b|class {word}\(([\w.]+, )?(msgspec\.)?Struct, frozen=True"
                )
                assert any(re.search(frozen, file) for file in files), word
    known = {
        path.name
        for folder in ("src", "tools", "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.*")
    }
    files = set(re.findall(r"`(?:[\w/]+/)?(\w+\.(?:py|cpp|hpp|def))`", text))
    assert len(files) > 20
    assert files <= known
