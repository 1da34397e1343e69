"""What `--sarif` writes holds against the schema of SARIF 2.1.0, as far as it is used here, and wrong files do not."""

import copy
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from insight_trace.__main__ import main
from insight_trace.check.sarif import sarif
from insight_trace.finding import Finding, Place, Severity
from tests.conftest import ROOT

# What the schema knows of the objects that are written: those of its properties that are used here, and which of
# them it requires. It closes every object.
_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": -1}
_LINE = {"type": "integer", "minimum": 1}


def _list(kind: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/definitions/{kind}"}}


def _object(required: str = "", **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": required.split(),
    }


def _is(kind: str) -> dict[str, Any]:
    return {"$ref": f"#/definitions/{kind}"}


RULES = {
    **_object(
        "version runs",
        **{"$schema": _TEXT, "version": {"enum": ["2.1.0"]}, "runs": _list("run")},
    ),
    "definitions": {
        "run": _object(
            "tool", tool=_is("tool"), results=_list("result"), columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]}
        ),
        "tool": _object("driver", driver=_is("component")),
        "component": _object("name", name=_TEXT, version=_TEXT, rules={**_list("rule"), "uniqueItems": True}),
        "rule": _object("id", id=_TEXT),
        "result": _object(
            "message", ruleId=_TEXT, ruleIndex=_COUNT, level={"enum": ["none", "note", "warning", "error"]},
            message=_is("message"), occurrenceCount=_LINE, locations=_list("location"),
            relatedLocations={**_list("location"), "uniqueItems": True},
        ),
        "message": _object("text", text=_TEXT),
        "location": _object("", id=_COUNT, physicalLocation=_is("place"), message=_is("message")),
        "place": _object("artifactLocation", artifactLocation=_is("artifact"), region=_is("region")),
        "artifact": _object("uri", uri={"type": "string", "format": "uri-reference"}),
        "region": _object("startLine", startLine=_LINE),
    },
}  # fmt: skip

_TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "number": (int, float),
    "null": type(None),
}  # fmt: skip
# of a schema: what says nothing about a value
_REMARKS = {"$schema", "id", "title", "description", "default", "definitions"}


def faults(value: Any, rule: dict[str, Any], whole: dict[str, Any], at: str = "") -> list[str]:
    """What of a value is not as a JSON schema (draft 4, as far as SARIF's uses it) has it."""
    found: list[str] = []
    for word, wanted in rule.items():
        match word:
            case "$ref":
                part: Any = whole
                for name in wanted.removeprefix("#/").split("/"):
                    part = part[name]
                found += faults(value, part, whole, at)
            case "type":
                kinds = wanted if isinstance(wanted, list) else [wanted]
                fits = [
                    isinstance(value, _TYPES[kind]) and (kind == "boolean" or value is not True)
                    for kind in kinds
                ]
                if not any(fits):
                    return [f"{at}: no {wanted}"]
            case "enum" if value not in wanted:
                found.append(f"{at}: {value!r} is none of {wanted}")
            case "minimum" if value < wanted:
                found.append(f"{at}: below {wanted}")
            case "maximum" if value > wanted:
                found.append(f"{at}: above {wanted}")
            case "pattern" if not re.search(wanted, value):
                found.append(f"{at}: not as {wanted}")
            case "format" if wanted in ("uri", "uri-reference") and not re.fullmatch(
                r"[!#-;=?-\[\]_a-z~%]*", value
            ):
                found.append(f"{at}: no {wanted}")
            case "minItems" if len(value) < wanted:
                found.append(f"{at}: fewer than {wanted}")
            case "uniqueItems" if wanted and any(one in value[:i] for i, one in enumerate(value)):
                found.append(f"{at}: not unique")
            case "items":
                for number, one in enumerate(value):
                    found += faults(one, wanted, whole, f"{at}[{number}]")
            case "required":
                found += [f"{at}: has no {name}" for name in wanted if name not in value]
            case "properties":
                for name in value.keys() & wanted.keys():
                    found += faults(value[name], wanted[name], whole, f"{at}.{name}")
            case "additionalProperties":
                for name in value.keys() - rule.get("properties", {}).keys():
                    if wanted is False:
                        found.append(f"{at}: unknown {name}")
                    elif isinstance(wanted, dict):
                        found += faults(value[name], wanted, whole, f"{at}.{name}")
            case "anyOf" | "oneOf":
                if all(faults(value, one, whole, at) for one in wanted):
                    found.append(f"{at}: none of the forms")
            case "enum" | "minimum" | "maximum" | "pattern" | "format" | "minItems" | "uniqueItems":
                pass  # held
            case _:
                assert word in _REMARKS, f"this schema has {word}, which is not looked at here"
    return found


