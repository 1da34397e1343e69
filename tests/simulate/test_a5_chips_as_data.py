"""Every number of a chip says what it is worth and where it comes from."""

import tomllib

import pytest

from insight_trace.chips import FOLDER, chip_names, load_chip
from insight_trace.simulate.embedded.engine_objects import ENGINE

KINDS = {"measured", "published", "derived", "estimate"}


def entries(table, path=()):
    for key, value in table.items():
        if isinstance(value, dict) and "kind" in value:
            yield (*path, key), value
        elif isinstance(value, dict):
            yield from entries(value, (*path, key))


@pytest.mark.parametrize("file", sorted(p.name for p in FOLDER.glob("*.toml")))
def test_every_number_has_a_kind_and_a_source(file):
    found = list(entries(tomllib.loads((FOLDER / file).read_text(encoding="utf-8"))))
    assert found
    for path, entry in found:
        assert entry["kind"] in KINDS, path
        assert len(entry["source"]) > 3, path


def test_both_families_have_a_cost_for_the_same_vector_instructions():
    a2a3, a5 = (tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8")) for name in ("a2a3", "a5"))
    missing = set(a2a3["vector"]) - set(a5["vector"])
    assert not missing
    assert set(a2a3["move"]) - set(a5["move"]) <= {"MOV_UB_TO_UB"}  # a function there


def test_no_table_names_an_instruction_that_does_not_exist():
    known = (ENGINE / "instructions.def").read_text("utf-8")
    for name in chip_names():
        for line in load_chip(name).job_lines:
            kind, instr, *_ = line.split("\t")
            assert kind == "value" or f"INSTR({instr}," in known, line


def test_what_a_trace_shows_can_be_looked_up_in_the_tables():
    from insight_trace.simulate.embedded.records import tabled_name

    assert tabled_name("RV_VADD") == tabled_name("VADD") == "VADD"
    assert tabled_name("RV_VCVT_F2F") == "VCONV"
    assert tabled_name("MOV_OUT_TO_UB_ALIGN_V2") == "MOV_OUT_TO_UB_ALIGN"
