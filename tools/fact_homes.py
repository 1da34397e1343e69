"""Where each fact is defined: python tools/fact_homes.py prints the homes, and ends with 1 if a fact has two.

A fact is found by the text of its definition. Copies that a compiler needs (C++ headers) are listed with the test
that holds them against the home.
"""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "insight_trace"


@dataclass(frozen=True)
class Fact:
    """One fact, what its definition looks like, and where that stands."""

    name: str
    pattern: str
    home: str  # a file, or a folder that ends in /
    copies: tuple[str, ...] = ()  # held against the home by a test
    ends: tuple[str, ...] = (".py",)


_CODE = (".py", ".hpp", ".cpp", ".h", ".def", ".toml", ".j2")
FACTS = (
    Fact("element types: names, codes, sizes",
         r'"FLOAT32",\s*(0|4)|"(FLOAT32|[fF]loat32|f32|fp32|float|int32_t)"\s*:\s*4\b|\bFLOAT32 = 0', "dtypes.py",
         ("simulate/embedded/include/insight_trace/element_types.hpp", "capture/include/data_type.h"), _CODE),
    Fact("bytes of a scalar slot as a number", r"def (scalar_value|value_of_bits|decode_\w*scalar)\b", "dtypes.py"),
    Fact("number of slots", r"\bARG_SLOTS = |\bSLOTS = 50\b|kSlots = 50", "model.py", ends=_CODE),
    Fact("slots of the contexts", r"CONTEXT_(SLOT|INDEX) = 4[89]", "model.py",
         ("simulate/embedded/include/intrinsic.h",), _CODE),
    Fact("layout of the tensor descriptor", r'"start_offset": "Q"|struct alignas\(64\) ChipTensor', "arguments/packing.py",
         ("simulate/embedded/include/tensor.h", "capture/include/tensor.h"), _CODE),
    Fact("clocks of chips", r"\b(1850|1650|1224|1060)(\.0)?\b(?=[^\n]*(MHz|mhz|[cC]lock)|,|\))", "chips/",
         ends=(".py", ".toml")),
    Fact("names of chip families for tools", r"dav[-_](c220|c310|2201|3510)", "chips/", ends=(".py", ".toml", ".j2")),
    Fact("defines of an architecture", r"__CCE_AICORE__=\d|PTO_NPU_ARCH_A(2A3|5)\"", "chips/", ends=(".py", ".toml", ".j2")),
    Fact("ceilings of a core", r"GM_TO_L1 = |\"GM_TO_L1\": \d", "chips/", ends=(".py", ".toml")),
    Fact("list of chip parameters", r"^PARAMETER\(flag, latency\)", "simulate/embedded/engine/parameters.def", ends=_CODE),
    Fact("defaults of chip parameters (none)", r"parameters_?\.get\(\"", "", ends=_CODE),
    Fact("list of instructions", r"^INSTR\(VADD, V,", "simulate/embedded/engine/instructions.def", ends=_CODE),
    Fact("core type of a kernel's source", r"MATMUL\\w|\"TMATMUL\" in", "scene/kernel_source.py",
         copies=("program/core_kinds.py",)),  # what a launched kernel reaches, not what a file mentions
    Fact("start and end of programs", r"subprocess\.(run|Popen|call|check_\w+)\(|os\.(posix_spawn|exec[lv])",
         "supervisor.py", copies=("program/torch/torch_npu/_build.py",)),  # runs in the user's Python, without us
    Fact("protocol of the simulators", r"^class \w*Simulator\(Protocol\)", "simulate/simulators.py"),
    Fact("protocol of a profile's runners", r"^class \w*Runner\(Protocol\)", "profile/kernel_runner.py"),
    Fact("what --simulator auto takes", r'"CANN_SET_ENV", "ASCEND_HOME_PATH"|"auto", "embedded"',
         "simulate/simulators.py"),
    Fact("option --simulator", r'^\s+"--simulator",', "options.py"),
    Fact("verification of outputs", r"^def verify_outputs\b", "replay/verification.py"),
    Fact("names of pipes", r"^def pipe_name\(", "recording/pipes.py"),
    Fact("order of pipes", r"^DATAFLOW = |Pipe\.MTE2,\s+Pipe\.MTE1,\s+Pipe\.CUBE", "recording/pipes.py"),
    Fact("the engine's pipes", r"Pipe\.SCALAR, Pipe\.VECTOR, Pipe\.CUBE", "recording/pipes.py"),
    Fact("pipes as operands spell them", r'"SCALAR", "VEC", "CUBE"', "recording/pipes.py"),
    Fact("pipes as kernels spell them", r'"S", "V", "M", "MTE1"', "recording/pipes.py"),
    Fact("memories of a core", r'"UB", "L1", "L0A", "L0B", "L0C", "BT"', "recording/operands.py"),
    Fact("names of sets and waits", r'\{"(SET|WAIT)_FLAG",|"SET_FLAG",\s*"WAIT_FLAG"|[!=]= "(SET|WAIT)_FLAG"',
         "recording/kinds.py"),
    Fact("kinds of instruction", r"^def kinds\(", "recording/kinds.py"),
    Fact("verdict on work", r'^def works\(|frozenset\(\{[^}]*"MOVEMASK"', "recording/kinds.py"),
    Fact("pairing of flags", r"^def (partners|_?in_turn)\(", "recording/flag_pairs.py"),
    Fact("union of intervals", r"^def \w*union\w*\(|^def added\(", "recording/intervals.py"),
    Fact("busy, waiting, idle of a pipe", r"^class (PipeStats|Cores)\b", "recording/busy.py"),
    Fact("frames and lines", r"^def (user_frame|split_frame|line_text)\(", "recording/frames.py"),
    Fact("operand text", r"TRIGGERPIPE:\{", "recording/detail.py"),
    Fact("operand text of others", r'(\(|= )\s*r"[^"\n]*(dtype:|sync_id:|elements:|TRIGGERPIPE)', "recording/foreign.py"),
    Fact("tables of operands", r"^(GEOMETRY|FOOTPRINT|TILE|OPERAND)_FIELDS = ", "recording/operands.py"),
    Fact("rows of a stream", r"^def (take|empty)\(", "recording/stream.py"),
)  # fmt: skip


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def homes(fact: Fact) -> list[str]:
    """Every file that defines the fact, as a path below src/insight_trace."""
    pattern = re.compile(fact.pattern, re.M)
    found = set()
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix in fact.ends and pattern.search(_text(path)):
            relative = path.relative_to(SOURCE).as_posix()
            inside = fact.home.endswith("/") and relative.startswith(fact.home)
            found.add(fact.home if inside else relative)
    return sorted(found)


def seconds(fact: Fact) -> list[str]:
    """Homes that the fact should not have."""
    return [home for home in homes(fact) if home != fact.home and home not in fact.copies]


def main() -> int:
    wrong = 0
    for fact in FACTS:
        extra = seconds(fact)
        wrong += bool(extra)
        copies = f" (checked copies: {', '.join(fact.copies)})" if fact.copies else ""
        more = f"   ALSO: {', '.join(extra)}" if extra else ""
        print(f"{fact.name:<40} {fact.home or '-'}{copies}{more}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
