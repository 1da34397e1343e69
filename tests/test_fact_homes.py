"""Every fact has one home, every module and class one name, and modules a size that can be read."""

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

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


def test_a_second_definition_would_be_found(tmp_path, monkeypatch):
    monkeypatch.setattr(fact_homes, "SOURCE", tmp_path)
    (tmp_path / "other.py").write_text('SIZES = {"FLOAT32": 4}\nMHZ = {"910B1": 1850.0, "clock": 1}\n')
    found = {fact.name for fact in fact_homes.FACTS if fact_homes.seconds(fact)}
    assert {"element types: names, codes, sizes", "clocks of chips"} <= found


def test_outside_the_commands_a_module_name_occurs_once():
    names = Counter(
        path.stem
        for path in fact_homes.SOURCE.rglob("*.py")
        if path.stem not in ("__init__", "__main__") and path.parent.name != "commands"
    )
    assert not [name for name, count in names.items() if count > 1]
