"""Every fact has one home, every module and class one name, and modules a size that can be read."""

import ast
import importlib.util
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.source_trees import trees

ROOT = Path(__file__).resolve().parent.parent
SPEC = importlib.util.spec_from_file_location("fact_homes", ROOT / "tools" / "fact_homes.py")
fact_homes = importlib.util.module_from_spec(SPEC)
sys.modules["fact_homes"] = fact_homes
SPEC.loader.exec_module(fact_homes)


@pytest.mark.parametrize("fact", fact_homes.FACTS, ids=lambda fact: fact.name)
def test_a_fact_is_defined_in_one_place(fact):
    found = fact_homes.homes(fact)
    assert not fact_homes.seconds(fact), f"{fact.name}: {found}"
    assert (fact.home in found) == bool(fact.home), f"{fact.name} is not where it is said to be: {found}"


# what somebody who did not know the home would write
SECONDS = [
    ("element types: names, codes, sizes", 'SIZES = {"FLOAT32": 4}'),
    ("element types: names, codes, sizes", '_SIZEOF = {\n    "float": 4,\n}'),
    ("bytes of a scalar slot as a number", "def decode_scalar(bits, dtype):"),
    ("number of slots", "SLOTS = 50"),
    ("layout of the tensor descriptor", 'FIELDS = {"start_offset": "Q"}'),
    ("clocks of chips", 'MHZ = {"910B1": 1850.0, "clock": 1}'),
    ("core type of a kernel's source", 'cube = "TMATMUL" in text'),
    ("start and end of programs", "done = subprocess.run(words)"),
    ("protocol of the simulators", "class Simulator(Protocol):"),
    ("what --simulator auto takes", 'choices=("auto", "embedded", "msprof")'),
    ("names of pipes", "def pipe_name(number):"),
    ("names of sets and waits", 'if name == "WAIT_FLAG":'),
    ("names of sets and waits", 'SYNC = frozenset({"SET_FLAG", "WAIT_FLAG"})'),
    ("verdict on work", "def works(instructions):"),
    ("pairing of flags", "def partners(rows):"),
    ("union of intervals", "def union_of(intervals):"),
    ("busy, waiting, idle of a pipe", "class PipeStats:"),
    ("rows of a stream", "def take(rows):"),
]


@pytest.mark.parametrize(("name", "text"), SECONDS, ids=lambda value: value[:40])
def test_a_second_definition_would_be_found(name, text, tmp_path, monkeypatch):
    (fact,) = [fact for fact in fact_homes.FACTS if fact.name == name]
    monkeypatch.setattr(fact_homes, "SOURCE", tmp_path)
    (tmp_path / "other.py").write_text(text + "\n")
    assert fact_homes.seconds(fact) == ["other.py"]


def test_outside_the_commands_a_module_name_occurs_once():
    names = Counter(
        path.stem
        for path in fact_homes.SOURCE.rglob("*.py")
        if path.stem not in ("__init__", "__main__") and path.parent.name != "commands"
    )
    assert not [name for name, count in names.items() if count > 1]


def test_outside_the_commands_a_public_class_has_its_name_alone():
    places = defaultdict(list)
    for path, tree in trees().items():
        if path.parts[0] != "commands":
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(path))
    assert not {name: where for name, where in places.items() if len(where) > 1}


# Names that users of simpler type. Each is put into an installed simpler by itself, so none can take from another.
TYPED_NAMES = {f"simpler_setup/tools/{name}.py" for name in ("insight_trace", "core_swimlane", "dump_viewer")}


def test_a_module_can_be_read_in_one_sitting_and_is_worth_its_name():
    source = fact_homes.SOURCE.parent
    sizes = {
        path.relative_to(source).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in source.rglob("*.py")
        if path.name != "__init__.py"
    }
    assert not {name: lines for name, lines in sizes.items() if lines > 400}
    assert {name for name, lines in sizes.items() if lines < 30} <= TYPED_NAMES


def test_a_file_of_the_engine_and_its_headers_can_be_read_in_one_sitting():
    files = [path for end in ("cpp", "hpp", "h") for path in fact_homes.SOURCE.rglob(f"*.{end}")]
    assert len(files) > 100
    sizes = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert not {name: lines for name, lines in sizes.items() if lines > 400}
