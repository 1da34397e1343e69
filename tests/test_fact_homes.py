"""Every fact has one home, and no module outgrows what can be read or is named by a word that nobody searches for."""

import ast
import importlib.util
import re
import sys
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


def test_a_module_is_one_thing_of_at_most_700_lines():
    files = [path for end in ("py", "cpp", "hpp", "h") for path in fact_homes.SOURCE.rglob(f"*.{end}")]
    assert len(files) > 300
    sizes = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert not {name: lines for name, lines in sizes.items() if lines > 700}


# Words of docs/glossary.md that nobody searches for.
BANNED = {"mend", "mends", "told", "look", "looks", "residue", "given", "beside", "drill", "parcel", "books", "ending",
          "meet"}  # fmt: skip


def test_no_module_or_class_is_named_by_a_word_that_the_glossary_bans():
    found = set()
    for path, tree in trees().items():
        names = {path.as_posix(): path.stem}
        names |= {f"{path.as_posix()}:{n.name}": n.name for n in tree.body if isinstance(n, ast.ClassDef)}
        for where, name in names.items():
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")
            if not name.startswith("_") and BANNED & set(words):
                found.add(where)
    assert not found
