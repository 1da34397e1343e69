"""Counts the instructions of the simulated core: in the table, with semantics, issued by tile ops, called by libraries.

Writes docs/instructions.md with --write. The libraries' calls come from a CSV file (name, family, chips, called_by, …):
--calls, or data/intrinsics.csv below INSIGHT_TRACE_SHARED.
"""

import argparse
import csv
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
EMBEDDED = ROOT / "src/insight_trace/simulate/embedded"
ENGINE, HEADERS = EMBEDDED / "engine", EMBEDDED / "include/insight_trace"
PAGE = ROOT / "docs/instructions.md"
_WITHOUT = "none"  # of the column of semantics


class Instruction(NamedTuple):
    name: str
    pipe: str
    form: str
    semantics: str

    @property
    def executes(self) -> bool:
        return self.semantics != _WITHOUT


def table() -> dict[str, Instruction]:
    text = (ENGINE / "instructions.def").read_text(encoding="utf-8")
    rows = re.findall(r"^INSTR\((\w+), (\w+), (\w+), (\w+)\)", text, re.M)
    return {row[0]: Instruction(*row) for row in rows}


def intrinsics() -> dict[str, str]:
    """Vector instructions by the device compiler's names, with the hardware instruction behind each."""
    text = (HEADERS / "isa/vector.def").read_text(encoding="utf-8")
    found = dict(re.findall(r"^(?:VECTOR|NARROW)\((\w+), (\w+)", text, re.M))
    found.update(dict.fromkeys(re.findall(r"^(?:CONVERT|REQUANTISE)\((\w+)", text, re.M), "VCONV"))
    return found


class RegisterInstruction(NamedTuple):
    name: str
    cost: str
    form: str
    semantics: str


def registers() -> list[RegisterInstruction]:
    """Instructions on the vector registers of the 950, each with the instruction that prices it."""
    text = (HEADERS / "isa/register.def").read_text(encoding="utf-8")
    rows = re.findall(r"^REGISTER\((\w+), (\w+), (\w+), (\w+)\)", text, re.M)
    return [RegisterInstruction(*row) for row in rows]


def issued() -> dict[str, set[str]]:
    """Instructions that tile ops name, and where; `run` by the table where the op computes nothing itself."""
    found: dict[str, set[str]] = {}
    for path in sorted((ENGINE / "ops").glob("*.[ch]pp")):
        for name in re.findall(r"\bInstr::(\w+)", path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(path.stem)
    return found


# What reaches the bytes of a memory: only the functions of engine/isa, which execute instructions, may.
_BYTES = r"\bView<|\blocal_as<|\b(?:core_?|owner|other)(?:\.|->)(?:local|global)\(|\bregister_file_\b"


def computing_ops() -> dict[str, int]:
    """Sources of tile ops that reach bytes beside their instructions: how often each does."""
    found = {}
    for path in sorted((ENGINE / "ops").glob("*.[ch]pp")):
        count = len(re.findall(_BYTES, path.read_text(encoding="utf-8")))
        if count:
            found[path.stem] = count
    return found


def composites() -> list[str]:
    """What is executed as a whole where a library has many instructions (isa/composites.hpp, isa/tables.hpp)."""
    found: list[str] = []
    for path in sorted((ENGINE / "isa").glob("composite_*.cpp")):
        found.append(path.stem.removeprefix("composite_"))
    return found


def callable_names() -> set[str]:
    """What a kernel can call: names in the headers, without those that are refused."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(HEADERS.rglob("*.*pp")))
    text = re.sub(r"INSIGHT_TRACE_REFUSED\(\w+\)", "", text)
    words = set(re.findall(r"\b[a-z_]\w+\b", text)) | set(intrinsics()) | {row.name for row in registers()}
    # names that macros put together
    for stem, sizes in (
        *((stem, ("_b8", "_b16", "_b32")) for stem in ("pset", "pge", "plt", "pintlv", "pdintlv")),
        ("copy_gm_to_ubuf_align_", ("b8", "b16", "b32")),
        ("copy_ubuf_to_gm_align_", ("b8", "b16", "b32")),
    ):
        words.update(stem + size for size in sizes)
    return words


def calls(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def by_library(rows: list[dict[str, str]]) -> dict[str, tuple[int, int]]:
    """Per library: names that it calls, and how many of them a kernel can call here."""
    known = callable_names()
    total, here = Counter[str](), Counter[str]()
    for row in rows:
        for library in filter(None, row["called_by"].split(";")):
            total[library] += 1
            here[library] += row["name"] in known
    return {library: (total[library], here[library]) for library in sorted(total)}


def summary(calls_file: Path | None) -> str:
    rows, ops = table(), issued()
    executed = [row for row in rows.values() if row.executes]
    by_ops = [rows[name] for name in ops if name in rows]
    lines = [
        f"instructions in the table           {len(rows)}",
        f"  with semantics                    {len(executed)}",
        f"  issued by some tile op            {len(by_ops)}",
        f"    of those with semantics         {sum(row.executes for row in by_ops)}",
        f"vector intrinsics by name           {len(intrinsics())}",
        f"  on registers of the 950           {len(registers())}",
        f"sources of ops that compute values  {len(computing_ops())}",
        f"composites of the 950               {len(composites())}  {' '.join(composites())}",
    ]
    missing = sorted(row.name for row in by_ops if not row.executes)
    if missing:
        lines.append("issued without semantics            " + " ".join(missing))
    if calls_file:
        lines += ["", f"{'library':<24} calls  here"]
        lines += [
            f"{name:<24} {total:5}  {here:4}" for name, (total, here) in by_library(calls(calls_file)).items()
        ]
    return "\n".join(lines)


def page() -> str:
    names: dict[str, list[str]] = {}
    for intrinsic, instruction in intrinsics().items():
        names.setdefault(instruction, []).append(intrinsic)
    ops = issued()
    lines = [
        "| instruction | pipe | form | semantics | intrinsics | tile ops in |",
        "|---|---|---|---|---|---|",
    ]
    for row in table().values():
        called = names.get(row.name, [])
        shown = ", ".join(called[:6]) + (f" and {len(called) - 6} more" if len(called) > 6 else "")
        where = ", ".join(sorted(ops.get(row.name, ())))
        lines.append(f"| {row.name} | {row.pipe} | {row.form} | {row.semantics} | {shown} | {where} |")
    lines += [
        "",
        "On the vector registers of the 950; the price is that of the instruction in the second column:",
        "",
    ]
    lines += ["| instruction | priced as | form | semantics |", "|---|---|---|---|"]
    lines += [f"| {row.name} | {row.cost} | {row.form} | {row.semantics} |" for row in registers()]
    return "\n".join(lines) + "\n"


_BEGIN = "<!-- table: tools/instruction_coverage.py --write -->\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=Path, metavar="FILE", help="the CSV file of what libraries call")
    parser.add_argument("--write", action="store_true", help="write the table of docs/instructions.md")
    options = parser.parse_args()
    calls_file = options.calls
    if not calls_file and (shared := os.environ.get("INSIGHT_TRACE_SHARED")):
        calls_file = Path(shared) / "data/intrinsics.csv"
    if calls_file and not calls_file.is_file():
        print(
            f"{calls_file}: no such file; --calls FILE names the list of what libraries call", file=sys.stderr
        )
        return 2
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(text[: text.index(_BEGIN) + len(_BEGIN)] + page(), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
    print(summary(calls_file))
    return 0


if __name__ == "__main__":
    sys.exit(main())