PUBLISHED = os.environ.get("INSIGHT_TRACE_SARIF_SCHEMA", "")  # a copy of sarif-schema-2.1.0.json


def _schemas() -> list[dict[str, Any]]:
    """The rules above, and the published ones where they are at hand."""
    return [RULES, *([json.loads(Path(PUBLISHED).read_text(encoding="utf-8"))] if PUBLISHED else [])]


def _log(folder: Path) -> dict[str, Any]:
    race = Finding(
        "race",
        Severity.ERROR,
        "VADDS reads what TLOAD writes",
        "set_flag",
        (Place("a.cpp", 3, "MOV", "MTE2"), Place("a.cpp", 7, "VADDS", "V")),
    )
    nowhere = Finding("output-unwritten", Severity.WARNING, "slot 2 is an output", "store there")
    barrier = Finding(
        "redundant-sync", Severity.NOTE, "idle", "", (Place("/a b/x y.cpp", 0, "BAR", "V"),), count=9
    )
    return sarif([race, nowhere, barrier], folder)


def test_every_kind_of_finding_holds_against_the_schema(tmp_path):
    log = _log(tmp_path)
    assert [faults(log, schema, schema) for schema in _schemas()] == [[]] * len(_schemas())
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [r["ruleId"] for r in run["results"]]
    assert [result["occurrenceCount"] for result in run["results"]] == [1, 1, 9]
    race = run["results"][0]
    assert (race["ruleId"], race["level"]) == ("race", "error")
    assert race["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert race["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 3


WRONG = {
    "another version": lambda log: log.update(version="2.0.0"),
    "no runs": lambda log: log.pop("runs"),
    "a run without its tool": lambda log: log["runs"][0].pop("tool"),
    "a tool without a name": lambda log: log["runs"][0]["tool"]["driver"].pop("name"),
    "a level of our own": lambda log: log["runs"][0]["results"][0].update(level="fatal"),
    "a result without words": lambda log: log["runs"][0]["results"][0].pop("message"),
    "a word that it does not have": lambda log: log["runs"][0]["results"][0].update(severity="error"),
    "a count in words": lambda log: log["runs"][0]["results"][0].update(occurrenceCount="once"),
    "line 0": lambda log: log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"].update(startLine=0),
    "a blank in an address": lambda log: log["runs"][0]["results"][0]["locations"][0]["physicalLocation"][
        "artifactLocation"
    ].update(uri="a b.cpp"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_file_with_a_fault_does_not(tmp_path, name):
    log = copy.deepcopy(_log(tmp_path))
    WRONG[name](log)
    assert [len(faults(log, schema, schema)) for schema in _schemas()] == [1] * len(_schemas())


def test_what_the_command_writes_holds_against_the_schema(tmp_path, capsys):
    path = tmp_path / "found.sarif"
    assert main(["check", str(ROOT / "examples" / "paged_attention" / "scene.py"), "--sarif", str(path)]) == 0
    log = json.loads(path.read_text(encoding="utf-8"))
    assert [faults(log, schema, schema) for schema in _schemas()] == [[]] * len(_schemas())
    assert log["runs"][0]["results"]
    assert "errors" in capsys.readouterr().out
